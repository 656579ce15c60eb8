// A language model that answers in a game's chat box, letter by letter, within a budget per frame:
// `14-chat-box [WEIGHTS.safetensors]`, on the CPU. It is a GPT of 100,000 weights that this program trains
// first, on the 88 questions and answers of town.cpp alone. It learns these by heart, and knows nothing else.
// With a file it keeps the weights there, and the next start reads them.
#include <imprint/compute.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>

#include "town.h"

using namespace imprint;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kSteps = 72;  // letters of a question and its answer
constexpr double kFrameMs = 1000.0 / 60, kBudgetMs = 1;

static double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Gpt {
  nn::Embedding letters;
  nn::TransformerEncoder network;

  explicit Gpt(std::int64_t alphabet)
      : letters("letters", alphabet, 64, {.values = {nn::Scheme::normal, 0.1}, .seed = 1}),
        network("net", 2, 64, 4,
                {.hidden = 256,
                 .activation = nn::Activation::gelu,
                 .norm_first = true,
                 .rotary = true,
                 .seed = 1}) {}
  nn::Parameters parameters() const {
    nn::Parameters all;
    all.add("letters", letters.parameters());
    all.add("net", network.parameters());
    return all;
  }
};

// A question ends with a line break, and so does its answer; breaks fill the rest.
static std::vector<std::int32_t> tokens_of(const Talk& talk, const training::Alphabet& alphabet) {
  std::vector<std::int32_t> tokens = alphabet.encode(talk.question + "\n" + talk.answer + "\n");
  tokens.resize(kSteps + 1, alphabet.encode("\n")[0]);
  return tokens;
}

static Result<> train(Session& session, const Gpt& gpt, const std::vector<Talk>& talk,
                      const training::Alphabet& alphabet) {
  constexpr std::int64_t kBatch = 16, kUpdates = 700;
  const Tensor talks = input("talks", {kBatch, kSteps + 1}, DType::int32);
  const nn::ScheduledRate rate("rate", nn::Schedule::cosine(4e-3, kUpdates, 1e-4).warmed_up(20));
  const Tensor y =
      gpt.letters.logits(gpt.network(gpt.letters(narrow(talks, 1, 0, kSteps)), {.causal = true}));
  const Tensor loss = nn::cross_entropy(y, narrow(talks, 1, 1, kSteps));
  IMPRINT_ASSIGN(const std::vector<Tensor> gradient, gradients(loss, gpt.parameters().values()));
  IMPRINT_ASSIGN(std::vector<Update> step, nn::adam_w(gpt.parameters()).step(gradient, rate.value()));
  rate.advance(step);
  IMPRINT_ASSIGN(Program program,
                 Program::compile(session.runtime(),
                                  {.name = "learn", .inputs = {talks}, .outputs = {loss}, .updates = step}));
  std::mt19937 random(1);
  for (std::int64_t update = 0; update < kUpdates; ++update) {
    std::vector<std::int32_t> batch;
    for (std::int64_t i = 0; i < kBatch; ++i)
      std::ranges::copy(tokens_of(talk[random() % talk.size()], alphabet), std::back_inserter(batch));
    const HostTensor given = HostTensor::from_ints(std::move(batch), {kBatch, kSteps + 1});
    IMPRINT_ASSIGN(const std::vector<HostTensor> found, session.run(program, std::span(&given, 1)));
    if (update % 100 == 99)
      std::printf("update %3d  loss %.3f\n", static_cast<int>(update + 1),
                  static_cast<double>(found[0].floats[0]));
  }
  return {};
}

// The character that answers. A step takes one letter and gives the next; caches keep the earlier ones.
class Speaker {
 public:
  static Result<Speaker> create(Session& session, const Gpt& gpt, const training::Alphabet& alphabet) {
    const Tensor letter = input("letter", {1, 1}, DType::int32);
    const std::vector<nn::AttentionCache> caches = gpt.network.caches("cache", 1, kSteps);
    std::vector<Update> updates, forgets;
    const Tensor y = gpt.network.cached(gpt.letters(letter), caches, updates);
    for (const auto& cache : caches) cache.clear(forgets);
    IMPRINT_ASSIGN(Program step,
                   Program::compile(session.runtime(), {.name = "next",
                                                        .inputs = {letter},
                                                        .outputs = {argmax(gpt.letters.logits(y), -1)},
                                                        .updates = updates}));
    IMPRINT_ASSIGN(Program forget,
                   Program::compile(session.runtime(), {.name = "forget", .updates = forgets}));
    return Speaker(session, alphabet, std::move(step), std::move(forget));
  }

