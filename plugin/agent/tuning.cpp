#include "plugin/agent/tuning.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "compute/base/hash.h"
#include "compute/tuning/tuning_table.h"

namespace imprint::agent {
namespace {

// A blob with tables ends with their hash, their size in bytes and these letters.
constexpr std::string_view kTuningMagic = "imp-tun1";
constexpr std::size_t kTrailer = 16 + 8 + kTuningMagic.size();

std::array<std::byte, 24> trailer_of(std::string_view text) {
  const Hash128 hash = Hasher().text(text).digest();
  const std::uint64_t numbers[] = {hash.low, hash.high, text.size()};
  std::array<std::byte, 24> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(numbers[i / 8] >> (8 * (i % 8)));
  return bytes;
}

}  // namespace

Result<> Tuning::check_vulkan() const {
  return context_.vulkan()
             ? Result<>{}
             : Result<>{make_error(ErrorCode::unsupported,
                                   "tuning: found a context on the CPU, whose kernels have no variants")};
}

VariantTable Tuning::merged() const {
  VariantTable table = shipped_;
  if (!deterministic_) table.insert(measured_.begin(), measured_.end());
  return table;
}

Result<> Tuning::ship(std::string_view text) {
  IMPRINT_CHECK(check_vulkan());
  IMPRINT_ASSIGN(shipped_, read_tuning_tables(text, context_.vulkan()->capabilities()));
  context_.runtime().set_variants(std::make_shared<const VariantTable>(merged()));
  return {};
}

Result<std::string> Tuning::text() const {
  IMPRINT_CHECK(check_vulkan());
  return write_tuning_tables(merged(), context_.vulkan()->capabilities());
}

Result<std::string> Tuning::measured_text() const {
  IMPRINT_CHECK(check_vulkan());
  if (measured_.empty()) return std::string();
  return write_tuning_tables(measured_, context_.vulkan()->capabilities());
}

void Tuning::remember(std::string_view text) {
  if (text.empty() || deterministic_ || !context_.vulkan()) return;
  auto table = read_tuning_tables(text, context_.vulkan()->capabilities());
  if (!table)
    return log_(LogLevel::info, "measurements of an earlier start are not used: " + table.error().message);
  measured_ = std::move(*table);
  context_.runtime().set_variants(std::make_shared<const VariantTable>(merged()));
}

void Tuning::start(const std::function<void(float)>& progress) {
  if (measure_ms_ == 0 || !context_.vulkan()) return;
  if (deterministic_) return log_(LogLevel::info, "kernels are not measured: the context is deterministic");
  if (!context_.queue())
    return log_(LogLevel::info,
                "kernels are not measured: the context only records, and cannot wait for the GPU");
  TuningOptions options;
  options.seconds = measure_ms_ * 1e-3;
  options.progress = [progress](const TuningStep& step) {
    progress(static_cast<float>(step.position) / static_cast<float>(std::max<std::size_t>(1, step.count)));
    return true;
  };
  auto tuner = Tuner::create(context_.runtime(), *context_.queue(), merged(), std::move(options));
  if (!tuner) return log_(LogLevel::info, "kernels are not measured: " + tuner.error().message);
  const std::lock_guard lock(mutex_);
  tuner_ = std::move(*tuner);
  context_.runtime().set_tuner(tuner_);
}

void Tuning::finish() {
  const std::lock_guard lock(mutex_);
  if (!tuner_) return;
  measured_ = tuner_->table();
  std::erase_if(measured_, [&](const auto& entry) { return shipped_.contains(entry.first); });
  context_.runtime().set_tuner(nullptr);
  tuner_ = nullptr;
}

void Tuning::stop() {
  const std::lock_guard lock(mutex_);
  if (tuner_) tuner_->stop();
}

std::vector<std::byte> join_tuning(std::vector<std::byte> cache, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text)), magic = std::as_bytes(std::span(kTuningMagic));
  const auto trailer = trailer_of(text);
  cache.insert(cache.end(), bytes.begin(), bytes.end());
  cache.insert(cache.end(), trailer.begin(), trailer.end());
  cache.insert(cache.end(), magic.begin(), magic.end());
  return cache;
}

CacheAndTuning split_tuning(std::span<const std::byte> blob) {
  const CacheAndTuning all_cache{blob, {}};
  if (blob.size() < kTrailer || std::memcmp(blob.data() + blob.size() - kTuningMagic.size(),
                                            kTuningMagic.data(), kTuningMagic.size()) != 0)
    return all_cache;
  const std::span<const std::byte> trailer = blob.last(kTrailer).first(24);
  std::uint64_t size = 0;
  for (std::size_t i = 0; i < 8; ++i)
    size |= std::uint64_t{static_cast<std::uint8_t>(trailer[16 + i])} << (8 * i);
  if (size > blob.size() - kTrailer) return all_cache;
  const std::span<const std::byte> bytes =
      blob.last(kTrailer + static_cast<std::size_t>(size)).first(static_cast<std::size_t>(size));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!std::ranges::equal(trailer, trailer_of(text))) return all_cache;
  return {blob.first(blob.size() - kTrailer - bytes.size()), text};
}

}  // namespace imprint::agent
