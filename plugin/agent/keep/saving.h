#pragma once
// A brain on its way from the device to a file: read back with a frame's work, put together and written by
// the context's writer.

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

// One save at a time. Frame thread, or between frames; only the writing itself is elsewhere.
class Saving {
 public:
  Saving(FileWriter& files, const BrainSpec& spec, std::span<const StateVariable> state);

  // Makes the way back to the host. Not on a frame thread.
  Status prepare(Runtime& runtime) { return reader_.prepare(runtime); }
  bool prepared() const { return reader_.prepared(); }
  StateReader& reader() { return reader_; }

  // Errors: wrong_state while an earlier save is on its way.
  Status begin(const std::string& path, HostState host);
  // Writes bytes that are at hand, which needs no device. Errors: the same.
  Status write(const std::string& path, std::shared_ptr<const std::vector<std::byte>> file);
  bool idle() const;                                      // the readback may be used for something else
  const std::string& path() const { return job_->path; }  // of the newest save; there was one
  void delivered();        // the commands are complete: hands the bytes to the writer
  void fail(Error error);  // the commands will never complete
  Status status() const;   // not_ready, the outcome, or not_found when nothing was saved yet

 private:
  enum class Phase : std::uint8_t { none, reading, writing, done };
  struct Job {
    std::string path;
    HostState host;
    std::atomic<Phase> phase{Phase::reading};
    Status outcome;  // once done
  };

  FileWriter& files_;
  const BrainSpec& spec_;
  std::vector<StateVariable> state_;
  StateReader reader_;
  std::shared_ptr<Job> job_;
};

}  // namespace imprint::agent
