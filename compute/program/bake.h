#pragma once
// Kernels of programs, compiled ahead of time for devices that are not present, into an archive
// (compute/vk/pipelines/kernel_archive.h): a game then ships without a compiler. Baking needs a library with
// a compiler, but no Vulkan device.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/graph/schedule/variants.h"
#include "compute/program/program.h"
#include "compute/program/program_sequence.h"
#include "compute/vk/pipelines/capability_profile.h"

namespace imprint {

namespace program {
struct ProgramGraph;  // program_body.h

struct DispatchLimit {
  std::size_t most = SIZE_MAX;
  std::string remedy = {};
};
}  // namespace program

// One thread at a time.
class Baker {
 public:
  // profiles: a device that can run several uses the first (vk::KernelArchive::profile_for). Extensions that
  // this library's compiler does not know are removed from them. So are features without which all kernels
  // are the same: a game that enables fewer on the same device then finds its profile. tables: measured
  // variants (tuning_table.h) whose kernels are baked too, for games that ship the tables
  // (Runtime::set_variants).
  explicit Baker(std::vector<vk::CapabilityProfile> profiles, std::vector<VariantTable> tables = {});
  Baker(Baker&&) noexcept;
  Baker& operator=(Baker&&) noexcept;
  ~Baker();

  // Adds the kernels that Program::compile needs on a device of each profile. Kernels depend on which
  // variables share a block of memory. groups: variables placed together (Runtime::place_together); all
  // others count as one group; external ones have their own buffers. Whether groups and constants share
  // blocks depends on the device, so Imprint bakes every combination. apart: variables that yield
  // (Runtime::place), each in its own block. At most kMaxGroups groups. Errors: those of Program::compile
  // that do not depend on memory, with the profile's name.
  using Groups = std::span<const std::vector<Variable>>;
  static constexpr std::size_t kMaxGroups = 4;
  Result<> add(const ProgramDescription& program, Groups groups = {}, std::span<const Variable> apart = {});
  Result<> add(const ProgramSequence& sequence, Groups groups = {}, std::span<const Variable> apart = {});

  // Refuses programs, and parts of sequences, of more dispatches: a small file may have many. remedy: the end
  // of that error of add, which is unsupported.
  void limit_dispatches(std::size_t most, std::string remedy);

  std::size_t kernel_count() const;

  // The archive's bytes. Compiles on one thread per core; calls progress on this thread. Errors:
  // compile_failed, unsupported (a library without a compiler).
  Result<std::vector<std::byte>> compile(const std::function<void(std::size_t done)>& progress = {}) const;

 private:
  struct Kernels;
  std::vector<vk::CapabilityProfile> archived_profiles() const;
  Result<> add_graph(program::ProgramGraph source, Groups groups, std::span<const Variable> apart);

  std::vector<vk::CapabilityProfile> profiles_;
  std::vector<VariantTable> tables_;
  std::unique_ptr<Kernels> kernels_;
  program::DispatchLimit limit_;
};

}  // namespace imprint
