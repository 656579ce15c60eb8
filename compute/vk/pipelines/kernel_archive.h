#pragma once
// Compiled kernels in one piece of memory, for games that ship without a compiler. Holds SPIR-V by the hash
// of its GLSL, with a manifest: the maker, and the capabilities that the kernels are made for.
//
//   0   8   "imp-kern"
//   8   4   version of this layout
//  12   4   bytes from here to the kernels' words, a multiple of 4
//  16  16   hash of everything after it
//  32  ..   the maker's version; its compiler; profiles, each with its name and its fields, by name, with a
//           value and a 1 if no kernel depends on it; kernels in key order: key, name, words.
//           Then the words of all kernels in that order.
//
// Numbers are little-endian; strings carry their length. A profile member that a file lacks has its default.
// A member that the library does not know is refused, since kernels may depend on it.
//
// The hash finds damage; it is not a signature. Anyone who can write the file hands SPIR-V to the driver.

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
#include "compute/vk/pipelines/capability_profile.h"

namespace imprint::vk {

using Spirv = std::vector<std::uint32_t>;
inline constexpr std::uint32_t kSpirvMagic = 0x07230203u;  // its first word

// The key of a kernel. Equal text gives equal keys, whatever program made it and whatever its comments say.
Hash128 source_key(std::string_view glsl);

struct ArchivedKernel {
  Hash128 key;
  std::string name;  // of the first program that asked for it; for people
  Spirv spirv;
};

// Returns the bytes of an archive. The first of several equal keys counts. compiler: a description for
// people.
std::vector<std::byte> write_kernel_archive(std::span<const CapabilityProfile> profiles,
                                            std::string_view compiler, std::vector<ArchivedKernel> kernels);

// Immutable, so any thread may read it.
class KernelArchive {
 public:
  // Bounds for n bytes: linear time, memory 16 n + 1 MiB. Errors: corrupt_file (not an archive, damaged or
  // cut short), unsupported (another version of the layout, or of Imprint, whose kernels differ: bake again).
  static Result<std::shared_ptr<const KernelArchive>> parse(std::span<const std::byte> bytes);

  std::optional<Spirv> find(const Hash128& key) const;
  std::span<const ArchivedKernel> kernels() const { return kernels_; }
  std::span<const CapabilityProfile> profiles() const { return profiles_; }
  const std::string& compiler() const { return compiler_; }

  // The profile to write kernels for on a device without a compiler, so that the archive has them. Prefers
  // the device's own profile, then the first that the device can run; null when there is none.
  const CapabilityProfile* profile_for(const CapabilityProfile& device) const;
  std::string profile_names() const;  // "desktop, baseline"

 private:
  std::string compiler_;
  std::vector<CapabilityProfile> profiles_;
  std::vector<ArchivedKernel> kernels_;  // in the order of their keys
};

// not_found: a library without a compiler has no such kernel in its archive (null: no archive). Says what to
// do.
Error missing_kernel(const std::string& name, const Hash128& key, const KernelArchive* archive);

}  // namespace imprint::vk
