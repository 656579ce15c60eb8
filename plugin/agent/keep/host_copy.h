#pragma once
// The newest copy of a brain in host memory, renewed from time to time: what survives a device loss.

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

// One copy at a time. Frame thread, or between frames, unless marked any-thread. The file writer assembles
// the bytes.
class HostCopy {
 public:
  struct Content {
    std::uint64_t frame = 0;      // of the boundary at which it was taken
    std::vector<std::byte> file;  // as saved_brain.h describes it
  };

  HostCopy(FileWriter& files, const BrainSpec& spec, std::span<const StateVariable> state);

  // Takes the memory of the readback. Not on a frame thread.
  Result<> prepare(Runtime& runtime) { return reader_.prepare(runtime); }
  bool prepared() const { return reader_.prepared(); }
  StateReader& reader() { return reader_; }

  bool idle() const { return !busy_->load(std::memory_order_acquire); }
  void begin(std::uint64_t frame, HostState host);  // at a boundary
  bool begun() const { return begun_; }
  void issued() { begun_ = false; }               // the commands were enqueued
  void forget();                                  // its commands will not be issued
  void delivered();                               // the commands are complete
  std::shared_ptr<const Content> newest() const;  // any-thread; null before the first

 private:
  struct Kept {
    std::mutex mutex;
    std::shared_ptr<const Content> newest;
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
