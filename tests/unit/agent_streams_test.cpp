// Encoders of observation streams: their values, pictures in the replay memory, and descriptions that do not
// fit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "compute/graph/gradients/autodiff.h"
#include "compute/program/run.h"
#include "compute/program/runtime.h"
#include "plugin/agent/keep/schema.h"
#include "plugin/agent/learn/registry.h"
#include "plugin/agent/learn/samples/replay_memory.h"
#include "plugin/agent/learn/samples/samples.h"
#include "plugin/agent/learn/training/describe_learning.h"
#include "plugin/agent/spec/encoder.h"
#include "plugin/agent/spec/network.h"
#include "plugin/agent/validate.h"
#include "tests/unit/agent_oracle.h"

namespace imprint::agent {
namespace {

using namespace oracle;
using ::testing::HasSubstr;

constexpr StreamSpec kPicture{.kind = StreamKind::picture, .channels = 2, .height = 5, .width = 6, .size = 7};
constexpr StreamSpec kSet{.kind = StreamKind::entities, .count = 4, .features = 3, .size = 8};
constexpr StreamSpec kIds{.kind = StreamKind::ids, .count = 2, .vocabulary = 5, .size = 3};
constexpr StreamSpec kNumbers{.kind = StreamKind::vector, .count = 3};

BrainSpec seeing(std::vector<StreamSpec> streams, std::uint32_t brains = 2) {
  BrainSpec spec = pet_spec(brains);
  spec.observation = {.streams = std::move(streams)};
  for (const StreamSpec& stream : spec.observation.streams)
    spec.observation.count += static_cast<std::uint32_t>(stream.numbers());
  return spec;
}

class StreamsTest : public ::testing::Test {
 protected:
  // [P, N, outputs] of these observations.
  std::vector<float> encoded(const Encoder& encoder, const BrainSpec& spec, const std::vector<float>& seen) {
    const auto width = static_cast<std::int64_t>(spec.observation.width());
    const std::int64_t rows = static_cast<std::int64_t>(seen.size()) / width / spec.brain_count;
    const auto found = session.evaluate(
        encoder(Tensor::from(std::span<const float>(seen), {spec.brain_count, rows, width})));
    EXPECT_TRUE(found.ok()) << found.error().message;
    return found.ok() ? found->floats : std::vector<float>();
  }
  static std::vector<float> numbers(std::size_t count, std::uint32_t stream) {
    std::vector<float> made;
    for (std::size_t i = 0; i < count; ++i)
      made.push_back(static_cast<float>(draw(static_cast<std::uint32_t>(i), stream)));
    return made;
  }
  static Numbers part(const Encoder& encoder, const std::string& name, std::size_t brain) {
    const Numbers all = reference::initial_values(encoder.parameters().find(name)->variable);
    const auto size = static_cast<std::ptrdiff_t>(all.size() / 2),
               first = static_cast<std::ptrdiff_t>(brain) * size;
    return {all.begin() + first, all.begin() + first + size};
  }

