// Data sets, loaders, metrics, checkpoints' metadata and curves.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "compute/training/checkpoint.h"
#include "compute/training/feed.h"
#include "compute/training/loader.h"
#include "compute/training/metrics.h"
#include "tests/reference/interpreter.h"

namespace imprint::training {
namespace {

namespace fs = std::filesystem;

DatasetRef numbers(std::int64_t count) {
  HostTensor x{DType::int32, {count, 2}, {}, {}};
  for (std::int32_t i = 0; i < count; ++i) x.ints.insert(x.ints.end(), {i, -i});
  return in_memory({{"x", x}}).value();
}

using Ids = std::vector<std::int32_t>;

// The first numbers of the samples that count, batch by batch.
std::vector<Ids> batches_of(Loader& loader) {
  std::vector<Ids> all;
  Batch batch;
  while (loader.next(batch).value()) {
    Ids& ids = all.emplace_back();
    for (std::size_t row = 0; row < batch.weights.floats.size(); ++row) {
      EXPECT_EQ(batch.fields[0].ints[2 * row + 1], -batch.fields[0].ints[2 * row]);
      if (batch.weights.floats[row] != 0) ids.push_back(batch.fields[0].ints[2 * row]);
    }
    EXPECT_EQ(static_cast<std::int64_t>(ids.size()), batch.count);
  }
  return all;
}

TEST(Loader, GivesEachSampleOnce) {
  for (const int ahead : {0, 1, 3}) {
    Loader loader = std::move(
        *Loader::create(numbers(10), {.batch = 4, .read_ahead = ahead, .threads = ahead == 3 ? 2 : 1}));
    EXPECT_EQ(loader.batches(), 3);
    EXPECT_EQ(batches_of(loader), (std::vector<Ids>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}}));
    Loader whole =
        std::move(*Loader::create(numbers(10), {.batch = 4, .last = LastBatch::drop, .read_ahead = ahead}));
    EXPECT_EQ(batches_of(whole), (std::vector<Ids>{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  }
  EXPECT_FALSE(Loader::create(numbers(0)));
  EXPECT_FALSE(Loader::create(numbers(3), {.threads = 0}));
  EXPECT_FALSE(Loader::create(numbers(3), {.batch = 4, .last = LastBatch::drop}));
}

TEST(Loader, ShufflesBySeedAndEpoch) {
  const LoaderOptions options{.batch = 3, .shuffle = true, .seed = 7};
  Loader a = std::move(*Loader::create(numbers(20), options)),
         b = std::move(*Loader::create(numbers(20), options));
  const std::vector<Ids> first = batches_of(a);
  EXPECT_EQ(batches_of(b), first);
  std::set<std::int32_t> seen;
  for (const Ids& ids : first) seen.insert(ids.begin(), ids.end());
  EXPECT_EQ(seen.size(), 20u);
  a.start(1);
  const std::vector<Ids> second = batches_of(a);
  EXPECT_NE(second, first);
  a.start(1, 4);  // continues in the middle
  EXPECT_EQ(batches_of(a), std::vector<Ids>(second.begin() + 4, second.end()));
  a.start(0);
  Batch batch;
  ASSERT_TRUE(a.next(batch).value());
  a.start(0);  // a batch that was read ahead is forgotten
  EXPECT_EQ(batches_of(a), first);
}

TEST(Loader, PassesErrorsOn) {
  const DatasetRef broken = mapped(numbers(5), [](std::int64_t sample, std::span<HostTensor> fields) {
    if (sample == 3) fields[0].ints.clear();
  });
  for (const int ahead : {0, 2}) {
    Loader loader = std::move(*Loader::create(broken, {.batch = 2, .read_ahead = ahead}));
    Batch batch;
    EXPECT_TRUE(loader.next(batch).value());
    const auto failed = loader.next(batch);
    ASSERT_FALSE(failed);
    EXPECT_NE(failed.error().message.find("transform: found 0 values of x"), std::string::npos);
  }
}

TEST(Datasets, PartsAndTransforms) {
  const Parts parts = *split(numbers(10), 0.3, 5);
  EXPECT_EQ(parts.first->size(), 3);
  EXPECT_EQ(parts.second->size(), 7);
  std::set<std::int32_t> seen;
  for (const DatasetRef& part : {parts.first, parts.second}) {
    Loader loader = std::move(*Loader::create(part));
    for (const Ids& ids : batches_of(loader)) seen.insert(ids.begin(), ids.end());
  }
  EXPECT_EQ(seen.size(), 10u);
  EXPECT_FALSE(subset(numbers(3), {3}));
  EXPECT_FALSE(split(numbers(3), 2, 0));
  const DatasetRef doubled =
      mapped(*subset(numbers(10), {4, 2}), [](std::int64_t, std::span<HostTensor> fields) {
        for (std::int32_t& value : fields[0].ints) value *= 2;
      });
  Loader loader = std::move(*Loader::create(doubled));
  EXPECT_EQ(batches_of(loader), (std::vector<Ids>{{8, 4}}));
  EXPECT_FALSE(in_memory({}));
  EXPECT_EQ(in_memory({{"label", {DType::int64, {2}, {}, {0, 1}}}}).error().message,
            "in_memory: found label of int64, expected int32 or a narrower type.");
  EXPECT_FALSE(in_memory({{"a", HostTensor::from({1, 2}, {2})}, {"b", HostTensor::from({1}, {1})}}));
}

// Batches that a program takes from the arrays of a data set are those that a loader reads.
void expect_equal_batches(const DatasetRef& data) {
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  Loader numbers = Loader::create(data, {.batch = 2}).value(),
         read = Loader::create(data, {.batch = 2}).value();
  const Feed feed = Feed::create(numbers, 1 << 20).value();
  ASSERT_TRUE(feed.is_resident());
  EXPECT_FALSE(Feed::create(numbers, feed.bytes() - 1).value().is_resident());
  Program taken =
      Program::compile(*runtime, {.name = "taken", .inputs = feed.inputs(), .outputs = feed.fields()})
          .value();
  std::vector<HostTensor> inputs;
  std::int64_t count = 0;
  for (Batch batch; *read.next(batch);) {
    ASSERT_TRUE(*feed.next(numbers, inputs, count));
    EXPECT_EQ(count, batch.count);
    EXPECT_EQ(inputs.back().floats, batch.weights.floats);
    const std::vector<HostTensor> found = session.run(taken, inputs).value();
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].floats, batch.fields[i].floats);
      EXPECT_EQ(found[i].ints, batch.fields[i].ints);
    }
  }
  EXPECT_FALSE(*feed.next(numbers, inputs, count));
}

