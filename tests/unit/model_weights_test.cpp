// Files of PyTorch, GGUF and NumPy, and how their tensors become parameters.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <ctime>
#include <limits>
#include <random>

#include "compute/model/files/file.h"
#include "compute/model/state_dict.h"
#include "compute/model/weights/weights.h"
#include "compute/program/runtime.h"
#include "tests/unit/model_data.h"
#include "tests/unit/model_heap.h"
#include "tests/unit/model_weights_builder.h"

namespace imprint {
namespace {

using test::npy;
using test::put;
using test::raw;
using test::zip_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::vector<std::byte> content_bytes(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// ---- PyTorch ----

class TorchFile : public testing::TestWithParam<std::string> {};

TEST_P(TorchFile, HasTheTensorsThatTorchReads) {
  const std::string path = test::model_path("pytorch/" + GetParam() + ".pt");
  const auto found = weights::load(path);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->format, "PyTorch");
  const auto expected = safetensors::load(path + ".ref.safetensors");
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  ASSERT_EQ(found->tensors.arrays.size(), expected->arrays.size());
  for (const auto& [name, array] : expected->arrays) {
    const auto tensor = found->tensors.arrays.find(name);
    ASSERT_NE(tensor, found->tensors.arrays.end()) << name;
    EXPECT_EQ(tensor->second.type, array.type) << name;
    EXPECT_EQ(tensor->second.shape, array.shape) << name;
    EXPECT_EQ(tensor->second.bytes, array.bytes) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, TorchFile,
                         testing::Values("linear", "checkpoint", "complex_nested", "float16",
                                         "simple_legacy"),
                         [](const auto& one) { return one.param; });

TEST(TorchFiles, NumbersBesideTensorsAreReported) {
  const auto found = weights::load(test::model_path("pytorch/checkpoint.pt"));
  ASSERT_TRUE(found.ok());
  std::vector<std::string> names;
  for (const weights::LeftOut& entry : found->left_out) names.push_back(entry.name);
  EXPECT_THAT(names, testing::IsSupersetOf({"epoch", "loss"}));
}

// A pickle that would run a command.
TEST(TorchFiles, NothingIsCalled) {
  const std::string pickle = raw("\x80\x02}X\x01\0\0\0ncos\nsystem\nX\x04\0\0\0true\x85Rs.");
  const auto found = weights::parse(content_bytes(zip_of({{"a/data.pkl", pickle}})));
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_THAT(found->left_out, SizeIs(1));
  EXPECT_EQ(found->left_out[0].name, "n");
  EXPECT_THAT(found->left_out[0].reason, HasSubstr("made by 'os.system', which is not called"));
}

// n tensors that share one storage of 64 KiB.
TEST(TorchFiles, SharedStoragesAreCounted) {
  std::string pickle = raw("\x80\x02}(X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0") + "0";
  pickle += raw("X\x03\0\0\0cpuM\0\x40tQq\x01") + "0";
  for (int i = 0; i < 2000; ++i) {
    pickle += raw("X\x05\0\0\0") + std::to_string(10000 + i) +
              raw("ctorch._utils\n_rebuild_tensor_v2\n(h\x01K\0M\0\x40");
    pickle += raw("\x85K\x01\x85\x89}tRs");
  }
  pickle += ".";
  const auto found =
      weights::parse(content_bytes(zip_of({{"a/data.pkl", pickle}, {"a/data/0", std::string(65536, 'x')}})));
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.error().message, HasSubstr("bytes of memory per byte of the file"));
}

// The message of the refusal, or nothing. Memory and CPU time stay bounded.
std::string refusal(const std::string& file) {
  const test::HeapWatch heap;
  const std::clock_t start = std::clock();
  const std::vector<std::byte> bytes = content_bytes(file);
  const auto read = weights::parse(bytes);
  EXPECT_LT(std::clock() - start, 2 * CLOCKS_PER_SEC);
  EXPECT_LE(heap.peak_bytes(), (weights::kBytesPerByte + 2) * file.size() + (20 << 20));
  return read ? "" : read.error().message;
}

TEST(TorchFiles, AViewThatLeavesItsStorage) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::pair<std::int64_t, std::int64_t> wrong[] = {
      {kMost, 1}, {kMost - 59, 60}, {kMost - 4095, 4096}, {-1, 1}, {17, 0}, {15, 1}, {0, kMost}, {0, -1}};
  for (const auto& [offset, stride] : wrong)
    EXPECT_THAT(refusal(test::torch_of("}" + test::words("w") + test::view("0", offset, 2, stride) + "s")),
                testing::AnyOf(HasSubstr("stor"), HasSubstr("stride")))
        << offset << " " << stride;
  EXPECT_EQ(refusal(test::torch_of("}" + test::words("w") + test::view("0", 14, 2, 1) + "s")), "");
  EXPECT_EQ(refusal(test::torch_of("}" + test::words("w") + test::view("0", 15, 1, kMost) + "s")), "");
}

TEST(TorchFiles, ANumberBeyond64BitsIsNoExtent) {
  const std::string number = raw("\x8a\x09") + std::string(6, '\0') + "\1" + std::string(2, '\0');
  const std::string tensor = "ctorch._utils\n_rebuild_tensor_v2\n(" + test::storage_id("0") + "Q" +
                             test::whole(0) + number + "\x85" + test::whole(0) + "\x85\x89NtR";
  EXPECT_THAT(refusal(test::torch_of("}" + test::words("w") + tensor + "s")),
              AllOf(HasSubstr("pickle, byte 130: "), HasSubstr("no list of whole numbers of 64 bits")));
}

TEST(WeightFiles, ARefusalSaysWhere) {
  EXPECT_THAT(refusal(test::torch_of("}0h\7")), HasSubstr("pickle, byte 4: a pickle that recalls"));
  EXPECT_THAT(refusal(test::torch_of("}" + test::words("w") + test::view("0", 17, 1, 1) + "s")),
              HasSubstr("tensor 'w': a tensor that begins outside"));
  EXPECT_THAT(
      refusal(zip_of({{"w.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (7,)}", "1234")}})),
      AllOf(HasSubstr("entry 'w.npy': byte "), HasSubstr("found 4 bytes, expected 28")));
  const auto gguf = [](std::uint64_t tensors, std::uint64_t values, const std::string& rest) {
    std::string file = raw("GGUF\3\0\0\0");
    test::put(file, tensors), test::put(file, values);
    return file + rest;
  };
  const auto named = [](const std::string& name, std::uint32_t next) {
    std::string out;
    test::put(out, std::uint64_t{name.size()});
    out += name;
    test::put(out, next);
    return out;
  };
  std::string list = named("list", 9), wide = named("wide", 1);
  test::put(list, std::uint32_t{8}), test::put(list, std::uint64_t{1} << 60);
  test::put(wide, std::uint64_t{1} << 60), test::put(wide, std::uint32_t{0}),
      test::put(wide, std::uint64_t{0});
  EXPECT_THAT(refusal(gguf(0, 1, list)),
              AllOf(HasSubstr("metadata 'list': byte 52: a list of 1152921504606846976 values"),
                    HasSubstr("expected at most 0")));
  EXPECT_THAT(refusal(gguf(1, 0, wide)), HasSubstr("tensor 'wide': found a tensor of more than"));
  EXPECT_THAT(refusal(gguf(0, 0, "").replace(4, 1, "\7")), HasSubstr("version 7, expected 2 or 3"));
}

