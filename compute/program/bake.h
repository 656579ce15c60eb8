#pragma once
// Kernels of programs for devices that are not there, written and compiled ahead of time into an archive
// (compute/vk/kernel_archive.h), so that a game ships without a compiler. Needs no Vulkan, and a library with
// a compiler.

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/graph/variants.h"
#include "compute/program/program.h"
#include "compute/program/program_sequence.h"
#include "compute/vk/capability_profile.h"

namespace imprint {

namespace program {
struct ProgramGraph;  // program_body.h
}

// One thread at a time.
class Baker {
 public:
  // In the order in which a device that can run several of them chooses, see vk::KernelArchive::profile_for.
  // What this library's compiler does not know of a profile is left out of it, and of the archive. tables: of
  // measured variants (tuning_table.h), whose kernels are baked beside those that the cost model takes, for
  // games that ship the tables too (Runtime::set_variants).
  explicit Baker(std::vector<vk::CapabilityProfile> profiles, std::vector<VariantTable> tables = {});
  Baker(Baker&&) noexcept;
  Baker& operator=(Baker&&) noexcept;
  ~Baker();

  // What Program::compile would ask for, on a device of each profile. A kernel is written for what lies in
  // one block of memory and what does not. Each group's variables are placed together
  // (Runtime::place_together), the other variables too, external ones in buffers of their own; which groups
  // and constants share a block depends on what else there is, so each of these ways is baked. apart:
  // variables that yield (Runtime::place), each in a block that none of the others lies in. Variables need no
  // place. At most kMaxGroups groups. Errors: those of Program::compile that do not depend on memory, with
  // the profile's name.
  using Groups = std::span<const std::vector<Variable>>;
  static constexpr std::size_t kMaxGroups = 4;
  Status add(const ProgramDescription& program, Groups groups = {}, std::span<const Variable> apart = {});
  Status add(const ProgramSequence& sequence, Groups groups = {}, std::span<const Variable> apart = {});

  std::size_t kernel_count() const;

  // The archive's bytes. Compiles, on as many threads as there are cores; progress is called on this one,
  // after each kernel. Errors: compile_failed, unsupported (a library without a compiler).
  Result<std::vector<std::byte>> compile(const std::function<void(std::size_t done)>& progress = {}) const;

 private:
  struct Kernels;
  Status add_graph(program::ProgramGraph source, Groups groups, std::span<const Variable> apart);

  std::vector<vk::CapabilityProfile> profiles_;
  std::vector<VariantTable> tables_;
  std::unique_ptr<Kernels> kernels_;
};

}  // namespace imprint
