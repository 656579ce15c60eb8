#pragma once
// Compiled kernels in one piece of memory, for games that ship without a compiler: SPIR-V by the hash of the
// GLSL that it was made from, with a manifest of who made it and for which capabilities.
//
//   0   8   "imp-kern"
//   8   4   version of this layout
//  12   4   bytes from here to the kernels' words, a multiple of 4
//  16  16   hash of what follows
//  32  ..   the maker's version; its compiler; profiles: each its name and its fields, by name; kernels in
//  the order of their keys: key, name, words.
//           Then the words of all kernels in that order.
//
// Numbers are little-endian and strings carry their length. A member of profiles that a file lacks has its
// default; one that the library does not know is refused, since kernels may depend on it.
//
// The hash finds damage; it is no signature. Whoever can write the file hands SPIR-V to the driver.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compute/base/hash.h"
#include "compute/base/result.h"
#include "compute/vk/capability_profile.h"

namespace imprint::vk {

using Spirv = std::vector<std::uint32_t>;
inline constexpr std::uint32_t kSpirvMagic = 0x07230203u;  // its first word

// What a kernel is found by: whoever made it, and whatever its comments say, equal text gives equal keys.
Hash128 source_key(std::string_view glsl);

struct ArchivedKernel {
  Hash128 key;
  std::string name;  // of the first program that asked for it; for people
  Spirv spirv;
};

// The bytes of an archive. Of equal keys the first counts. compiler: in words, for people.
std::vector<std::byte> write_kernel_archive(std::span<const CapabilityProfile> profiles,
                                            std::string_view compiler, std::vector<ArchivedKernel> kernels);

// Never changes once made, so any thread may read it.
class KernelArchive {
 public:
  // Bounds for n bytes: linear time, memory 16 n + 1 MiB.
  // Errors: corrupt_file (none of ours, damaged or cut short), unsupported (of another version of the layout,
  // or made by another version of Imprint, whose kernels are written differently: bake again).
  static Result<std::shared_ptr<const KernelArchive>> parse(std::span<const std::byte> bytes);

  std::optional<Spirv> find(const Hash128& key) const;
  std::span<const ArchivedKernel> kernels() const { return kernels_; }
  std::span<const CapabilityProfile> profiles() const { return profiles_; }
  const std::string& compiler() const { return compiler_; }

  // What a device without a compiler writes its kernels for, so that they are found: its own profile where
  // the archive has that, else the first that the device can run; null when there is none.
  const CapabilityProfile* profile_for(const CapabilityProfile& device) const;
  std::string profile_names() const;  // "desktop, baseline"

 private:
  std::string compiler_;
  std::vector<CapabilityProfile> profiles_;
  std::vector<ArchivedKernel> kernels_;  // in the order of their keys
};

// not_found: that there is no such kernel, in an archive (null: there is none) and a library without a
// compiler, and what to do.
Error missing_kernel(const std::string& name, const Hash128& key, const KernelArchive* archive);

}  // namespace imprint::vk
