// Files of a run, and data sets that stay in files: curves, reports, the dashboard's lines, pictures, arrays.
// Pictures changed at random, and Ctrl-C.

#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "compute/model/files/event_file.h"
#include "compute/model/files/file.h"
#include "compute/model/files/safetensors.h"
#include "compute/training/augment.h"
#include "compute/training/curves.h"
#include "compute/training/dashboard.h"
#include "compute/training/report.h"
#include "compute/training/stop_signal.h"

namespace imprint::training {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<std::int32_t>;

class Folder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / "imprint-train-folders";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& content) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return (folder_ / name).string();
  }
  std::string read(const std::string& name) {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  fs::path folder_;
};

TEST_F(Folder, AreListedByNameAndDoNotThrow) {
  for (const char* name : {"b", "a/inner", "c"}) write(name, "");
  const auto found = list_folder(folder_.string());
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, (std::vector<std::string>{(folder_ / "a").string(), (folder_ / "b").string(),
                                              (folder_ / "c").string()}));
  EXPECT_EQ(list_folder((folder_ / "none").string()).error().code, ErrorCode::not_found);
  EXPECT_EQ(list_folder((folder_ / "b").string()).error().code, ErrorCode::io);
}

// The records of an event file: their lengths, by a reader of its own.
std::size_t records_of(const std::string& file) {
  std::size_t count = 0;
  for (std::size_t at = 0; at + 16 <= file.size(); ++count) {
    std::uint64_t length = 0;
    std::memcpy(&length, file.data() + at, sizeof length);
    at += 16 + static_cast<std::size_t>(length);
    EXPECT_LE(at, file.size());
  }
  return count;
}

TEST_F(Folder, CurvesAreCutAtTheCheckpoint) {
  const std::string folder = folder_.string();
  EXPECT_TRUE(cut_curves(folder, 3));
  for (const std::int64_t step : {2, 4, 6})
    ASSERT_TRUE(
        add_curve(folder, {"accuracy"},
                  {.epoch = step / 2, .step = step, .split = "training", .loss = 0.5, .metrics = {1}}));
  EXPECT_EQ(records_of(read("events.out.tfevents.imprint")), 4u);  // with the head
  ASSERT_TRUE(cut_curves(folder, 4));
  EXPECT_EQ(read("curves.csv"),
            "epoch,step,split,rate,loss,samples_per_second,accuracy\n1,2,training,0,0.5,0,1\n"
            "2,4,training,0,0.5,0,1\n");
  EXPECT_EQ(
      read("curves.jsonl"),
      "{\"epoch\":1,\"step\":2,\"split\":\"training\",\"rate\":0.0,\"loss\":0.5,\"samples_per_second\":0.0,"
      "\"accuracy\":1.0}\n"
      "{\"epoch\":2,\"step\":4,\"split\":\"training\",\"rate\":0.0,\"loss\":0.5,\"samples_per_second\":0.0,"
      "\"accuracy\":1.0}\n");
  EXPECT_EQ(records_of(read("events.out.tfevents.imprint")), 3u);
  const auto curves = read_curves((folder_ / "curves.csv").string());
  ASSERT_TRUE(curves) << curves.error().message;
  EXPECT_EQ(curves->metric_names, (std::vector<std::string>{"accuracy"}));
  ASSERT_EQ(curves->rows.size(), 2u);
  EXPECT_EQ(curves->rows[1].step, 4);
  EXPECT_EQ(curves->rows[1].metrics, (std::vector<double>{1}));
  ASSERT_TRUE(cut_curves(folder, -1));  // a run from the start
  for (const char* name : {"curves.csv", "curves.jsonl", "events.out.tfevents.imprint"})
    EXPECT_FALSE(fs::exists(folder_ / name)) << name;
  EXPECT_FALSE(add_curve((folder_ / "none").string(), {}, {}));
  EXPECT_EQ(read_curves(write("bad.csv", "a,b\n1,2\n")).error().code, ErrorCode::corrupt_file);
  EXPECT_NE(
      read_curves(write("bad.csv", "epoch,step,split,rate,loss,samples_per_second\n1,x,training,0,0,0\n"))
          .error()
          .message.find("line 2"),
      std::string::npos);
}

