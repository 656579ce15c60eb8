// The trainer on a device: it learns, it resumes to the same bits, and batches add up.

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "compute/base/text.h"
#include "compute/model/files/safetensors.h"
#include "compute/nn/losses/losses.h"
#include "compute/nn/modules/dropout.h"
#include "compute/nn/modules/norms.h"
#include "compute/nn/modules/sequential.h"
#include "compute/training/curves.h"
#include "compute/training/metrics.h"
#include "compute/training/predict.h"
#include "compute/training/trainer.h"
#include "tests/gpu/session_test.h"

namespace imprint::training {
namespace {

namespace fs = std::filesystem;

// Points with the class of their quadrant.
DatasetRef quadrants(std::int64_t count) {
  HostTensor x{DType::float32, {count, 2}, test::wave(2 * count, 1, 3), {}},
      label{DType::int32, {count}, {}, {}};
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(2 * i);
    label.ints.push_back((x.floats[at] > 0 ? 1 : 0) + (x.floats[at + 1] > 0 ? 2 : 0));
  }
  return in_memory({{"x", x}, {"label", label}}).value();
}

// A network with dropout and running statistics, so that a checkpoint needs all of its parts.
struct Learner {
  nn::Sequential network{"net"};
  std::shared_ptr<const nn::Optimiser> optimiser;
  Model model;

  explicit Learner(const std::string& kind) {
    network.linear(2, 8, {.seed = 1}).add<nn::BatchNorm>(8).activation(nn::Activation::tanh);
    network.add(nn::Dropout(0.1)).linear(8, 4, {.seed = 2});
    const nn::Parameters all = network.parameters();
    if (kind == "sgd") optimiser = std::make_shared<nn::Sgd>(all, nn::SgdOptions{.momentum = 0.9});
    if (kind == "adam") optimiser = std::make_shared<nn::Adam>(all);
    if (kind == "amsgrad") optimiser = std::make_shared<nn::Adam>(all, nn::AdamOptions{.amsgrad = true});
    if (kind == "adam8") optimiser = std::make_shared<nn::EightBitAdam>(all);
    if (kind == "rmsprop") optimiser = std::make_shared<nn::RmsProp>(all);
    if (kind == "adagrad") optimiser = std::make_shared<nn::Adagrad>(all);
    if (kind == "adadelta") optimiser = std::make_shared<nn::Adadelta>(all);
    if (kind == "adamax") optimiser = std::make_shared<nn::Adamax>(all);
    if (kind == "nadam") optimiser = std::make_shared<nn::NAdam>(all);
    if (kind == "radam") optimiser = std::make_shared<nn::RAdam>(all);
    if (kind == "lion") optimiser = std::make_shared<nn::Lion>(all);
    if (kind == "lamb") optimiser = std::make_shared<nn::Lamb>(all);
    if (kind == "adan") optimiser = std::make_shared<nn::Adan>(all);
    if (kind == "adafactor") optimiser = std::make_shared<nn::Adafactor>(all);
    if (kind == "lbfgs") optimiser = std::make_shared<nn::Lbfgs>(all, nn::LbfgsOptions{.history = 3});
    if (kind == "muon_and_adam")
      optimiser = std::make_shared<nn::CombinedOptimiser>(std::vector<nn::CombinedOptimiser::Part>{
          {std::make_shared<nn::Muon>(matrices())}, {std::make_shared<nn::Adam>(others())}});
    model = [network = network](std::span<const Tensor> in, nn::Pass& pass) {
      const Tensor y = network(in[0], pass);
      return Computed{nn::cross_entropy(y, in[1], nn::Reduction::none), {{"accuracy", accuracy(y, in[1])}}};
    };
  }

