// Defences of a host against hostile files, through the table, on device cpu: the digest of a kernel archive,
// and the memory cap, which refuses before anything of that size is made.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "compute/base/sha256.h"
#include "compute/model/files/file.h"
#include "compute/vk/pipelines/kernel_archive.h"
#include "imprint/imprint.h"
#include "imprint/imprint_tools.h"
#include "tests/unit/model_heap.h"
#include "tests/unit/model_onnx_builder.h"

namespace imprint {
namespace {

using test::OnnxBuilder;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::uint64_t kMebibyte = 1 << 20;
constexpr std::uint64_t kCap = 64 * kMebibyte;

const imp_api& api() {
  static const imp_api* const table = [] {
    const imp_api* found = nullptr;
    EXPECT_EQ(imp_get_api(IMP_ABI_VERSION, &found), IMP_OK);
    return found;
  }();
  return *table;
}

imp_result open(const imp_host* host, imp_context* context) {
  imp_standalone_info device = imp_standalone_info_init();
  device.device = "cpu";
  imp_limits limits = imp_limits_init();
  limits.memory_cap_bytes = kCap;
  return api().tools->context_create_standalone(&device, host, &limits, context);
}

// ---- the digest of a kernel archive ----

class ArchiveDigest : public testing::Test {
 protected:
  ArchiveDigest()
      : archive_(vk::write_kernel_archive(vk::named_profiles(), "compiler",
                                          {{{1, 2}, "kernel", {vk::kSpirvMagic, 1}}})),
        digest_(hex(sha256(archive_))) {
    host_.kernel_archive = archive_.data();
    host_.kernel_archive_size = archive_.size();
    host_.kernel_archive_sha256 = digest_.c_str();
  }
  void expect_works() {
    imp_context context{};
    ASSERT_EQ(open(&host_, &context), IMP_OK) << api().last_error();
    EXPECT_EQ(api().context_destroy(context), IMP_OK);
  }
  void expect_fails(imp_result code, const std::string& text) {
    imp_context context{};
    EXPECT_EQ(open(&host_, &context), code) << api().last_error();
    EXPECT_THAT(api().last_error(), HasSubstr(text));
    EXPECT_EQ(context.id, 0u);
  }

  std::vector<std::byte> archive_;
  std::string digest_;
  imp_host host_ = imp_host_init();
};

TEST_F(ArchiveDigest, TheRightOnePasses) {
  expect_works();
  for (char& digit : digest_) digit = static_cast<char>(std::toupper(digit));
  expect_works();
  const std::string path = testing::TempDir() + "digest.kernels";
  ASSERT_TRUE(write_file_atomic(path, archive_).ok());
  host_.kernel_archive = nullptr;
  host_.kernel_archive_size = 0;
  host_.kernel_archive_path = path.c_str();
  expect_works();
}

// An archive that is whole and valid, but not the game's.
TEST_F(ArchiveDigest, AnotherArchiveIsRefused) {
  const std::vector<std::byte> other = vk::write_kernel_archive(vk::named_profiles(), "compiler",
                                                                {{{1, 2}, "kernel", {vk::kSpirvMagic, 666}}});
  host_.kernel_archive = other.data();
  host_.kernel_archive_size = other.size();
  expect_fails(IMP_ERROR_CORRUPT_FILE,
               "kernel archive: SHA-256: found " + hex(sha256(other)) + ", expected " + digest_);
  const std::string path = testing::TempDir() + "other.kernels";
  ASSERT_TRUE(write_file_atomic(path, other).ok());
  host_.kernel_archive = nullptr;
  host_.kernel_archive_size = 0;
  host_.kernel_archive_path = path.c_str();
  expect_fails(IMP_ERROR_CORRUPT_FILE, "other.kernels': kernel archive: SHA-256: found ");
  host_.kernel_archive_sha256 = nullptr;
  expect_works();
}

TEST_F(ArchiveDigest, MustBeOne) {
  const std::string field = "host.kernel_archive_sha256: found ", expected = "', expected 64 hex digits";
  for (const std::string& wrong : {std::string(), std::string("12"), digest_.substr(1), digest_ + "0",
                                   std::string(64, 'g'), std::string(1 << 20, 'a')}) {
    host_.kernel_archive_sha256 = wrong.c_str();
    expect_fails(IMP_ERROR_INVALID_ARGUMENT, field + "'" + wrong.substr(0, 65) + expected);
  }
  host_.kernel_archive_sha256 = digest_.c_str();
  host_.kernel_archive = nullptr;
  host_.kernel_archive_size = 0;
  expect_fails(IMP_ERROR_INVALID_ARGUMENT, field + "a digest without an archive");
}

// ---- the memory cap ----

class MemoryCap : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(open(nullptr, &context_), IMP_OK) << api().last_error(); }
  void TearDown() override { EXPECT_EQ(api().context_destroy(context_), IMP_OK); }

