// T7. The tags of imprint.h, for every function of the table: the error for a wrong thread or a wrong moment
// in the frame agrees with the header.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <thread>

#include <imprint/imprint.hpp>

#include "header_text.h"
#include "tests/hosts/assert_works.h"
#include "tests/unit/model_onnx_builder.h"

namespace {

using ::testing::HasSubstr;
using namespace imprint::game;

// Reads the tags [create], [frame], [either] or [any] of each function from the headers: after the function,
// or in the comment before it, which may cover several.
std::map<std::string, std::string> tags_of_headers() {
  const std::string text = kHeaderText;
  std::map<std::string, std::string> tags;
  for (const std::string table : {"imp_api", "imp_vulkan_api", "imp_tools_api", "imp_models_api"}) {
    const std::size_t first = text.find("typedef struct " + table + " {"),
                      last = text.find("} " + table + ";");
    if (first == text.npos || last == text.npos) return {};
    const std::string body = text.substr(first, last - first);
    static const std::regex token(R"(\(IMP_CALL\* (\w+)\)[^;]*;([ \t]*/\*\s*\[(create|frame|either|any)\])?|)"
                                  R"(/\*\s*\[(create|frame|either|any)\])");
    std::string current;
    for (std::sregex_iterator at(body.begin(), body.end(), token), end; at != end; ++at) {
      const std::smatch& found = *at;
      if (found[4].matched)
        current = found[4];
      else
        tags[found[1]] = found[3].matched ? found[3].str() : current;
    }
  }
  return tags;
}

class T7Tags : public ::testing::Test {
 protected:
  void SetUp() override {
    imp_standalone_info device = imp_standalone_info_init();
    device.device = std::getenv("IMPRINT_TEST_DEVICE");
    Made<Context> made = Context::create_standalone(Library(imp_get_api), device);
    ASSERT_TRUE(made) << made.outcome.message();
    context_ = std::move(*made);
    static const std::uint32_t branch = 3;
    BrainDesc desc;
    desc.observation_count = 4;
    desc.branch_sizes = {branch};
    desc.learner = FeedbackOptions();
    Made<Brain> brain = context_.create_brain(desc);
    ASSERT_TRUE(brain) << brain.outcome.message();
    brain_ = std::move(*brain);
    Made<Agent> agent = brain_.create_agent();
    ASSERT_TRUE(agent) << agent.outcome.message();
    agent_ = std::move(*agent);
    const imp_tensor_desc shape = TensorDesc{.name = "tagged", .shape = {4}};
    const imp_vk_buffer wish = imp_vk_buffer_init();
    has_tensor_ = api_->vulkan->tensor_create_vk(context_.handle(), &shape, &wish, &tensor_) ==
                  IMP_OK;  // the CPU has none
    const std::vector<std::byte> file =
        imprint::test::OnnxBuilder().input("x", {"1"}).node("Relu", {"x"}, {"y"}).output("y", {"1"}).bytes();
    Made<Model> model = context_.create_model(ModelDesc{.file = file});
    ASSERT_TRUE(model) << model.outcome.message();
    model_ = std::move(*model);
    ASSERT_WORKS(context_.warmup());
  }

  using Calls = std::map<std::string, std::function<imp_result()>>;