TEST(EventFile, ADamagedEndIsLeftOut) {
  const std::string one = event_record({.wall_s = 1, .step = 5, .values = {{"loss", 2}, {"no number", NAN}}});
  EXPECT_EQ(one.find("no number"), std::string::npos);
  EXPECT_NE(one.find("loss"), std::string::npos);
  const std::string file = event_head(1) + one;
  EXPECT_EQ(events_up_to(file + one.substr(0, one.size() - 1), 5), file);
  EXPECT_EQ(events_up_to(file, 4), event_head(1));
  std::string damaged = file;
  damaged[damaged.size() - 6] ^= 1;
  EXPECT_EQ(events_up_to(damaged, 5), event_head(1));
}

Curves example() {
  Curves curves{.metric_names = {"right & <wrong>"}, .rows = {}};
  for (const std::int64_t step : {10, 20})
    for (const char* split : {"training", "validation"})
      curves.rows.push_back({.epoch = step / 10,
                             .step = step,
                             .split = split,
                             .loss = 3.0 / static_cast<double>(step),
                             .metrics = {0.5}});
  return curves;
}

TEST_F(Folder, ReportsNeedNoOtherFile) {
  const std::string path = (folder_ / "report.html").string();
  ASSERT_TRUE(write_report(path, "A run", example(), {"a note"}));
  const std::string html = read("report.html");
  EXPECT_EQ(html.find("<wrong>"), std::string::npos);
  EXPECT_NE(html.find("<pre>a note</pre>"), std::string::npos);
  EXPECT_NE(html.find("<td>loss</td><td>validation</td><td>0.15</td><td>0.15</td><td>0.3</td>"),
            std::string::npos);
  EXPECT_EQ(html.find("src="), std::string::npos);
  std::size_t charts = 0;
  for (std::size_t at = 0; (at = html.find("<svg ", at)) != html.npos; ++at) ++charts;
  EXPECT_EQ(charts, 2u);
  // From the left at the top to the right at the bottom, in a chart of 520 x 300.
  EXPECT_NE(chart_svg("t", curve_lines(example())).find("M58 30L508 266\""), std::string::npos);
  EXPECT_EQ(chart_svg("empty", {{"none", {{NAN, 1}}}}).find("nan"), std::string::npos);
}

TEST(Dashboard, ShowsProgressAndTheTable) {
  std::ostringstream out;
  Dashboard dashboard(out, true, 64);
  const Scores validation{.loss = 0.5, .metrics = {{"accuracy", 0.75}}};
  Report report{.epoch = 1,
                .epochs = 2,
                .batch = 5,
                .batches = 10,
                .step = 5,
                .rate = 0.01,
                .memory = 3 << 19,
                .training = {.loss = 2, .metrics = {{"accuracy", 0.25}}, .samples = 100, .seconds = 2}};
  std::vector<std::string> lines = dashboard.lines(report);
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_EQ(lines[0], "epoch 1/2  batch 5/10  step 5  rate 0.01  50 samples/s  1.5 MiB");
  EXPECT_EQ(lines[1], "[" + std::string(10, '=') + std::string(30, ' ') + "] 25 %");
  EXPECT_EQ(lines[3], "loss            2.0000        -");
  report.batch = 10;
  report.training.loss = 1;
  report.validation = &validation;
  lines = dashboard.lines(report);
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_EQ(lines[4], "accuracy        0.2500        0.7500");
  EXPECT_EQ(lines[5], "training loss   █▁");
  EXPECT_EQ(sparkline(std::vector<double>{9, 0, 1, 2, NAN}, 4), "▁▅█▁");
}

