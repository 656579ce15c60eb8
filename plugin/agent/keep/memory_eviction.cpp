#include "plugin/agent/keep/memory_eviction.h"

#include <exception>

#include "compute/base/text.h"

namespace imprint::agent {
namespace {

constexpr std::uint64_t kFramesBetweenTries = 120;  // to return, after memory ran out on the way

}  // namespace

void MemoryEviction::replace_replay(std::size_t index, std::vector<std::byte> content) {
  replay_ = std::make_shared<StateReader::Contents>(*replay_);  // the writer may read the old one
  (*replay_)[index] = std::move(content);
  parts_.saving.reader().replay_left(replay_);
  if (parts_.host_copy.prepared()) parts_.host_copy.reader().replay_left(replay_);
}

bool MemoryEviction::poll() {
  if (!moving()) return true;
  if (!done_.load(std::memory_order_acquire)) return false;
  finish();
  return true;
}

Result<> MemoryEviction::begin(bool writes) {
  if (present() && wanted_ && !writes) return begin_eviction();
  if (evicted() && !wanted_ && parts_.services.clock.frame >= retry_frame_) begin_return();
  return {};
}

Result<> MemoryEviction::begin_eviction() {
  const Training& training = parts_.learning.training();
  const bool quiet = training.compiled() && training.slots_in_flight().empty() && parts_.saving.idle() &&
                     parts_.host_copy.idle() && !parts_.host_copy.begun();
  if (!quiet) return {};
  done_ = false;
  if (!parts_.saving.prepared() || parts_.replay.empty()) {
    done_ = true;
    phase_ = Phase::leaving;
    finish();
    return {};
  }
  IMPRINT_CHECK(parts_.services.context.enqueue(parts_.saving.reader().replay_commands(),
                                                [weak = weak_from_this()](std::uint64_t) {
                                                  if (const auto self = weak.lock()) self->replay_arrived();
                                                }));
  phase_ = Phase::reading;
  return {};
}

// The writer copies: these are many megabytes.
void MemoryEviction::replay_arrived() {
  phase_ = Phase::leaving;
  parts_.services.files.add([this] {
    try {
      auto contents = std::make_shared<StateReader::Contents>();
      for (std::size_t i = 0; i < parts_.replay.size(); ++i) {
        const std::span<const std::byte> bytes = parts_.saving.reader().replay_bytes(i);
        contents->emplace_back(bytes.begin(), bytes.end());
      }
      replay_ = std::move(contents);
    } catch (const std::exception&) {  // no host memory either: it stays on the device
      replay_.reset();
    }
    done_.store(true, std::memory_order_release);
  });
}

void MemoryEviction::begin_return() {
  phase_ = Phase::returning;
  done_ = false;
  parts_.services.files.add([this] {
    try {
      outcome_ = make_returned();
    } catch (const std::exception& exception) {
      outcome_ = make_error(ErrorCode::out_of_host_memory, exception.what());
    }
    done_.store(true, std::memory_order_release);
  });
}

// On the writer's thread. The frame thread installs what it makes.
Result<> MemoryEviction::make_returned() {
  Runtime& runtime = parts_.services.context.runtime();
  if (replay_) {
    for (std::size_t i = 0; i < parts_.replay.size(); ++i) {
      IMPRINT_CHECK(runtime.place(parts_.replay[i], true));
      IMPRINT_CHECK(runtime.write(parts_.replay[i], (*replay_)[i]));
    }
    IMPRINT_ASSIGN(returned_.saving, runtime.read(parts_.replay, true));
    if (parts_.host_copy.prepared()) {
      IMPRINT_ASSIGN(returned_.host_copy, runtime.read(parts_.replay, true));
    }
    IMPRINT_ASSIGN(returned_.snapshots, parts_.snapshots.compile(runtime, [] {}));
  }
  IMPRINT_ASSIGN(returned_.learning, parts_.learning.training().compile(runtime));
  return {};
}

void MemoryEviction::finish() {
  if (phase_ == Phase::leaving)
    evict();
  else if (phase_ == Phase::returning)
    finish_return();
}

void MemoryEviction::evict() {
  Training& training = parts_.learning.training();
  bridge::Context& context = parts_.services.context;
  context.cancel(training.program());  // also forgets its measured cost
  std::uint64_t bytes = training.stats()->arena_bytes + training.stats()->io_bytes;
  training.install(nullptr);
  if (replay_) {
    StateReader& saving = parts_.saving.reader();
    StateReader* host_copy = parts_.host_copy.prepared() ? &parts_.host_copy.reader() : nullptr;
    parts_.snapshots.each_program([&](Program& program) { context.cancel(program); });
    parts_.snapshots.install({});
    context.cancel(saving.replay_commands());
    if (host_copy) context.cancel(host_copy->replay_commands());
    saving.replay_left(replay_);
    if (host_copy) host_copy->replay_left(replay_);
    displace_replay();
    for (const Variable& part : parts_.replay) bytes += (host_copy ? 3 : 2) * part.bytes();
  }
  bytes_ = bytes;
  phase_ = Phase::evicted;
  parts_.services.log(LogLevel::info, text("brain '", parts_.spec.name, "': learning has left the device",
                                           replay_ ? "; its replay memory is in host memory" : ""));
}

// Cannot fail for a variable that is placed on a device; others stay as they are.
void MemoryEviction::displace_replay() {
  for (const Variable& part : parts_.replay) (void)parts_.services.context.runtime().displace(part);
}

void MemoryEviction::finish_return() {
  if (!outcome_) {
    returned_ = {};
    if (replay_) displace_replay();
    retry_frame_ = parts_.services.clock.frame + kFramesBetweenTries;
    phase_ = Phase::evicted;
    parts_.services.log(LogLevel::info, text("brain '", parts_.spec.name,
                                             "': no room for learning yet: ", outcome_.error().message));
    return;
  }
  parts_.learning.training().install(std::move(returned_.learning));
  if (replay_) {
    parts_.snapshots.install(std::move(returned_.snapshots));
    parts_.saving.reader().replay_came_back(std::move(returned_.saving));
    if (returned_.host_copy) parts_.host_copy.reader().replay_came_back(std::move(returned_.host_copy));
  }
  returned_ = {};
  replay_.reset();
  bytes_ = 0;
  phase_ = Phase::present;
  parts_.services.log(LogLevel::info, text("brain '", parts_.spec.name, "': learning is back on the device"));
}

void MemoryEviction::settle() {
  if (!moving()) return;
  if (phase_ == Phase::reading) {
    parts_.services.context.cancel(parts_.saving.reader().replay_commands());
    phase_ = Phase::present;
    return;
  }
  parts_.services.files.flush();
  finish();
}

}  // namespace imprint::agent
