#include "compute/vk/pipelines/spirv_cache.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <span>
#include <system_error>
#include <vector>

namespace imprint::vk {
namespace {

namespace fs = std::filesystem;

// File header in the machine's own byte order. A file of the other byte order fails at the magic.
struct FileHead {
  std::uint64_t magic;
  std::uint64_t word_count;
  std::uint64_t checksum_low, checksum_high;
};
constexpr std::uint64_t kFileMagic = 0x3156'5053'504d'4901ull;
constexpr std::uint64_t kMostWords = std::uint64_t{1} << 23;  // of a shader: thirty times a long fused kernel

fs::path path_of(std::string_view utf8) { return fs::path(std::u8string(utf8.begin(), utf8.end())); }

std::string text_of(const fs::path& path) {
  const auto utf8 = path.u8string();
  return std::string(utf8.begin(), utf8.end());
}

Hash128 checksum(const Hash128& key, std::span<const std::uint32_t> words) {
  return Hasher().number(key.low).number(key.high).bytes(std::as_bytes(words)).digest();
}

// A name that no other thread or process takes. The file counts only after the rename.
fs::path temporary_beside(const fs::path& file) {
  static constinit std::atomic<std::uint64_t> counter{0};
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  const auto unique = Hasher()
                          .number(now)
                          .number(counter.fetch_add(1))
                          .number(reinterpret_cast<std::uintptr_t>(&counter))
                          .digest();
  fs::path path = file;
  path += std::string(".").append(unique.hex()).append(".tmp");
  return path;
}

// Writes the whole file or nothing. Says so at the first failure of `told`.
void write_file(const fs::path& file, std::span<const std::span<const std::byte>> parts, const LogSink& log,
                std::atomic<bool>& told) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  const fs::path temporary = temporary_beside(file);
  bool written = false;
  if (!error) {
    std::ofstream stream(temporary, std::ios::binary | std::ios::trunc);
    for (const auto part : parts)
      stream.write(reinterpret_cast<const char*>(part.data()), static_cast<std::streamsize>(part.size()));
    stream.close();
    written = stream.good();
    if (written) fs::rename(temporary, file, error);
  }
  if (written && !error) return;
  std::error_code ignored;
  fs::remove(temporary, ignored);
  if (told.exchange(true)) return;
  std::string message("shader cache: cannot write ");
  message.append(text_of(file));
  if (error) message.append(": ").append(error.message());
  log(LogLevel::warning, message.append(". Shaders that cannot be written compile again next time."));
}

}  // namespace

SpirvCache::SpirvCache(std::string_view directory, LogSink log) : directory_(path_of(directory)), log_(log) {}

std::optional<Spirv> SpirvCache::load(const Hash128& key) const {
  if (directory_.empty()) return std::nullopt;
  const fs::path file = file_of(key);
  std::error_code error;
  const std::uint64_t size = fs::file_size(file, error);
  if (error) return std::nullopt;

  std::ifstream stream(file, std::ios::binary);
  FileHead head{};
  Spirv spirv;
  const bool whole = stream.read(reinterpret_cast<char*>(&head), sizeof head) && head.magic == kFileMagic &&
                     size >= sizeof head && head.word_count == (size - sizeof head) / sizeof(std::uint32_t) &&
                     head.word_count > 0 && head.word_count <= kMostWords &&
                     size == sizeof head + head.word_count * sizeof(std::uint32_t);
  if (whole) {
    spirv.resize(head.word_count);
    stream.read(reinterpret_cast<char*>(spirv.data()),
                static_cast<std::streamsize>(spirv.size() * sizeof(std::uint32_t)));
  }
  if (!whole || !stream || spirv.front() != kSpirvMagic ||
      checksum(key, spirv) != Hash128{head.checksum_low, head.checksum_high}) {
    log_(LogLevel::warning, std::string("shader cache: found a damaged or foreign file ")
                                .append(text_of(file))
                                .append(". Compiles the shader again."));
    return std::nullopt;
  }
  return spirv;
}

void SpirvCache::store(const Hash128& key, const Spirv& spirv) const {
  if (directory_.empty()) return;
  const Hash128 sum = checksum(key, spirv);
  const FileHead head{kFileMagic, spirv.size(), sum.low, sum.high};
  const std::array<std::span<const std::byte>, 2> bytes = {std::as_bytes(std::span(&head, 1)),
                                                           std::as_bytes(std::span(spirv))};
  write_file(file_of(key), bytes, log_, told_);
}

fs::path SpirvCache::file_of(const Hash128& key) const { return directory_ / (key.hex() + ".spv.imp"); }

void dump_glsl(std::string_view directory, std::string_view name, const Hash128& key, std::string_view glsl,
               LogSink log) {
  if (directory.empty()) return;
  std::string file;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || c == '.';
    file += plain ? c : '_';
    if (file.size() == 96) break;  // names of fused kernels can exceed the limit for file names
  }
  file.append("-").append(key.hex(), 0, 12).append(".comp");
  const std::array<std::span<const std::byte>, 1> bytes = {std::as_bytes(std::span(glsl))};
  std::atomic<bool> told = false;
  write_file(path_of(directory) / path_of(file), bytes, log, told);
}

}  // namespace imprint::vk
