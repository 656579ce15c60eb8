#pragma once
// Chooses the kernel variants of a context's programs: by tables that the host ships, by measurements of an
// earlier start (kept in the pipeline cache), by measuring during warmup. A deterministic context uses
// shipped tables only.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compute/base/log.h"
#include "compute/base/result.h"
#include "compute/tuning/tuner.h"
#include "engine-bridge/context.h"

namespace imprint::agent {

// One thread at a time, except for stop.
class Tuning {
 public:
  // The context outlives it.
  Tuning(bridge::Context& context, LogSink log) : context_(context), log_(log) {}

  // Measures nothing, and uses no measurements.
  void set_deterministic(bool deterministic) { deterministic_ = deterministic; }
  void set_measure_ms(std::uint32_t ms) { measure_ms_ = ms; }  // 0: nothing is measured

  // Errors: those of read_tuning_tables; unsupported (CPU).
  Result<> ship(std::string_view text);
  Result<std::string> text() const;           // shipped and measured
  Result<std::string> measured_text() const;  // measured alone; "" = nothing
  void remember(std::string_view text);       // of an earlier start; logs what it cannot use

  // Programs compiled between start and finish are measured, where allowed. progress: 0..1 of one program.
  void start(const std::function<void(float)>& progress);
  void finish();
  void stop();  // any thread: the cost model chooses the rest

 private:
  Result<> check_vulkan() const;
  VariantTable merged() const;  // shipped before measured

  bridge::Context& context_;
  LogSink log_;
  bool deterministic_ = false;
  std::uint32_t measure_ms_ = 0;
  VariantTable shipped_, measured_;
  std::mutex mutex_;  // of tuner_
  std::shared_ptr<Tuner> tuner_;
};

// Appends tables to a pipeline cache, and splits them again. Without intact tables the blob is all cache.
std::vector<std::byte> join_tuning(std::vector<std::byte> cache, std::string_view text);
struct CacheAndTuning {
  std::span<const std::byte> cache;
  std::string_view text;  // "" = none
};
CacheAndTuning split_tuning(std::span<const std::byte> blob);

}  // namespace imprint::agent
