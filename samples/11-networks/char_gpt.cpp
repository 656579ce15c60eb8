// A GPT over characters: it learns a text, then writes one.

#include <filesystem>
#include <fstream>
#include <iterator>

#include "examples.h"

namespace examples {

using namespace imprint;

namespace {

struct Gpt {
  nn::Embedding letters;
  nn::TransformerEncoder network;

  Gpt(std::int64_t alphabet, const Settings& settings, std::int64_t extent)
      : letters("letters", alphabet, extent, {.values = {nn::Scheme::normal, 0.1}, .seed = settings.seed}),
        network("net", settings.small ? 1 : 4, extent, settings.small ? 2 : 8,
                {.hidden = 4 * extent,
                 .dropout = settings.small ? 0.0 : 0.1,
                 .activation = nn::Activation::gelu,
                 .norm_first = true,
                 .rotary = true,
                 .seed = settings.seed}) {}
  nn::Parameters parameters() const {
    nn::Parameters all;
    all.add("letters", letters.parameters());
    all.add("net", network.parameters());
    return all;
  }
};

// Continues the prompt. One program draws the next letter from the last; caches keep the earlier ones.
Result<std::string> write_text(const Settings& settings, const Gpt& gpt, const training::Alphabet& alphabet,
                               const std::string& prompt, std::int64_t count) {
  const Tensor letter = input("letter", {1, 1}, DType::int32);
  nn::Pass pass("writer", settings.seed);
  std::vector<Update> updates;
  const Tensor y = gpt.network.cached(gpt.letters(letter), gpt.network.caches("cache", 1, count), updates);
  // Adding Gumbel's noise to logits and taking the largest draws from their softmax.
  const Tensor chance = clamp(pass.uniform({1, 1, alphabet.size()}), 1e-7, 1 - 1e-7);
  const Tensor next = argmax(gpt.letters.logits(y) / 0.7f - log(-log(chance)), -1);
  pass.finish(updates);
  IMPRINT_ASSIGN(
      Program step,
      Program::compile(settings.session.runtime(),
                       {.name = "next", .inputs = {letter}, .outputs = {next}, .updates = updates}));
  std::vector<std::int32_t> written = alphabet.encode(prompt);
  for (std::int64_t i = 0; i + 1 < count; ++i) {
    const HostTensor given = HostTensor::from_ints({written[static_cast<std::size_t>(i)]}, {1, 1});
    IMPRINT_ASSIGN(const std::vector<HostTensor> found, settings.session.run(step, std::span(&given, 1)));
    if (i + 1 == static_cast<std::int64_t>(written.size())) written.push_back(found[0].ints[0]);
  }
  return alphabet.decode(written);
}

Result<std::string> load_text(const Settings& settings) {
  if (settings.data.empty()) return write_sentences(settings.small ? 200 : 20'000, settings.seed);
  constexpr std::uintmax_t kMostBytes = std::uintmax_t{1} << 28;
  std::error_code error;
  const bool is_file =
      std::filesystem::is_regular_file(settings.data, error);  // reading a pipe may never end
  const std::uintmax_t bytes = is_file ? std::filesystem::file_size(settings.data, error) : 0;
  if (!is_file || error || bytes > kMostBytes)
    return make_error(ErrorCode::io, "data: found '" + settings.data + "', expected a file of at most " +
                                         std::to_string(kMostBytes) + " bytes");
  std::ifstream file(settings.data, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.size() < 2000)
    return make_error(ErrorCode::io, "data: found " + std::to_string(text.size()) + " characters in '" +
                                         settings.data + "', expected a text of 2000 or more");
  return text;
}

// Windows overlap: every `stride`-th is enough.
Result<training::DatasetRef> some_windows(std::vector<std::int32_t> tokens, std::int64_t steps,
                                          std::int64_t stride) {
  IMPRINT_ASSIGN(const training::DatasetRef all, training::token_windows(std::move(tokens), steps));
  std::vector<std::int64_t> some;
  for (std::int64_t i = 0; i < all->size(); i += stride) some.push_back(i);
  return training::subset(all, std::move(some));
}

}  // namespace

Result<Finding> char_gpt(const Settings& settings) {
  IMPRINT_ASSIGN(const std::string text, load_text(settings));
  const training::Alphabet alphabet(text);
  const std::int64_t steps = settings.small ? 64 : 128;
  const std::size_t learned = text.size() * 9 / 10;
  const std::int64_t batch = settings.small ? 8 : 16;
  const std::int64_t stride = settings.small ? 16 : 256;
  IMPRINT_ASSIGN(const training::DatasetRef windows,
                 some_windows(alphabet.encode(text.substr(0, learned)), steps, stride));
  IMPRINT_ASSIGN(const training::DatasetRef new_windows,
                 some_windows(alphabet.encode(text.substr(learned)), steps, stride));
  IMPRINT_ASSIGN(training::Loader training,
                 training::Loader::create(windows, {.batch = batch, .shuffle = true, .seed = settings.seed}));
  IMPRINT_ASSIGN(training::Loader validation, training::Loader::create(new_windows, {.batch = batch}));

  const Gpt gpt(alphabet.size(), settings, settings.small ? 48 : 256);
  const training::Model model = [&](std::span<const Tensor> in, nn::Pass& pass) {
    const Tensor y = gpt.letters.logits(gpt.network(gpt.letters(in[0]), {.causal = true}, pass));
    return training::Computed{nn::cross_entropy(y, in[1], nn::Reduction::none),
                              {{"accuracy", training::accuracy(y, in[1])}}};
  };
  const std::int64_t most = settings.small ? 300 : 2000;
  IMPRINT_ASSIGN(
      const training::Outcome outcome,
      train(settings, model, gpt.parameters(), std::make_shared<nn::Adam>(nn::adam_w(gpt.parameters())),
            {.epochs = 1000,
             .steps = most,
             .rate = nn::Schedule::cosine(settings.small ? 1e-2 : 1e-3, most, 1e-5)
                         .warmed_up(settings.small ? 10 : 100),
             .clip_norm = 1},
            training, &validation));
  // No longer than what it learned from: positions beyond are new to it.
  IMPRINT_ASSIGN(const std::string written, write_text(settings, gpt, alphabet, text.substr(0, 8), steps));
  return Finding{
      .measure = "share of next letters that are right",
      .value = outcome.validation.metric("accuracy"),
      .goal = settings.small ? 0.8 : 0.85,
      .notes = {settings.data.empty() ? "Data: sentences of a small grammar, made up."
                                      : "Data: " + settings.data,
                "Perplexity per letter: " + std::to_string(training::perplexity(outcome.validation.loss)) +
                    " of " + std::to_string(alphabet.size()) + " letters",
                "It writes: " + written},
      .interrupted = outcome.interrupted};
}

}  // namespace examples
