#pragma once
// Stores SPIR-V in a directory, one file per content hash. A defect in the cache costs a compile and a
// warning, never an error.

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "compute/base/hash.h"
#include "compute/base/log.h"
#include "compute/vk/pipelines/glsl_compiler.h"

namespace imprint::vk {

// Any thread, and any number of processes on one directory: a file appears under its name either whole or not
// at all.
class SpirvCache {
 public:
  // An empty directory switches the cache off. Paths are UTF-8; the directory is made when the first file is
  // stored.
  SpirvCache(std::string_view directory, LogSink log);

  std::optional<Spirv> load(const Hash128& key) const;  // nothing when absent or damaged
  void store(const Hash128& key, const Spirv& spirv) const;

 private:
  std::filesystem::path file_of(const Hash128& key) const;
  std::filesystem::path directory_;
  LogSink log_;
  mutable std::atomic<bool> told_ = false;  // that a file could not be written
};

// Writes a shader's text as DIRECTORY/NAME-HASH.comp, for people. An empty directory: nothing. Failures are
// warnings.
void dump_glsl(std::string_view directory, std::string_view name, const Hash128& key, std::string_view glsl,
               LogSink log);

}  // namespace imprint::vk