  imp_result create(const std::vector<std::byte>& file, std::uint32_t agents, imp_brain* brain) {
    imp_policy_desc desc = imp_policy_desc_init();
    desc.data = file.data();
    desc.size = file.size();
    desc.agent_capacity = agents;
    desc.operation_limit = operation_limit_;
    return api().brain_create_from_onnx(context_, &desc, brain);
  }

  imp_context context_{};
  imp_brain brain_{};
  std::uint64_t operation_limit_ = imp_policy_desc_init().operation_limit;
};

TEST_F(MemoryCap, RefusesWeightsBeforeTheyAreMade) {
  const std::uint32_t branch = 2, hidden[] = {16384, 16384};  // 1 GiB of weights
  imp_brain_desc desc = imp_brain_desc_init();
  desc.observation_count = 4;
  desc.branch_count = 1;
  desc.branch_sizes = &branch;
  desc.hidden_sizes = hidden;
  for (const imp_learner learner : {IMP_LEARNER_NONE, IMP_LEARNER_FEEDBACK, IMP_LEARNER_PPO}) {
    desc.learner = learner;
    const test::HeapWatch heap;
    EXPECT_EQ(api().brain_create(context_, &desc, &brain_), IMP_ERROR_OUT_OF_DEVICE_MEMORY);
    EXPECT_THAT(api().last_error(),
                AllOf(HasSubstr("bytes for weights and their moments"),
                      HasSubstr("expected at most 67108864"), HasSubstr("Lower hidden_sizes")));
    EXPECT_LT(heap.peak_bytes(), kMebibyte);
  }
  EXPECT_EQ(brain_.id, 0u);
}

TEST_F(MemoryCap, RefusesReplayBeforeItIsMade) {
  const std::uint32_t branch = 2;
  imp_feedback_options options = imp_feedback_options_init();
  options.replay_capacity = 1 << 20;
  imp_brain_desc desc = imp_brain_desc_init();
  desc.header.next = &options;
  desc.observation_count = 256;  // 1 GiB of observations
  desc.branch_count = 1;
  desc.branch_sizes = &branch;
  desc.learner = IMP_LEARNER_FEEDBACK;
  const test::HeapWatch heap;
  EXPECT_EQ(api().brain_create(context_, &desc, &brain_), IMP_ERROR_OUT_OF_DEVICE_MEMORY);
  EXPECT_THAT(api().last_error(), HasSubstr("for the replay memory"));
  EXPECT_LT(heap.peak_bytes(), kMebibyte);
  options.replay_capacity = 1024;
  EXPECT_EQ(api().brain_create(context_, &desc, &brain_), IMP_OK) << "what fits is taken";
}

