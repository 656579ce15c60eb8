#pragma once
// Memory and work that a command gives a model file which may be hostile: --most-mib, --most-gop and
// --most-dispatches.

#include <cstdint>
#include <string>

#include "compute/base/result.h"
#include "compute/model/onnx/format/proto.h"
#include "compute/program/program.h"

namespace CLI {
class App;
}

namespace imprint::tools {

// Without numbers on the command line a small file gets little: 48 MiB and 1 billion operations, and for each
// MiB of the file, or of an eighth of what external tensors that a node reads take on the disk, 64 MiB and
// 100 billion more, up to 4 GiB and 100,000 billion. So too 1,024 dispatches, of which each may have a kernel
// of its own, and up to 65,536.
struct FileLimits {
  std::uint64_t most_mib = 0, most_gop = 0, most_dispatches = 0;  // 0: by the file
  std::uint64_t bytes() const { return most_mib << 20; }
};

void add_memory_limit_option(CLI::App& command, FileLimits& limits);
void add_work_limit_option(CLI::App& command, FileLimits& limits);  // of a command that runs the model

void add_dispatch_limit_option(CLI::App& command, FileLimits& limits);  // of one that bakes its kernels

// Gives limits of 0 their numbers. Errors: those of onnx::load.
Result<onnx::Model> load_limited(const std::string& path, FileLimits& limits);

// Before the program runs, `runs` times. Errors: unsupported (most_gop).
Result<> check_work(const std::string& path, const FileLimits& limits, const ProgramStats& stats,
                    std::uint64_t runs = 1);

// Intermediates, inputs and outputs of a program that is compiled, and `copies` bytes that the command makes
// of these. Errors: unsupported (most_mib).
Result<> check_memory(const std::string& path, const FileLimits& limits, const ProgramStats& stats,
                      std::uint64_t copies = 0);

// The error, and what to do if memory was refused.
Error with_remedy(const Error& error, const FileLimits& limits);
template <class T>
Result<T> with_remedy(Result<T> result, const FileLimits& limits) {
  if (result) return result;
  return with_remedy(result.error(), limits);
}

}  // namespace imprint::tools
