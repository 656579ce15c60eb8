#include "tools/imprint/profile_table.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>

#include "tools/imprint/bench.h"

namespace imprint::tools {
namespace {

struct Row {
  double us = 0;
  std::string kind, text;
  std::uint64_t bytes = 0, operations = 0;
};

// All kernels of a run in order, so that each finds its operands as in a run.
Result<std::vector<double>> times_on_cpu(Program& program, std::uint32_t repeat) {
  const std::uint32_t count = program.piece_count();
  std::vector<std::vector<double>> samples(count);
  IMPRINT_CHECK(program.run_pieces(0, 0, count));
  for (std::uint32_t run = 0; run < repeat; ++run)
    for (std::uint32_t piece = 0; piece < count; ++piece) {
      const auto start = std::chrono::steady_clock::now();
      IMPRINT_CHECK(program.run_pieces(0, piece, 1));
      const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - start;
      samples[piece].push_back(taken.count());
    }
  std::vector<double> medians;
  for (std::uint32_t piece = 1; piece + 1 < count; ++piece)
    medians.push_back(spread(std::move(samples[piece])).median);
  return medians;
}

Result<std::vector<double>> times_on_device(bridge::Context& context, Program& program,
                                            std::uint32_t repeat) {
  IMPRINT_ASSIGN(const std::unique_ptr<GpuTimer> timer, GpuTimer::create(context));
  const vk::Functions& functions = context.device().functions();
  const std::span<const VkCommandBuffer> pieces = program.pieces(0, VK_COMMAND_BUFFER_LEVEL_SECONDARY);
  const VkCommandBuffer barrier = context.runtime().barrier().secondary;
  std::vector<double> medians;
  for (std::size_t piece = 1; piece + 1 < pieces.size(); ++piece) {
    const Repeats repeats{.warmup = 1, .measured = repeat, .seconds = 0.05};
    IMPRINT_ASSIGN(const Timing timing, timer->time(repeats, [&](VkCommandBuffer into) {
      functions.vkCmdExecuteCommands(into, 1, &barrier);
      functions.vkCmdExecuteCommands(into, 1, &pieces[piece]);
    }));
    medians.push_back(spread(timing.gpu_us).median);
  }
  return medians;
}

std::vector<Row> rows_of(const Program& program, const std::vector<double>& times) {
  std::vector<Row> rows;
  for (const ScheduleFigures& part : program.schedule())
    for (const DispatchFigures& dispatch : part.dispatches) {
      Row row;
      if (rows.size() < times.size()) row.us = times[rows.size()];
      for (const KernelFigures& kernel : dispatch.kernels) {
        row.kind += (row.kind.empty() ? "" : "+") + kernel.kind;
        row.text += (row.text.empty() ? "" : "; ") + kernel.text;
        row.bytes += kernel.bytes_read + kernel.bytes_written;
        row.operations += kernel.operations;
      }
      rows.push_back(std::move(row));
    }
  return rows;
}

void print_rows(std::vector<Row> rows, double total) {
  std::ranges::stable_sort(rows, std::greater(), &Row::us);
  std::printf("%10s %6s %9s %9s  %s\n", "us", "%", "GB/s", "GFLOP/s", "kernel");
  for (const Row& row : rows) {
    const double seconds = std::max(row.us, 1e-3) * 1e-6;
    std::printf("%10.1f %6.1f %9.2f %9.2f  %s\n", row.us, 100 * row.us / total,
                static_cast<double>(row.bytes) / seconds * 1e-9,
                static_cast<double>(row.operations) / seconds * 1e-9, row.text.c_str());
  }
}

}  // namespace

Result<> print_profile(Computer& computer, Program& program, std::uint32_t repeat) {
  auto times = computer.on_cpu() ? times_on_cpu(program, repeat)
                                 : times_on_device(computer.standalone().context(), program, repeat);
  if (!times) return times.error();
  const std::vector<Row> rows = rows_of(program, *times);
  double total = 1e-9;
  std::map<std::string, Row> kinds;
  for (const Row& row : rows) {
    total += row.us;
    Row& kind = kinds[row.kind];
    kind.us += row.us;
    kind.text = row.kind;
    kind.bytes += row.bytes;
    kind.operations += row.operations;
  }
  std::printf("%zu dispatches, %.1f us each on its own\n", rows.size(), total);
  std::vector<Row> by_kind;
  for (const auto& [name, row] : kinds) by_kind.push_back(row);
  print_rows(by_kind, total);
  std::printf("\n");
  print_rows(rows, total);
  return {};
}

}  // namespace imprint::tools