TEST(Dashboard, StaysInPlaceOnATerminalAlone) {
  std::ostringstream file, terminal;
  Dashboard plain(file), moving(terminal, true);
  const Report report{.epoch = 1, .epochs = 2, .ends_epoch = true};
  for (int i = 0; i < 2; ++i) plain(report), moving(report);
  EXPECT_EQ(file.str(), line_of(report) + "\n" + line_of(report) + "\n");
  EXPECT_EQ(terminal.str().find("\x1b[6A"), terminal.str().rfind("\x1b[6A"));
  EXPECT_NE(terminal.str().find("\x1b[6A"), std::string::npos);
}

TEST(StopSignal, SetsTheFlagOnce) {
  const StopSignal stop;
  EXPECT_FALSE(stop.flag()->load());
#if defined(SIGQUIT)
  for (int i = 0; i < 2; ++i) {
    std::raise(SIGQUIT);
    EXPECT_TRUE(stop.save_flag()->exchange(false));
  }
#endif
  EXPECT_FALSE(stop.flag()->load());
  std::raise(SIGINT);
  EXPECT_TRUE(stop.flag()->load());
}

std::vector<HostTensor> batch_for(const Dataset& data, std::int64_t rows) {
  std::vector<HostTensor> batch;
  for (const Field& field : data.fields()) {
    const auto count = static_cast<std::size_t>(rows * field.shape.element_count());
    batch.push_back({field.dtype, {}, {}, {}});
    if (field.dtype == DType::float32)
      batch.back().floats.resize(count);
    else
      batch.back().ints.resize(count);
  }
  return batch;
}

TEST_F(Folder, ArraysOfAMappedFile) {
  const std::string path = (folder_ / "data.safetensors").string();
  safetensors::File file;
  file.arrays.emplace("label", safetensors::Array::of(Ids{7, 8, 9}, {3}));
  file.arrays.emplace("x", safetensors::Array::of(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2}));
  ASSERT_TRUE(safetensors::save(file, path));
  const auto data = mapped_file(path);
  ASSERT_TRUE(data) << data.error().message;
  ASSERT_EQ((*data)->size(), 3);
  ASSERT_EQ((*data)->fields().size(), 2u);
  EXPECT_EQ((*data)->fields()[1].shape, (Shape{2}));
  std::vector<HostTensor> batch = batch_for(**data, 2);
  ASSERT_TRUE((*data)->read(2, batch, 0));
  ASSERT_TRUE((*data)->read(1, batch, 1));
  EXPECT_EQ(batch[0].ints, (Ids{9, 8}));
  EXPECT_EQ(batch[1].floats, (std::vector<float>{5, 6, 3, 4}));
  file.arrays.emplace("y", safetensors::Array::of(std::vector<float>{1, 2}, {2}));
  ASSERT_TRUE(safetensors::save(file, path));
  EXPECT_EQ(mapped_file(path).error().code, ErrorCode::shape_mismatch);
}

TEST_F(Folder, PicturesByTheirFolders) {
  write("p/cat/1.pgm", std::string("P5\n# a comment\n2 1\n255\n\x00\xff", 25));
  write("p/dog/1.pgm", std::string("P5 2 1 255 \x33\x00", 13));
  const auto data = picture_folder((folder_ / "p").string(), {.channels = 1});
  ASSERT_TRUE(data) << data.error().message;
  ASSERT_EQ((*data)->size(), 2);
  EXPECT_EQ((*data)->fields()[0].shape, (Shape{1, 1, 2}));
  std::vector<HostTensor> batch = batch_for(**data, 2);
  for (const std::int64_t i : {0, 1}) ASSERT_TRUE((*data)->read(i, batch, i));
  EXPECT_EQ(batch[0].floats, (std::vector<float>{0, 1, 0.2f, 0}));
  EXPECT_EQ(batch[1].ints, (Ids{0, 1}));
  write("p/dog/2.ppm", std::string("P6 1 1 255 \x33\x33\x33", 14));
  const auto wrong = picture_folder((folder_ / "p").string(), {.channels = 1});
  ASSERT_TRUE(wrong);
  EXPECT_EQ((*wrong)->read(2, batch, 0).error().code, ErrorCode::shape_mismatch);
  EXPECT_FALSE(picture_folder((folder_ / "none").string()));
}