  nn::Parameters matrices() const { return chosen(true); }
  nn::Parameters others() const { return chosen(false); }
  nn::Parameters chosen(bool is_matrix) const {
    nn::Parameters out;
    for (const nn::Parameter& parameter : network.parameters())
      if ((parameter.variable.shape().rank() == 2) == is_matrix)
        out.add(parameter.name, parameter.variable, parameter.transposed);
    return out;
  }
};

class TrainingLoop : public test::SessionTest {
 protected:
  void SetUp() override {
    SessionTest::SetUp();
    folder_ = fs::temp_directory_path() /
              text("imprint-training-", testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override {
    fs::remove_all(folder_);
    SessionTest::TearDown();
  }

  std::vector<float> content(const Learner& learner) {
    std::vector<float> all;
    const auto values = session().read(state_of(learner.network).variables());
    EXPECT_TRUE(values);
    for (const HostTensor& value : *values) all.insert(all.end(), value.floats.begin(), value.floats.end());
    return all;
  }

  fs::path folder_;
};

Loader batches_of(DatasetRef data, LoaderOptions options) {
  return std::move(*Loader::create(std::move(data), options));
}

TEST_F(TrainingLoop, LearnsAndReports) {
  const Learner learner("adam");
  Loader training = batches_of(quadrants(192), {.batch = 32, .shuffle = true, .seed = 1});
  Loader validation = batches_of(quadrants(50), {.batch = 32});
  std::vector<std::int64_t> epochs;
  std::string line;
  Trainer trainer(session(), learner.model, state_of(learner.network), learner.optimiser,
                  {.epochs = 12,
                   .rate = nn::Schedule::cosine(0.05, 72),
                   .clip_norm = 1,
                   .report =
                       [&](const Report& report) {
                         epochs.push_back(report.epoch);
                         line = line_of(report);
                       },
                   .folder = folder_.string()});
  const auto outcome = trainer.fit(training, &validation);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->epochs, 12);
  EXPECT_EQ(outcome->steps, 72);
  EXPECT_EQ(outcome->validation.samples, 50);
  EXPECT_GT(outcome->validation.metric("accuracy"), 0.9);
  EXPECT_TRUE(std::isnan(outcome->validation.metric("speed")));
  EXPECT_EQ(epochs.size(), 12u);
  EXPECT_TRUE(line.starts_with("epoch 12/12  training loss 0.")) << line;
  const auto again = trainer.evaluate(validation);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->loss, outcome->validation.loss);
  std::ifstream curves(folder_ / "curves.csv");
  std::string header;
  std::getline(curves, header);
  EXPECT_EQ(header, "epoch,step,split,rate,loss,samples_per_second,accuracy");
  int rows = 0;
  while (std::getline(curves, line)) ++rows;
  EXPECT_EQ(rows, 24);
  const auto read = read_curves((folder_ / "curves.csv").string());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->rows.back().loss, outcome->validation.loss);
  EXPECT_TRUE(fs::exists(folder_ / "curves.jsonl"));
  EXPECT_TRUE(fs::exists(folder_ / "events.out.tfevents.imprint"));
  // The best checkpoint alone is kept beside the last.
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder_))
    files += entry.path().extension() == ".safetensors";
  EXPECT_EQ(files, 2);
}