  std::unique_ptr<Runtime> runtime = Runtime::create_on_cpu();
  Session session{*runtime};
};

// relu(3 x 3 convolution, stride 2, padding 1): [in][height][width] -> [out][rows][columns].
Numbers convolved(const Numbers& x, std::size_t in, std::size_t height, std::size_t width,
                  const Numbers& weight, const Numbers& bias) {
  const std::size_t rows = (height + 1) / 2, columns = (width + 1) / 2;
  Numbers y;
  for (std::size_t out = 0; out < bias.size(); ++out)
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t column = 0; column < columns; ++column) {
        double sum = bias[out];
        for (std::size_t c = 0; c < in; ++c)
          for (std::size_t ky = 0; ky < 3; ++ky)
            for (std::size_t kx = 0; kx < 3; ++kx) {
              const std::size_t py = 2 * row + ky, px = 2 * column + kx;  // with the padding
              if (py < 1 || px < 1 || py > height || px > width) continue;
              sum += weight[((out * in + c) * 3 + ky) * 3 + kx] * x[(c * height + py - 1) * width + px - 1];
            }
        y.push_back(std::max(sum, 0.0));
      }
  return y;
}

TEST_F(StreamsTest, PicturesGoThroughConvolutionsOfTheirOwnBrain) {
  const BrainSpec spec = seeing({kPicture});
  const Encoder encoder = Encoder::create(spec, "network").value();
  const std::vector<float> seen = numbers(2 * 60, 3);
  std::vector<Numbers> expected;
  for (std::size_t brain = 0; brain < 2; ++brain) {
    const auto own = [&](const char* name) { return part(encoder, std::string("stream0.") + name, brain); };
    const auto first = seen.begin() + static_cast<std::ptrdiff_t>(60 * brain);
    Numbers x = convolved({first, first + 60}, 2, 5, 6, own("conv0.weight"), own("conv0.bias"));
    x = convolved(x, 16, 3, 3, own("conv1.weight"), own("conv1.bias"));
    Numbers y = own("linear.bias");
    const Numbers weight = own("linear.weight");
    ASSERT_EQ(weight.size(), x.size() * 7);
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t k = 0; k < 7; ++k) y[k] += x[i] * weight[i * 7 + k];
    for (double& value : y) value = std::max(value, 0.0);
    expected.push_back(y);
  }
  const std::vector<float> found = encoded(encoder, spec, seen);
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i / 7][i % 7], 1e-5) << i;
  EXPECT_NE(expected[0], expected[1]);
}

TEST_F(StreamsTest, SetsHaveNoOrderAndNothingBeyondTheirCount) {
  const BrainSpec spec = seeing({kSet}, 1);
  const Encoder encoder = Encoder::create(spec, "network").value();
  const std::vector<float> a = numbers(3, 4), b = numbers(3, 5), c = numbers(3, 6), rest = numbers(3, 7);
  const auto set = [&](float count, std::initializer_list<std::vector<float>> entities) {
    std::vector<float> seen{count};
    for (const std::vector<float>& entity : entities) seen.insert(seen.end(), entity.begin(), entity.end());
    seen.resize(13, 0.75f);
    return encoded(encoder, spec, seen);
  };
  const auto near = [](const std::vector<float>& one, const std::vector<float>& other) {
    double apart = 0;
    for (std::size_t i = 0; i < one.size(); ++i) apart = std::max(apart, std::abs(double{one[i]} - other[i]));
    return apart < 1e-5;
  };
  const std::vector<float> three = set(3, {a, b, c});
  ASSERT_EQ(three.size(), 8u);
  EXPECT_TRUE(near(set(3, {c, a, b}), three));
  EXPECT_TRUE(near(set(3, {a, b, c, rest}), three));
  EXPECT_FALSE(near(set(2, {a, b, c}), three));
  EXPECT_FALSE(near(set(3, {a, b, rest}), three));
  EXPECT_FALSE(near(set(4, {a, b, c, rest}), three));
  EXPECT_THAT(set(0, {a, b, c}), ::testing::Each(0.0f));
}

TEST_F(StreamsTest, IdsAreRowsOfTheirBrainsTable) {
  const BrainSpec spec = seeing({kNumbers, kIds});
  const Encoder encoder = Encoder::create(spec, "network").value();
  const Numbers tables[] = {part(encoder, "stream1.table", 0), part(encoder, "stream1.table", 1)};
  const std::vector<float> found =
      encoded(encoder, spec, {1, 2, 3, 4, 0, /* the other brain */ 5, 6, 7, 2, 9});
  ASSERT_EQ(found.size(), 18u);
  const std::size_t wanted[] = {4, 0, 2, 4};  // 9 is taken as the last
  for (std::size_t brain = 0; brain < 2; ++brain)
    for (std::size_t i = 0; i < 9; ++i) {
      const std::size_t id = i < 3 ? 0 : (i - 3) / 3;
      const double expected =
          i < 3 ? static_cast<double>(1 + i + 4 * brain) : tables[brain][wanted[2 * brain + id] * 3 + i % 3];
      EXPECT_NEAR(found[brain * 9 + i], expected, 1e-6) << brain << ", " << i;
    }
}