  void add_training_calls(Calls& calls) {
    const imp_api* api = api_;
    const imp_brain b = brain_.handle();
    const imp_agent a = agent_.handle();
    calls["agent_set_opponent"] = [=] { return api->agent_set_opponent(a, 0, nullptr); };
    calls["agent_set_group"] = [=] { return api->agent_set_group(a, 0); };
    calls["agent_group_reward"] = [=] { return api->agent_group_reward(a, 0); };
    calls["agent_end_group_episode"] = [=] {
      return api->agent_end_group_episode(a, IMP_EPISODE_TERMINATED);
    };
    calls["brain_take_experience"] = [=] { return api->tools->brain_take_experience(b, nullptr, nullptr); };
    calls["brain_give_experience"] = [=] { return api->tools->brain_give_experience(b, 0, nullptr, 0); };
    calls["brain_forget_returns"] = [=] { return api->tools->brain_forget_returns(b); };
    calls["match_report"] = [=] { return api->match_report(a, a, 0); };
    calls["brain_keep_opponent"] = [=] { return api->brain_keep_opponent(b, 0); };
    calls["brain_get_opponent"] = [=] { return api->brain_get_opponent(b, 0, 0, nullptr); };
    calls["brain_load_demonstrations"] = [=] {
      return api->tools->brain_load_demonstrations(b, nullptr, 0, nullptr);
    };
    calls["brain_save_demonstrations"] = [=] { return api->tools->brain_save_demonstrations(b, nullptr, 0); };
    calls["brain_clear_demonstrations"] = [=] { return api->tools->brain_clear_demonstrations(b); };
  }

  void add_model_calls(Calls& calls) {
    const imp_models_api* api = api_->models;
    const imp_context c = context_.handle();
    const imp_model m = model_.handle();
    calls["model_create"] = [=] { return api->model_create(c, nullptr, nullptr); };
    calls["model_destroy"] = [=] { return api->model_destroy(m); };
    calls["model_get_info"] = [=] { return api->model_get_info(m, nullptr); };
    calls["model_get_input"] = [=] { return api->model_get_input(m, 0, nullptr); };
    calls["model_get_output"] = [=] { return api->model_get_output(m, 0, nullptr); };
    calls["model_run"] = [=] { return api->model_run(m, nullptr, 0, nullptr); };
    calls["model_read"] = [=] { return api->model_read(m, 0, nullptr, 0); };
    calls["model_discard"] = [=] { return api->model_discard(m, 0); };
    calls["model_set_extent"] = [=] { return api->model_set_extent(m, "n", 1); };
    calls["model_reset"] = [=] { return api->model_reset(m); };
  }

