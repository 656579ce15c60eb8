// Kernels of large float16 products on matrix units, as text, in each dialect. Needs no GPU. Compiles them if
// the compiler supports the dialect.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compute/graph/plan/fusion.h"
#include "compute/graph/schedule/product.h"
#include "compute/kernels/dispatch_source.h"
#include "compute/program/device_profile.h"
#include "compute/tensor/composites/images.h"
#include "compute/tensor/tensor.h"
#include "compute/vk/pipelines/glsl_compiler.h"
#include "tests/unit/matrix_dialect.h"

namespace imprint {

using namespace graph;
using namespace kernels;
using namespace program;
using namespace tensor;

namespace {

using testing::HasSubstr;
using testing::Not;

enum class Units { nv, khr, workgroups };

struct BuiltProduct {
  Schedule schedule;
  DispatchSource dispatch;
  const Task& task() const { return schedule.tasks[static_cast<std::size_t>(dispatch.tasks[0])]; }
};

// The kernel with the product. tile: name of the variant to take; empty: as the cost model chooses.
// images: of convolutions, as places by channels. rounds: a device that stores 16 bits, and rounds to them.
BuiltProduct build_product(const Tensor& output, Units units, const std::string& tile = {},
                           std::int64_t shared_bytes = 49152, bool images = false, bool rounds = false) {
  Graph graph = build_graph(std::span(&output, 1)).value();
  FusionRequest request;
  for (NodeIndex n = 0; n < graph.size(); ++n)
    if (graph[n].op == Op::input) request.inputs.push_back(n);
  for (NodeIndex root : graph.roots) request.outputs.push_back({root});
  FusionOptions options;
  options.matrix_units = true;
  options.matrix_tiles = units != Units::nv;
  options.matrix_workgroups = units == Units::workgroups;
  options.region_shared_bytes = shared_bytes;
  options.most_invocations = 1024;
  options.narrow_products = options.channels_last = options.half_values = images;
  DispatchLimits limits;
  limits.matrix_dialect = units == Units::nv ? MatrixDialect::nv : MatrixDialect::khr;
  limits.rounds_to_float16 = limits.storage_16bit = rounds;

  BuiltProduct built;
  VariantTable table;
  if (!tile.empty()) {  // signatures are internal: one compile finds this one
    Graph copy = graph;
    FusionRequest again = request;
    const Schedule schedule = fuse(copy, again, options).value();
    for (const Task& task : schedule.tasks)
      for (const VariantChoice& choice : task.choices) table[choice.kernel] = tile;
    options.variants = &table;
  }
  built.schedule = fuse(graph, request, options).value();
  std::vector<DispatchSource> dispatches =
      build_dispatches(graph, built.schedule, limits, [](const Place&) { return 0; }).value();
  for (DispatchSource& dispatch : dispatches)
    if (built.schedule.tasks[static_cast<std::size_t>(dispatch.tasks[0])].kind == TaskKind::product)
      built.dispatch = std::move(dispatch);
  return built;
}

std::string product_errors(const DispatchSource& dispatch) {
  const vk::GlslCompiler compiler;
  const auto spirv = compiler.compile("product", dispatch.glsl);
  return spirv ? std::string() : spirv.error().message;
}

std::string product_errors(const DispatchSource& dispatch, Units units) {
  if (units == Units::khr) return test::khr_kernel_errors(dispatch.glsl);
  const char* extension = units == Units::nv ? "GL_NV_cooperative_matrix" : "GL_NV_cooperative_matrix2";
  return vk::GlslCompiler::knows(extension) ? product_errors(dispatch) : std::string();
}

Tensor half(const std::string& name, const Shape& shape) { return input(name, shape, DType::float16); }
Tensor square(std::int64_t n) { return matmul(half("x", {n, n}), half("y", {n, n})); }

TEST(MatrixProducts, AreWrittenInTheDialectThatThereIs) {
  const BuiltProduct nv = build_product(square(4096), Units::nv),
                     khr = build_product(square(4096), Units::khr);
  EXPECT_THAT(nv.dispatch.glsl, HasSubstr("#extension GL_NV_cooperative_matrix : require"));
  EXPECT_THAT(nv.dispatch.glsl, HasSubstr("coopMatMulAddNV"));
  EXPECT_THAT(nv.dispatch.glsl, Not(HasSubstr("KHR_cooperative_matrix")));
  EXPECT_THAT(khr.dispatch.glsl, HasSubstr("#extension GL_KHR_cooperative_matrix : require"));
  EXPECT_THAT(khr.dispatch.glsl, HasSubstr("gl_MatrixUseAccumulator"));
  EXPECT_THAT(khr.dispatch.glsl, Not(HasSubstr("MatNV")));
  EXPECT_THAT(khr.dispatch.glsl, Not(HasSubstr("MulAddNV")));
  EXPECT_EQ(nv.dispatch.subgroup_size, 32u);
  EXPECT_EQ(khr.dispatch.subgroup_size, 32u);
  EXPECT_NE(vk::source_key(nv.dispatch.glsl),
            vk::source_key(khr.dispatch.glsl));  // so that neither caches nor archives confuse them
  EXPECT_EQ(product_errors(nv.dispatch, Units::nv), "");
  EXPECT_EQ(product_errors(khr.dispatch, Units::khr), "");
}

// Few large tiles would leave units without work.
TEST(MatrixProducts, SmallOnesHaveSmallerTiles) {
  const Tensor few_tiles = matmul(half("x", {2048, 1024}), half("y", {1024, 256}));
  EXPECT_EQ(build_product(square(4096), Units::nv).task().tile, kMatrixUnitTile);
  EXPECT_LT(build_product(few_tiles, Units::nv).task().tile.rows, kMatrixUnitTile.rows);
  const BuiltProduct large = build_product(square(4096), Units::khr),
                     small = build_product(square(256), Units::khr);
  EXPECT_GT(large.task().tile.rows * large.task().tile.columns,
            small.task().tile.rows * small.task().tile.columns);
}

// Kernels fit in shared memory.
TEST(MatrixProducts, KeepToTheSharedMemoryThatThereIs) {
  constexpr std::int64_t kLeast = 16384;  // of every device
  for (const Units units : {Units::nv, Units::khr}) {
    const ProductTile tile = build_product(square(4096), units, {}, kLeast).task().tile;
    EXPECT_EQ(tile.units, MatrixUnits::subgroup);
    EXPECT_LE(16 * unit_memory(tile).total, kLeast);
  }
}

// Padded windows, places that no tile divides, and the activation after them.
TEST(MatrixProducts, OfConvolutionsCompileInEveryTile) {
  const Tensor x = half("x", {4, 16, 30, 30});
  const Tensor weights = Tensor::from(std::vector<float>(72 * 144, 0.5f), {72, 16, 3, 3});
  const Tensor image = cast(x, DType::float32) * 2.0f;
  const Tensor y = relu(convolution(image, weights, Tensor(), {.padding = 1}));
  const BuiltProduct usual = build_product(y, Units::nv, {}, 49152, true);
  std::size_t seen = 0;
  for (const std::string& variant : usual.task().choices.front().variants) {
    const BuiltProduct built = build_product(y, Units::nv, variant, 49152, true);
    if (built.task().tile.units == MatrixUnits::none) continue;
    ++seen;
    EXPECT_THAT(built.dispatch.glsl, HasSubstr("uvec4 e"));  // eight at a time, or zeros
    EXPECT_EQ(product_errors(built.dispatch, Units::nv), "") << variant << "\n" << built.dispatch.glsl;
  }
  EXPECT_GE(seen, 5u);
  const Tensor wide = convolution(image, weights, Tensor(), {.stride = 2, .padding = {1, 2}, .dilation = 2});
  for (const Units units : {Units::nv, Units::khr})
    EXPECT_EQ(product_errors(build_product(wide, units, {}, 49152, true).dispatch, units), "");
}

TEST(MatrixProducts, CompileInEveryTileWholeAndRagged) {
  const Tensor bias = input("bias", {1024});
  const Tensor whole = square(1024), finished = gelu(square(512) + input("bias", {512})),
               epilogue = relu(matmul(half("x", {1000, 512}), half("y", {512, 1024})) + bias);
  const Tensor turned = matmul(transpose(half("x", {512, 1000})), transpose(half("y", {1032, 512})));
  const auto check = [](const Tensor& product, Units units) {
    std::size_t seen = 0;
    const BuiltProduct usual = build_product(product, units);
    for (const std::string& variant : usual.task().choices.front().variants) {
      const BuiltProduct built = build_product(product, units, variant);
      EXPECT_EQ(product_tile_text(built.task().tile), variant);
      EXPECT_EQ(built.dispatch.invocations, static_cast<std::uint32_t>(built.task().tile.invocations()));
      if (built.task().tile.units == MatrixUnits::none) continue;
      EXPECT_EQ(product_errors(built.dispatch, units), "") << variant << "\n" << built.dispatch.glsl;
      ++seen;
    }
    EXPECT_GE(seen, 5u);
  };
  check(finished, Units::nv);
  check(turned, Units::khr);
  for (const Tensor& product : {whole, finished, epilogue, turned}) check(product, Units::workgroups);
}

TEST(MatrixProducts, OfAWorkgroupLoadUnalignedRows) {
  const Tensor product = matmul(half("x", {1023, 1021}), half("y", {1021, 1019}));
  EXPECT_EQ(build_product(product, Units::khr).task().tile.units, MatrixUnits::subgroup);
  const BuiltProduct built = build_product(product, Units::workgroups);
  EXPECT_EQ(built.task().tile.units, MatrixUnits::workgroup);
  EXPECT_THAT(built.dispatch.glsl, HasSubstr("#define LEFT_CLAMP gl_CooperativeMatrixClampModeConstantNV"));
  EXPECT_THAT(built.dispatch.glsl, HasSubstr("#define LEFT_STRIDE 1021"));
  EXPECT_EQ(built.dispatch.subgroup_size, 0u);  // the workgroup forms them, whatever the subgroup size
  EXPECT_EQ(product_errors(built.dispatch, Units::workgroups), "");
}

// Windows lie apart in memory, and rows of odd length are no whole vectors: invocations load them one by one.
TEST(MatrixProducts, PackWhatIsNoWholeVector) {
  const Tensor image = half("image", {4, 16, 22, 22}), weight = half("weight", {1, 64, 144});
  const Tensor windows = permute(window(window(image, 2, 3), 3, 3), {0, 4, 5, 1, 2, 3});
  const Tensor forward = matmul(weight, reshape(windows, {4, 144, 400})),
               by_weight = matmul(half("g", {4, 64, 400}), transpose(reshape(windows, {4, 144, 400})));
  for (const Units units : {Units::nv, Units::khr})
    for (const Tensor& product : {forward, by_weight, square(1001)}) {
      const BuiltProduct built = build_product(product, units);
      EXPECT_EQ(built.task().tile.units, MatrixUnits::subgroup);
      EXPECT_THAT(built.dispatch.glsl, HasSubstr("packHalf2x16"));
      EXPECT_EQ(product_errors(built.dispatch, units), "") << built.dispatch.glsl;
    }
  // The places of all images are columns of one product.
  const BuiltProduct joined = build_product(forward, Units::nv);
  const auto columns = static_cast<std::uint32_t>(joined.task().tile.columns);
  EXPECT_EQ(joined.dispatch.groups_x * joined.dispatch.groups_y, (1600 + columns - 1) / columns);
}

TEST(MatrixProducts, OfAWorkgroupClampNothingWhereTilesAreWhole) {
  const BuiltProduct built =
      build_product(square(4096), Units::workgroups, "128 x 256 x 64 by 8 x 16 as a matrix");
  EXPECT_EQ(built.task().tile.units, MatrixUnits::workgroup);
  EXPECT_THAT(built.dispatch.glsl, Not(HasSubstr("ClampModeConstantNV\n")));
  EXPECT_THAT(built.dispatch.glsl, HasSubstr("#define STORE_ARRAY b0f"));
  EXPECT_EQ(product_errors(built.dispatch, Units::workgroups), "");
}

TEST(MatrixProducts, OfAWorkgroupFinishTheirSumsOneByOne) {
  const Tensor product =
      gelu(matmul(half("x", {3, 256, 512}), half("y", {3, 512, 520})) + input("bias", {520}));
  const BuiltProduct built =
      build_product(product, Units::workgroups, "128 x 256 x 64 by 8 x 16 as a matrix");
  EXPECT_EQ(built.schedule.tasks.size(), 1u);  // with bias and activation
  EXPECT_THAT(built.dispatch.glsl, HasSubstr("if (column >= 520) return sum;"));
  EXPECT_THAT(built.dispatch.glsl, Not(HasSubstr("#define STORE_ARRAY")));
  EXPECT_EQ(product_errors(built.dispatch, Units::workgroups), "");
}

// Workgroup matrices are matrices of GL_KHR_cooperative_matrix with a separate feature.
TEST(MatrixProducts, OfAWorkgroupNeedTheExtensionThatTheyAreBuiltOn) {
  vk::CapabilityProfile profile;
  profile.cooperative_matrix_nv = profile.cooperative_matrix2_nv = true;
  profile.vulkan_memory_model = profile.shader_float16 = profile.storage_16bit = true;
  profile.subgroup_size = 32;
  profile.max_workgroup_invocations = 256;
  EXPECT_TRUE(fusion_options(profile).matrix_units);
  EXPECT_FALSE(fusion_options(profile).matrix_workgroups);
  profile.cooperative_matrix_khr = true;
  EXPECT_TRUE(fusion_options(profile).matrix_workgroups);
}

// Where kernels may ask for that, the device rounds halves to even, and keeps subnormals.
TEST(MatrixProducts, StoreHalvesByTheDevicesOwnConversion) {
  const Tensor product =
      cast(cast(matmul(half("x", {256, 128}), half("y", {128, 256})), DType::float32) + 1.0f, DType::float16);
  for (const bool rounds : {false, true}) {
    const DispatchSource dispatch = build_product(product, Units::nv, {}, 49152, false, rounds).dispatch;
    const auto holds = [&](const char* text) { return dispatch.glsl.find(text) != std::string::npos; };
    EXPECT_EQ(holds(" = imp_half(v") || holds(" = imp_four_halves(v"), rounds);
    EXPECT_EQ(holds("capabilities = [4467], 4462, 16"), rounds);
    EXPECT_EQ(holds("capabilities = [4464], 4459, 16"), rounds);
    EXPECT_EQ(holds("#define ROUNDS_HALVES"), rounds);
    EXPECT_EQ(product_errors(dispatch, Units::nv), "");
  }
}

// A driver may leave out a conversion to float16 and back: the NVIDIA driver 580 does, in that mode too.
TEST(MatrixProducts, ComputeWithHalvesThatIntegersRounded) {
  const Tensor sums = cast(matmul(half("x", {256, 128}), half("y", {128, 256})), DType::float32);
  const Tensor product = cast(cast(sums + 1.0f, DType::float16), DType::float32) * 3.0f;
  const DispatchSource dispatch = build_product(product, Units::nv, {}, 49152, false, true).dispatch;
  EXPECT_NE(dispatch.glsl.find("imp_to_half(v"), std::string::npos);
  EXPECT_EQ(dispatch.glsl.find("ROUNDS_HALVES"), std::string::npos);
}

// The rows of a window overlap, so none is a line of memory.
TEST(MatrixProducts, OfAWorkgroupNeedLinesOfMemory) {
  const Tensor x = half("x", {256, 1030});
  EXPECT_NE(build_product(matmul(slice(x, 1, 0, 1030, 2), half("y", {515, 512})), Units::workgroups)
                .task()
                .tile.units,
            MatrixUnits::workgroup);
  EXPECT_NE(build_product(matmul(cast(input("a", {256, 512}), DType::bfloat16),
                                 cast(input("b", {512, 512}), DType::bfloat16)),
                          Units::workgroups)
                .task()
                .tile.units,
            MatrixUnits::workgroup);
}

}  // namespace
}  // namespace imprint
