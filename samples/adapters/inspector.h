#ifndef IMPRINT_SAMPLES_ADAPTERS_INSPECTOR_H_
#define IMPRINT_SAMPLES_ADAPTERS_INSPECTOR_H_
// A Dear ImGui window that shows how brains learn: curves, counts, alarms, and the context's time and memory.
// Any host that draws Dear ImGui can use it; include your imgui.h before it if it has another name.
//
//   adapters::Inspector inspector;
//   inspector.watch("guard", guard_brain);                 // must outlive the inspector, or forget() it
//   ... each frame, between ImGui::NewFrame and ImGui::Render:
//   inspector.draw(context, "Imprint", &open);
//
// It only reads: every call that it makes of Imprint has the tag [any]. Its memory grows to the newest 1024
// rows of curves of each brain.

#ifndef IMGUI_VERSION
#include <imgui.h>
#endif
#include <imprint/imprint.hpp>

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace imprint::adapters {

class Inspector {
 public:
  void watch(std::string name, const game::Brain& brain) {
    brains_.push_back({std::move(name), &brain, {}, 0});
  }
  void forget(const game::Brain& brain) {
    std::erase_if(brains_, [&brain](const Watched& one) { return one.brain == &brain; });
  }

  // A window of its own. open: as in ImGui::Begin, may be null.
  void draw(const game::Context& context, const char* title, bool* open = nullptr) {
    ImGui::SetNextWindowSize(ImVec2(26 * ImGui::GetFontSize(), 36 * ImGui::GetFontSize()),
                             ImGuiCond_FirstUseEver);
    const float gap = 0.5f * ImGui::GetFontSize();
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(gap, gap));
    if (ImGui::Begin(title, open)) draw_inside(context);
    ImGui::End();
    ImGui::PopStyleVar();
  }
  // The same in a window that the host has begun.
  void draw_inside(const game::Context& context) {
    draw_context(context);
    for (Watched& one : brains_) draw_brain(one);
  }

 private:
  static constexpr std::size_t kMostRows = 1024;  // that Imprint keeps

  struct Watched {
    std::string name;
    const game::Brain* brain = nullptr;
    std::vector<imp_curves> rows;
    std::uint64_t next = 0;  // row
  };
  struct Figure {
    const char* name;
    float imp_curves::*value;
  };
  struct AlarmText {
    imp_alarm bit;
    const char* text;
  };

  static void draw_context(const game::Context& context) {
    const game::Made<imp_context_stats> made = context.stats();
    if (!made) {
      ImGui::TextWrapped("%s", made.outcome.message());
      return;
    }
    const imp_context_stats& stats = *made;
    constexpr double kMiB = 1 << 20;
    ImGui::TextWrapped("frame: decisions %.0f us, learning %.0f us, calls %.0f us",
                       static_cast<double>(stats.infer_gpu_us), static_cast<double>(stats.learn_gpu_us),
                       static_cast<double>(stats.frame_cpu_us));
    ImGui::TextWrapped("learning has %.0f %% of its budget; %llu of %llu frames went over",
                       100 * stats.learn_share, number(stats.over_budget_frames), number(stats.frames));
    const double used = static_cast<double>(stats.bytes_in_use),
                 taken = static_cast<double>(stats.bytes_reserved);
    char text[96];
    std::snprintf(text, sizeof text, "memory: %.1f of %.1f MiB, most %.1f", used / kMiB, taken / kMiB,
                  static_cast<double>(stats.bytes_peak) / kMiB);
    ImGui::ProgressBar(taken > 0 ? static_cast<float>(used / taken) : 0.0f, ImVec2(-FLT_MIN, 0), text);
    if (stats.memory_pressure != 0)
      ImGui::TextColored(warning_colour(), "memory is short: %.1f MiB of learning are away",
                         static_cast<double>(stats.evicted_bytes) / kMiB);
  }

  static void draw_brain(Watched& one) {
    ImGui::PushID(one.brain);
    if (ImGui::CollapsingHeader(one.name.c_str(), ImGuiTreeNodeFlags_DefaultOpen)) {
      const game::Made<imp_brain_stats> stats = one.brain->stats();
      if (stats) {
        draw_stats(*stats);
        draw_alarms(*stats);
        read_curves(one);
        draw_curves(one);
      } else {
        ImGui::TextWrapped("%s", stats.outcome.message());
      }
    }
    ImGui::PopID();
  }

  static void draw_stats(const imp_brain_stats& stats) {
    ImGui::TextWrapped("%llu decisions, %llu episodes, %llu minibatches", number(stats.decisions),
                       number(stats.episodes), number(stats.minibatches));
    ImGui::TextWrapped("%llu samples in memory, %llu used, %llu dropped", number(stats.samples),
                       number(stats.used_samples), number(stats.dropped_samples));
    if (stats.feedbacks + stats.demonstrations > 0)
      ImGui::TextWrapped("%llu words, %llu demonstrations", number(stats.feedbacks),
                         number(stats.demonstrations));
    if (stats.fall_backs > 0)
      ImGui::TextWrapped("%llu returns to the best weights", number(stats.fall_backs));
  }

  static void draw_alarms(const imp_brain_stats& stats) {
    if (stats.stopped_brains > 0)
      ImGui::TextColored(
          warning_colour(),
          stats.stopped_brains == 1 ? "%u brain has stopped learning" : "%u brains have stopped learning",
          stats.stopped_brains);
    for (const AlarmText& alarm : kAlarms)
      if ((stats.alarms & static_cast<std::uint64_t>(alarm.bit)) != 0) {
        ImGui::PushStyleColor(ImGuiCol_Text, warning_colour());
        ImGui::TextWrapped("! %s", alarm.text);
        ImGui::PopStyleColor();
      }
  }

  // The rows since the last call.
  static void read_curves(Watched& one) {
    const game::Made<imp_curves> newest = one.brain->curves();
    if (!newest) return;
    if (newest->rows < one.next) one.rows.clear(), one.next = 0;  // another brain has this address
    if (newest->rows > one.next + kMostRows) one.next = newest->rows - kMostRows;
    for (; one.next < newest->rows; ++one.next)
      if (const game::Made<imp_curves> row = one.brain->curves(one.next)) {
        if (one.rows.size() == kMostRows) one.rows.erase(one.rows.begin());
        one.rows.push_back(*row);
      }
  }

  static void draw_curves(const Watched& one) {
    static thread_local std::vector<float> values;
    bool any = false;
    for (const Figure& figure : kFigures) {
      values.clear();
      for (const imp_curves& row : one.rows)
        if (std::isfinite(row.*figure.value)) values.push_back(row.*figure.value);
      if (values.empty()) continue;
      any = true;
      char text[64];
      std::snprintf(text, sizeof text, "%s %.4g", figure.name, static_cast<double>(values.back()));
      ImGui::PushID(figure.name);
      ImGui::PlotLines("##curve", values.data(), static_cast<int>(values.size()), 0, text, FLT_MAX, FLT_MAX,
                       ImVec2(ImGui::GetContentRegionAvail().x, 3.5f * ImGui::GetFontSize()));
      ImGui::PopID();
    }
    if (!any) ImGui::TextUnformatted("no curves yet: a row takes 64 minibatches");
  }

  static unsigned long long number(std::uint64_t value) { return value; }
  static ImVec4 warning_colour() { return ImVec4(0.85f, 0.3f, 0.1f, 1.0f); }

  static constexpr Figure kFigures[] = {{"return", &imp_curves::mean_return},
                                        {"length", &imp_curves::mean_length},
                                        {"loss", &imp_curves::loss},
                                        {"policy loss", &imp_curves::policy_loss},
                                        {"value loss", &imp_curves::value_loss},
                                        {"entropy", &imp_curves::entropy},
                                        {"divergence", &imp_curves::divergence},
                                        {"clipped share", &imp_curves::clipped_share},
                                        {"gradient norm", &imp_curves::gradient_norm},
                                        {"explained variance", &imp_curves::explained_variance},
                                        {"error", &imp_curves::error},
                                        {"learning rate", &imp_curves::learning_rate},
                                        {"lowest value", &imp_curves::lowest_value},
                                        {"highest value", &imp_curves::highest_value}};
  // The log has the figures and the remedy of each.
  static constexpr AlarmText kAlarms[] = {
      {IMP_ALARM_DROPPED_INTAKE, "samples come faster than learning takes them in"},
      {IMP_ALARM_DROPPED_STALE, "steps come too late for their update"},
      {IMP_ALARM_DROPPED_UNFOLLOWED, "steps without a next observation"},
      {IMP_ALARM_UNCREDITED, "words or rewards that reach no action"},
      {IMP_ALARM_LATE_ANSWERS, "answers come late"},
      {IMP_ALARM_NOT_FINITE, "a loss is not finite"},
      {IMP_ALARM_DIVERGING_VALUES, "values beyond what rewards can add up to"},
      {IMP_ALARM_NO_REWARD, "no reward in many steps"},
      {IMP_ALARM_UNUSED_REWARD, "rewards for a learner that takes none"},
      {IMP_ALARM_ONE_CHOICE_LEFT, "bans leave one choice"},
      {IMP_ALARM_ONE_VALUE, "all words have one value"},
      {IMP_ALARM_UNSCALED, "observations are large: set observation_scale"},
      {IMP_ALARM_SPREAD_WORDS, "each word is for many actions"},
      {IMP_ALARM_FLAT_REWARDS, "rewards hardly differ from action to action"},
      {IMP_ALARM_CUT_REWARD, "rewards beyond -1 to 1 are cut"},
      {IMP_ALARM_OVERDUE_ANSWER, "an answer does not come"},
      {IMP_ALARM_FALLING_RETURNS, "returns have fallen"},
      {IMP_ALARM_REWARD_SIZE, "rewards are far from 1 in size: multiply them"}};

  std::vector<Watched> brains_;
};

}  // namespace imprint::adapters

#endif  // IMPRINT_SAMPLES_ADAPTERS_INSPECTOR_H_