  // Calls every function with a context so that only its tag can refuse it: other arguments are checked
  // later.
  Calls calls() {
    const imp_api* api = api_;
    const imp_context c = context_.handle();
    const imp_brain b = brain_.handle();
    const imp_agent a = agent_.handle();
    const imp_tensor t = tensor_;
    Calls calls = {
        {"context_destroy", [=] { return api->context_destroy(c); }},
        {"context_get_report_text", [=] { return api->tools->context_get_report_text(c, nullptr, nullptr); }},
        {"context_warmup", [=] { return api->context_warmup(c, nullptr, nullptr); }},
        {"context_set_limits", [=] { return api->context_set_limits(c, nullptr); }},
        {"context_drain", [=] { return api->context_drain(c, 0); }},
        {"context_get_stats", [=] { return api->tools->context_get_stats(c, nullptr); }},
        {"frame_begin", [=] { return api->frame_begin(c, nullptr); }},
        {"frame_submit", [=] { return api->frame_submit(c, 0); }},
        {"frame_record", [=] { return api->vulkan->frame_record(c, nullptr, nullptr); }},
        {"frame_end", [=] { return api->frame_end(c); }},
        {"brain_create", [=] { return api->brain_create(c, nullptr, nullptr); }},
        {"brain_create_from_onnx", [=] { return api->brain_create_from_onnx(c, nullptr, nullptr); }},
        {"brain_destroy", [=] { return api->brain_destroy(b); }},
        {"brain_get_info", [=] { return api->brain_get_info(b, nullptr); }},
        {"brain_get_stats", [=] { return api->tools->brain_get_stats(b, nullptr); }},
        {"brain_set_learning", [=] { return api->brain_set_learning(b, 1); }},
        {"brain_save", [=] { return api->brain_save(b, nullptr); }},
        {"brain_save_status", [=] { return api->brain_save_status(b); }},
        {"brain_load", [=] { return api->brain_load(b, nullptr); }},
        {"brain_snapshot", [=] { return api->brain_snapshot(b, nullptr); }},
        {"brain_restore", [=] { return api->brain_restore(b, 0); }},
        {"brain_hash", [=] { return api->tools->brain_hash(b, nullptr, nullptr); }},
        {"agent_create", [=] { return api->agent_create(b, 0, nullptr); }},
        {"agent_destroy", [=] { return api->agent_destroy(a); }},
        {"agent_set_mode", [=] { return api->agent_set_mode(a, IMP_MODE_LEARNING); }},
        {"agent_set_goal", [=] { return api->agent_set_goal(a, 0); }},
        {"agent_set_mask", [=] { return api->agent_set_mask(a, nullptr, 0); }},
        {"agent_observe", [=] { return api->agent_observe(a, nullptr, 0); }},
        {"agent_act", [=] { return api->agent_act(a, nullptr); }},
        {"agent_heuristic", [=] { return api->agent_heuristic(a, nullptr, 0, nullptr, 0); }},
        {"agent_feedback", [=] { return api->agent_feedback(a, nullptr); }},
        {"agent_demonstrate", [=] { return api->agent_demonstrate(a, nullptr); }},
        {"agent_reward", [=] { return api->agent_reward(a, 0); }},
        {"agent_end_episode", [=] { return api->agent_end_episode(a, IMP_EPISODE_TERMINATED); }},
        {"context_quiesce", [=] { return api->context_quiesce(c, 0); }},
        {"context_resume", [=] { return api->context_resume(c); }},
        {"context_trim", [=] { return api->context_trim(c, nullptr); }},
        {"context_get_report", [=] { return api->tools->context_get_report(c, nullptr); }},
        {"context_get_missing_feature",
         [=] { return api->tools->context_get_missing_feature(c, 0, nullptr); }},
        {"missing_feature_remedy",
         [=] { return api->tools->missing_feature_remedy(c, 0, IMP_ENGINE_OWN, nullptr); }},
        {"frame_estimate", [=] { return api->tools->frame_estimate(c, nullptr); }},
        {"pipeline_cache_get", [=] { return api->tools->pipeline_cache_get(c, nullptr, nullptr); }},
        {"pipeline_cache_set", [=] { return api->tools->pipeline_cache_set(c, nullptr, 0); }},
        {"tensor_import_vk", [=] { return api->vulkan->tensor_import_vk(c, nullptr, nullptr, nullptr); }},
        {"tensor_create_vk", [=] { return api->vulkan->tensor_create_vk(c, nullptr, nullptr, nullptr); }},
        {"agent_observe_in_place", [=] { return api->vulkan->agent_observe_in_place(a, 0); }},
        {"frame_submit_with", [=] { return api->vulkan->frame_submit_with(c, nullptr); }},
        {"context_run_jobs", [=] { return api->tools->context_run_jobs(c, 0, nullptr); }},
        {"context_device_idle", [=] { return api->vulkan->context_device_idle(c); }},
        {"context_get_semaphore", [=] { return api->vulkan->context_get_semaphore(c, nullptr); }},
        {"tuning_get", [=] { return api->tools->tuning_get(c, nullptr, nullptr); }},
        {"tuning_set", [=] { return api->tools->tuning_set(c, nullptr, 0); }},
        {"brain_load_weights", [=] { return api->brain_load_weights(b, nullptr); }},
        {"tuning_stop", [=] { return api->tools->tuning_stop(c); }},
        {"brain_get_state_array", [=] { return api->tools->brain_get_state_array(b, 0, nullptr); }},
        {"brain_get_state", [=] { return api->tools->brain_get_state(b, nullptr, nullptr); }},
        {"brain_set_state", [=] { return api->tools->brain_set_state(b, nullptr, 0); }},
        {"brain_get_curves", [=] { return api->tools->brain_get_curves(b, 0, nullptr); }},
        {"brain_write_curves", [=] { return api->tools->brain_write_curves(b, nullptr); }},
    };
    add_model_calls(calls);
    add_training_calls(calls);
    if (has_tensor_) {
      calls["tensor_export_vk"] = [=] { return api->vulkan->tensor_export_vk(t, nullptr); };
      calls["tensor_destroy"] = [=] { return api->vulkan->tensor_destroy(t); };
      calls["tensor_acquire"] = [=] { return api->vulkan->tensor_acquire(t); };
      calls["tensor_release"] = [=] { return api->vulkan->tensor_release(t); };
    }
    return calls;
  }

