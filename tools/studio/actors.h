#pragma once
// Both ends of asynchronous learning (Share::actors). Actors play with the newest weights that have arrived
// and send their steps; a learner learns from the steps of all its actors and sends its weights. Neither
// waits for the other, but an actor is ahead of its learner by no more than its part of the next learn step.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/studio/curriculum.h"
#include "tools/studio/wire.h"

namespace imprint::studio {

// First message of an actor.
struct Hello {
  std::uint64_t schema_low = 0, schema_high = 0;  // of the brain's arrays: equal in all games
  std::uint64_t arrays = 0, numbers = 0;
  std::uint32_t actor = 0, process = 0, evaluates = 0;
  std::uint32_t joined = 0;  // by which process of `imprint studio --join`; 0: the run's own
  char computer[64] = {};
};
// Since the message before.
struct ExperienceHead {
  double score_sum = 0, episodes = 0, steps = 0;
};
struct TakenHead {
  double steps = 0;   // of this actor, in all
  double window = 0;  // steps that it may send beyond them
};
struct WeightsHead {
  std::uint64_t exchanges = 0, steps = 0;
  std::array<double, Curriculum::kStateNumbers> curriculum{};
};

class ActorEnd {
 public:
  // find_learner: HOST:PORT, or empty as long as there is none.
  ActorEnd(Hello hello, std::function<std::string()> find_learner);

  struct News {
    bool over = false;
    std::string failed;                           // the learner is gone, and no other came
    std::string refused;                          // by the learner: no start of this actor helps
    std::optional<std::vector<std::byte>> state;  // the newest, after the head
    WeightsHead head;
  };
  // Sends, and takes what has arrived. Waits while the learner is behind; on_wait is called now and then.
  News exchange(const ExperienceHead& head, std::span<const std::byte> steps,
                const std::function<void()>& on_wait);
  // Steps that the learner has room for now.
  double room() const { return taken_.window - (sent_ - taken_.steps); }
  // Waits for weights.
  News first(const std::function<void()>& on_wait);

 private:
  using Clock = std::chrono::steady_clock;
  bool connect(News& news);
  void take(News& news);

  Hello hello_;
  std::function<std::string()> find_learner_;
  Wire wire_;
  std::string problem_;
  double sent_ = 0;  // steps, by this connection
  TakenHead taken_;
  std::optional<Clock::time_point> lost_at_ = Clock::now();
  bool told_alone_ = false;
};

class LearnerEnd {
 public:
  enum class Offer : std::uint8_t { taken, full, damaged };
  struct Calls {
    // Steps of an actor; why: of damaged ones.
    std::function<Offer(std::uint32_t source, std::span<const std::byte> steps, std::string& why)> take;
    std::function<void(const std::string& line)> tell;
  };
  // schema: what hellos must bring.
  LearnerEnd(Door door, Hello schema, Calls calls);

  const std::string& address() const { return door_.address(); }
  // Takes what has arrived. False: there was nothing.
  bool turn();
  // Until something arrives.
  void wait(int milliseconds) const;
  // To each actor that has received all before.
  void send(const WeightsHead& head, std::span<const std::byte> weights);
  // Tells all actors, and waits until they know.
  void end();

  // Since the call before.
  struct Scores {
    double score_sum = 0, episodes = 0, evaluated_sum = 0, evaluations = 0;
  };
  Scores take_scores();
  double steps() const { return steps_; }  // of all actors, since the start
  std::size_t actors() const { return actors_.size(); }

 private:
  struct Actor {
    Wire wire;
    Hello hello;
    bool known = false;
    std::uint32_t source = 0;
    std::optional<Message> waiting;  // steps that the brain has no room for
    double taken = 0, told = 0;      // steps; those that the actor knows of
    bool behind = false;             // newer weights than it has could not be sent yet
  };
  bool serve(Actor& actor);
  void greet(Actor& actor, const Message& message);
  bool offer(Actor& actor);
  std::string name(const Actor& actor) const;

  Door door_;
  const Hello schema_;
  Calls calls_;
  std::vector<std::unique_ptr<Actor>> actors_;
  double window_ = 0, steps_ = 0;
  std::uint32_t sources_ = 1;  // 0: the learner's own agents
  Scores scores_;
  WeightsHead head_;
  std::vector<std::byte> weights_;  // the newest
};

}  // namespace imprint::studio