TEST(Datasets, ArraysGiveWhatReadGives) {
  const HostTensor x{DType::float16, {5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9.5f}, {}},
      label{DType::uint8, {5}, {}, {9, 8, 7, 6, 255}};
  const DatasetRef all = in_memory({{"x", x}, {"label", label}}).value();
  expect_equal_batches(all);
  expect_equal_batches(subset(subset(all, {4, 1, 0}).value(), {2, 0}).value());
  expect_equal_batches(token_windows({3, 1, 4, 1, 5, 9, 2, 6}, 3).value());
  // A transform gives new values each time, or may.
  EXPECT_FALSE(mapped(all, [](std::int64_t, std::span<HostTensor>) {})->arrays());
}

TEST(Datasets, ArraysThatGiveOtherFieldsAreRefused) {
  struct Wrong final : Dataset {
    std::vector<Field> all{{"x", {2}, DType::float32}};
    std::int64_t size() const override { return 1; }
    const std::vector<Field>& fields() const override { return all; }
    Result<> read(std::int64_t, std::span<HostTensor>, std::int64_t) const override { return {}; }
    std::optional<DatasetArrays> arrays() const override {
      return DatasetArrays{
          {{"x", {1, 2}, DType::float32, SharedBytes(std::vector<std::byte>(8))}},
          [](std::span<const Tensor> arrays, const Tensor&) { return std::vector{arrays[0]}; },
          {}};
    }
  };
  const Loader loader = Loader::create(std::make_shared<Wrong>(), {.batch = 3}).value();
  EXPECT_EQ(Feed::create(loader, 100).error().message,
            "data set: its arrays give field 0 as float32[1, 2], expected float32[3, 2]");
}

