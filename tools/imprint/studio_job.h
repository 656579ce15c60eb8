#pragma once
// One start of mpirun for `imprint studio`, watched until its end.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/imprint/studio_actors.h"

namespace imprint::tools {

struct StudioJob {
  std::vector<std::string> command;  // mpirun and its arguments
  std::string folder;                // tools/studio/run_folder.h
  std::uint32_t games = 1;           // processes of mpirun
  double patience_s = 60;            // without an exchange, until the job counts as hung
  bool has_checkpoints = false;      // a stopped run makes one more
  StudioActorsOptions actors = {};   // beside the processes of mpirun
};

struct StudioJobEnd {
  enum class Kind { done, failed, hung, stopped };  // stopped: by a signal to this process
  Kind kind = Kind::failed;
  int status = 0;      // exit status of failed; 128 + signal for a signal
  std::string reason;  // of failed and hung: one line; of stopped: which checkpoint is left
  bool began = true;   // a game had joined the run
};

// Waits for the end; ends the job when it hangs. SIGINT or SIGTERM to this process: the run ends at its next
// exchange, with a checkpoint. At once where it has none, at a second signal, and after half a minute.
StudioJobEnd run_studio_job(const StudioJob& job);

}  // namespace imprint::tools