class TorchBomb : public testing::TestWithParam<test::TorchBomb> {};

TEST_P(TorchBomb, IsRefusedEarly) { EXPECT_THAT(refusal(GetParam().make()), HasSubstr(GetParam().refusal)); }

INSTANTIATE_TEST_SUITE_P(All, TorchBomb, testing::ValuesIn(test::kTorchBombs),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(ZipFiles, ANameOrAByteTwiceIsRefused) {
  const std::string pickle = raw("\x80\x02}.");
  EXPECT_THAT(refusal(zip_of({{"a/data.pkl", pickle}, {"a/data.pkl", pickle}})),
              HasSubstr("two entries are named 'a/data.pkl'"));
  const std::string good = zip_of({{"a/data.pkl", pickle}, {"a/data/0", "data"}});
  EXPECT_EQ(refusal(good), "");
  std::string other = good;
  other.replace(other.find("a/data/0"), 8, "a/data/1");
  EXPECT_THAT(refusal(other), HasSubstr("entry 'a/data/0' has another name in front of its content"));
  std::string longer = good;  // in the directory, up to which only the header of the second entry fits
  const std::size_t directory = longer.find(raw("PK\1\2"));
  longer[directory + 20] = longer[directory + 24] = 8;
  EXPECT_THAT(refusal(longer), HasSubstr("overlaps what is behind it"));
}

TEST(TorchFiles, DamagedFilesAreRefused) {
  std::mt19937 random(7);
  for (const char* name : {"linear", "simple_legacy", "checkpoint"}) {
    const std::vector<std::byte> whole =
        test::must_read(test::model_path(std::string("pytorch/") + name + ".pt"));
    for (std::size_t length = 0; length < whole.size(); length += 7)
      EXPECT_FALSE(weights::parse(std::span(whole).first(length)).ok()) << name << " " << length;
    for (int i = 0; i < 3000; ++i) {
      std::vector<std::byte> changed = whole;
      changed[random() % changed.size()] ^= static_cast<std::byte>(1u << random() % 8);
      const auto read = weights::parse(changed);
      if (!read) EXPECT_FALSE(read.error().message.empty());
    }
  }
}

// ---- NumPy ----

TEST(NumpyFiles, ArraysOfEitherOrder) {
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const std::string data(reinterpret_cast<const char*>(values.data()), 24);
  const auto one =
      weights::parse(content_bytes(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", data)));
  ASSERT_TRUE(one.ok()) << one.error().message;
  EXPECT_EQ(one->format, "NumPy");
  EXPECT_EQ(one->tensors.arrays.at("array").shape, (Shape{2, 3}));
  EXPECT_EQ(one->tensors.arrays.at("array").floats(), values);
  const std::string columns = npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", data);
  const auto more = weights::parse(content_bytes(
      zip_of({{"w.npy", columns},
              {"n.npy", npy("{'descr': '|u1', 'fortran_order': False, 'shape': (), }", "\7")}})));
  ASSERT_TRUE(more.ok()) << more.error().message;
  EXPECT_THAT(more->tensors.arrays.at("w").floats(), ElementsAre(1, 3, 5, 2, 4, 6));
  EXPECT_THAT(more->tensors.arrays.at("n").floats(), ElementsAre(7));
  EXPECT_THAT(weights::parse(content_bytes(zip_of({{"w.npy", columns}}, 8))).error().message,
              HasSubstr("is compressed"));
  EXPECT_THAT(
      weights::parse(content_bytes(npy("{'descr': '>f4', 'fortran_order': False, 'shape': (6,), }", data)))
          .error()
          .message,
      HasSubstr("little-endian"));
  EXPECT_THAT(
      weights::parse(content_bytes(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (7,), }", data)))
          .error()
          .message,
      HasSubstr("ends too early"));
}

TEST(NumpyFiles, AHeaderThatReadersMayTakeDifferently) {
  const std::string data(12, '\0');
  const auto array = [&](const std::string& order, const std::string& shape) {
    return npy("{'descr': '<f4', 'fortran_order': " + order + ", 'shape': " + shape + ", }", data);
  };
  EXPECT_EQ(refusal(array("False", "(3,)")), "");
  EXPECT_EQ(refusal(array("True ", "( 3 , 1L )")), "");
  EXPECT_EQ(refusal(npy("{\"shape\":(3,),\"fortran_order\":False,\"descr\":\"<f4\"}   ", data)), "");
  const auto columns = weights::parse(
      content_bytes(npy("{'descr': '|u1', 'fortran_order': True , 'shape': (2, 2), }", raw("\1\2\3\4"))));
  ASSERT_TRUE(columns.ok()) << columns.error().message;
  EXPECT_THAT(columns->tensors.arrays.at("array").floats(), ElementsAre(1, 3, 2, 4));
  for (const char* shape : {"(-3,)", "(2.5,)", "(3)", "(3", "3", "(3,,)", "(,)", "(3 1)", "[3]", "(x3,)"})
    EXPECT_NE(refusal(array("False", shape)), "") << shape;
  for (const char* order : {"Truee", "0", "", "'True'"})
    EXPECT_NE(refusal(array(order, "(3,)")), "") << order;
  for (const char* header :
       {"", "{", "{}", "{'descr': '<f4', 'shape': (3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} 1",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'shape': (3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}", "{'descr': '"})
    EXPECT_NE(refusal(npy(header, data)), "") << header;
  EXPECT_THAT(refusal(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", data)),
              HasSubstr("4 bytes behind its elements"));
}

// ---- GGUF ----

TEST(GgufFiles, BlocksTakeTheMemoryOfTheirElementsOnce) {
  constexpr std::uint64_t kBlocks = 400'000;
  std::string file("GGUF");
  put(file, std::uint32_t{3}), put(file, std::uint64_t{1}), put(file, std::uint64_t{0});
  put(file, std::uint64_t{1});
  file += 'w';
  put(file, std::uint32_t{1}), put(file, 32 * kBlocks), put(file, std::uint32_t{2}),
      put(file, std::uint64_t{0});
  file += std::string((32 - file.size() % 32) % 32 + 18 * kBlocks, '\0');
  const std::vector<std::byte> bytes = content_bytes(file);
  const test::HeapWatch heap;
  ASSERT_TRUE(weights::parse(bytes).ok());
  EXPECT_LE(heap.peak_bytes(), weights::kBytesPerByte * bytes.size());
}

TEST(GgufFiles, PlainAndBlockedTensors) {
  std::string file("GGUF");
  put(file, std::uint32_t{3}), put(file, std::uint64_t{3}), put(file, std::uint64_t{1});
  const auto words = [&](const std::string& text) {
    put(file, std::uint64_t{text.size()});
    file += text;
  };
  words("general.name");
  put(file, std::uint32_t{8});
  words("small");
  const auto tensor = [&](const std::string& name, std::vector<std::uint64_t> extents, std::uint32_t type,
                          std::uint64_t offset) {
    words(name);
    put(file, static_cast<std::uint32_t>(extents.size()));
    for (const std::uint64_t extent : extents) put(file, extent);
    put(file, type), put(file, offset);
  };
  tensor("plain", {3, 2}, 0, 0);
  tensor("blocks", {32}, 2, 32);
  tensor("other", {256}, 12, 64);
  file += std::string((32 - file.size() % 32) % 32, '\0');
  for (const float value : {1.f, 2.f, 3.f, 4.f, 5.f, 6.f}) put(file, value);
  file += std::string(8, '\0');
  put(file, std::uint16_t{0x3800});  // 0.5
  for (int i = 0; i < 16; ++i) file += static_cast<char>(i | (15 - i) << 4);
  const auto found = weights::parse(content_bytes(file));
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->format, "GGUF");
  EXPECT_EQ(found->tensors.arrays.at("plain").shape, (Shape{2, 3}));
  EXPECT_THAT(found->tensors.arrays.at("plain").floats(), ElementsAre(1, 2, 3, 4, 5, 6));
  const std::vector<float> blocks = found->tensors.arrays.at("blocks").floats();
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(blocks[static_cast<std::size_t>(i)], 0.5f * static_cast<float>(i - 8));
    EXPECT_EQ(blocks[static_cast<std::size_t>(16 + i)], 0.5f * static_cast<float>(7 - i));
  }
  ASSERT_THAT(found->left_out, SizeIs(1));
  EXPECT_EQ(found->left_out[0].name, "other");
  for (std::size_t length = 0; length + 20 < file.size(); ++length)
    EXPECT_FALSE(weights::parse(content_bytes(file.substr(0, length))).ok()) << length;
}

// ---- parameters ----

TEST(LoadTensors, RenamesAndReports) {
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  const auto file = weights::load(test::model_path("pytorch/checkpoint.pt"));
  ASSERT_TRUE(file.ok());
  nn::Parameters parameters;
  parameters.add("first.weight", Variable::zeros("a", {5, 10}), true);
  parameters.add("first.bias", Variable::zeros("b", {10}));
  const nn::LoadOptions renames{.renames = {{"model_state_dict.fc1.*", "first.*"}}};
  const auto loaded = nn::load_tensors(session, parameters, file->tensors, renames);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_THAT(loaded->loaded, ElementsAre("first.weight", "first.bias"));
  EXPECT_THAT(loaded->unused, SizeIs(3));
  const auto weight = session.read(std::vector<Variable>{parameters[0].variable});
  ASSERT_TRUE(weight.ok());
  const std::vector<float> stored = file->tensors.arrays.at("model_state_dict.fc1.weight").floats();
  EXPECT_EQ((*weight)[0].floats[1], stored[5]);  // transposed

  parameters.add("second.bias", Variable::zeros("c", {4}));
  parameters.add("first.scale", Variable::zeros("d", {1}));
  nn::LoadOptions more{.renames = {{"model_state_dict.fc1.*", "first.*"}, {"*.fc2.bias", "second.bias"}}};
  const auto refused = nn::load_tensors(session, parameters, file->tensors, more);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("1 missing: first.scale"));
  EXPECT_THAT(refused.error().message, HasSubstr("second.bias: found [3], expected [4]"));
  more.partial = true;
  const auto partial = nn::load_tensors(session, parameters, file->tensors, more);
  ASSERT_TRUE(partial.ok());
  EXPECT_FALSE(partial->complete());
  EXPECT_THAT(partial->loaded, SizeIs(2));
  EXPECT_THAT(nn::load_tensors(session, parameters, file->tensors, {.renames = {{"*.bias", "first.bias"}}})
                  .error()
                  .message,
              HasSubstr("two tensors for first.bias"));
}

TEST(LoadTensors, KeepAllBitsOfInt64) {
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  const std::vector<std::int64_t> ids = {76561198000000001, -1, INT64_MIN};
  nn::Parameters saved, loaded;
  saved.add("ids", Variable("ids", {3}, ids));
  loaded.add("ids", Variable::zeros("other", {3}, DType::int64));
  auto file = nn::save_state(session, saved).value();
  ASSERT_TRUE(nn::load_state(session, loaded, file).ok());
  EXPECT_EQ(session.read(loaded.variables()).value()[0].int64s, ids);
  const std::int32_t narrow[] = {-5, 0, 7};
  file.arrays.at("ids") = safetensors::Array::of(std::span(narrow), {3});
  ASSERT_TRUE(nn::load_state(session, loaded, file).ok());
  EXPECT_EQ(session.read(loaded.variables()).value()[0].int64s, (std::vector<std::int64_t>{-5, 0, 7}));
}

}  // namespace
}  // namespace imprint