TEST(Datasets, TokenWindows) {
  const DatasetRef windows = *token_windows({5, 6, 7, 8, 9}, 3);
  ASSERT_EQ(windows->size(), 2);
  std::vector<HostTensor> batch(2, HostTensor{DType::int32, {1, 3}, {}, Ids(3)});
  ASSERT_TRUE(windows->read(1, batch, 0));
  EXPECT_EQ(batch[0].ints, (Ids{6, 7, 8}));
  EXPECT_EQ(batch[1].ints, (Ids{7, 8, 9}));
  EXPECT_FALSE(token_windows({1, 2}, 2));
}

class Files : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / "imprint-train-files";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& content) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  fs::path folder_;
};

TEST_F(Files, IdxPicturesAndLabels) {
  const std::string pictures =
                        write("x", std::string("\0\0\x08\x03\0\0\0\2\0\0\0\1\0\0\0\2\x00\xff\x33\x00", 20)),
                    labels = write("y", std::string("\0\0\x08\x01\0\0\0\2\x07\x03", 10));
  const auto data = idx_files(pictures, labels);
  ASSERT_TRUE(data) << data.error().message;
  std::vector<HostTensor> batch{{DType::float32, {1, 1, 1, 2}, std::vector<float>(2), {}},
                                {DType::int32, {1}, {}, Ids(1)}};
  ASSERT_TRUE((*data)->read(0, batch, 0));
  EXPECT_EQ(batch[0].floats, (std::vector<float>{0, 1}));
  EXPECT_EQ(batch[1].ints, (Ids{7}));
  EXPECT_EQ((*data)->fields()[0].shape, (Shape{1, 1, 2}));
  expect_equal_batches(*data);
  EXPECT_EQ(idx_files(labels, labels).error().code, ErrorCode::corrupt_file);
  EXPECT_EQ(idx_files(pictures, write("z", std::string("\0\0\x08\x01\0\0\0\1\7", 9))).error().code,
            ErrorCode::corrupt_file);
  EXPECT_FALSE(idx_files((folder_ / "none").string(), labels));
  const std::string huge = std::string("\0\0\x08\x03", 4) + std::string(12, '\xff') + "x";  // 2^96 pixels
  EXPECT_EQ(idx_files(write("h", huge), labels).error().code, ErrorCode::corrupt_file);
}

TEST_F(Files, CifarRecords) {
  std::string record(3073, '\0');
  for (std::size_t i = 1; i < record.size(); ++i) record[i] = static_cast<char>(i);
  record[0] = 6;
  record[3072] = '\xff';
  const std::string one = write("a.bin", record), two = write("b.bin", record + record);
  const auto data = cifar_files({one, two});
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ((*data)->size(), 3);
  std::vector<HostTensor> batch{{DType::float32, {1, 3, 32, 32}, std::vector<float>(3072), {}},
                                {DType::int32, {1}, {}, Ids(1)}};
  ASSERT_TRUE((*data)->read(2, batch, 0));
  EXPECT_EQ(batch[0].floats[3071], 1);
  EXPECT_EQ(batch[0].floats[50], 51.0f / 255);
  EXPECT_EQ(batch[1].ints, (Ids{6}));
  expect_equal_batches(*data);
  EXPECT_EQ(cifar_files({write("c.bin", "x")}).error().code, ErrorCode::corrupt_file);
}

