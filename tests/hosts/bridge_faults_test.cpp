// T12. A whole game through the C ABI (context, tensors, brain, learning, snapshot, save, load) in which one
// Vulkan call fails, for each call in turn. Out of memory: the function reports it, works when called again,
// and the game ends with the bits of one without a failure. Device lost: every function reports it, nothing
// hangs or crashes, and Imprint only destroys afterwards. No object stays behind. With an exclusive queue the
// submit thread may meet the loss, and the frame thread reports it.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <imprint/imprint.hpp>

#include "tests/hosts/bridge_abi.h"
#include "tests/hosts/bridge_fault_shim.h"

namespace imprint::bridge {
namespace {

constexpr std::uint64_t kFirstCalls = 500;

struct Hash {
  std::uint64_t low = 0, high = 0;
  friend bool operator==(const Hash&, const Hash&) = default;
};

// How a game ended.
struct End {
  std::optional<Hash> hash;   // when it reached the end
  imp_result first = IMP_OK;  // failure
  std::string message;        // of it
  std::string call;           // Imprint's function that met it
  bool failed = false;        // the chosen call was made
};

class Life {
 public:
  Life(PlainHost& host, FaultShim& shim, VkResult fault, bool exclusive)
      : api_(table()), host_(host), shim_(shim), fault_(fault), exclusive_(exclusive) {}

  End run() {
    if (live()) end_.hash = hash_;
    end_.failed = shim_.failed();
    if (context_.id != 0) {
      imp_result destroyed = api_->context_destroy(context_);
      if (destroyed == IMP_ERROR_DEVICE_LOST && saves_) {  // said once
        EXPECT_NE(std::string(api_->last_error()).find("the save to"), std::string::npos)
            << api_->last_error();
        destroyed = api_->context_destroy(context_);
      }
      EXPECT_EQ(destroyed, IMP_OK) << api_->last_error();
    }
    EXPECT_EQ(shim_.alive_text(), "") << "left behind; " << shim_.failed_call() << " failed";
    EXPECT_EQ(shim_.touches_after_loss(), 0u) << "the lost device was touched by " << shim_.first_touch();
    return end_;
  }

 private:
  // One call. Out of memory is tried again once; a lost device is not called again.
  bool ask(const char* call, const std::function<imp_result()>& function) {
    const bool failed_before = shim_.failed();
    imp_result result = function();
    if (result == IMP_ERROR_DEVICE_LOST) shim_.told();
    if (result == IMP_OK) return true;
    const std::string message = api_->last_error();
    const bool first = end_.first == IMP_OK;
    if (first) end_ = {{}, result, message, call, true};
    EXPECT_NE(message, "") << call << " says nothing about " << api_->result_name(result);
    EXPECT_TRUE(shim_.failed()) << call << " failed of its own: " << message;
    if (fault_ == VK_ERROR_DEVICE_LOST) {
      EXPECT_EQ(result, IMP_ERROR_DEVICE_LOST) << call << ": " << message;
      return false;
    }
    // The submit thread tries again by itself, and calls meanwhile report it.
    EXPECT_TRUE(exclusive_ || !failed_before)
        << call << " failed although memory is available again: " << message;
    EXPECT_EQ(result, fault_ == VK_ERROR_OUT_OF_HOST_MEMORY ? IMP_ERROR_OUT_OF_HOST_MEMORY
                                                            : IMP_ERROR_OUT_OF_DEVICE_MEMORY)
        << call << ": " << message;
    result = function();
    for (int i = 0; exclusive_ && result != IMP_OK && i < 200; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      result = function();
    }
    EXPECT_EQ(result, IMP_OK) << call << ", asked again: " << api_->last_error();
    return result == IMP_OK;
  }

  imp_result create_context() {
    const vk::DeviceDescription device = host_.describe();
    imp_vk_device_info info =
        device_info(host_, device, exclusive_ ? IMP_QUEUE_EXCLUSIVE : IMP_QUEUE_SINGLE_THREAD);
    info.get_instance_proc_addr =
        reinterpret_cast<imp_get_instance_proc_addr>(shim_.get_instance_proc_addr());
    const std::string shaders = testing::TempDir() + "imprint-fault-shaders";
    imp_host lent = imp_host_init();
    lent.shader_cache_directory = shaders.c_str();
    return api_->context_create(&info, &lent, nullptr, &context_);
  }

  imp_result create_tensor(std::initializer_list<std::uint64_t> shape, imp_tensor& tensor) {
    const imp_tensor_desc desc = game::TensorDesc{.name = "shared", .shape = shape};
    const imp_vk_buffer wish = imp_vk_buffer_init();
    return api_->vulkan->tensor_create_vk(context_, &desc, &wish, &tensor);
  }

  imp_result create_brain() {
    game::BrainDesc desc = small_brain(2, 1, 3);
    desc.observations = observations_;
    desc.actions = actions_;
    return api_->brain_create(context_, c_form(desc), &brain_);
  }