TEST_F(TrainingLoop, ResumesToTheSameBits) {
  // A device would compile for minutes.
  const std::vector<const char*> one{"adam"},
      all{"sgd",   "adam",  "adam8", "amsgrad", "rmsprop", "adagrad",   "adadelta", "adamax",
          "nadam", "radam", "lion",  "lamb",    "adan",    "adafactor", "lbfgs",    "muon_and_adam"};
  for (const char* kind : runtime().on_cpu() ? all : one) {
    SCOPED_TRACE(kind);
    fs::remove_all(folder_);
    const LoaderOptions shuffled{.batch = 16, .shuffle = true, .seed = 4};
    TrainerOptions options{.epochs = 3, .rate = nn::Schedule::linear(0.01, 0.001, 12), .seed = 9};
    const Learner whole(kind), parts(kind);
    Loader data = batches_of(quadrants(56), shuffled), validation = batches_of(quadrants(20), {.batch = 16});
    // Its batches are uploaded; those of the others lie on the device.
    options.resident_bytes = 0;
    Trainer without_stop(session(), whole.model, state_of(whole.network), whole.optimiser, options);
    const auto expected = without_stop.fit(data, &validation);
    ASSERT_TRUE(expected) << expected.error().message;
    EXPECT_EQ(without_stop.step()->input_shape(0), (Shape{16, 2}));
    options.resident_bytes = 1 << 20;

    // Stops after two batches, then in the second epoch, each time with a new trainer.
    options.folder = folder_.string();
    std::atomic<bool> stop{false};
    options.stop = &stop;
    options.report_every = 1;
    auto outcome = expected;
    for (const std::int64_t last_step : {2, 7, 1000}) {
      options.report = [&](const Report& report) { stop = report.step >= last_step; };
      stop = false;
      const Learner learner(kind);
      Loader some = batches_of(quadrants(56), shuffled);
      Trainer trainer(session(), learner.model, state_of(learner.network), learner.optimiser, options);
      if (last_step > 2) {
        const Result<> loaded = trainer.load((folder_ / "last.safetensors").string());
        ASSERT_TRUE(loaded) << loaded.error().message;
      }
      outcome = trainer.fit(some, &validation);
      ASSERT_TRUE(outcome) << outcome.error().message;
      EXPECT_EQ(outcome->interrupted, last_step < 1000);
      if (last_step < 1000) continue;
      EXPECT_EQ(trainer.step()->input_shape(0), runtime().on_cpu() ? Shape({16, 2}) : Shape({16}));
      EXPECT_EQ(outcome->training.loss, expected->training.loss);
      EXPECT_EQ(outcome->validation.loss, expected->validation.loss);
      EXPECT_EQ(outcome->best_loss, expected->best_loss);
      EXPECT_EQ(outcome->steps, expected->steps);
      EXPECT_EQ(content(learner), content(whole));
    }
  }
}

// Products of 16 bits, but not those of the last layer.
TEST_F(TrainingLoop, TypesByNameLearnAndResume) {
  TrainerOptions options{.epochs = 8,
                         .rate = 0.05,
                         .dtypes = {{"*", {.compute = DType::float16}}, {"4.*", {}}},
                         .folder = folder_.string()};
  Loader training = batches_of(quadrants(192), {.batch = 32, .shuffle = true, .seed = 1});
  const Learner whole("adam"), parts("adam"), plain("adam");
  Trainer without_stop(session(), whole.model, state_of(whole.network), whole.optimiser, options);
  const auto expected = without_stop.fit(training);
  ASSERT_TRUE(expected) << expected.error().message;
  EXPECT_GT(expected->training.metric("accuracy"), 0.85);
  options.epochs = 3;
  {
    Trainer first(session(), parts.model, state_of(parts.network), parts.optimiser, options);
    ASSERT_TRUE(first.fit(training));
  }
  const auto saved = safetensors::load((folder_ / "last.safetensors").string());
  ASSERT_TRUE(saved);
  EXPECT_TRUE(saved->arrays.contains("scaler.scale"));  // float16 scales the loss
  options.epochs = 8;
  const Learner again("adam");
  Trainer second(session(), again.model, state_of(again.network), again.optimiser, options);
  ASSERT_TRUE(second.load((folder_ / "last.safetensors").string()));
  ASSERT_TRUE(second.fit(training));
  EXPECT_EQ(content(again), content(whole));

  options.dtypes = {{"*", {.storage = DType::float16}}};
  Trainer wrong(session(), plain.model, state_of(plain.network), plain.optimiser, options);
  EXPECT_EQ(wrong.fit(training).error().code, ErrorCode::invalid_argument);
}

