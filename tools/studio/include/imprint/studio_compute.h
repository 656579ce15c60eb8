#ifndef IMPRINT_STUDIO_COMPUTE_H_
#define IMPRINT_STUDIO_COMPUTE_H_
// The studio for networks of the library (imprint/compute.h): processes of one or many computers, each with a
// device of its own or a share of one, train one network. Two ways:
//
//   minibatches  each process computes the gradients of its part of every batch; the sums are taken over all.
//                PpoOptions::process_count, TrainerOptions::process_count, with all_reduce() as the function
//                that adds.
//   updates      each process learns by itself; mean_part() at the end of its sequence makes the mean of all.
//
// Start the processes with mpirun. Functions are for one thread.

#include <imprint/compute.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace imprint::studio {

std::uint32_t rank();   // of this process: 0 .. ranks() - 1
std::uint32_t ranks();  // processes of this run
// For bridge::StandaloneOptions::device: the next of the devices of IMPRINT_STUDIO_DEVICES ("0,1"), in turn
// among the processes of a computer. Default "cpu".
std::string device();

// For ProgramSequence::all_reduce: replaces numbers by their sums over all processes, with the same bits in
// each. compressed: sends float16, half the bytes, with 11 bits of each number.
std::function<void(std::span<float>)> all_reduce(bool compressed = false);
// For ProgramSequence::shared_sums, beside all_reduce(): on one computer GPUs copy straight into memory that
// all processes map. Then all processes compile sequences that add up in the same order. Null where the
// processes are on several computers, or there is one.
std::shared_ptr<SharedSums> shared_sums();
double seconds_in_sums();  // since the start, waiting for the others included

// A part that replaces float32 variables by their mean over all processes, for the end of a sequence with
// all_reduce.
ProgramPart mean_part(const nn::Parameters& variables);
// Gives all processes rank 0's values.
Result<> broadcast(Session& session, const nn::Parameters& variables);

// All processes have left the run: call at the end of each, or the end of one ends all.
void finish();
// Prints the text with rank and computer, and ends all processes.
[[noreturn]] void fail(const std::string& text);

}  // namespace imprint::studio

#endif  // IMPRINT_STUDIO_COMPUTE_H_