TEST_F(Files, CsvColumns) {
  const auto data = csv_file(write("t.csv", "a,price,\"b\"\n1, 2.5,3\r\n\n-4,5,6e1\n"), "price");
  ASSERT_TRUE(data) << data.error().message;
  ASSERT_EQ((*data)->size(), 2);
  std::vector<HostTensor> batch{{DType::float32, {1, 2}, std::vector<float>(2), {}},
                                {DType::float32, {1}, std::vector<float>(1), {}}};
  ASSERT_TRUE((*data)->read(1, batch, 0));
  EXPECT_EQ(batch[0].floats, (std::vector<float>{-4, 60}));
  EXPECT_EQ(batch[1].floats, (std::vector<float>{5}));
  EXPECT_EQ(csv_file(write("t.csv", "a,b\n"), "c").error().code, ErrorCode::not_found);
  EXPECT_NE(csv_file(write("t.csv", "a,b\n1,2\n1,x\n"), "b").error().message.find("line 3: found 'x'"),
            std::string::npos);
  EXPECT_NE(csv_file(write("t.csv", "a,b\n1\n"), "b").error().message.find("found 1 cell, expected 2"),
            std::string::npos);
  EXPECT_NE(csv_file(write("t.csv", "a,b\n1,\n"), "b").error().message.find("found '', expected a number"),
            std::string::npos);
  EXPECT_EQ(csv_file(write("t.csv", "\n\r\n"), "b").error().code, ErrorCode::not_found) << "no line of names";
}

TEST(Checkpoint, PositionsReadBackAsTheSameBits) {
  Position position{.epoch = 3,
                    .batch = 5,
                    .step = 77,
                    .sums = {.loss = 0.1 + 0.2, .samples = 12, .metrics = {1.0 / 3, -2e-300}},
                    .best_loss = INFINITY,
                    .bad_validations = 2,
                    .kept = {{0.25, "step-4.safetensors"}}};
  const auto found = position_of(metadata_of(position));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, position);
  auto metadata = metadata_of(position);
  metadata["step"] = "-1";
  EXPECT_NE(position_of(metadata).error().message.find("checkpoint: found step '-1'"), std::string::npos);
  for (const char* outside : {"../other", "..", ".", "D:other", "..\\other"}) {
    position.kept[0].file = outside;
    EXPECT_FALSE(position_of(metadata_of(position))) << outside;
  }
  metadata["step"] = std::string(100'000, 'x') + "\n";
  EXPECT_LT(position_of(metadata).error().message.size(), 300u);
  EXPECT_FALSE(position_of({}));
}

TEST(Metrics, OfRows) {
  using reference::evaluate;
  const Tensor logits = Tensor::from({1, 3, 2, 5, 4, 6, 0, 0, 9}, {3, 3}),
               target = Tensor::from_ints(Ids{1, 1, 0}, {3});
  EXPECT_EQ(evaluate(accuracy(logits, target), {}), (std::vector<double>{1, 0, 0}));
  EXPECT_EQ(evaluate(top_k_accuracy(logits, target, 2), {}), (std::vector<double>{1, 0, 1}));
  EXPECT_EQ(evaluate(top_k_accuracy(logits, target, 3), {}), (std::vector<double>{1, 1, 1}));
  const std::vector<double> noise =
      evaluate(peak_signal_to_noise(Tensor::from({0.1f, -0.1f, 0, 0}, {2, 2}), zeros({2, 2})), {});
  EXPECT_NEAR(noise[0], 20, 1e-5);
  EXPECT_NEAR(noise[1], 100, 1e-5);
}

// Padded sequences: the padding changes nothing, and a sample of padding alone is 0.
TEST(Metrics, MaskedMean) {
  using reference::evaluate;
  const Tensor values = Tensor::from({1, 0, 7, 1, NAN, NAN}, {3, 2}),
               words = Tensor::from_ints(Ids{4, 5, 6, 0, 0, 0}, {3, 2}), counts = not_equal(words, 0);
  EXPECT_EQ(evaluate(masked_mean(values, counts), {}), (std::vector<double>{0.5, 7, 0}));
  EXPECT_EQ(
      evaluate(masked_mean(squeeze(narrow(values, 1, 1, 1), 1), squeeze(narrow(counts, 1, 1, 1), 1)), {}),
      (std::vector<double>{0, 0, 0}));
  EXPECT_FALSE(masked_mean(values, zeros({4}, DType::boolean)).ok());
}

