#include "sound.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>

using namespace imprint;

Result<std::vector<float>> read_wav(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) return make_error(ErrorCode::io, "'" + path + "': found no file that can be read");
  std::vector<unsigned char> bytes;
  unsigned char piece[4096];
  for (std::size_t n; (n = std::fread(piece, 1, sizeof piece, file.get())) > 0;)
    bytes.insert(bytes.end(), piece, piece + n);
  const auto number = [&](std::size_t at, std::size_t count) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < count; ++i) value |= std::uint32_t{bytes[at + i]} << (8 * i);
    return value;
  };
  const Error damaged{ErrorCode::corrupt_file, "'" + path + "': found no whole WAV file"};
  if (bytes.size() < 12 || std::memcmp(bytes.data(), "RIFF", 4) != 0) return damaged;
  std::uint32_t channels = 0;
  for (std::size_t at = 12; at + 8 <= bytes.size();) {
    const std::size_t size = number(at + 4, 4), begin = at + 8;
    if (size > bytes.size() - begin) return damaged;
    if (std::memcmp(&bytes[at], "fmt ", 4) == 0 && size >= 16) {
      channels = number(begin + 2, 2);
      if (number(begin, 2) != 1 || number(begin + 4, 4) != kRate || number(begin + 14, 2) != 16 ||
          channels == 0)
        return make_error(
            ErrorCode::unsupported,
            "'" + path + "': found another form, expected 16-bit samples at 16 kHz. Convert it.");
    } else if (std::memcmp(&bytes[at], "data", 4) == 0 && channels > 0) {
      std::vector<float> sound;
      for (std::size_t i = begin; i + 2 * channels <= begin + size; i += 2 * channels)
        sound.push_back(static_cast<float>(static_cast<std::int16_t>(number(i, 2))) / 32768.0f);
      return sound;
    }
    at = begin + size + size % 2;
  }
  return damaged;
}

namespace {

// A resonance: what comes in rings at `frequency`.
class Resonance {
 public:
  Resonance(double frequency, double width)
      : radius_(std::exp(-3.14159265 * width / kRate)), turn_(std::cos(6.2831853 * frequency / kRate)) {}
  double operator()(double x) {
    const double y = x * (1 - radius_) + 2 * radius_ * turn_ * before_ - radius_ * radius_ * earlier_;
    earlier_ = before_;
    before_ = y;
    return y;
  }

 private:
  double radius_, turn_, before_ = 0, earlier_ = 0;
};

// A second of syllables: vowels of different resonances, with a falling tone.
void add_vowels(std::vector<float>& sound) {
  constexpr double kVowels[][3] = {{730, 1090, 2440}, {270, 2290, 3010}, {570, 840, 2410}, {530, 1840, 2480}};
  double phase = 0;
  for (const auto& vowel : kVowels) {
    Resonance first(vowel[0], 80), second(vowel[1], 100), third(vowel[2], 140);
    for (int i = 0; i < kRate / 4; ++i) {
      const double time = static_cast<double>(i) / (kRate / 4);
      phase += (150 - 40 * time + 3 * std::sin(40 * time)) / kRate;
      const double pulse = phase - std::floor(phase);
      const double throat = pulse < 0.6 ? std::sin(3.14159265 * pulse / 0.6) - 0.6 : -0.6;
      const double loud = std::min(1.0, 12 * time) * std::min(1.0, 6 * (1 - time));
      sound.push_back(
          static_cast<float>(0.9 * loud * (first(throat) + 0.6 * second(throat) + 0.3 * third(throat))));
    }
  }
}

}  // namespace

std::vector<float> made_sound() {
  std::vector<float> sound(kRate);
  add_vowels(sound);
  std::uint32_t seed = 1;
  for (int i = 0; i < kRate; ++i) {
    seed = seed * 1664525u + 1013904223u;
    sound.push_back(0.05f * (static_cast<float>(seed >> 8) / 8388608.0f - 1.0f));
  }
  add_vowels(sound);
  return sound;
}
