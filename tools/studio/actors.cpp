#include "tools/studio/actors.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

#include "compute/base/quote.h"
#include "compute/base/text.h"

namespace imprint::studio {
namespace {

constexpr std::size_t kMostUnsent = std::size_t{1} << 20;  // bytes that an actor keeps before it waits
constexpr std::size_t kLongestRefusal = 1024;              // bytes that an actor prints
constexpr double kLeastWindow = 64;
constexpr int kPauseMs = 2;
// An actor gives up after this long without a learner: `imprint studio` may be starting one again. It tells
// earlier that it waits.
constexpr std::chrono::seconds kMostAlone{60}, kLongAlone{5};

template <class T>
std::span<const std::byte> bytes_of(const T& head) {
  return std::as_bytes(std::span(&head, 1));
}

template <class T>
bool read_head(const Message& message, T& head) {
  if (message.bytes.size() < sizeof head) return false;
  std::memcpy(&head, message.bytes.data(), sizeof head);
  return true;
}

bool is_count(double value) { return value >= 0 && value <= 0x1p53; }

}  // namespace

// ---- the actor ----

ActorEnd::ActorEnd(Hello hello, std::function<std::string()> find_learner)
    : hello_(hello), find_learner_(std::move(find_learner)) {}

bool ActorEnd::connect(News& news) {
  if (wire_.open()) return true;
  if (!lost_at_) lost_at_ = Clock::now();
  const std::string address = find_learner_();
  if (!address.empty()) {
    Result<Wire> made = Wire::connect(address);
    if (made) {
      wire_ = std::move(*made);
      wire_.send(MessageKind::hello, bytes_of(hello_));
      lost_at_.reset();
      told_alone_ = false;
      sent_ = 0;
      taken_ = {.window = kLeastWindow};
      return true;
    }
    problem_ = made.error().message;
  }
  const auto alone = Clock::now() - *lost_at_;
  const std::string problem = problem_.empty() ? "there is no address in the run's folder" : problem_;
  if (alone > kLongAlone && !std::exchange(told_alone_, true))
    std::fprintf(stderr, "studio: actor %u waits for a learner: %s\n", hello_.actor, problem.c_str());
  if (alone > kMostAlone) news.failed = problem;
  return false;
}

void ActorEnd::take(News& news) {
  wire_.flush();
  wire_.receive();
  for (;; wire_.receive()) {
    std::optional<Message> message = wire_.next();
    if (!message) break;
    if (message->kind == MessageKind::over) news.over = true;
    if (message->kind == MessageKind::refused)
      news.refused = clipped({reinterpret_cast<const char*>(message->bytes.data()), message->bytes.size()},
                             kLongestRefusal);
    if (message->kind == MessageKind::taken) (void)read_head(*message, taken_);
    if (message->kind == MessageKind::weights && read_head(*message, news.head)) {
      message->bytes.erase(message->bytes.begin(), message->bytes.begin() + sizeof news.head);
      news.state = std::move(message->bytes);
    }
  }
  if (!wire_.open() && problem_.empty()) problem_ = wire_.why_closed();
}

ActorEnd::News ActorEnd::exchange(const ExperienceHead& head, std::span<const std::byte> steps,
                                  const std::function<void()>& on_wait) {
  News news;
  bool sent = steps.empty() && head.episodes == 0;
  for (;;) {
    if (connect(news) && !std::exchange(sent, true)) {
      wire_.send(MessageKind::experience, bytes_of(head), steps);
      sent_ += head.steps;
    }
    if (wire_.open()) take(news);
    if (news.over || !news.failed.empty() || !news.refused.empty()) return news;
    const bool ahead = sent_ - taken_.steps > taken_.window || wire_.unsent() > kMostUnsent;
    if (wire_.open() && sent && !ahead) return news;
    on_wait();
    if (wire_.open())
      wait_for_news(std::array{wire_.socket()}, kPauseMs);
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(10 * kPauseMs));
  }
}

ActorEnd::News ActorEnd::first(const std::function<void()>& on_wait) {
  for (;;) {
    News news = exchange({}, {}, on_wait);
    if (news.state || news.over || !news.failed.empty() || !news.refused.empty()) return news;
    on_wait();
    wait_for_news(std::array{wire_.socket()}, kPauseMs);
  }
}

// ---- the learner ----

LearnerEnd::LearnerEnd(Door door, Hello schema, Calls calls)
    : door_(std::move(door)), schema_(schema), calls_(std::move(calls)), window_(kLeastWindow) {}

std::string LearnerEnd::name(const Actor& actor) const {
  const std::string of = actor.hello.joined > 0 ? text(" of --join ", actor.hello.joined) : "";
  return text(actor.hello.evaluates ? "evaluator " : "actor ", actor.hello.actor, of, " (process ",
              actor.hello.process, " on ", clipped(actor.hello.computer), ")");
}

void LearnerEnd::greet(Actor& actor, const Message& message) {
  if (message.kind != MessageKind::hello || !read_head(message, actor.hello))
    return actor.wire.close("sent no hello");
  actor.hello.computer[sizeof actor.hello.computer - 1] = 0;
  actor.wire.take_long_messages();
  if (actor.hello.schema_low == schema_.schema_low && actor.hello.schema_high == schema_.schema_high) {
    actor.known = true;
    actor.source = sources_++;
    calls_.tell(text(name(actor), " plays"));
    actor.behind = !weights_.empty();
    return;
  }
  const std::string why =
      text("actor ", actor.hello.actor, ": found ", actor.hello.arrays, " arrays of ", actor.hello.numbers,
           " numbers, expected the learner's ", schema_.arrays, " of ", schema_.numbers,
           ". Give the brains of all games the same imp_brain_desc, except for the seed.");
  calls_.tell(text(name(actor), " is refused: ", why));
  actor.wire.send(MessageKind::refused, std::as_bytes(std::span(why)));
  actor.wire.close("refused");
}