// Running sums over 2^20 numbers per agent, which must lie in memory: gigabytes from a few hundred bytes.
TEST_F(MemoryCap, RefusesIntermediatesInWarmup) {
  const std::vector<std::byte> file = OnnxBuilder()
                                          .input("x", {"N", "1"})
                                          .longs("wide", {2}, {1, 1 << 20})
                                          .longs("axis", {}, {1})
                                          .node("Expand", {"x", "wide"}, {"w"})
                                          .node("Softmax", {"w"}, {"s"}, {OnnxBuilder::number("axis", 1)})
                                          .node("Softmax", {"s"}, {"t"}, {OnnxBuilder::number("axis", 0)})
                                          .node("ReduceSum", {"t", "axis"}, {"y"})
                                          .output("y")
                                          .bytes();
  EXPECT_LT(file.size(), 400u);
  const test::HeapWatch heap;
  ASSERT_EQ(create(file, 1024, &brain_), IMP_OK) << api().last_error();
  EXPECT_EQ(api().context_warmup(context_, nullptr, nullptr), IMP_ERROR_OUT_OF_DEVICE_MEMORY);
  EXPECT_THAT(api().last_error(), HasSubstr("memory cap"));
  EXPECT_LT(heap.peak_bytes(), 2 * kCap);
}

// Sums that take no memory, and minutes.
TEST_F(MemoryCap, WorkHasALimitToo) {
  OnnxBuilder builder;
  builder.input("x", {"N", "1"}).longs("wide", {2}, {1, 1 << 30}).longs("axis", {1}, {1});
  std::string last = "x";
  for (int i = 0; i < 40; ++i) {
    const std::string name = "s" + std::to_string(i);
    builder.node("Expand", {last, "wide"}, {"w" + name}).node("ReduceSum", {"w" + name, "axis"}, {name});
    last = name;
  }
  const std::vector<std::byte> file = builder.node("Neg", {last}, {"y"}).output("y").bytes();
  ASSERT_EQ(create(file, 1, &brain_), IMP_OK) << api().last_error();
  EXPECT_EQ(api().context_warmup(context_, nullptr, nullptr), IMP_ERROR_UNSUPPORTED);
  EXPECT_THAT(api().last_error(), AllOf(HasSubstr("operations and bytes moved per run"),
                                        HasSubstr("expected at most 17179869184")));
}

TEST_F(MemoryCap, TheLimitOfWorkIsTheHosts) {
  OnnxBuilder builder;
  builder.input("x", {"N", "1"}).longs("wide", {2}, {1, 1000}).longs("axis", {1}, {1});
  builder.node("Expand", {"x", "wide"}, {"w"}).node("ReduceSum", {"w", "axis"}, {"y"}).output("y");
  const std::vector<std::byte> file = builder.bytes();
  for (const bool enough : {false, true}) {
    operation_limit_ = enough ? 3000 : 999;
    ASSERT_EQ(create(file, 4, &brain_), IMP_OK) << api().last_error();
    const imp_result warm = api().context_warmup(context_, nullptr, nullptr);
    EXPECT_EQ(warm, enough ? IMP_OK : IMP_ERROR_UNSUPPORTED) << api().last_error();
    if (!enough)
      EXPECT_THAT(api().last_error(),
                  AllOf(HasSubstr("expected at most 3996, which is operation_limit of each agent"),
                        HasSubstr("raise the limit if you trust the file")));
    EXPECT_EQ(api().brain_destroy(brain_), IMP_OK);
  }
}

TEST_F(MemoryCap, RefusesStateBeforeItIsMade) {
  const std::vector<std::byte> file = OnnxBuilder()
                                          .input("x", {"N", "1"})
                                          .input("state", {"N", "1048576"})
                                          .node("Neg", {"x"}, {"y"})
                                          .node("Neg", {"state"}, {"next"})
                                          .output("y")
                                          .output("next")
                                          .bytes();
  const test::HeapWatch heap;
  EXPECT_EQ(create(file, 256, &brain_), IMP_ERROR_OUT_OF_DEVICE_MEMORY);
  EXPECT_THAT(api().last_error(),
              AllOf(HasSubstr("found 1073741824 bytes of state"), HasSubstr("agent_capacity")));
  EXPECT_LT(heap.peak_bytes(), kMebibyte);
  EXPECT_EQ(create(file, 2, &brain_), IMP_OK) << "what fits is taken";
}

}  // namespace
}  // namespace imprint