TEST_F(StreamsTest, AllParametersLearn) {
  const BrainSpec spec = seeing({kNumbers, kPicture, kSet, kIds});
  const Network network = Network::create(spec).value();
  EXPECT_EQ(spec.parameter_count(), static_cast<std::uint64_t>(network.parameters().element_count()));
  std::vector<float> seen = numbers(2 * 6 * spec.observation.width(), 8);
  for (std::size_t row = 0; row < 12; ++row) {
    float* own = seen.data() + row * spec.observation.width();
    own[3 + 60] = static_cast<float>(2 + row % 3);
    own[spec.observation.width() - 1] = static_cast<float>(row % 5);
  }
  const Tensor heads =
      network.heads(Tensor::from(std::span<const float>(seen), {2, 6, spec.observation.width()}));
  const auto slopes = gradients(sum(square(heads)), network.parameters().values());
  ASSERT_TRUE(slopes.ok()) << slopes.error().message;
  const auto found = session.evaluate(*slopes);
  ASSERT_TRUE(found.ok()) << found.error().message;
  for (std::size_t i = 0; i < found->size(); ++i)
    EXPECT_TRUE(std::ranges::any_of((*found)[i].floats, [](float slope) { return slope != 0; }))
        << network.parameters()[i].name;
}

BrainSpec remembering_bytes() {
  BrainSpec spec =
      seeing({kNumbers, {.kind = StreamKind::picture, .channels = 1, .height = 10, .width = 13}});
  spec.observation.stack = 2;
  spec.learner = LearnerKind::dqn;
  spec.pictures_as_bytes = true;
  spec.replay_capacity = 3;
  return spec;
}

// Each k / 255 keeps its bits; other numbers become the nearest one. Other streams stay as they are.
TEST_F(StreamsTest, ReplayedPicturesAreBytes) {
  const BrainSpec spec = remembering_bytes();
  ASSERT_TRUE(validate(spec).ok());
  const ReplayMemory memory(spec);
  const ReplayColumns columns = replay_columns(spec);
  const SampleLayout layout = learner_of(spec).layout(spec);
  ASSERT_EQ(columns.bytes, 4 * 130u);
  EXPECT_EQ(columns.numbers, layout.width - 4 * 130);
  EXPECT_EQ(columns.row_bytes(), 4 * std::uint64_t{columns.numbers} + 4 * 130);

  const std::size_t width = layout.width, seen = spec.observation.width();
  std::vector<float> samples = numbers(2 * width, 3);
  const auto picture = [&](std::size_t column) {  // of both observations and both of a stack
    if (column >= layout.next_observation) column -= layout.next_observation;
    return column < seen && column % 133 >= 3;
  };
  std::size_t k = 0;
  std::vector<float> expected = samples;
  for (std::size_t i = 0; i < samples.size(); ++i)
    if (picture(i % width)) expected[i] = samples[i] = static_cast<float>(k++ % 256) / 255;
  ASSERT_GT(k, 256u);
  const float rounded[][2] = {{0.5f, 128.0f / 255}, {-0.1f, 0}, {1.2f, 1}, {0.0019f, 0}};
  for (std::size_t i = 0; i < 4; ++i) {
    samples[3 + i] = rounded[i][0];
    expected[3 + i] = rounded[i][1];
  }

  const std::int32_t at[] = {2, 3}, drawn[] = {2, 0};  // rows of all; rows of each brain
  std::vector<Update> updates;
  memory.keep(Tensor::from_ints(std::span<const std::int32_t>(at), {2}),
              Tensor::from(std::span<const float>(samples), {2, layout.width}), updates);
  const Minibatch batch = memory.draw(Tensor::from_ints(std::span<const std::int32_t>(drawn), {2, 1}));
  ProgramDescription keep, draw_all;
  keep.updates = updates;
  draw_all.outputs = {batch.columns(0, layout.width), batch.column(layout.reward)};
  std::vector<HostTensor> found;
  for (const ProgramDescription& description : {keep, draw_all}) {
    Result<Program> program = Program::compile(*runtime, description);
    ASSERT_TRUE(program.ok()) << program.error().message;
    auto outputs = session.run(*program);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    found = std::move(*outputs);
  }
  EXPECT_EQ(found[0].floats, expected);
  EXPECT_EQ(found[1].floats, (std::vector<float>{expected[layout.reward], expected[width + layout.reward]}));
}

