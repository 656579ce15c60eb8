// Bytes that other processes send: an actor's steps, and the messages between an actor and its learner.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "plugin/agent/learn/training/sent_experience.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/seed_brain.h"
#ifdef IMPRINT_FUZZ_STUDIO
#include <sys/socket.h>
#include <unistd.h>

#include "tools/studio/wire.h"
#endif

namespace imprint::fuzz {
namespace {

// Steps are taken all or none, and those that are taken can be sent on.
void give(const agent::BrainSpec& spec, Bytes bytes) {
  agent::SampleQueue waiting = agent::ReplayState::empty(spec).waiting;
  const auto taken = agent::put_waiting(spec, waiting, 1, bytes);
  check_error(taken);
  require(taken.ok() || waiting.empty(), "refused steps leave nothing");
  if (!taken || !*taken) return;
  for (std::uint32_t brain = 0; brain < spec.brain_count; ++brain)
    for (std::uint32_t i = 0; i < waiting.size(brain); ++i)
      require(std::ranges::all_of(waiting.row(brain, i), [](float value) { return std::isfinite(value); }),
              "the numbers of a step are finite");
  std::vector<std::byte> sent(agent::waiting_bytes(spec, waiting));
  require(sent.size() <= bytes.size(), "no more steps than were given");
  agent::take_waiting(spec, waiting, sent);
}

}  // namespace

void experience(Bytes bytes) {
  static const agent::BrainSpec learners[] = {receiving_brain(agent::LearnerKind::dqn),
                                              receiving_brain(agent::LearnerKind::ppo)};
  for (const agent::BrainSpec& spec : learners) give(spec, bytes);
}

#ifdef IMPRINT_FUZZ_STUDIO
// Two bytes say where the stream is cut; the rest arrives in two parts.
void studio(Bytes bytes) {
  if (bytes.size() < 2) return;
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "two sockets");
  imprint::studio::Wire wire(ends[0]);
  const Bytes stream = bytes.subspan(2);
  const std::size_t cut =
      std::min(stream.size(), static_cast<std::size_t>(bytes[0]) | static_cast<std::size_t>(bytes[1]) << 8);
  std::size_t taken = 0;
  const auto arrive = [&](Bytes part) {
    if (!part.empty())  // a wire that has closed takes none
      (void)::send(ends[1], part.data(), part.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    for (wire.receive();; wire.receive()) {
      const std::optional<imprint::studio::Message> message = wire.next();
      if (!message) break;
      constexpr std::size_t kHead = 16;
      require(taken + kHead + message->bytes.size() <= stream.size() &&
                  std::ranges::equal(message->bytes, stream.subspan(taken + kHead, message->bytes.size())),
              "a message has the bytes that were sent");
      taken += kHead + message->bytes.size();
    }
  };
  arrive(stream.first(cut));
  arrive(stream.subspan(cut));
  require(wire.open() || !wire.why_closed().empty(), "a closed wire says why");
  ::close(ends[1]);
}
#endif

}  // namespace imprint::fuzz
