// Every operation and its gradient on the CPU, against the double oracle.

#include <gtest/gtest.h>

#include "tests/reference/op_check.h"

namespace imprint {
namespace {

class CpuOpsTest : public testing::TestWithParam<reference::OpCase> {
 protected:
  void check(bool fuse) {
    const std::unique_ptr<Runtime> runtime = Runtime::create_on_cpu();
    Session session(*runtime);
    reference::check_case(session, GetParam(), fuse);
  }
};

TEST_P(CpuOpsTest, Fused) { check(true); }
TEST_P(CpuOpsTest, OneKernelAnOperation) { check(false); }

INSTANTIATE_TEST_SUITE_P(Case, CpuOpsTest, testing::ValuesIn(reference::op_cases()), reference::case_name);

}  // namespace
}  // namespace imprint
