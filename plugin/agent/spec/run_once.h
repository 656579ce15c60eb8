#pragma once
// Runs the programs of brains once before play, since some drivers compile a pipeline at its first dispatch.
// Runs follow each other, at once or with the frame.

#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/program.h"
#include "engine-bridge/context.h"

namespace imprint::agent {

class RunOnce {
 public:
  // in_frame: enqueues into the open frame; else runs and waits. `waiting` has the enqueued commands until
  // they are complete; its owner cancels them before it goes. ran: the context's pipelines that ran.
  RunOnce(bridge::Context& context, bool in_frame, std::vector<Commands>& waiting, std::set<VkPipeline>& ran)
      : context_(context), in_frame_(in_frame), waiting_(waiting), ran_(ran) {}

  // Whether it has a pipeline that did not run. Brains of one shape share pipelines.
  bool wants(const Program& program) const {
    return std::ranges::any_of(program.pipelines(),
                               [&](VkPipeline pipeline) { return !ran_.contains(pipeline); });
  }

  // done: called when the run is complete.
  Result<> run(const Commands& commands, std::function<void()> done = {}) {
    if (in_frame_) {
      waiting_.push_back(commands);
      return context_.enqueue(
          commands, [&waiting = waiting_, commands, done = std::move(done)](std::uint64_t) {
            std::erase_if(waiting, [&](const Commands& one) { return one.primary == commands.primary; });
            if (done) done();
          });
    }
    IMPRINT_CHECK(context_.run_now(commands));
    if (done) done();
    return {};
  }
  // Its slot 0. As commands, so that a driver's compiler does not count as the program's time.
  Result<> run(const Program& program, std::function<void()> done = {}) {
    for (const VkPipeline pipeline : program.pipelines()) ran_.insert(pipeline);
    return run(Commands{program.whole(0, VK_COMMAND_BUFFER_LEVEL_PRIMARY),
                        program.whole(0, VK_COMMAND_BUFFER_LEVEL_SECONDARY)},
               std::move(done));
  }

 private:
  bridge::Context& context_;
  bool in_frame_;
  std::vector<Commands>& waiting_;
  std::set<VkPipeline>& ran_;
};

}  // namespace imprint::agent