TEST_F(TrainingLoop, SavesWhenItIsAsked) {
  const Learner learner("adam");
  Loader training = batches_of(quadrants(96), {.batch = 32});
  std::atomic<bool> save{false};
  const fs::path file = folder_ / "last.safetensors";
  std::vector<bool> saved;
  std::uint64_t memory = 0;
  Trainer trainer(session(), learner.model, state_of(learner.network), learner.optimiser,
                  {.epochs = 2,
                   .report_every = 1,
                   .report =
                       [&](const Report& report) {
                         saved.push_back(fs::exists(file));
                         memory = report.memory;
                         if (report.step == 1) save = true;
                       },
                   .folder = folder_.string(),
                   .checkpoint_every = 100,
                   .save = &save});
  const auto outcome = trainer.fit(training);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_FALSE(outcome->interrupted);
  EXPECT_FALSE(save.load());
  ASSERT_EQ(saved.size(), 6u);
  // A device may be some steps ahead of the report that asks.
  if (runtime().on_cpu()) EXPECT_EQ(saved, (std::vector<bool>{false, true, true, true, true, true}));
  EXPECT_FALSE(saved.front());
  EXPECT_TRUE(saved.back());
  // Weights and two moments of each: 2 * 8 + 8 + 8 + 8 + 8 * 4 + 4 numbers.
  EXPECT_GT(memory, 3u * 4 * 76);
}

TEST_F(TrainingLoop, StopsAfterSomeStepsAndGoesOn) {
  const Learner whole("adam"), parts("adam");
  const LoaderOptions shuffled{.batch = 16, .shuffle = true, .seed = 4};
  Loader data = batches_of(quadrants(56), shuffled);  // four steps per epoch
  Trainer all(session(), whole.model, state_of(whole.network), whole.optimiser, {.epochs = 2});
  const auto expected = all.fit(data);
  ASSERT_TRUE(expected) << expected.error().message;
  Trainer some(session(), parts.model, state_of(parts.network), parts.optimiser,
               {.epochs = 2, .steps = 6, .folder = folder_.string()});
  const auto first = some.fit(data);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->steps, 6);
  EXPECT_EQ(first->epochs, 1);
  const auto none = some.fit(data, &data);  // no step is left
  ASSERT_TRUE(none);
  EXPECT_EQ(none->steps, 6);
  EXPECT_EQ(none->validation.loss, some.evaluate(data)->loss);
  const Learner again("adam");
  Trainer rest(session(), again.model, state_of(again.network), again.optimiser, {.epochs = 2});
  ASSERT_TRUE(rest.load((folder_ / "last.safetensors").string()));
  const auto end = rest.fit(data);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->steps, 8);
  EXPECT_EQ(end->training.loss, expected->training.loss);
  EXPECT_EQ(content(again), content(whole));
}

TEST_F(TrainingLoop, WritesTheFirstWeightsWithoutEpochs) {
  const Learner whole("adam"), first("adam"), other("adam");
  Loader data = batches_of(quadrants(56), {.batch = 16, .shuffle = true, .seed = 4});
  const std::vector<float> initial = content(first);
  Trainer none(session(), first.model, state_of(first.network), first.optimiser,
               {.epochs = 0, .folder = folder_.string()});
  const auto nothing = none.fit(data, &data);
  ASSERT_TRUE(nothing) << nothing.error().message;
  EXPECT_EQ(nothing->steps, 0);
  EXPECT_GT(nothing->validation.loss, 0);
  EXPECT_EQ(content(first), initial);
  Trainer all(session(), whole.model, state_of(whole.network), whole.optimiser, {.epochs = 2});
  Trainer loaded(session(), other.model, state_of(other.network), other.optimiser, {.epochs = 2});
  ASSERT_TRUE(loaded.load((folder_ / "last.safetensors").string()));
  ASSERT_TRUE(all.fit(data));
  ASSERT_TRUE(loaded.fit(data));
  EXPECT_NE(content(other), initial);
  EXPECT_EQ(content(other), content(whole));
}

TEST_F(TrainingLoop, AccumulatedBatchesEqualOneLarge) {
  // Without noise and batch statistics the gradients of small batches add up.
  const auto train = [&](std::int64_t batch, std::int64_t accumulate) {
    const nn::Sequential network = nn::mlp("net", {2, 8, 4}, {.activation = nn::Activation::tanh, .seed = 1});
    const Model model = [=](std::span<const Tensor> in, nn::Pass&) {
      return Computed{nn::cross_entropy(network(in[0]), in[1], nn::Reduction::none)};
    };
    Loader data = batches_of(quadrants(80), {.batch = batch, .shuffle = true});
    Trainer trainer(session(), model, network, nn::Sgd(network.parameters()),
                    {.epochs = 2, .rate = 0.5, .accumulate = accumulate});
    const auto outcome = trainer.fit(data);
    EXPECT_TRUE(outcome) << outcome.error().message;
    EXPECT_EQ(outcome->steps, 4);
    return floats(network.parameters()[0].variable);
  };
  // 80 samples: two groups of 40, as four batches of 10 each.
  const std::vector<float> large = train(40, 1), small = train(10, 4);
  for (std::size_t i = 0; i < large.size(); ++i) EXPECT_NEAR(large[i], small[i], 1e-5);
}

