// Kernels of products of 8-bit numbers keep to the limits of small devices. Needs no GPU.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "compute/graph/plan/fusion.h"
#include "compute/kernels/dispatch_source.h"
#include "compute/program/device_profile.h"
#include "compute/program/program_impl.h"
#include "compute/tensor/ops/whole_product.h"

namespace imprint {
namespace {

// A device with Vulkan's least memory per workgroup, and more invocations than that guarantees.
vk::CapabilityProfile small_device() {
  vk::CapabilityProfile profile;
  profile.max_workgroup_invocations = profile.max_workgroup_size_x = 256;
  profile.max_storage_buffers_per_stage = 8;
  return profile;
}

// The GLSL of all kernels of rows x terms numbers times terms x columns weights.
std::string kernels_of(std::int64_t rows, std::int64_t terms, std::int64_t columns,
                       const vk::CapabilityProfile& profile) {
  const Tensor x = input("x", {rows, terms}), zero = input("zero", {});
  const SharedBytes weights(
      std::vector<std::byte>(static_cast<std::size_t>(columns * tensor::padded_terms(terms)), std::byte{1}));
  const Tensor product = tensor::whole_matmul({.numbers = x,
                                               .zero = zero,
                                               .low = 0,
                                               .weights = weights,
                                               .columns = columns,
                                               .sums = DType::float32,
                                               .in_float = [=](const Tensor& centred) {
                                                 return matmul(centred, ones({terms, columns}));
                                               }});
  program::ProgramGraph source =
      program::build_program_graph({.name = "product", .inputs = {x, zero}, .outputs = {product}}).value();
  const graph::Schedule schedule =
      graph::fuse(source.graph, source.request, program::fusion_options(source, profile)).value();
  const auto dispatches = kernels::build_dispatches(source.graph, schedule, program::dispatch_limits(profile),
                                                    [](const graph::Place&) { return 0; });
  std::string glsl;
  for (const kernels::DispatchSource& dispatch : dispatches.value()) glsl += dispatch.glsl;
  return glsl;
}

std::int64_t constant_of(const std::string& glsl, const std::string& name) {
  const std::string line = "#define " + name + " ";
  const std::size_t at = glsl.find(line);
  return at == std::string::npos ? 0 : std::atoll(glsl.c_str() + at + line.size());
}

TEST(WholeProductKernels, OfFewRowsFitTheLeastSharedMemory) {
  const std::string glsl = kernels_of(16, 2048, 8192, small_device());
  const std::int64_t staged = constant_of(glsl, "BATCH") * constant_of(glsl, "STAGE") * 16,
                     sums = 256 * (constant_of(glsl, "OWN") + 1) * 4;
  EXPECT_GT(staged, 0);
  EXPECT_LE(staged + sums, 16384);
}

TEST(WholeProductKernels, OfTilesFitTheLeastSharedMemory) {
  vk::CapabilityProfile profile = small_device();
  profile.integer_dot = true;
  EXPECT_EQ(constant_of(kernels_of(1024, 1024, 4096, profile), "TILE"), 64);
  profile.max_shared_memory_bytes = 32768;
  EXPECT_EQ(constant_of(kernels_of(1024, 1024, 4096, profile), "TILE"), 128);
}

TEST(WholeProductKernels, OfNoRowsArePlanned) {
  EXPECT_EQ(constant_of(kernels_of(0, 2048, 256, small_device()), "BATCH"), 0);
}

}  // namespace
}  // namespace imprint