// Steps of learning from pictures of k / 255 come to the same weights, whole or as bytes.
TEST_F(StreamsTest, LearnsFromBytesToTheSameBits) {
  std::vector<std::vector<HostTensor>> learned;
  for (const bool bytes : {false, true}) {
    BrainSpec spec = remembering_bytes();
    spec.pictures_as_bytes = bytes;
    spec.replay_capacity = 8;
    spec.batch_size = 4;
    const auto network = Network::create(spec);
    ASSERT_TRUE(network.ok());
    const auto graph = describe_learning(spec, *network, {});
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    Result<Program> program = graph->compile(*runtime);
    ASSERT_TRUE(program.ok()) << program.error().message;
    const auto width = static_cast<std::int64_t>(learner_of(spec).layout(spec).width);
    const auto rows = static_cast<std::int32_t>(2 * rows_per_step(spec));
    for (std::int32_t step = 0; step < 3; ++step) {
      std::vector<float> samples = numbers(static_cast<std::size_t>(rows * width), 10 + step);
      for (float& number : samples) number = std::round(std::abs(number) * 255) / 255;
      const SampleLayout layout = learner_of(spec).layout(spec);
      for (std::int32_t row = 0; row < rows; ++row)
        for (const std::uint32_t whole : {layout.goal, layout.branches, layout.next_goal})
          samples[static_cast<std::size_t>(row * width) + whole] = 0;
      std::vector<std::int32_t> at(static_cast<std::size_t>(rows));
      for (std::int32_t row = 0; row < rows; ++row) at[static_cast<std::size_t>(row)] = row;
      const auto found = session.run(
          *program, std::vector{HostTensor::from_ints({step > 0 ? 8 : 0, step > 0 ? 8 : 0}, {2}),
                                HostTensor::from_ints(at, {rows}), HostTensor::from(samples, {rows, width})});
      ASSERT_TRUE(found.ok()) << found.error().message;
    }
    auto weights = session.read(network->parameters().variables());
    ASSERT_TRUE(weights.ok()) << weights.error().message;
    learned.push_back(std::move(*weights));
  }
  for (std::size_t i = 0; i < learned[0].size(); ++i) EXPECT_EQ(learned[1][i].floats, learned[0][i].floats);
}

TEST(Streams, PicturesAreBytesOnlyWhereTheyFit) {
  const auto refusal = [](auto change) {
    BrainSpec spec = remembering_bytes();
    change(spec);
    const Result<> status = validate(spec);
    return status.ok() ? std::string("ok") : status.error().message;
  };
  EXPECT_EQ(refusal([](BrainSpec&) {}), "ok");
  EXPECT_EQ(refusal([](BrainSpec& s) { s.learner = LearnerKind::none; }), "ok");
  EXPECT_THAT(refusal([](BrainSpec& s) { s.learner = LearnerKind::feedback; }),
              HasSubstr("pictures_as_bytes: found 1 with the feedback learner"));
  EXPECT_THAT(refusal([](BrainSpec& s) { s.observation.streams = {{.count = s.observation.count}}; }),
              HasSubstr("pictures_as_bytes: found 1 without a picture"));
  EXPECT_THAT(refusal([](BrainSpec& s) {
                s.observation.scale.assign(s.observation.count, 1);
                s.observation.scale[5] = 0.5f;
              }),
              HasSubstr("observation_scale: found 0.5 for a picture's number"));
  BrainSpec whole = remembering_bytes();
  whole.pictures_as_bytes = false;
  EXPECT_NE(schema_hash(whole), schema_hash(remembering_bytes()));
  EXPECT_EQ(network_hash(whole), network_hash(remembering_bytes()));
}

