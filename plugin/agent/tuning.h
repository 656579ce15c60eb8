#pragma once
// Which variants of kernels a context's programs take, and from where that is known: from tables that the
// host ships, from what was measured at an earlier start and came with its pipeline cache, from measuring
// while programs are warmed up. With determinism asked for, from the first alone.

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

// One thread at a time but for stop.
class Tuning {
 public:
  // The context outlives it. deterministic: nothing is measured, and what was measured elsewhere is not
  // taken.
  Tuning(bridge::Context& context, LogSink log) : context_(context), log_(log) {}

  void set_deterministic(bool deterministic) { deterministic_ = deterministic; }
  void set_measure_ms(std::uint32_t ms) { measure_ms_ = ms; }  // 0: nothing is measured

  // Errors: those of read_tuning_tables; unsupported (the processor).
  Status ship(std::string_view text);
  Result<std::string> text() const;           // what was shipped and what was measured
  Result<std::string> measured_text() const;  // what was measured alone; "" = nothing
  void remember(std::string_view text);       // of an earlier start; what cannot be used is logged

  // Between them, programs that are compiled are measured, as far as that is allowed. progress: 0..1 of the
  // program under way.
  void start(const std::function<void(float)>& progress);
  void finish();
  void stop();  // any thread: what is not measured yet is left to the cost model

 private:
  Status check_vulkan() const;
  VariantTable merged() const;  // shipped before measured

  bridge::Context& context_;
  LogSink log_;
  bool deterministic_ = false;
  std::uint32_t measure_ms_ = 0;
  VariantTable shipped_, measured_;
  std::mutex mutex_;  // of tuner_
  std::shared_ptr<Tuner> tuner_;
};

// A pipeline cache with tables behind it, and apart again. What has none, or damaged ones, is all cache.
std::vector<std::byte> join_tuning(std::vector<std::byte> cache, std::string_view text);
struct CacheAndTuning {
  std::span<const std::byte> cache;
  std::string_view text;  // "" = none
};
CacheAndTuning split_tuning(std::span<const std::byte> blob);

}  // namespace imprint::agent