TEST_F(TrainingLoop, StopsEarlyAndKeepsTheBest) {
  const Learner learner("sgd");
  Loader training = batches_of(quadrants(64), {.batch = 32}),
         validation = batches_of(quadrants(20), {.batch = 32});
  // The rate destroys what was learned after the third epoch.
  Trainer trainer(session(), learner.model, state_of(learner.network), learner.optimiser,
                  {.epochs = 50,
                   .rate = nn::Schedule::constant(0.05).then(6, nn::Schedule::constant(8)),
                   .patience = 3,
                   .folder = folder_.string(),
                   .keep_best = 2});
  const auto outcome = trainer.fit(training, &validation);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(outcome->stopped_early);
  EXPECT_LT(outcome->epochs, 20);
  EXPECT_LT(outcome->best_loss, outcome->validation.loss);
  // The best checkpoint has the best loss.
  double best = 1e9;
  int kept = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (!entry.path().filename().string().starts_with("step-")) continue;
    ++kept;
    const Learner other("sgd");
    Trainer restored(session(), other.model, state_of(other.network), other.optimiser);
    ASSERT_TRUE(restored.load(entry.path().string()));
    best = std::min(best, restored.evaluate(validation)->loss);
  }
  EXPECT_EQ(kept, 2);
  EXPECT_EQ(best, outcome->best_loss);
  EXPECT_EQ(fs::path(outcome->best_checkpoint), folder_ / text("step-", outcome->best_step, ".safetensors"));
  EXPECT_LT(outcome->best_step, outcome->steps);
}

TEST_F(TrainingLoop, ReturnsToTheBestAndSetsAnEarlierRunAside) {
  if (!runtime().on_cpu()) return;  // no work of the device; it would compile for seconds
  Loader data = batches_of(quadrants(32), {.batch = 32});
  // The second step destroys what was learned.
  TrainerOptions options{.epochs = 3,
                         .rate = nn::Schedule::constant(0.05).then(1, nn::Schedule::constant(1e3)),
                         .folder = (folder_ / "made" / "run").string()};
  for (const bool restores : {false, true}) {
    const Learner learner("sgd");
    options.restore_best = restores;
    Trainer trainer(session(), learner.model, state_of(learner.network), learner.optimiser, options);
    const auto outcome = trainer.fit(data, &data);
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_EQ(outcome->best_step, 1);
    EXPECT_GT(outcome->validation.loss, outcome->best_loss);
    EXPECT_EQ(trainer.evaluate(data)->loss, restores ? outcome->best_loss : outcome->validation.loss);
  }
  const fs::path run = options.folder, earlier = run / "earlier-1";
  for (const char* name : {"last.safetensors", "step-1.safetensors", "curves.csv"}) {
    EXPECT_TRUE(fs::exists(run / name)) << name;
    EXPECT_TRUE(fs::exists(earlier / name)) << name;
  }
  EXPECT_EQ(read_curves((run / "curves.csv").string())->rows.size(), 6u);
  EXPECT_EQ(read_curves((earlier / "curves.csv").string())->rows.size(), 6u);
  const Learner learner("sgd");
  Trainer nowhere(session(), learner.model, state_of(learner.network), learner.optimiser,
                  {.restore_best = true});
  EXPECT_EQ(nowhere.fit(data).error().message,
            "restore_best: found folder '' and keep_best 1, expected a folder and 1 or more");
}

