#include "compute/vk/pipelines/kernel_archive.h"

#include <algorithm>
#include <concepts>
#include <cstring>
#include <ranges>

#include "compute/base/byte_cursor.h"
#include "compute/base/quote.h"
#include "compute/base/text.h"

namespace imprint::vk {
namespace {

constexpr std::string_view kArchiveMagic = "imp-kern";
constexpr std::string_view kMaker = IMPRINT_VERSION;
constexpr std::uint32_t kLayout = 2;
constexpr std::uint32_t kMostProfiles = 256;

template <std::unsigned_integral T>
void put(std::vector<std::byte>& bytes, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
}

void put(std::vector<std::byte>& bytes, std::string_view text) {
  put(bytes, static_cast<std::uint32_t>(text.size()));
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
}

void put(std::vector<std::byte>& bytes, const Hash128& hash) {
  put(bytes, hash.low);
  put(bytes, hash.high);
}

void put(std::vector<std::byte>& bytes, const CapabilityProfile& profile) {
  put(bytes, profile.name);
  put(bytes, static_cast<std::uint32_t>(profile_fields().size()));
  for (std::size_t i = 0; i < profile_fields().size(); ++i) {
    const ProfileField& field = profile_fields()[i];
    put(bytes, std::string_view(field.name));
    put(bytes, field.get(profile));
    put(bytes, profile.unused_fields >> i & 1u);
  }
}

std::string text_at(ByteCursor& cursor) { return std::string(cursor.words(cursor.number<std::uint32_t>())); }

Hash128 hash_at(ByteCursor& cursor) {
  const auto low = cursor.number<std::uint64_t>();
  return {low, cursor.number<std::uint64_t>()};
}

Error refuse(ErrorCode code, const std::string& why) { return make_error(code, "kernel archive: " + why); }
Error damaged(const std::string& why) { return refuse(ErrorCode::corrupt_file, why + ". Bake it again."); }

Result<CapabilityProfile> read_profile(ByteCursor& reader) {
  CapabilityProfile profile;
  profile.name = clipped(text_at(reader));  // stands in logs
  const auto count = reader.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    const std::string name = text_at(reader);
    const auto value = reader.number<std::uint32_t>();
    const bool unused = reader.number<std::uint32_t>() != 0;
    const ProfileField* field = find_profile_field(name);
    if (!field)
      return refuse(ErrorCode::unsupported, "profile " + quote(profile.name) + ": found unknown field " +
                                                quote(name) +
                                                ", expected fields of this version. Bake it again.");
    field->set(profile, value);
    if (unused) profile.unused_fields |= 1u << (field - profile_fields().data());
  }
  if (const std::string below = profile.below_vulkan(); reader.ok() && !below.empty())
    return damaged("profile " + quote(profile.name) + ": " + below);
  return profile;
}

}  // namespace

// Drops // comments: they name variables and programs, so equal kernels differ in them. A /* comment may
// contain anything, so a text that has one counts whole.
Hash128 source_key(std::string_view glsl) {
  Hasher hasher;
  const bool strip = glsl.find("/*") == std::string_view::npos;
  while (!glsl.empty()) {
    std::string_view line = glsl.substr(0, glsl.find('\n'));
    glsl.remove_prefix(std::min(glsl.size(), line.size() + 1));
    if (const auto comment = strip ? line.find("//") : std::string_view::npos;
        comment != std::string_view::npos) {
      line = line.substr(0, comment);
      while (line.ends_with(' ')) line.remove_suffix(1);
      if (line.empty()) continue;
    }
    hasher.text(line);
  }
  return hasher.digest();
}

std::vector<std::byte> write_kernel_archive(std::span<const CapabilityProfile> profiles,
                                            std::string_view compiler, std::vector<ArchivedKernel> kernels) {
  std::ranges::stable_sort(kernels, {}, &ArchivedKernel::key);
  kernels.erase(std::ranges::unique(kernels, {}, &ArchivedKernel::key).begin(), kernels.end());

  std::vector<std::byte> content;
  put(content, kMaker);
  put(content, compiler);
  put(content, static_cast<std::uint32_t>(profiles.size()));
  for (const CapabilityProfile& profile : profiles) put(content, profile);
  put(content, static_cast<std::uint32_t>(kernels.size()));
  for (const ArchivedKernel& kernel : kernels) {
    put(content, kernel.key);
    put(content, kernel.name);
    put(content, static_cast<std::uint32_t>(kernel.spirv.size()));
  }
  content.resize((content.size() + 3) / 4 * 4);
  const auto table_bytes = static_cast<std::uint32_t>(content.size());
  for (const ArchivedKernel& kernel : kernels)
    for (const std::uint32_t word : kernel.spirv) put(content, word);

  std::vector<std::byte> bytes;
  for (const char c : kArchiveMagic) bytes.push_back(static_cast<std::byte>(c));
  put(bytes, kLayout);
  put(bytes, table_bytes);
  put(bytes, Hasher().number(table_bytes).bytes(content).digest());
  bytes.insert(bytes.end(), content.begin(), content.end());
  return bytes;
}

