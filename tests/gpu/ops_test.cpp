// Every operation and its gradient on the device, against the double oracle.

#include <gtest/gtest.h>

#include "tests/gpu/gpu_device.h"
#include "tests/reference/op_check.h"

namespace imprint {
namespace {

class OpsTest : public testing::TestWithParam<reference::OpCase> {
 protected:
  void check(bool fuse) {
    ASSERT_NE(test::gpu(), nullptr);
    reference::check_case(test::gpu()->session(), GetParam(), fuse);
    test::expect_validation_silent();
  }
};

TEST_P(OpsTest, Fused) { check(true); }
TEST_P(OpsTest, OneKernelAnOperation) { check(false); }

INSTANTIATE_TEST_SUITE_P(Case, OpsTest, testing::ValuesIn(reference::op_cases()), reference::case_name);

}  // namespace
}  // namespace imprint