// False: there is no room yet.
bool LearnerEnd::offer(Actor& actor) {
  ExperienceHead head;
  if (!read_head(*actor.waiting, head)) {
    actor.wire.close("sent a short message");
    actor.waiting.reset();
    return true;
  }
  // Sums of these numbers go into the run's report.
  if (!std::isfinite(head.score_sum) || !is_count(head.episodes) || !is_count(head.steps)) {
    actor.wire.close("sent a score or a count that is no number");
    actor.waiting.reset();
    return true;
  }
  const std::span<const std::byte> steps = std::span(actor.waiting->bytes).subspan(sizeof head);
  // They count towards the end of the run.
  if (head.steps > static_cast<double>(steps.size())) {
    actor.wire.close(text("sent ", steps.size(), " bytes for ", head.steps, " steps"));
    actor.waiting.reset();
    return true;
  }
  std::string why;
  const Offer offered = steps.empty() ? Offer::taken : calls_.take(actor.source, steps, why);
  if (offered == Offer::full) return false;
  if (offered == Offer::damaged) actor.wire.close(why);
  if (offered == Offer::taken) {
    actor.taken += head.steps;
    steps_ += head.steps;
    (actor.hello.evaluates ? scores_.evaluated_sum : scores_.score_sum) += head.score_sum;
    (actor.hello.evaluates ? scores_.evaluations : scores_.episodes) += head.episodes;
  }
  actor.waiting.reset();
  return true;
}

// False: nothing came of it.
bool LearnerEnd::serve(Actor& actor) {
  bool moved = false;
  const bool waited = actor.waiting.has_value(), blocked = waited && !offer(actor);
  moved = waited && !blocked;
  actor.wire.flush();
  if (!blocked) actor.wire.receive();
  while (!blocked) {
    std::optional<Message> message = actor.wire.next();
    if (!message) break;
    moved = true;
    if (!actor.known) {
      greet(actor, *message);
    } else if (message->kind == MessageKind::experience) {
      actor.waiting = std::move(message);
      if (!offer(actor)) break;
    }
    if (actor.wire.open()) actor.wire.receive();
  }
  if (actor.known && actor.wire.open() && actor.told < actor.taken) {
    actor.told = actor.taken;
    actor.wire.send(MessageKind::taken, bytes_of(TakenHead{actor.taken, window_}));
  }
  if (actor.known && actor.behind && actor.wire.open() && actor.wire.unsent() == 0) {
    actor.behind = false;
    actor.wire.send(MessageKind::weights, bytes_of(head_), weights_);
  }
  return moved;
}

bool LearnerEnd::turn() {
  bool moved = false;
  if (const std::string problem = door_.take_problem(); !problem.empty())
    calls_.tell(text("no actor can come: ", problem, "; tried again each second"));
  while (std::optional<Wire> wire = door_.accept()) {
    actors_.push_back(std::make_unique<Actor>());
    actors_.back()->wire = std::move(*wire);
    actors_.back()->wire.take_short_messages();
    moved = true;
  }
  for (const std::unique_ptr<Actor>& actor : actors_) moved = serve(*actor) || moved;
  std::erase_if(actors_, [this](const std::unique_ptr<Actor>& actor) {
    if (actor->wire.open()) return false;
    if (actor->known)
      calls_.tell(text(name(*actor), " is gone: ", actor->wire.why_closed(), "; the run goes on"));
    return true;
  });
  // The first that was served has room first.
  if (actors_.size() > 1) std::rotate(actors_.begin(), actors_.begin() + 1, actors_.end());
  return moved;
}

void LearnerEnd::wait(int milliseconds) const {
  std::vector<int> sockets{door_.socket()};
  for (const std::unique_ptr<Actor>& actor : actors_)
    if (!actor->waiting) sockets.push_back(actor->wire.socket());
  wait_for_news(sockets, milliseconds);
}

void LearnerEnd::send(const WeightsHead& head, std::span<const std::byte> weights) {
  const auto players = static_cast<double>(std::max<std::size_t>(actors_.size(), 1));
  window_ = std::max(kLeastWindow, static_cast<double>(head.steps - head_.steps) / players);
  head_ = head;
  weights_.assign(weights.begin(), weights.end());
  for (const std::unique_ptr<Actor>& actor : actors_) {
    if (!actor->known || !actor->wire.open()) continue;
    actor->wire.flush();
    actor->behind = actor->wire.unsent() > 0;
    if (!actor->behind) actor->wire.send(MessageKind::weights, bytes_of(head_), weights_);
  }
}

void LearnerEnd::end() {
  constexpr std::chrono::seconds kMostFarewell{2};
  for (const std::unique_ptr<Actor>& actor : actors_) actor->wire.send(MessageKind::over, {});
  const auto began = std::chrono::steady_clock::now();
  const auto listens = [](const std::unique_ptr<Actor>& actor) { return actor->wire.open(); };
  // An actor closes its end once it knows.
  while (std::ranges::any_of(actors_, listens) && std::chrono::steady_clock::now() - began < kMostFarewell) {
    for (const std::unique_ptr<Actor>& actor : actors_) {
      actor->wire.flush();
      actor->wire.receive();
      while (actor->wire.next()) actor->wire.receive();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(kPauseMs));
  }
}

LearnerEnd::Scores LearnerEnd::take_scores() { return std::exchange(scores_, {}); }

}  // namespace imprint::studio