  // A frame whose submission failed still counts: its work goes with the next one.
  bool frame(std::uint64_t number) {
    imp_frame_info info = imp_frame_info_init();
    info.frame = number;
    info.time_s = static_cast<double>(number) / 60;
    if (!ask("frame_begin", [&] { return api_->frame_begin(context_, &info); })) return false;
    const float seen[4] = {1.0f, static_cast<float>(number % 3), -1.0f,
                           static_cast<float>(number % 5) - 2.0f};
    const std::uint32_t choice = static_cast<std::uint32_t>(number % 3);
    imp_demonstration shown = imp_demonstration_init();
    shown.observation = seen;
    shown.observation_count = 4;
    shown.branches = &choice;
    shown.branch_count = 1;
    // They meet no fault, but another thread may have met the loss.
    const auto give = [&](imp_result given) {
      if (given == IMP_ERROR_DEVICE_LOST) shim_.told();
      EXPECT_TRUE(given == IMP_OK || (given == IMP_ERROR_DEVICE_LOST && shim_.failed()))
          << api_->last_error();
    };
    give(number % 2 ? api_->agent_observe(agent_, seen, 4)
                    : api_->vulkan->agent_observe_in_place(agent_, number % 4));
    give(api_->agent_demonstrate(agent_, &shown));
    imp_action action = imp_action_init();
    (void)api_->agent_act(agent_, &action);
    const imp_result submitted = api_->frame_submit(context_, UINT32_MAX);
    if (submitted == IMP_ERROR_DEVICE_LOST) shim_.told();
    if (submitted != IMP_OK) {
      EXPECT_TRUE(shim_.failed()) << api_->last_error();
      if (end_.first == IMP_OK) end_ = {{}, submitted, api_->last_error(), "submit", true};
    }
    const imp_result ended = api_->frame_end(context_);
    if (ended == IMP_ERROR_DEVICE_LOST) shim_.told();
    if (fault_ == VK_ERROR_DEVICE_LOST && (submitted != IMP_OK || ended != IMP_OK)) {
      if (end_.first == IMP_OK) end_ = {{}, ended, api_->last_error(), "frame_end", true};
      return false;
    }
    EXPECT_EQ(ended, IMP_OK) << api_->last_error();
    return true;
  }

  bool live() {
    const std::string path = testing::TempDir() + "imprint-fault.brain";
    if (!ask("context_create", [&] { return create_context(); })) return false;
    if (end_.call == "context_create")
      return false;  // the second call gave a context like any other, which other runs test
    if (!ask("tensor_create_vk", [&] { return create_tensor({8}, observations_); })) return false;
    if (!ask("tensor_create_vk", [&] { return create_tensor({1, 1 + 3}, actions_); })) return false;
    if (!ask("brain_create", [&] { return create_brain(); })) return false;
    if (!ask("agent_create", [&] { return api_->agent_create(brain_, 0, &agent_); })) return false;
    if (!ask("warmup", [&] { return api_->context_warmup(context_, nullptr, nullptr); })) return false;
    std::uint64_t number = 1;
    for (; number <= 6; ++number)
      if (!frame(number)) return false;
    std::uint64_t snapshot = 0;
    if (!ask("brain_snapshot", [&] { return api_->brain_snapshot(brain_, &snapshot); })) return false;
    for (; number <= 8; ++number)
      if (!frame(number)) return false;
    if (!ask("drain", [&] { return api_->context_drain(context_, 60000); })) return false;
    if (!ask("brain_restore", [&] { return api_->brain_restore(brain_, snapshot); })) return false;
    if (!ask("brain_save", [&] { return api_->brain_save(brain_, path.c_str()); })) return false;
    saves_ = true;
    if (!ask("drain", [&] { return api_->context_drain(context_, 60000); })) return false;
    if (!ask("brain_save_status", [&] { return api_->brain_save_status(brain_); })) return false;
    saves_ = false;
    for (; number <= 10; ++number)
      if (!frame(number)) return false;
    if (!ask("drain", [&] { return api_->context_drain(context_, 60000); })) return false;
    if (!ask("brain_load", [&] { return api_->brain_load(brain_, path.c_str()); })) return false;
    for (; number <= 14; ++number)
      if (!frame(number)) return false;
    if (!ask("drain", [&] { return api_->context_drain(context_, 60000); })) return false;
    return ask("brain_hash", [&] { return api_->tools->brain_hash(brain_, &hash_.low, &hash_.high); });
  }

  const imp_api* api_;
  PlainHost& host_;
  FaultShim& shim_;
  VkResult fault_;
  bool exclusive_;
  bool saves_ = false;  // one is under way
  imp_context context_{};
  imp_tensor observations_{}, actions_{};
  imp_brain brain_{};
  imp_agent agent_{};
  Hash hash_;
  End end_;
};

struct Way {
  const char* name;
  VkResult fault;
  bool timeline;
  bool exclusive = false;
};

class T12Faults : public testing::TestWithParam<Way> {
 protected:
  // The validation layer keeps state per device, which grows with each game and makes it slow.
  static constexpr std::uint64_t kLivesOfAHost = 48;

