#pragma once
// How a runtime requests measured variants, without depending on compute/tuning, which measures them.

namespace imprint {

class Runtime;

namespace program {

struct ProgramGraph;

class VariantTuner {
 public:
  virtual ~VariantTuner() = default;
  // Called before a program is compiled for `runtime`, on the compiling thread. Measures the variants of its
  // kernels and gives the runtime their table. Reports failures to the log only.
  virtual void tune(Runtime& runtime, const ProgramGraph& source) = 0;
};

}  // namespace program
}  // namespace imprint