  Result<> ask(const std::string& question) {
    IMPRINT_CHECK(session_.run(forget_));
    waiting_ = alphabet_.encode(question + "\n");
    read_ = 0;
    return {};
  }
  // One letter: of the question as long as there are some, then of the answer, which `text` gets. False: the
  // answer is over.
  Result<bool> step(std::string& text) {
    const HostTensor given = HostTensor::from_ints({waiting_[read_]}, {1, 1});
    IMPRINT_ASSIGN(const std::vector<HostTensor> found, session_.run(step_, std::span(&given, 1)));
    if (++read_ < waiting_.size()) return true;
    const std::int32_t next = found[0].ints[0];
    const std::string letter = alphabet_.decode(std::span(&next, 1));
    if (letter == "\n" || read_ >= static_cast<std::size_t>(kSteps)) return false;
    text += letter;
    waiting_.push_back(next);
    return true;
  }

 private:
  Speaker(Session& session, const training::Alphabet& alphabet, Program step, Program forget)
      : session_(session), alphabet_(alphabet), step_(std::move(step)), forget_(std::move(forget)) {}

  Session& session_;
  const training::Alphabet& alphabet_;
  Program step_, forget_;
  std::vector<std::int32_t> waiting_;  // the question, then the answer as far as it is
  std::size_t read_ = 0;               // letters that the caches hold
};

// Frames of a game: each gives the speaker its budget. Returns the answer.
static Result<std::string> chat(Speaker& speaker, const std::string& question,
                                std::vector<double>& frame_ms) {
  std::printf("you:   %s\nguard: ", question.c_str());
  IMPRINT_CHECK(speaker.ask(question));
  std::string answer;
  double longest = 0;  // of a letter
  for (bool talks = true; talks;) {
    const auto frame = Clock::now();
    const std::size_t shown = answer.size();
    // Never begins a letter that would not fit.
    do {
      const auto start = Clock::now();
      IMPRINT_ASSIGN(talks, speaker.step(answer));
      longest = std::max(longest, ms_since(start));
    } while (talks && ms_since(frame) + longest < kBudgetMs);
    frame_ms.push_back(ms_since(frame));
    std::printf("%s", answer.c_str() + shown);
    std::fflush(stdout);
  }
  std::printf("\n");
  return answer;
}

static Result<int> run(const char* weights) {
  const std::vector<Talk> talk = talk_of_the_town();
  std::string all_letters;
  for (const Talk& each : talk) all_letters += each.question + each.answer + "\n";
  const training::Alphabet alphabet(all_letters);
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  const Gpt gpt(alphabet.size());
  if (weights && std::filesystem::exists(weights)) {
    IMPRINT_ASSIGN(const safetensors::File file, safetensors::load(weights));
    IMPRINT_CHECK(load_state(session, gpt.parameters(), file));
  } else {
    const auto start = Clock::now();
    IMPRINT_CHECK(train(session, gpt, talk, alphabet));
    std::printf("trained on %zu questions in %.0f s\n", talk.size(), ms_since(start) / 1000);
    if (weights) {
      IMPRINT_ASSIGN(const safetensors::File file, save_state(session, gpt.parameters()));
      IMPRINT_CHECK(safetensors::save(file, weights));
    }
  }
  IMPRINT_ASSIGN(Speaker speaker, Speaker::create(session, gpt, alphabet));
  std::vector<double> frame_ms;
  std::size_t right = 0, letters = 0, asked = 0;
  for (std::size_t i = 0; i < talk.size(); i += 5, ++asked) {  // each fact, in changing words
    IMPRINT_ASSIGN(const std::string answer, chat(speaker, talk[i].question, frame_ms));
    right += answer == talk[i].answer;
    letters += answer.size();
  }
  std::ranges::sort(frame_ms);
  std::printf("%zu of %zu questions answered rightly; %zu letters in %zu frames of %.1f ms\n", right, asked,
              letters, frame_ms.size(), kFrameMs);
  std::printf("of each frame the speaker took %.2f ms (median) to %.2f ms, of a budget of %.0f ms\n",
              frame_ms[frame_ms.size() / 2], frame_ms.back(), kBudgetMs);
  return 10 * right >= 9 * asked ? 0 : 1;
}

int main(int argc, char** argv) {
  const auto done = run(argc > 1 ? argv[1] : nullptr);
  if (!done) return std::fprintf(stderr, "%s\n", done.error().message.c_str()), 1;
  return *done;
}