  struct Place {
    PlainHost host{
        {"faulty", GetParam().timeline ? VK_API_VERSION_1_3 : VK_API_VERSION_1_1, GetParam().timeline, true}};
    KeptPipelines pipelines{host.describe()};
  };

  End live(std::uint64_t fail_at, std::uint64_t* calls = nullptr) {
    if (lives_++ % kLivesOfAHost == 0) {
      place_.reset();  // the host reports validation messages
      place_ = std::make_unique<Place>();
    }
    FaultShim shim(place_->host.describe(), place_->pipelines);
    shim.fail(fail_at, GetParam().fault);
    const End end = Life(place_->host, shim, GetParam().fault, GetParam().exclusive).run();
    if (shim.late_calls() > 0) ++lives_with_late_calls_;
    if (calls) *calls = shim.calls();
    return end;
  }

  static std::uint64_t step(std::uint64_t number) {
    if (std::getenv("IMPRINT_FAULTS_EVERY_CALL")) return number < kFirstCalls ? 1 : 18;
    const bool first_way = GetParam().timeline && !GetParam().exclusive;
    return first_way && number < kFirstCalls ? 24 : 112;
  }

  std::unique_ptr<Place> place_;
  std::uint64_t lives_ = 0, lives_with_late_calls_ = 0;
};

// Fails every 24th of the first calls, and some later ones. With fences, or an exclusive queue, fewer, since
// few calls per frame differ. The environment variable IMPRINT_FAULTS_EVERY_CALL fails every one of the
// first calls in every way.
TEST_P(T12Faults, AnyCallMayFail) {
  std::uint64_t calls = 0;
  const End whole = live(FaultShim::kNever, &calls);
  ASSERT_TRUE(whole.hash) << whole.call << ": " << whole.message;
  RecordProperty("calls", static_cast<int>(calls));
  ASSERT_GT(calls, kFirstCalls) << "the life is too short";
  for (std::uint64_t number = 1; number <= calls; number += step(number)) {
    SCOPED_TRACE("call " + std::to_string(number));
    const End end = live(number);
    if (!end.failed) continue;  // the device was faster this time, and fewer calls asked it
    if (GetParam().fault == VK_ERROR_DEVICE_LOST) {
      EXPECT_EQ(end.first, IMP_ERROR_DEVICE_LOST) << end.call << ": " << end.message;
    } else if (end.call != "context_create") {
      ASSERT_TRUE(end.hash) << end.call << ": " << end.message;
      EXPECT_TRUE(*end.hash == *whole.hash)
          << "a different brain came out; failed: " << end.call << ": " << end.message;
    }
    ASSERT_FALSE(HasFailure());
  }
  // Running calls are waited for before the host is told, for a limited time.
  EXPECT_LE(lives_with_late_calls_, 1u)
      << "of " << lives_ << " lives: a thread does not look whether the device is lost, or is not waited for";
}

INSTANTIATE_TEST_SUITE_P(
    Of, T12Faults,
    testing::Values(Way{"DeviceLost", VK_ERROR_DEVICE_LOST, true},
                    Way{"HostMemory", VK_ERROR_OUT_OF_HOST_MEMORY, true},
                    Way{"DeviceMemory", VK_ERROR_OUT_OF_DEVICE_MEMORY, true},
                    Way{"DeviceLostWithFences", VK_ERROR_DEVICE_LOST, false},
                    Way{"HostMemoryWithFences", VK_ERROR_OUT_OF_HOST_MEMORY, false},
                    Way{"DeviceMemoryWithFences", VK_ERROR_OUT_OF_DEVICE_MEMORY, false},
                    Way{"DeviceLostOnAQueueOfItsOwn", VK_ERROR_DEVICE_LOST, true, true},
                    Way{"HostMemoryOnAQueueOfItsOwn", VK_ERROR_OUT_OF_HOST_MEMORY, true, true},
                    Way{"DeviceMemoryOnAQueueOfItsOwn", VK_ERROR_OUT_OF_DEVICE_MEMORY, true, true},
                    Way{"DeviceLostOnAQueueOfItsOwnWithFences", VK_ERROR_DEVICE_LOST, false, true},
                    Way{"HostMemoryOnAQueueOfItsOwnWithFences", VK_ERROR_OUT_OF_HOST_MEMORY, false, true},
                    Way{"DeviceMemoryOnAQueueOfItsOwnWithFences", VK_ERROR_OUT_OF_DEVICE_MEMORY, false,
                        true}),
    [](const auto& way) { return std::string(way.param.name); });

}  // namespace
}  // namespace imprint::bridge