Result<std::shared_ptr<const KernelArchive>> KernelArchive::parse(std::span<const std::byte> bytes) {
  ByteCursor head(bytes);
  const auto magic = head.take(kArchiveMagic.size());
  if (!head.ok() || std::memcmp(magic.data(), kArchiveMagic.data(), kArchiveMagic.size()) != 0)
    return refuse(ErrorCode::corrupt_file,
                  "found other bytes, expected an archive. Give a file that imprint bake wrote.");
  const auto layout = head.number<std::uint32_t>();
  const auto table_bytes = head.number<std::uint32_t>();
  const Hash128 sum = hash_at(head);
  if (!head.ok()) return damaged("found a truncated file, expected a whole one");
  if (layout != kLayout)
    return refuse(ErrorCode::unsupported, "layout: found version " + std::to_string(layout) + ", expected " +
                                              std::to_string(kLayout) + ". Bake it again.");
  if (Hasher().number(table_bytes).bytes(head.rest()).digest() != sum || table_bytes > head.rest().size())
    return damaged("found a damaged or truncated file, expected a whole one");

  auto archive = std::make_shared<KernelArchive>();
  ByteCursor table(head.rest().first(table_bytes)), words(head.rest().subspan(table_bytes));
  if (const std::string maker = text_at(table); maker != kMaker)
    return refuse(ErrorCode::unsupported, "version: found " + clipped(maker) + ", expected " +
                                              std::string(kMaker) + ". Bake it again.");
  archive->compiler_ = text_at(table);
  const auto profile_count = table.number<std::uint32_t>();
  if (profile_count > kMostProfiles)
    return damaged("profiles: found " + std::to_string(profile_count) + ", expected at most " +
                   std::to_string(kMostProfiles));
  for (std::uint32_t i = 0; i < profile_count && table.ok(); ++i) {
    IMPRINT_ASSIGN(CapabilityProfile profile, read_profile(table));
    archive->profiles_.push_back(std::move(profile));
  }
  const auto kernel_count = table.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < kernel_count && table.ok(); ++i) {
    ArchivedKernel kernel;
    kernel.key = hash_at(table);
    kernel.name = text_at(table);
    const auto code = words.take(std::size_t{table.number<std::uint32_t>()} * sizeof(std::uint32_t));
    kernel.spirv.resize(code.size() / sizeof(std::uint32_t));
    if (!code.empty()) std::memcpy(kernel.spirv.data(), code.data(), code.size());
    if (kernel.spirv.empty() || kernel.spirv.front() != kSpirvMagic)
      return damaged("kernel " + quote(kernel.name) + ": found other bytes, expected SPIR-V");
    if (!archive->kernels_.empty() && kernel.key <= archive->kernels_.back().key)
      return damaged("kernels: found them out of order, expected ascending keys");
    archive->kernels_.push_back(std::move(kernel));
  }
  if (!table.ok() || !words.ok() || !words.rest().empty())
    return damaged("table: found sizes that do not match the content, expected equal ones");
  return std::shared_ptr<const KernelArchive>(std::move(archive));
}

std::optional<Spirv> KernelArchive::find(const Hash128& key) const {
  const auto found = std::ranges::lower_bound(kernels_, key, {}, &ArchivedKernel::key);
  if (found == kernels_.end() || found->key != key) return std::nullopt;
  return found->spirv;
}

const CapabilityProfile* KernelArchive::profile_for(const CapabilityProfile& device) const {
  auto found = std::ranges::find_if(profiles_,
                                    [&](const CapabilityProfile& profile) { return profile.equals(device); });
  if (found == profiles_.end())
    found = std::ranges::find_if(
        profiles_, [&](const CapabilityProfile& profile) { return profile.lack(device).empty(); });
  return found == profiles_.end() ? nullptr : &*found;
}

std::string KernelArchive::profile_names() const {
  constexpr std::size_t kMostNames = 8;
  std::string names;
  for (const CapabilityProfile& profile : profiles() | std::views::take(kMostNames))
    names += (names.empty() ? "" : ", ") + profile.name;
  if (profiles_.size() > kMostNames) names += text(" and ", profiles_.size() - kMostNames, " more");
  return names;
}

Error missing_kernel(const std::string& name, const Hash128& key, const KernelArchive* archive) {
  const std::string kernel = "kernel '" + name + "' (" + key.hex() + ")";
  if (!archive)
    return make_error(
        ErrorCode::not_found,
        kernel +
            ": found neither a shader compiler nor a kernel archive, expected one of them. Make an archive "
            "with imprint bake and give it to imp_host::kernel_archive or vk::DeviceOptions::kernels.");
  return make_error(ErrorCode::not_found,
                    kernel + ": found it neither in the kernel archive (" +
                        std::to_string(archive->kernels().size()) + " kernels for " +
                        archive->profile_names() +
                        ") nor a shader compiler. Bake again with the model or brain that it belongs to, "
                        "exactly as the game makes it, for a profile that this device can run.");
}

}  // namespace imprint::vk
