#pragma once
// The newest copy of a brain in host memory, taken now and then behind the game's back: what is left when its
// device is lost.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/runtime.h"
#include "plugin/agent/keep/file_writer.h"
#include "plugin/agent/keep/saved_brain.h"
#include "plugin/agent/keep/state_reader.h"

namespace imprint::agent {

// One copy at a time. Frame thread, or between frames, unless marked any-thread; the putting together of the
// bytes is elsewhere.
class Shadow {
 public:
  struct Copy {
    std::uint64_t frame = 0;      // of the boundary that it shows
    std::vector<std::byte> file;  // as saved_brain.h has it
  };

  Shadow(FileWriter& files, const BrainSpec& spec, std::span<const StateVariable> state);

  // Makes the way back to the host. Not on a frame thread.
  Status prepare(Runtime& runtime) { return reader_.prepare(runtime); }
  bool prepared() const { return reader_.prepared(); }
  StateReader& reader() { return reader_; }

  bool idle() const { return !busy_->load(std::memory_order_acquire); }
  void begin(std::uint64_t frame, HostState host);  // at a boundary
  bool begun() const { return begun_; }
  void issued() { begun_ = false; }            // the commands are on their way
  void forget();                               // begun, and its commands will not be issued
  void delivered();                            // they are complete
  std::shared_ptr<const Copy> newest() const;  // any-thread; null before the first

 private:
  struct Kept {
    std::mutex mutex;
    std::shared_ptr<const Copy> newest;
  };

  FileWriter& files_;
  const BrainSpec& spec_;
  std::vector<StateVariable> state_;
  StateReader reader_;
  std::shared_ptr<std::atomic<bool>> busy_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
  std::shared_ptr<HostState> host_;
  std::uint64_t frame_ = 0;
  bool begun_ = false;
};

}  // namespace imprint::agent
