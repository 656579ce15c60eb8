#pragma once
// Saves a brain: reads it back with a frame's work; the context's file writer encodes and writes it.

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/runtime.h"
#include "plugin/agent/keep/file_writer.h"
#include "plugin/agent/keep/saved_brain.h"
#include "plugin/agent/keep/state_reader.h"

namespace imprint::agent {

// One save at a time. Frame thread, or between frames.
class Saving {
 public:
  Saving(FileWriter& files, const BrainSpec& spec, std::span<const StateVariable> state);

  // Takes the memory of the readback. Not on a frame thread.
  Result<> prepare(Runtime& runtime) { return reader_.prepare(runtime); }
  bool prepared() const { return reader_.prepared(); }
  StateReader& reader() { return reader_; }

  // Errors: wrong_state while an earlier save is under way.
  Result<> begin(const std::string& path, HostState host);
  // Writes a file that exists already; needs no device. Errors: as begin.
  Result<> write(const std::string& path, std::shared_ptr<const std::vector<std::byte>> file);
  bool idle() const;                                       // the readback is free
  const std::string& path() const { return save_->path; }  // of the newest save; there was one
  void delivered();        // the commands are complete: the writer gets the bytes
  void fail(Error error);  // the commands will never complete
  bool waits_for_gpu() const { return save_ && save_->phase == Phase::reading; }
  Result<> status() const;  // not_ready, the outcome, or not_found when nothing was saved yet
  // not_ready or the failure of the newest save, unless the caller was told; else OK.
  Result<> tell();

 private:
  enum class Phase : std::uint8_t { none, reading, writing, done };
  struct Save {
    std::string path;
    HostState host;
    std::atomic<Phase> phase{Phase::reading};
    Result<> outcome;          // once done
    Phase told = Phase::none;  // in which the caller learned that it is not on disk
  };

  FileWriter& files_;
  const BrainSpec& spec_;
  std::vector<StateVariable> state_;
  StateReader reader_;
  std::shared_ptr<Save> save_;
};

}  // namespace imprint::agent
