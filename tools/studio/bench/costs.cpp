// Constants of the model of cost in docs/studio.md: latency and speed of sums, of gathering, of copies.
// The least of many repeats, since other processes of a computer only add to it.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/studio/bench/bench.h"
#include "tools/studio/group.h"

namespace imprint::studio {
namespace {

constexpr int kRepeats = 100;
constexpr std::size_t kMostNumbers = std::size_t{1} << 22;

// Microseconds of rank 0; all begin together.
template <class Work>
double least_us(const Work& work) {
  double least = std::numeric_limits<double>::infinity();
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    Group::all().barrier();
    const auto began = std::chrono::steady_clock::now();
    work();
    least = std::min(
        least, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count());
  }
  return least;
}

// Microseconds of a run on a device whose sums nothing adds to: submissions, waits, copies over the bus.
// Bytes 0: a run of one submission, without sums.
Result<double> device_us(Session& session, std::int64_t bytes) {
  const Variable total = Variable::zeros("total", {std::max<std::int64_t>(bytes / 4, 1)});
  ProgramSequence sequence{.name = "sum"};
  sequence.parts = {{{.name = "own"}}, {{.name = "use"}}};
  const Variable used = Variable::zeros("used", {1});
  for (ProgramPart& part : sequence.parts)
    part.description.updates = {Update::assign(used, used.value() + 1)};
  if (bytes > 0) {
    sequence.parts[0].description.updates.push_back(Update::assign(total, total.value() + 1));
    sequence.parts[0].summed = {total};
    sequence.all_reduce = [](std::span<float>) {};
  }
  IMPRINT_ASSIGN(Program program, Program::compile(session.runtime(), sequence));
  Result<> done;
  const double us = least_us([&] {
    if (auto ran = session.run(program); !ran) done = ran.error();
  });
  IMPRINT_CHECK(done);
  return us;
}

}  // namespace

Result<> bench_costs(Session& session) {
  Group& group = Group::all();
  nlohmann::ordered_json sums, mapped, gathers;
  std::vector<float> numbers(kMostNumbers, 0.0f), copy(kMostNumbers);
  for (const std::size_t count : {1u, 256u, 2047u, 2048u, 27'483u, 262'144u, 4'194'304u})
    sums[std::to_string(4 * count)] = least_us([&] { group.add(std::span(numbers).first(count)); });
  if (const std::shared_ptr<SharedSums> shared = shared_sums()) {
    const SharedSums::Memory memory = shared->allocate(kMostNumbers * sizeof(float));
    for (const std::size_t count : {256u, 27'483u, 262'144u, 4'194'304u})
      if (memory.own) mapped[std::to_string(4 * count)] = least_us([&] { shared->add(memory, 0, count); });
  }
  const std::vector<double> own(12, 1.0);
  gathers["96"] = least_us([&] { (void)group.gather(own); });
  const double copied = least_us([&] { std::ranges::copy(numbers, copy.begin()); });
  nlohmann::ordered_json runs;
  if (!session.runtime().on_cpu())
    for (const std::int64_t bytes : {0, 4, 109'932, 1'048'576, 6'744'868, 12'663'812}) {
      IMPRINT_ASSIGN(runs[std::to_string(bytes)], device_us(session, bytes));
    }
  if (group.rank() > 0) return {};
  nlohmann::ordered_json row;
  row["name"] = "studio/costs";
  row["ranks"] = group.ranks();
  row["sum_us_by_bytes"] = sums;
  if (!mapped.empty()) row["mapped_sum_us_by_bytes"] = mapped;
  row["gather_us_by_bytes"] = gathers;
  if (!runs.empty()) row["device_run_us_by_bytes"] = runs;
  row["copy_bytes_per_s"] = static_cast<double>(kMostNumbers * sizeof(float)) / (copied * 1e-6);
  std::printf("%s\n", row.dump().c_str());
  return {};
}

}  // namespace imprint::studio