  // All functions with one of these tags fail for this reason.
  void expect_refused(const std::set<std::string>& tags, const char* reason) {
    for (const auto& [name, call] : calls()) {
      const std::string& tag = tags_.at(name);
      if (!tags.contains(tag)) continue;
      EXPECT_EQ(call(), IMP_ERROR_WRONG_STATE) << name << ", [" << tag << "]";
      EXPECT_THAT(api_->last_error(), HasSubstr(reason)) << name << ", [" << tag << "]";
      EXPECT_THAT(api_->last_error(), ::testing::StartsWith(name + ":"));
    }
  }
  void expect_any_pass() {
    for (const auto& [name, call] : calls())
      if (tags_.at(name) == "any")
        EXPECT_NE(call(), IMP_ERROR_WRONG_STATE) << name << ": " << api_->last_error();
  }

  const imp_api* api_ = Library(imp_get_api).api();
  const std::map<std::string, std::string> tags_ = tags_of_headers();
  Context context_;
  Brain brain_;
  Agent agent_;
  Model model_;
  imp_tensor tensor_{};
  bool has_tensor_ = false;
};

// Functions without a context have nothing to check.
TEST_F(T7Tags, LeaveNoFunctionOut) {
  const std::set<std::string> without = {"result_name",
                                         "last_error",
                                         "context_create",
                                         "context_create_standalone",
                                         "context_notify_device_lost",
                                         "plan_query_requirements",
                                         "plan_merge_device_create_info",
                                         "merged_free",
                                         "plan_query_extra_queues"};
  const std::set<std::string> tensors = {"tensor_export_vk", "tensor_destroy", "tensor_acquire",
                                         "tensor_release"};
  const auto called = calls();
  for (const auto& [name, tag] : tags_) {
    EXPECT_NE(tag, "") << name << " has no tag";
    EXPECT_TRUE(called.contains(name) || without.contains(name) || (!has_tensor_ && tensors.contains(name)))
        << name << " is not tested here";
  }
  const std::size_t functions = sizeof(imp_api) - offsetof(imp_api, result_name) + sizeof(imp_vulkan_api) -
                                offsetof(imp_vulkan_api, frame_record) + sizeof(imp_tools_api) -
                                offsetof(imp_tools_api, context_create_standalone) + sizeof(imp_models_api) -
                                offsetof(imp_models_api, model_create);
  EXPECT_EQ(tags_.size() * sizeof(void (*)()), functions) << "the header was not read whole";
  for (const char* name :
       {"result_name", "last_error", "context_notify_device_lost", "plan_query_requirements", "tuning_stop"})
    EXPECT_EQ(tags_.at(name), "any");
  EXPECT_EQ(tags_.at("frame_begin"), "frame");
  EXPECT_EQ(tags_.at("context_resume"), "create");
  EXPECT_EQ(tags_.at("brain_restore"), "either");
}

TEST_F(T7Tags, FrameCallsAreRefusedBetweenFrames) {
  for (const auto& [name, call] : calls()) {
    if (tags_.at(name) != "frame" || name == "frame_begin") continue;
    EXPECT_EQ(call(), IMP_ERROR_WRONG_STATE) << name;
    EXPECT_THAT(api_->last_error(), HasSubstr("no frame is open")) << name;
  }
  expect_any_pass();
}

TEST_F(T7Tags, CreateCallsAreRefusedInAFrame) {
  ASSERT_WORKS(context_.frame_begin(1, 0));
  expect_refused({"create"}, "a frame is open");
  EXPECT_EQ(calls().at("frame_begin")(), IMP_ERROR_WRONG_STATE);
  expect_any_pass();
  ASSERT_WORKS(context_.frame_end());
}

TEST_F(T7Tags, AnotherThreadIsRefusedInAFrame) {
  ASSERT_WORKS(context_.frame_begin(1, 0));
  std::thread([&] {
    expect_refused({"create"}, "a frame is open");
    expect_any_pass();
    for (const auto& [name, call] : calls()) {
      const std::string& tag = tags_.at(name);
      if ((tag != "frame" && tag != "either") || name == "frame_begin") continue;
      EXPECT_EQ(call(), IMP_ERROR_WRONG_STATE) << name;
      EXPECT_THAT(api_->last_error(), HasSubstr("another thread")) << name;
    }
  }).join();
  ASSERT_WORKS(context_.frame_end());
}

// A device that is lost in a frame: every function reports it, except those that the header names.
TEST_F(T7Tags, ALostDeviceIsSaidByAll) {
  const std::set<std::string> served = {
      "brain_save",         "brain_save_status",           "context_run_jobs",      "context_get_report_text",
      "context_get_report", "context_get_missing_feature", "missing_feature_remedy"};
  const std::set<std::string> destroy = {"brain_destroy", "model_destroy", "agent_destroy", "tensor_destroy",
                                         "context_destroy"};
  const std::set<std::string> submit = {"frame_submit", "frame_submit_with", "frame_record"};
  const auto all = calls();
  const auto expect_lost = [&](const std::string& name) {
    EXPECT_EQ(all.at(name)(), IMP_ERROR_DEVICE_LOST) << name << ": " << api_->last_error();
    EXPECT_THAT(api_->last_error(), HasSubstr("the device was lost. Make a new context on a new device."))
        << name;
  };
  ASSERT_WORKS(context_.frame_begin(1, 0));
  ASSERT_WORKS(context_.notify_device_lost());
  if (!has_tensor_) {  // the CPU is no device and cannot be lost
    ASSERT_WORKS(context_.submit());
    ASSERT_WORKS(context_.frame_end());
    return;
  }
  for (const auto& [name, call] : all) {
    const std::string& tag = tags_.at(name);
    if (tag == "any" || tag == "create" || served.contains(name) || submit.contains(name) ||
        destroy.contains(name) || name == "frame_begin" || name == "frame_end")
      continue;
    expect_lost(name);
  }
  expect_lost("frame_submit");
  expect_lost("frame_end");
  for (const auto& [name, call] : all) {
    const std::string& tag = tags_.at(name);
    if (destroy.contains(name) || name == "frame_end") continue;
    if (tag != "any" && !served.contains(name))
      expect_lost(name);
    else
      EXPECT_NE(call(), IMP_ERROR_DEVICE_LOST) << name << ": " << api_->last_error();
  }
  for (const char* name : {"agent_destroy", "brain_destroy", "tensor_destroy", "context_destroy"})
    EXPECT_EQ(all.at(name)(), IMP_OK) << api_->last_error();
}

// A call during another one, here from a callback on another thread.
TEST_F(T7Tags, CallsThatOverlapAreRefused) {
  struct Overlap {
    std::function<void()> call;
    int told = 0;
  } overlap{[this] {
    expect_refused({"create", "frame", "either"}, "another call of this context is under way");
    expect_any_pass();
  }};
  Made<Brain> cold = context_.create_brain([] {
    static const std::uint32_t branch = 2;
    BrainDesc desc;
    desc.observation_count = 2;
    desc.branch_sizes = {branch};
    return desc;
  }());
  ASSERT_TRUE(cold) << cold.outcome.message();
  const Outcome warm = context_.warmup([&](float) {
    if (overlap.told++ == 0) std::thread(overlap.call).join();
  });
  ASSERT_WORKS(warm);
  EXPECT_GT(overlap.told, 0);
}

}  // namespace