TEST(Alphabet, TurnsTextIntoTokensAndBack) {
  const Alphabet letters("hello world");
  EXPECT_EQ(letters.size(), 8);
  EXPECT_EQ(letters.encode("hex!"), (Ids{3, 2}));
  EXPECT_EQ(letters.decode(letters.encode("low row")), "low row");
  EXPECT_EQ(letters.decode(Ids{-1, 8, 0}), " ");
}

class Augment : public testing::Test {
 protected:
  std::vector<float> value(const Tensor& tensor) {
    const auto found = session_.evaluate(tensor);
    EXPECT_TRUE(found) << (found ? "" : found.error().message);
    return found ? found->floats : std::vector<float>();
  }
  std::unique_ptr<Runtime> runtime_ = Runtime::create_on_cpu();
  Session session_{*runtime_};
  // 64 equal pictures of 2 x 3 pixels with the values 1 to 6.
  Tensor x_ = cast(remainder(reshape(arange(384), {64, 1, 2, 3}), 6) + 1, DType::float32);
};

TEST_F(Augment, FlipsSome) {
  nn::Pass pass("net", 3), evaluation;
  const std::vector<float> found = value(random_flip(x_, pass));
  std::size_t mirrored = 0;
  for (std::size_t n = 0; n < 64; ++n) {
    const std::vector<float> one(found.begin() + static_cast<std::ptrdiff_t>(6 * n),
                                 found.begin() + static_cast<std::ptrdiff_t>(6 * n + 6));
    const bool is_mirrored = one == std::vector<float>{3, 2, 1, 6, 5, 4};
    mirrored += is_mirrored ? 1 : 0;
    EXPECT_TRUE(is_mirrored || one == (std::vector<float>{1, 2, 3, 4, 5, 6}));
  }
  EXPECT_GT(mirrored, 16u);
  EXPECT_LT(mirrored, 48u);
  EXPECT_EQ(value(random_flip(x_, evaluation)), value(x_));
  EXPECT_FALSE(random_flip(zeros({3}), pass).ok());
}

TEST_F(Augment, ShiftsByUpToAPixel) {
  nn::Pass pass("net", 3);
  const std::vector<float> found = value(random_shift(x_, pass, 1));
  std::set<std::vector<float>> seen;
  for (std::size_t n = 0; n < 64; ++n) {
    const std::vector<float> one(found.begin() + static_cast<std::ptrdiff_t>(6 * n),
                                 found.begin() + static_cast<std::ptrdiff_t>(6 * n + 6));
    bool fits = false;
    for (int down = -1; down <= 1; ++down)
      for (int right = -1; right <= 1; ++right) {
        std::vector<float> moved;
        for (int y = 0; y < 2; ++y)
          for (int z = 0; z < 3; ++z) {
            const int from = y + down, across = z + right;
            const bool inside = from >= 0 && from < 2 && across >= 0 && across < 3;
            moved.push_back(inside ? static_cast<float>(from * 3 + across + 1) : 0);
          }
        fits = fits || moved == one;
      }
    EXPECT_TRUE(fits);
    seen.insert(one);
  }
  EXPECT_GT(seen.size(), 5u);
}

TEST_F(Augment, CutsASquareOut) {
  nn::Pass pass("net", 3);
  const std::vector<float> found = value(random_cutout(x_, pass, 2));
  for (std::size_t n = 0; n < 64; ++n) {
    int zero = 0;
    for (std::size_t i = 0; i < 6; ++i) {
      const float pixel = found[6 * n + i];
      EXPECT_TRUE(pixel == 0 || pixel == static_cast<float>(i + 1));
      zero += pixel == 0;
    }
    EXPECT_TRUE(zero == 1 || zero == 2 || zero == 4) << zero;
  }
  const std::vector<float> even = value(normalise(x_, {3}, {2}));
  EXPECT_EQ(even[5], 1.5f);
  EXPECT_FALSE(normalise(x_, {1, 2}, {1, 2}).ok());
}