TEST_F(TrainingLoop, ThePlateauLowersTheRate) {
  const Learner learner("sgd");
  Loader training = batches_of(quadrants(32), {.batch = 32}),
         validation = batches_of(quadrants(20), {.batch = 32});
  std::vector<double> rates;
  // A rate of 1e-9 does not improve anything.
  Trainer trainer(session(), learner.model, state_of(learner.network), learner.optimiser,
                  {.epochs = 4,
                   .rate = 1e-9,
                   .plateau = nn::PlateauOptions{.factor = 0.5, .patience = 0, .threshold = 0.5},
                   .report = [&](const Report& report) { rates.push_back(1e9 * report.rate); }});
  ASSERT_TRUE(trainer.fit(training, &validation));
  ASSERT_EQ(rates.size(), 4u);
  const double expected[] = {1, 1, 0.5, 0.25};  // falls after the second validation
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(rates[i], expected[i], 1e-6) << i;
}

TEST_F(TrainingLoop, PredictsAllSamplesInOrder) {
  // The last batch of five has two samples.
  Loader data = batches_of(quadrants(7), {.batch = 5});
  const auto found = predict(session(), data, [](std::span<const Tensor> in) {
    return std::vector<Tensor>{in[0] * 2.0f, sum(in[0], {1}), cast(in[1], DType::uint8)};
  });
  ASSERT_TRUE(found) << found.error().message;
  const std::vector<float> x = test::wave(14, 1, 3);
  EXPECT_EQ((*found)[0].shape, (Shape{7, 2}));
  EXPECT_EQ((*found)[1].shape, Shape{7});
  for (std::size_t i = 0; i < 14; ++i) EXPECT_EQ((*found)[0].floats[i], 2 * x[i]);
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_FLOAT_EQ((*found)[1].floats[i], x[2 * i] + x[2 * i + 1]);
    EXPECT_EQ((*found)[2].ints[i], (x[2 * i] > 0 ? 1 : 0) + (x[2 * i + 1] > 0 ? 2 : 0));
  }
  const auto scalar =
      predict(session(), data, [](std::span<const Tensor> in) { return std::vector<Tensor>{sum(in[0])}; });
  ASSERT_FALSE(scalar);
  EXPECT_EQ(scalar.error().code, ErrorCode::shape_mismatch);
}

TEST_F(TrainingLoop, RefusesToTrainNothing) {
  if (!runtime().on_cpu()) return;  // no work of the device; it would compile for seconds
  const Learner learner("adam"), other("adam");
  Loader data = batches_of(quadrants(32), {.batch = 16});
  const nn::Parameters all = state_of(learner.network);
  const auto refusal = [&](const Model& model, const nn::Parameters& state, const nn::Parameters& trained,
                           const nn::Parameters& frozen = {}) {
    Trainer trainer(session(), model, state, std::make_shared<nn::Adam>(trained), {.frozen = frozen});
    const auto outcome = trainer.fit(data);
    return outcome ? std::string() : outcome.error().message;
  };
  const auto expect = [](const std::string& found, const char* wanted) {
    EXPECT_NE(found.find(wanted), std::string::npos) << found;
  };
  expect(refusal(learner.model, all, learner.network.parameters().matching("haed.*")),
         "found an optimiser without parameters");
  expect(refusal(learner.model, state_of(other.network), other.network.parameters()),
         "depends on none of the optimiser's parameters ('net.0.weight', 'net.0.bias', 'net.1.weight', ...)");
  const nn::Parameters last = learner.network.parameters().matching("4.*");
  expect(refusal(learner.model, last, last), "the loss reads 'net.");
  expect(refusal(learner.model, learner.network.parameters(), last), "a step changes 'net.1.running_mean'");
  // A teacher under stop_gradient, the labels of one, a frozen part: all are usual.
  const auto student = [&](const Tensor& y, const Tensor& wanted) {
    return Computed{nn::cross_entropy(y, wanted, {.reduction = nn::Reduction::none})};
  };
  const Model by_labels = [&](std::span<const Tensor> in, nn::Pass& pass) {
    return student(learner.network(in[0], pass), argmax(other.network(in[0]), -1));
  };
  const Model by_shares = [&](std::span<const Tensor> in, nn::Pass& pass) {
    return student(learner.network(in[0], pass), stop_gradient(softmax(other.network(in[0]))));
  };
  EXPECT_EQ(refusal(by_labels, all, learner.network.parameters()), "");
  EXPECT_EQ(refusal(by_shares, all, learner.network.parameters()), "");
  EXPECT_EQ(refusal(learner.model, all, last), "");
  EXPECT_EQ(refusal(learner.model, all.without("0.*"), last, learner.network.parameters()), "");
  // The optimiser alone, too.
  EXPECT_EQ(nn::Sgd(nn::Parameters()).step({}, 0.1f).error().message,
            "optimiser: found no parameters, expected one or more. Does matching() fit no name?");
}

