#pragma once
// A model of a context: its program, and its runs from the frame in which they begin to the one in which they
// are read.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/program.h"
#include "plugin/agent/models/model_program.h"
#include "plugin/agent/spec/brain_services.h"
#include "plugin/agent/spec/run_once.h"

namespace imprint::agent {

// Bytes of one input or output, by name; without a name, by position.
struct ModelInput {
  const char* name = nullptr;
  std::span<const std::byte> bytes;
};
struct ModelOutput {
  const char* name = nullptr;
  std::span<std::byte> bytes;
};

struct ModelStats {
  std::uint64_t runs = 0;       // begun
  std::uint64_t late_runs = 0;  // complete after the frame in which they were due
  std::uint32_t dispatches = 0;
  std::uint64_t operations = 0;  // of one run, floating-point
};

class Model {
 public:
  // Errors: those of describe_model; of Runtime::place_together.
  static Result<std::shared_ptr<Model>> create(const BrainServices& services, const ModelSpec& spec);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const std::string& name() const { return described_.description.name; }
  std::span<const ModelValue> inputs() const { return described_.inputs; }    // that begin() takes
  std::span<const ModelValue> outputs() const { return described_.outputs; }  // that read() gives
  std::uint64_t parameter_count() const { return described_.parameter_count; }
  std::uint32_t latency_frames() const { return latency_frames_; }
  // The shape of a value's arrays in runs that begin now; any thread.
  Shape shape_now(const ModelValue& value) const;
  bool uses(const bridge::SharedBuffer& buffer) const;
  ModelStats stats() const;  // any thread

  // ---- create-time ----
  bool compiled() const { return program_ != nullptr; }
  // Errors: those of Program::compile; unsupported (operation_limit).
  Result<> compile();
  // Runs the program once if it has a pipeline that did not run. The state begins at zero after it.
  Result<> run_once(bool in_frame, std::set<VkPipeline>& ran);
  void cancel();  // forgets its runs: the model may be destroyed

  // ---- frame thread ----
  // Sets a dimension with a bound for runs that begin afterwards. Errors: invalid_argument (no dimension with
  // a bound has this name, an extent outside 1 .. bound).
  Result<> set_extent(const std::string& name, std::int64_t extent);
  // Copies the inputs and enqueues a run into the open frame. All inputs, each once. Returns its number, from
  // 1. Errors: wrong_state (not compiled, a shared tensor is the host's), invalid_argument (a name, a count,
  // a size, a number that does not fit), not_ready (run_capacity runs are under way or unread).
  Result<std::uint64_t> begin(std::span<const ModelInput> inputs);
  // Copies outputs of a run and ends it. Errors: not_ready (not due, or not complete), not_found (no such
  // run), invalid_argument. After an error the run stays.
  Result<> read(std::uint64_t run, std::span<const ModelOutput> outputs);
  // Ends a run without reading it, as soon as it is complete. Errors: not_found.
  Result<> discard(std::uint64_t run);
  // The state is zero when the next run begins.
  void reset() { reset_next_ = true; }

 private:
  enum class Phase : std::uint8_t { free, under_way, complete };
  struct Run {
    Phase phase = Phase::free;
    bool wanted = false;       // a host may read it
    std::uint64_t number = 0;  // 0: of run_once
    std::uint64_t frame = 0;
  };

  Model(const BrainServices& services, const ModelSpec& spec, ModelProgram described);

  Result<> check_owned() const;
  std::optional<std::uint32_t> free_slot() const;
  Result<std::uint32_t> slot_of(const char* call, std::uint64_t run) const;
  Result<> fill(std::uint32_t slot, std::span<const ModelInput> inputs);
  void set_reset(std::uint32_t slot, bool reset);
  void finish(std::uint32_t slot);

  BrainServices services_;
  ModelProgram described_;
  std::vector<SharedTensor> shared_;
  std::uint32_t latency_frames_;
  std::uint64_t operation_limit_;
  std::vector<DimensionBound> bounds_;
  std::unique_ptr<Program> program_;
  std::vector<Run> runs_;
  std::vector<Commands> runs_once_;
  bool reset_next_ = true;
  mutable std::mutex extents_mutex_;
  std::vector<ModelExtent> extents_;  // of dimensions with bounds, guarded by the mutex
  std::uint64_t last_number_ = 0;
  std::uint32_t late_in_a_row_ = 0;
  bool told_late_ = false;
  std::atomic<std::uint64_t> begun_{0}, late_{0};
  std::atomic<std::uint32_t> dispatches_{0};
  std::atomic<std::uint64_t> operations_{0};
};

}  // namespace imprint::agent
