// Program::compile: for a device or for the CPU.

#include "compute/base/host_memory.h"
#include "compute/base/text.h"
#include "compute/program/cpu_program.h"
#include "compute/program/loop_parts.h"
#include "compute/program/program_body.h"
#include "compute/program/program_impl.h"

namespace imprint {

using namespace program;

Result<Program> program::compile_graph(Runtime& runtime, ProgramGraph source) {
  std::unique_ptr<Program::Body> body;
  if (runtime.on_cpu()) {
    IMPRINT_ASSIGN(body, CpuProgram::compile(runtime, std::move(source)));
  } else {
    IMPRINT_ASSIGN(body, Program::Impl::compile(static_cast<RuntimeImpl&>(runtime), std::move(source)));
  }
  return Program::Body::wrap(std::move(body));
}

Result<Program> Program::compile(Runtime& runtime, const ProgramDescription& description) {
  if (has_loops(description)) {
    IMPRINT_ASSIGN(const ProgramSequence sequence, parts_of_loops(description));
    return compile(runtime, sequence);
  }
  return within_host_memory(text("program '", description.name, "'"), [&]() -> Result<Program> {
    IMPRINT_ASSIGN(ProgramGraph source, build_program_graph(description));
    return compile_graph(runtime, std::move(source));
  });
}

Result<Program> Program::compile_sequence(Runtime& runtime, const ProgramSequence& given) {
  IMPRINT_ASSIGN(const ProgramSequence sequence, without_loops(given));
  return within_host_memory(text("program '", sequence.name, "'"), [&]() -> Result<Program> {
    std::unique_ptr<Body> body;
    if (runtime.on_cpu()) {
      IMPRINT_ASSIGN(body, CpuProgram::compile(runtime, sequence));
    } else {
      IMPRINT_ASSIGN(body, Impl::compile(static_cast<RuntimeImpl&>(runtime), sequence));
    }
    return Program(std::move(body));
  });
}

}  // namespace imprint