TEST_F(Augment, TurnsScalesAndMoves) {
  nn::Pass pass("net", 3), evaluation;
  EXPECT_EQ(value(random_affine(x_, evaluation, {.turn = 90})), value(x_));
  const std::vector<float> whole = value(x_), still = value(random_affine(x_, pass, {}));
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(still[i], whole[i], 1e-5);
  // A slope across 9 columns: pictures of twice the size have half of it around the centre.
  const Tensor slope = cast(iota({4, 1, 5, 9}, 3), DType::float32);
  const std::vector<float> large = value(random_affine(slope, pass, {.least = 2, .most = 2}));
  for (std::size_t i = 0; i < large.size(); ++i)
    EXPECT_NEAR(large[i], 4 + (static_cast<double>(i % 9) - 4) / 2, 1e-4);
  // A turn keeps distances in pixels, whatever the sides: the slope's rise per pixel is its cosine across.
  const std::vector<float> turned = value(random_affine(slope, pass, {.turn = 30}));
  std::set<float> angles;
  for (std::size_t n = 0; n < 4; ++n) {
    const float* at = &turned[45 * n + 2 * 9 + 4];
    const double across = at[1] - at[0], down = at[9] - at[0];
    EXPECT_NEAR(at[0], 4, 1e-4);
    EXPECT_NEAR(std::hypot(across, down), 1, 1e-4);
    EXPECT_LE(std::fabs(std::atan2(down, across)), 30.01 * 3.14159265 / 180);
    angles.insert(static_cast<float>(down));
  }
  EXPECT_EQ(angles.size(), 4u);
  // Moved by up to a quarter of each side.
  const std::vector<float> moved = value(random_affine(slope, pass, {.shift = 0.25}));
  for (std::size_t n = 0; n < 4; ++n) EXPECT_LE(std::fabs(moved[45 * n + 22] - 4), 0.25f * 9 + 1e-4f);
  EXPECT_FALSE(random_affine(x_, pass, {.least = 0}).ok());
}

TEST_F(Augment, ChangesColoursWithinTheirRange) {
  nn::Pass pass("net", 3), evaluation;
  const Tensor x = Tensor::from(std::vector<float>{0.2f, 0.4f, 0.6f, 0.8f, 0.1f, 0.3f}, {1, 3, 1, 2});
  const auto colours = [&](const ColourRange& range) { return value(random_colour(x, pass, range)); };
  EXPECT_EQ(value(random_colour(x, evaluation, {.brightness = 1})), value(x));
  const std::vector<float> plain = value(x), bright = colours({.brightness = 0.5});
  const float factor = bright[0] / plain[0];
  EXPECT_GE(factor, 0.5f);
  EXPECT_LE(factor, 1.5f);
  EXPECT_NE(factor, 1.0f);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(bright[i], std::min(1.0f, plain[i] * factor), 1e-6);
  // Contrast keeps the mean of the greys, saturation each grey.
  const auto grey = [](const std::vector<float>& c, std::size_t i) {
    return 0.299f * c[i] + 0.587f * c[2 + i] + 0.114f * c[4 + i];
  };
  const std::vector<float> strong = colours({.contrast = 0.2}), rich = colours({.saturation = 0.2});
  EXPECT_NEAR(grey(strong, 0) + grey(strong, 1), grey(plain, 0) + grey(plain, 1), 1e-5);
  EXPECT_NE(strong, plain);
  EXPECT_NE(rich, plain);
  for (const std::size_t i : {0u, 1u}) EXPECT_NEAR(grey(rich, i), grey(plain, i), 1e-5);
  EXPECT_FALSE(random_colour(x_, pass, {.saturation = 0.5}).ok());
}

}  // namespace
}  // namespace imprint::training
