// Tells where in a sound a voice speaks, with the silero network of the npm package @ricky0123/vad-web, on
// the CPU: `12-hear-voices silero_vad_v5.onnx [SOUND.wav]`. Without a sound file it makes sounds of its own.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "sound.h"

using namespace imprint;

// A window of 32 ms, and the end of the one before.
constexpr int kWindow = 512, kBefore = 64;

// The probability of a voice in each window.
static Result<std::vector<float>> hear(const onnx::Model& model, const std::vector<float>& sound) {
  // The rate is known: the network for the other rate goes away at import.
  onnx::TensorData rate;
  rate.name = "sr";
  rate.type = onnx::ElementType::int64;
  std::vector<std::byte> eight(sizeof(std::int64_t));
  eight[0] = std::byte{kRate & 255};
  eight[1] = std::byte{kRate >> 8};
  rate.bytes = SharedBytes(std::move(eight));
  IMPRINT_ASSIGN(const ImportedModel network,
                 import_onnx(model, {{"input", {1, kBefore + kWindow}}, {"state", {2, 1, 128}}, {"sr", {}}},
                             {.known_inputs = {{"sr", rate}}}));
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  IMPRINT_ASSIGN(Program program, Program::compile(*runtime, {.name = "voices",
                                                              .inputs = network.input_tensors(),
                                                              .outputs = network.output_tensors()}));
  std::vector<HostTensor> inputs{
      HostTensor::from(std::vector<float>(kBefore + kWindow), {1, kBefore + kWindow}),
      HostTensor::from(std::vector<float>(256), {2, 1, 128})};
  std::vector<float> voices;
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t begin = 0; begin + kWindow <= sound.size(); begin += kWindow) {
    std::vector<float>& heard = inputs[0].floats;
    std::copy(heard.end() - kBefore, heard.end(), heard.begin());
    std::copy_n(sound.begin() + static_cast<std::ptrdiff_t>(begin), kWindow, heard.begin() + kBefore);
    IMPRINT_ASSIGN(std::vector<HostTensor> outputs, session.run(program, inputs));
    voices.push_back(outputs[0].floats[0]);
    inputs[1] = std::move(outputs[1]);
  }
  const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - start;
  std::printf("%zu windows of 32 ms, %.0f us each\n", voices.size(),
              taken.count() / static_cast<double>(std::max<std::size_t>(voices.size(), 1)));
  return voices;
}

static float seconds(std::size_t window) { return static_cast<float>(window * kWindow) / kRate; }

// A voice begins above one half, and ends after ten windows below 0.35.
static void print_voices(const std::vector<float>& voices) {
  constexpr std::size_t kPause = 10;
  for (std::size_t i = 0; i < voices.size(); ++i) {
    if (voices[i] < 0.5f) continue;
    std::size_t end = i, last = i;
    for (; end < voices.size() && end - last < kPause; ++end)
      if (voices[end] >= 0.35f) last = end;
    std::printf("voice from %.2f s to %.2f s\n", static_cast<double>(seconds(i)),
                static_cast<double>(seconds(last + 1)));
    i = last;
  }
}

// The mean between two times.
static float mean_between(const std::vector<float>& voices, float from, float to) {
  float sum = 0;
  int count = 0;
  for (std::size_t i = 0; i < voices.size(); ++i)
    if (seconds(i) >= from && seconds(i + 1) <= to) sum += voices[i], ++count;
  return sum / static_cast<float>(std::max(count, 1));
}

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: 12-hear-voices silero_vad_v5.onnx [SOUND.wav]\n"), 2;
  const auto run = [&]() -> Result<int> {
    IMPRINT_ASSIGN(const onnx::Model model, onnx::load(argv[1]));
    std::vector<float> sound = made_sound();
    if (argc > 2) {
      IMPRINT_ASSIGN(sound, read_wav(argv[2]));
    }
    IMPRINT_ASSIGN(const std::vector<float> voices, hear(model, sound));
    print_voices(voices);
    if (argc > 2) return 0;
    const float silence = mean_between(voices, 0, 0.9f), first = mean_between(voices, 1.1f, 2),
                noise = mean_between(voices, 2.3f, 3), second = mean_between(voices, 3.1f, 4);
    std::printf("mean probability: silence %.2f, vowels %.2f, noise %.2f, vowels %.2f\n",
                static_cast<double>(silence), static_cast<double>(first), static_cast<double>(noise),
                static_cast<double>(second));
    return std::min(first, second) > std::max(silence, noise) ? 0 : 1;
  };
  const auto done = run();
  if (!done) return std::fprintf(stderr, "%s\n", done.error().message.c_str()), 1;
  return *done;
}
