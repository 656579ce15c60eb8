// Suite ops: scans, sorts, selections and look-up tables, whose kernels are pages. Sizes as in
// compute/docs/pages.md.

#include <cmath>
#include <string>

#include "compute/graph/gradients/autodiff.h"
#include "compute/nn/optimisers/optimiser.h"
#include "tools/imprint/bench.h"
#include "tools/imprint/bench_noise.h"

namespace imprint::tools {
namespace {

Variable noise_of(const std::string& name, const Shape& shape) {
  Noise noise;
  std::vector<float> values(static_cast<std::size_t>(shape.element_count()));
  for (float& value : values) value = 4 * noise.next() - 2;
  return {name, shape, values};
}

Result<BenchResult> measure_updates(BenchDevice& device, const std::string& name,
                                    std::vector<Update> updates) {
  const ProgramDescription description{
      .name = name, .updates = std::move(updates), .slot_count = kChainedRuns};
  IMPRINT_ASSIGN(Program program, Program::compile(device.context().runtime(), description));
  return measure_program(device, program, name);
}

// The values of an operation on one operand.
struct Ordering {
  const char* name;
  Shape large, small;  // small: on a software device
  std::vector<Tensor> (*apply)(const Tensor& x);
};

const Shape kLine{1 << 20}, kSmallLine{1 << 16};

const Ordering kOrderings[] = {
    {"cumsum", kLine, kSmallLine, [](const Tensor& x) { return std::vector{cumsum(x, 0)}; }},
    {"cummax", kLine, kSmallLine, [](const Tensor& x) { return std::vector{cummax(x, 0).values}; }},
    {"linear_recurrence", kLine, kSmallLine,
     [](const Tensor& x) { return std::vector{linear_recurrence(x, x * 0.25f, 0)}; }},
    {"cumsum_step", kLine, kSmallLine,
     [](const Tensor& x) {
       const auto found = gradients(mean(square(cumsum(x, 0))), std::span(&x, 1));
       return std::vector{found.ok() ? x - 0.01f * (*found)[0] : Tensor(found.error())};
     }},
    {"sort_indices", kLine, kSmallLine,
     [](const Tensor& x) {
       const WithIndices sorted = sort(x);
       return std::vector{sorted.values, sorted.indices};
     }},
    {"top64", {4096, 4096}, {64, 4096}, [](const Tensor& x) {
       const WithIndices found = topk(x, 64);
       return std::vector{found.values, found.indices};
     }}};

std::string ordering_name(const Ordering& ordering, const Shape& shape) {
  std::string extents;
  for (const std::int64_t extent : shape.extents())
    extents += (extents.empty() ? "" : "x") + std::to_string(extent);
  return std::string("ops/") + ordering.name + "/f32/" + extents;
}

bool is_software(BenchDevice& device) {
  return device.context().device().capabilities().device_type == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

Result<BenchResult> run_ordering(BenchDevice& device, const Ordering& ordering) {
  const Shape& shape = is_software(device) ? ordering.small : ordering.large;
  const Variable x = noise_of("x", shape);
  std::vector<Update> updates;
  for (const Tensor& result : ordering.apply(x.value())) {
    if (!result.ok()) return result.error();
    updates.push_back(Update::assign(Variable::zeros("y", result.shape(), result.dtype()), result));
  }
  return measure_updates(device, ordering_name(ordering, shape), std::move(updates));
}

// A look-up table of [8192, 256] and 4,096 ids: the mean square's step with Adam, and the look-up alone.
Result<BenchResult> run_embedding(BenchDevice& device, bool step) {
  constexpr std::int64_t kRows = 8192, kWidth = 256, kIds = 4096;
  nn::Parameters parameters;
  parameters.add("table", noise_of("table", {kRows, kWidth}));
  Noise noise;
  std::vector<std::int32_t> ids(kIds);
  for (std::int32_t& id : ids) id = static_cast<std::int32_t>(std::floor(noise.next() * kRows));
  const Variable chosen("ids", {kIds}, ids);
  const Tensor table = parameters[0].value(), rows = take(table, 0, chosen.value());
  const std::string name = std::string("ops/embedding") + (step ? "_step" : "") + "/f32/8192x256x4096";
  if (!step)
    return measure_updates(device, name, {Update::assign(Variable::zeros("rows", {kIds, kWidth}), rows)});
  IMPRINT_ASSIGN(const std::vector<Tensor> found, gradients(mean(square(rows)), std::span(&table, 1)));
  IMPRINT_ASSIGN(std::vector<Update> updates, nn::Adam(parameters).step(found, 0.001f));
  return measure_updates(device, name, std::move(updates));
}

}  // namespace

std::vector<BenchCase> order_cases() {
  std::vector<BenchCase> cases;
  for (const Ordering& ordering : kOrderings)
    cases.push_back({ordering_name(ordering, ordering.large),
                     [&ordering](BenchDevice& device) { return run_ordering(device, ordering); }});
  for (const bool step : {false, true})
    cases.push_back({std::string("ops/embedding") + (step ? "_step" : "") + "/f32/8192x256x4096",
                     [step](BenchDevice& device) { return run_embedding(device, step); }});
  return cases;
}

}  // namespace imprint::tools
