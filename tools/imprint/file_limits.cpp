#include "tools/imprint/file_limits.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "compute/base/saturated.h"
#include "compute/base/text.h"
#include "compute/model/files/file.h"
#include "compute/model/onnx/format/tensor_data.h"

namespace imprint::tools {
namespace {

constexpr std::uint64_t kSmallMib = 48, kMibPerMib = 64, kMostMib = 4096;
constexpr std::uint64_t kSmallGop = 1, kGopPerMib = 100, kMostGop = 100'000;
constexpr std::uint64_t kSmallDispatches = 1024, kMostDispatches = 65'536;  // also for each MiB
constexpr std::uint64_t kGiga = 1'000'000'000;
// A file's own tensors take up to 8 times their bytes in it.
constexpr std::uint64_t kTensorBytes = 8;

// Where an error tells the caller of a library what to do.
constexpr std::string_view kLibraryRemedy = ". Use smaller shapes, or";

}  // namespace

void add_memory_limit_option(CLI::App& command, FileLimits& limits) {
  command
      .add_option("--most-mib", limits.most_mib,
                  "refuse a model that takes more memory, for constants or on the device, MiB; 48 for a file "
                  "below 1 MiB")
      ->check(CLI::Range(1, 1 << 30))
      ->option_text("N, by the file's size");
}

void add_work_limit_option(CLI::App& command, FileLimits& limits) {
  command
      .add_option("--most-gop", limits.most_gop,
                  "refuse a model with more operations and bytes moved, billions; 1 for a file below 1 MiB")
      ->check(CLI::Range(1, 1 << 30))
      ->option_text("N, by the file's size");
}

void add_dispatch_limit_option(CLI::App& command, FileLimits& limits) {
  command
      .add_option(
          "--most-dispatches", limits.most_dispatches,
          "refuse a model of more dispatches, each of which may have a kernel of its own; 1,024 for a "
          "file below 1 MiB")
      ->check(CLI::Range(1, 1 << 30))
      ->option_text("N, by the file's size");
}

Result<onnx::Model> load_limited(const std::string& path, FileLimits& limits) {
  const Result<std::uint64_t> own = file_size(path);
  const auto most_external = [&](std::uint64_t stored) {
    const std::uint64_t mib = std::max(own ? *own : 0, stored / kTensorBytes) >> 20;
    if (limits.most_mib == 0) limits.most_mib = std::min(kMostMib, kSmallMib + kMibPerMib * mib);
    if (limits.most_gop == 0) limits.most_gop = std::min(kMostGop, kSmallGop + kGopPerMib * mib);
    if (limits.most_dispatches == 0)
      limits.most_dispatches = std::min(kMostDispatches, kSmallDispatches * (1 + mib));
    return limits.bytes();
  };
  return with_remedy(onnx::load_with_limit(path, most_external), limits);
}

Result<> check_work(const std::string& path, const FileLimits& limits, const ProgramStats& stats,
                    std::uint64_t runs) {
  const std::uint64_t found = saturated_product(saturated_sum(stats.work, stats.bytes_moved), runs);
  if (found <= saturated_product(limits.most_gop, kGiga)) return {};
  const std::uint64_t needed = found / kGiga + 1;
  return make_error(
      ErrorCode::unsupported,
      text("'", path, "': found ", needed, " billion operations and bytes moved, expected at most ",
           limits.most_gop, " billion. If you trust the file, give --most-gop ", needed));
}

Result<> check_memory(const std::string& path, const FileLimits& limits, const ProgramStats& stats,
                      std::uint64_t copies) {
  const std::uint64_t found = saturated_sum(saturated_sum(stats.arena_bytes, stats.io_bytes), copies);
  if (found <= limits.bytes()) return {};
  const std::uint64_t needed = (found >> 20) + 1;
  return make_error(ErrorCode::unsupported,
                    text("'", path, "': found ", needed,
                         " MiB of intermediates, inputs, outputs and copies of them, expected at most ",
                         limits.most_mib, " MiB. If you trust the file, give --most-mib ", needed));
}

Error with_remedy(const Error& error, const FileLimits& limits) {
  if (error.code != ErrorCode::out_of_device_memory && error.code != ErrorCode::out_of_host_memory)
    return error;
  const std::string found = error.message.substr(0, error.message.find(kLibraryRemedy));
  return make_error(error.code, text(found, ". The limit is ", limits.most_mib,
                                     " MiB. If you trust the file, raise --most-mib"));
}

}  // namespace imprint::tools