TEST_F(TrainingLoop, SaysWhatIsWrong) {
  const Learner learner("sgd");
  Loader data = batches_of(quadrants(32), {.batch = 16});
  Trainer wild(session(), learner.model, state_of(learner.network), learner.optimiser,
               {.epochs = 60, .rate = 3e38});
  const auto lost = wild.fit(data);
  ASSERT_FALSE(lost);
  EXPECT_NE(lost.error().message.find("expected a finite number"), std::string::npos);
  EXPECT_EQ(lost.error().message.find("-nan"), std::string::npos) << lost.error().message;
  // A label that is no class, in training and in validation.
  HostTensor x{DType::float32, {2, 2}, {1, 2, 3, 4}, {}}, label{DType::uint8, {2}, {}, {3, 4}};
  HostTensor right{DType::uint8, {2}, {}, {3, 0}};
  Loader few = batches_of(in_memory({{"x", x}, {"label", right}}).value(), {.batch = 2});
  Loader wrong_labels = batches_of(in_memory({{"x", x}, {"label", label}}).value(), {.batch = 2});
  const Learner fresh("sgd");
  Trainer marks(session(), fresh.model, state_of(fresh.network), fresh.optimiser, {.rate = 1e-3});
  for (const bool in_training : {true, false}) {
    if (!runtime().on_cpu()) break;
    const auto end = in_training ? marks.fit(wrong_labels) : marks.fit(few, &wrong_labels);
    ASSERT_FALSE(end);
    EXPECT_NE(end.error().message.find("labels outside the classes"), std::string::npos);
    EXPECT_NE(end.error().message.find(in_training ? "loss nan in step 1" : "validation loss nan after"),
              std::string::npos)
        << end.error().message;
  }
  const Model wrong = [](std::span<const Tensor> in, nn::Pass&) {
    return Computed{concat({in[0], in[0]}, 0)};
  };
  Trainer shapes(session(), wrong, state_of(learner.network), learner.optimiser);
  const auto refused = shapes.fit(data);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("one per sample"), std::string::npos);
  Trainer nowhere(session(), learner.model, state_of(learner.network), learner.optimiser,
                  {.folder = (folder_ / "file" / "folder").string()});
  std::ofstream(folder_ / "file") << "no folder";
  EXPECT_EQ(nowhere.fit(data).error().code, ErrorCode::io);
  const Learner adam("adam");
  Trainer saved(session(), learner.model, state_of(learner.network), learner.optimiser),
      other(session(), adam.model, state_of(adam.network), adam.optimiser);
  const std::string path = (folder_ / "sgd.safetensors").string();
  ASSERT_TRUE(saved.save(path));
  const Result<> loaded = other.load(path);
  ASSERT_FALSE(loaded);
  EXPECT_TRUE(
      loaded.error().message.starts_with("'" + path + "': checkpoint: found that of another optimiser"))
      << loaded.error().message;
  EXPECT_NE(loaded.error().message.find("it has 'optimiser.velocity."), std::string::npos);
  safetensors::File weights;
  ASSERT_TRUE(safetensors::save(weights, path));
  const Result<> no_checkpoint = other.load(path);
  EXPECT_EQ(no_checkpoint.error().code, ErrorCode::corrupt_file);
  EXPECT_TRUE(no_checkpoint.error().message.starts_with("'" + path + "'"));
}

}  // namespace
}  // namespace imprint::training