TEST(Streams, RefuseWhatDoesNotFit) {
  const auto refusal = [](auto change) {
    BrainSpec spec = seeing({kNumbers, kPicture, kSet, kIds});
    change(spec);
    const Result<> status = validate(spec);
    return status.ok() ? std::string("ok") : status.error().message;
  };
  const auto with = [&](std::size_t stream, auto change) {
    return refusal([&](BrainSpec& spec) { change(spec.observation.streams[stream]); });
  };
  EXPECT_EQ(refusal([](BrainSpec&) {}), "ok");
  EXPECT_THAT(refusal([](BrainSpec& s) { ++s.observation.count; }),
              HasSubstr("observation_count: found 79, expected 78, the numbers of all streams"));
  EXPECT_THAT(refusal([](BrainSpec& s) { s.observation.stack = 2; }),
              HasSubstr("stack: found 2, expected 1, because streams[2] is a set of entities"));
  EXPECT_THAT(refusal([](BrainSpec& s) { s.observation.streams.resize(17, kNumbers); }),
              HasSubstr("stream_count: found 17"));
  const auto steers = [](BrainSpec& s) {
    s.learner = LearnerKind::sac;
    s.action = {{}, 2};
  };
  EXPECT_EQ(refusal(steers), "ok");
  EXPECT_THAT(refusal([&](BrainSpec& s) {
                steers(s);
                s.observation.streams = {kNumbers};
                s.observation.count = kNumbers.count;
                s.observation.stack = 2;
              }),
              HasSubstr("stack: found 2, expected 1, because a critic of the sac learner"));
  EXPECT_THAT(with(0, [](StreamSpec& s) { s.count = 0; }), HasSubstr("streams[0].count: found 0"));
  EXPECT_THAT(with(0, [](StreamSpec& s) { s.width = 3; }),
              HasSubstr("streams[0].width: found 3, expected 0 for a stream of kind vector"));
  EXPECT_THAT(with(1, [](StreamSpec& s) { s.channels = 0; }), HasSubstr("streams[1].channels: found 0"));
  EXPECT_THAT(with(1, [](StreamSpec& s) { s.height = 3; }),
              HasSubstr("streams[1].height: found 3, expected 4"));
  EXPECT_THAT(with(2, [](StreamSpec& s) { s.features = 0; }), HasSubstr("streams[2].features: found 0"));
  EXPECT_THAT(with(3, [](StreamSpec& s) { s.vocabulary = 1; }), HasSubstr("streams[3].vocabulary: found 1"));
  EXPECT_THAT(with(3, [](StreamSpec& s) { s.size = 5000; }), HasSubstr("streams[3].size: found 5000"));

  // Outputs that 32 bits do not hold.
  const BrainSpec huge =
      seeing({{.kind = StreamKind::ids, .count = 1u << 20, .vocabulary = 2, .size = 4096}}, 1);
  ASSERT_FALSE(validate(huge).ok());
  EXPECT_THAT(validate(huge).error().message, HasSubstr("streams: found 4294967296 outputs of all encoders"));
}

TEST(Streams, ArePartOfTheSchema) {
  const BrainSpec base = seeing({kNumbers, kPicture, kSet, kIds});
  const auto changes = [&](std::size_t stream, auto change) {
    BrainSpec spec = base;
    change(spec.observation.streams[stream]);
    return network_hash(spec) != network_hash(base);
  };
  EXPECT_TRUE(changes(1, [](StreamSpec& s) { std::swap(s.height, s.width); }));
  EXPECT_TRUE(changes(2, [](StreamSpec& s) { s.size = 12; }));
  EXPECT_TRUE(changes(3, [](StreamSpec& s) { s.vocabulary = 6; }));
  EXPECT_THAT(schema_text(base), HasSubstr("78 observations vector 3 picture 2x5x6 entities 4x3 ids 2 of 5"));
}

TEST(Streams, PicturesFromThirtySixOnAreLarge) {
  StreamSpec picture{.kind = StreamKind::picture, .channels = 1, .height = 84, .width = 84};
  EXPECT_EQ(picture.outputs(), 512u);
  const std::vector<EncoderPart> parts = encoder_parts({.count = 84 * 84, .stack = 4, .streams = {picture}});
  ASSERT_EQ(parts.size(), 8u);
  EXPECT_EQ(parts[0].columns, 4 * 8 * 8);
  EXPECT_EQ(parts[6].rows, 3136) << "64 channels of 7 x 7";
  picture.height = picture.width = 36;
  EXPECT_EQ(encoder_parts({.count = 36 * 36, .streams = {picture}})[6].rows, 64);
  picture.width = 35;
  EXPECT_EQ(picture.outputs(), 128u);
}

}  // namespace
}  // namespace imprint::agent