// One pixel of the definition: a window of normal weights.
TEST(Metrics, StructuralSimilarity) {
  constexpr int kSide = 12;
  std::vector<float> a, b;
  for (int i = 0; i < 2 * kSide * kSide; ++i) {
    a.push_back(0.5f + 0.4f * std::sin(static_cast<float>(i)));
    b.push_back(0.5f + 0.3f * std::sin(static_cast<float>(i) * 1.1f));
  }
  const auto pixel = [&](const std::vector<float>& x, int n, int y, int z) {
    return static_cast<double>(x[static_cast<std::size_t>((n * kSide + y) * kSide + z)]);
  };
  double expected = 0;
  for (int n = 0; n < 2; ++n)
    for (int y = 0; y < 2; ++y)
      for (int z = 0; z < 2; ++z) {
        double total = 0, ma = 0, mb = 0, aa = 0, bb = 0, ab = 0;
        for (int i = 0; i < 11; ++i)
          for (int j = 0; j < 11; ++j) {
            const double w = std::exp(-((i - 5) * (i - 5) + (j - 5) * (j - 5)) / 4.5);
            const double p = pixel(a, n, y + i, z + j), q = pixel(b, n, y + i, z + j);
            total += w, ma += w * p, mb += w * q, aa += w * p * p, bb += w * q * q, ab += w * p * q;
          }
        ma /= total, mb /= total;
        aa = aa / total - ma * ma, bb = bb / total - mb * mb, ab = ab / total - ma * mb;
        expected +=
            (2 * ma * mb + 1e-4) * (2 * ab + 9e-4) / ((ma * ma + mb * mb + 1e-4) * (aa + bb + 9e-4)) / 8;
      }
  const Shape shape{1, 2, kSide, kSide};
  const auto found =
      reference::evaluate(structural_similarity(Tensor::from(a, shape), Tensor::from(b, shape)), {});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR(found[0], expected, 1e-5);
  EXPECT_NEAR(
      reference::evaluate(structural_similarity(Tensor::from(a, shape), Tensor::from(a, shape)), {})[0], 1,
      1e-6);
  EXPECT_FALSE(structural_similarity(zeros({1, 1, 10, 12}), zeros({1, 1, 10, 12})).ok());
  EXPECT_NEAR(perplexity(std::log(27.0)), 27, 1e-12);
}

TEST(Metrics, Confusion) {
  Confusion confusion(3);
  confusion.add(Ids{0, 0, 1, 2, 2, 2, 9}, Ids{0, 1, 1, 2, 0, 2, 1});
  EXPECT_EQ(confusion.count(2, 0), 1);
  EXPECT_NEAR(confusion.accuracy(), 4.0 / 6, 1e-12);
  EXPECT_NEAR(confusion.precision(1), 0.5, 1e-12);
  EXPECT_NEAR(confusion.recall(2), 2.0 / 3, 1e-12);
  EXPECT_NEAR(confusion.f_score(2), 2 * 1 * (2.0 / 3) / (1 + 2.0 / 3), 1e-12);
  EXPECT_NEAR(confusion.f_score(1, 2), 5 * 0.5 * 1 / (4 * 0.5 + 1), 1e-12);
  EXPECT_EQ(Confusion(2).mean_f_score(), 0);
}

TEST(Metrics, AreaUnderTheCurveCountsPairs) {
  const std::vector<float> scores{0.1f, 0.4f, 0.35f, 0.8f, 0.4f};
  const Ids labels{0, 0, 1, 1, 1};
  double pairs = 0;
  for (const std::size_t p : {2, 3, 4})
    for (const std::size_t n : {0, 1}) pairs += scores[p] > scores[n] ? 1 : scores[p] == scores[n] ? 0.5 : 0;
  EXPECT_NEAR(area_under_curve(scores, labels), pairs / 6, 1e-12);
  EXPECT_EQ(area_under_curve(scores, Ids{1, 1, 1, 1, 1}), 0.5);
}

TEST(Metrics, ErrorRates) {
  EXPECT_EQ(edit_distance(Ids{1, 2, 3}, Ids{2, 3, 4}), 2);
  EXPECT_EQ(edit_distance(Ids{}, Ids{1, 2}), 2);
  const std::vector<std::string> found{"kitten", "a b"}, expected{"sitting", "a b c"};
  EXPECT_NEAR(character_error_rate(found, expected), 5.0 / 12, 1e-12);
  EXPECT_NEAR(word_error_rate(found, expected), 2.0 / 4, 1e-12);
}

}  // namespace
}  // namespace imprint::training
