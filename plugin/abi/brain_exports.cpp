#include <optional>

#include "plugin/abi/calls.h"
#include "plugin/abi/convert.h"
#include "plugin/abi/exports.h"
#include "plugin/abi/take_tensor.h"

namespace imprint::abi {
namespace {

Result<> publish_brain(ContextEntry& entry, std::shared_ptr<agent::Brain> made, imp_brain* brain) {
  const auto [place, placed] = [&] {
    const std::lock_guard lock(registry_mutex());
    return entry.brains.insert(made);
  }();
  if (!placed) {
    entry.world->remove_brain(made);
    return make_error(ErrorCode::unsupported, "brain_create: this context has " + std::to_string(kSlots) +
                                                  " brains, the most possible. Destroy one first.");
  }
  *brain = {pack_handle({HandleKind::brain, entry.slot, entry.generation, place.slot, place.generation})};
  return {};
}

// Desc: imp_brain_desc or imp_policy_desc.
template <class Desc>
Result<agent::SharedTensors> take_tensors(ContextEntry& entry, const char* call, const Desc& given) {
  agent::SharedTensors shared;
  IMPRINT_CHECK(take_tensor(entry, call, "desc.observations", given.observations, shared.observations));
  IMPRINT_CHECK(take_tensor(entry, call, "desc.actions", given.actions, shared.actions));
  return shared;
}

Error no_learner(const char* call) {
  return make_error(ErrorCode::not_found,
                    text(call, ": found a brain that does not learn, expected one with a learner."));
}

void fill_curves(const agent::CurveRow& row, std::uint64_t rows, imp_curves& filled) {
  const auto metric = [&](agent::Metric of) { return row.metrics[static_cast<std::size_t>(of)]; };
  filled.rows = rows;
  filled.wall_s = row.wall_s;
  filled.decisions = row.counters.decisions;
  filled.minibatches = row.counters.minibatches;
  filled.episodes = row.counters.episodes;
  filled.used_samples = row.used;
  filled.dropped_intake = row.lost.intake;
  filled.dropped_stale = row.lost.stale;
  filled.dropped_unfollowed = row.lost.unfollowed;
  filled.uncredited = row.lost.uncredited;
  filled.mean_return = row.mean_return;
  filled.mean_length = row.mean_length;
  filled.loss = row.loss;
  filled.policy_loss = metric(agent::Metric::policy_loss);
  filled.value_loss = metric(agent::Metric::value_loss);
  filled.entropy = metric(agent::Metric::entropy);
  filled.divergence = metric(agent::Metric::divergence);
  filled.clipped_share = metric(agent::Metric::clipped_share);
  filled.gradient_norm = metric(agent::Metric::gradient_norm);
  filled.explained_variance = metric(agent::Metric::explained_variance);
  filled.learning_rate = metric(agent::Metric::learning_rate);
  filled.error = metric(agent::Metric::error);
  filled.lowest_value = metric(agent::Metric::lowest_value);
  filled.highest_value = metric(agent::Metric::highest_value);
  filled.reliability = metric(agent::Metric::reliability);
}

}  // namespace

imp_result IMP_CALL brain_create(imp_context context, const imp_brain_desc* desc, imp_brain* brain) {
  return with_context(context, Tag::create, "brain_create", [&](ContextEntry& entry) -> Result<> {
    IMPRINT_CHECK(check_pointer("brain_create", "brain", brain));
    IMPRINT_ASSIGN(const agent::BrainSpec spec, to_brain_spec(desc));
    IMPRINT_ASSIGN(const imp_brain_desc given, read_struct("brain_create", "desc", desc, Next::chain));
    IMPRINT_ASSIGN(const agent::SharedTensors shared, take_tensors(entry, "brain_create", given));
    IMPRINT_ASSIGN(std::shared_ptr<agent::Brain> made, entry.world->add_brain(spec, shared));
    return publish_brain(entry, std::move(made), brain);
  });
}

imp_result IMP_CALL brain_create_from_onnx(imp_context context, const imp_policy_desc* desc,
                                           imp_brain* brain) {
  return with_context(context, Tag::create, "brain_create_from_onnx", [&](ContextEntry& entry) -> Result<> {
    IMPRINT_CHECK(check_pointer("brain_create_from_onnx", "brain", brain));
    IMPRINT_ASSIGN(const agent::PolicySpec spec, to_policy_spec(desc));
    IMPRINT_ASSIGN(const imp_policy_desc given,
                   read_struct("brain_create_from_onnx", "desc", desc, Next::chain));
    IMPRINT_ASSIGN(const agent::SharedTensors shared, take_tensors(entry, "brain_create_from_onnx", given));
    IMPRINT_ASSIGN(std::shared_ptr<agent::Brain> made, entry.world->add_policy(spec, shared));
    return publish_brain(entry, std::move(made), brain);
  });
}

imp_result IMP_CALL brain_destroy(imp_brain brain) {
  return with_brain(
      brain, Tag::create, "brain_destroy",
      [&](ContextEntry& entry, const std::shared_ptr<agent::Brain>& found) -> Result<> {
        const std::shared_ptr<agent::Brain> last = found;
        {
          const std::lock_guard lock(registry_mutex());
          entry.agents.erase_if([&](const AgentPlace& place) { return place.brain == last; });
          entry.brains.erase(unpack_handle(brain.id).slot);
        }
        entry.world->remove_brain(last);
        return {};
      },
      AfterLoss::serves);
}

imp_result IMP_CALL brain_get_info(imp_brain brain, imp_brain_info* info) {
  return with_brain_any(brain, "brain_get_info", [&](agent::Brain& found) -> Result<> {
    IMPRINT_CHECK(check_filled_struct("brain_get_info", "info", info));
    const agent::BrainInfo answer = found.info();
    fill_struct(info, [&](imp_brain_info& filled) {
      filled.observation_count = answer.observation_count;
      filled.goal_count = answer.goal_count;
      filled.branch_count = answer.branch_count;
      filled.continuous_count = answer.continuous_count;
      filled.brain_count = answer.brain_count;
      filled.agent_capacity = answer.agent_capacity;
      filled.parameter_count = answer.parameter_count;
      filled.action_width = answer.action_width;
    });
    return {};
  });
}

imp_result IMP_CALL brain_get_stats(imp_brain brain, imp_brain_stats* stats) {
  return with_brain_any(brain, "brain_get_stats", [&](agent::Brain& found) -> Result<> {
    IMPRINT_CHECK(check_filled_struct("brain_get_stats", "stats", stats));
    const agent::BrainStats answer = found.stats();
    fill_struct(stats, [&](imp_brain_stats& filled) {
      filled.decisions = answer.counters.decisions;
      filled.feedbacks = answer.counters.feedbacks;
      filled.demonstrations = answer.counters.demonstrations;
      filled.minibatches = answer.counters.minibatches;
      filled.episodes = answer.counters.episodes;
      filled.samples = answer.samples;
      filled.last_loss = answer.last_loss;
      filled.snapshots = answer.snapshots;
      filled.infer_dispatches = answer.infer_dispatches;
      filled.learn_dispatches = answer.learn_dispatches;
      filled.infer_barriers = answer.infer_barriers;
      filled.learn_barriers = answer.learn_barriers;
      filled.late_actions = answer.late_actions;
      filled.stopped_brains = answer.stopped_brains;
      filled.dropped_samples = answer.lost.samples();
      filled.host_copy_frame = answer.host_copy_frame;
      filled.evicted_bytes = answer.evicted_bytes;
      filled.used_samples = answer.used_samples;
      filled.dropped_intake = answer.lost.intake;
      filled.dropped_stale = answer.lost.stale;
      filled.dropped_unfollowed = answer.lost.unfollowed;
      filled.uncredited = answer.lost.uncredited;
      filled.alarms = answer.alarms;
      filled.fall_backs = answer.fall_backs;
      filled.reliability = answer.reliability;
      filled.kept_demonstrations = answer.kept_demonstrations;
      filled.rating = answer.rating;
      filled.inference_decisions = answer.inference_decisions;
    });
    return {};
  });
}

imp_result IMP_CALL brain_set_learning(imp_brain brain, uint32_t enabled) {
  return with_brain(brain, Tag::frame_or_create, "brain_set_learning",
                    [&](ContextEntry&, const std::shared_ptr<agent::Brain>& found) -> Result<> {
                      IMPRINT_CHECK(check_flag("brain_set_learning", "enabled", enabled));
                      return found->set_learning(enabled != 0);
                    });
}

imp_result IMP_CALL brain_save(imp_brain brain, const char* path) {
  return with_brain(
      brain, Tag::frame_or_create, "brain_save",
      [&](ContextEntry&, const std::shared_ptr<agent::Brain>& found) -> Result<> {
        IMPRINT_CHECK(check_pointer("brain_save", "path", path));
        return found->state().save(path);
      },
      AfterLoss::serves);
}

imp_result IMP_CALL brain_save_status(imp_brain brain) {
  return with_brain(
      brain, Tag::frame_or_create, "brain_save_status",
      [&](ContextEntry&, const std::shared_ptr<agent::Brain>& found) { return found->state().save_status(); },
      AfterLoss::serves);
}

imp_result IMP_CALL brain_load(imp_brain brain, const char* path) {
  return with_brain(brain, Tag::create, "brain_load",
                    [&](ContextEntry&, const std::shared_ptr<agent::Brain>& found) -> Result<> {
                      IMPRINT_CHECK(check_pointer("brain_load", "path", path));
                      return found->state().load(path);
                    });
}

imp_result IMP_CALL brain_load_weights(imp_brain brain, const char* path) {
  return with_brain(brain, Tag::create, "brain_load_weights",
                    [&](ContextEntry&, const std::shared_ptr<agent::Brain>& found) -> Result<> {
                      IMPRINT_CHECK(check_pointer("brain_load_weights", "path", path));
                      return found->state().load_weights(path);
                    });
}

imp_result IMP_CALL brain_snapshot(imp_brain brain, uint64_t* snapshot) {
  return with_brain(brain, Tag::frame_or_create, "brain_snapshot",
                    [&](ContextEntry&, const std::shared_ptr<agent::Brain>& found) -> Result<> {
                      IMPRINT_CHECK(check_pointer("brain_snapshot", "snapshot", snapshot));
                      IMPRINT_ASSIGN(*snapshot, found->state().snapshot());
                      return {};
                    });
}

imp_result IMP_CALL brain_restore(imp_brain brain, uint64_t snapshot) {
  return with_brain(brain, Tag::frame_or_create, "brain_restore",
                    [&](ContextEntry&, const std::shared_ptr<agent::Brain>& found) {
                      return found->state().restore(snapshot);
                    });
}

imp_result IMP_CALL brain_hash(imp_brain brain, uint64_t* low, uint64_t* high) {
  return with_brain(brain, Tag::create, "brain_hash",
                    [&](ContextEntry&, const std::shared_ptr<agent::Brain>& found) -> Result<> {
                      IMPRINT_CHECK(check_pointer("brain_hash", "low", low));
                      IMPRINT_CHECK(check_pointer("brain_hash", "high", high));
                      IMPRINT_ASSIGN(const Hash128 hash, found->state().hash());
                      *low = hash.low;
                      *high = hash.high;
                      return {};
                    });
}

imp_result IMP_CALL brain_get_state_array(imp_brain brain, uint32_t index, imp_state_array* array) {
  return with_brain(
      brain, Tag::create, "brain_get_state_array",
      [&](ContextEntry&, const std::shared_ptr<agent::Brain>& found) -> Result<> {
        IMPRINT_CHECK(check_filled_struct("brain_get_state_array", "array", array));
        const std::span<const agent::StateVariable> state = found->state().shared_state();
        if (state.empty())
          return make_error(ErrorCode::unsupported,
                            "brain_get_state_array: found a policy from a file, which does not change, "
                            "expected a brain that brain_create made.");
        if (index >= state.size())
          return make_error(ErrorCode::not_found, text("brain_get_state_array: index: found ", index,
                                                       ", expected less than ", state.size(), "."));
        std::uint64_t offset = 0;
        for (const agent::StateVariable& before : state.first(index)) offset += before.variable.bytes();
        fill_struct(array, [&](imp_state_array& filled) {
          filled.name = state[index].name.c_str();
          filled.offset = offset;
          filled.count = state[index].variable.bytes() / sizeof(float);
          filled.is_integer = state[index].variable.dtype() == DType::float32 ? 0 : 1;
          filled.merge = filled.is_integer ? IMP_MERGE_LARGEST : static_cast<imp_merge>(state[index].merge);
        });
        return {};
      });
}

imp_result IMP_CALL brain_get_state(imp_brain brain, void* data, size_t* size) {
  return with_brain(brain, Tag::create, "brain_get_state",
                    [&](ContextEntry&, const std::shared_ptr<agent::Brain>& found) -> Result<> {
                      IMPRINT_CHECK(check_pointer("brain_get_state", "size", size));
                      const std::uint64_t bytes = found->state().shared_bytes();
                      if (data && *size < bytes)
                        return refuse("brain_get_state",
                                      text("size: found ", *size, ", expected at least ", bytes, " bytes"));
                      *size = bytes;
                      if (!data) return {};
                      return found->state().read_shared(std::span(static_cast<std::byte*>(data), bytes));
                    });
}

imp_result IMP_CALL brain_get_curves(imp_brain brain, uint64_t row, imp_curves* curves) {
  return with_brain_any(brain, "brain_get_curves", [&](agent::Brain& found) -> Result<> {
    IMPRINT_CHECK(check_filled_struct("brain_get_curves", "curves", curves));
    const agent::Curves* all = found.curves();
    if (!all) return no_learner("brain_get_curves");
    const std::uint64_t rows = all->rows();
    const std::optional<agent::CurveRow> one = all->row(row == UINT64_MAX ? rows - 1 : row);
    if (!one)
      return make_error(ErrorCode::not_found,
                        text("brain_get_curves: row: found ", row == UINT64_MAX ? "the newest" : text(row),
                             ", expected one of ", rows, " rows, the newest ", agent::Curves::kRows, "."));
    fill_struct(curves, [&](imp_curves& filled) { fill_curves(*one, rows, filled); });
    return {};
  });
}

imp_result IMP_CALL brain_keep_opponent(imp_brain brain, uint32_t brain_index) {
  return with_brain(brain, Tag::frame_or_create, "brain_keep_opponent",
                    [&](ContextEntry&, const std::shared_ptr<agent::Brain>& found) {
                      return found->agents().keep_opponent(brain_index);
                    });
}

imp_result IMP_CALL brain_get_opponent(imp_brain brain, uint32_t brain_index, uint32_t opponent,
                                       imp_opponent* info) {
  return with_brain(brain, Tag::frame_or_create, "brain_get_opponent",
                    [&](ContextEntry&, const std::shared_ptr<agent::Brain>& found) -> Result<> {
                      IMPRINT_CHECK(check_filled_struct("brain_get_opponent", "info", info));
                      IMPRINT_ASSIGN(const agent::Opponent entry,
                                     found->agents().opponent(brain_index, opponent));
                      fill_struct(info, [&](imp_opponent& filled) {
                        filled.rating = entry.rating;
                        filled.decisions = entry.decisions;
                        filled.matches = entry.matches;
                      });
                      return {};
                    });
}

imp_result IMP_CALL brain_load_demonstrations(imp_brain brain, const char* path, uint32_t brain_index,
                                              uint32_t* count) {
  return with_brain(brain, Tag::create, "brain_load_demonstrations",
                    [&](ContextEntry&, const std::shared_ptr<agent::Brain>& found) -> Result<> {
                      IMPRINT_CHECK(check_pointer("brain_load_demonstrations", "path", path));
                      IMPRINT_ASSIGN(const std::uint32_t added,
                                     found->state().load_demonstrations(path, brain_index));
                      if (count) *count = added;
                      return {};
                    });
}

imp_result IMP_CALL brain_save_demonstrations(imp_brain brain, const char* path, uint32_t brain_index) {
  return with_brain(brain, Tag::create, "brain_save_demonstrations",
                    [&](ContextEntry&, const std::shared_ptr<agent::Brain>& found) -> Result<> {
                      IMPRINT_CHECK(check_pointer("brain_save_demonstrations", "path", path));
                      return found->state().save_demonstrations(path, brain_index);
                    });
}

imp_result IMP_CALL brain_clear_demonstrations(imp_brain brain) {
  return with_brain(brain, Tag::create, "brain_clear_demonstrations",
                    [&](ContextEntry&, const std::shared_ptr<agent::Brain>& found) {
                      return found->state().clear_demonstrations();
                    });
}

imp_result IMP_CALL brain_write_curves(imp_brain brain, const char* path) {
  return with_brain(brain, Tag::create, "brain_write_curves",
                    [&](ContextEntry&, const std::shared_ptr<agent::Brain>& found) -> Result<> {
                      IMPRINT_CHECK(check_pointer("brain_write_curves", "path", path));
                      if (!found->curves()) return no_learner("brain_write_curves");
                      found->write_curves(path);
                      return {};
                    });
}

imp_result IMP_CALL brain_forget_returns(imp_brain brain) {
  return with_brain(brain, Tag::create, "brain_forget_returns",
                    [](ContextEntry&, const std::shared_ptr<agent::Brain>& found) -> Result<> {
                      if (!found->curves()) return no_learner("brain_forget_returns");
                      found->forget_returns();
                      return {};
                    });
}

imp_result IMP_CALL brain_set_state(imp_brain brain, const void* data, size_t size) {
  return with_brain(brain, Tag::create, "brain_set_state",
                    [&](ContextEntry&, const std::shared_ptr<agent::Brain>& found) -> Result<> {
                      IMPRINT_CHECK(check_pointer("brain_set_state", "data", data));
                      const std::uint64_t bytes = found->state().shared_bytes();
                      if (size != bytes)
                        return refuse("brain_set_state",
                                      text("size: found ", size, ", expected ", bytes, " bytes"));
                      return found->state().write_shared({static_cast<const std::byte*>(data), size});
                    });
}

imp_result IMP_CALL brain_take_experience(imp_brain brain, void* data, size_t* size) {
  return with_brain(brain, Tag::create, "brain_take_experience",
                    [&](ContextEntry&, const std::shared_ptr<agent::Brain>& found) -> Result<> {
                      IMPRINT_CHECK(check_pointer("brain_take_experience", "size", size));
                      IMPRINT_ASSIGN(const std::uint64_t bytes, found->sent_bytes());
                      if (data && *size < bytes)
                        return refuse("brain_take_experience",
                                      text("size: found ", *size, ", expected at least ", bytes, " bytes"));
                      *size = bytes;
                      if (!data) return {};
                      return found->take_experience(std::span(static_cast<std::byte*>(data), bytes));
                    });
}

imp_result IMP_CALL brain_give_experience(imp_brain brain, uint32_t source, const void* data, size_t size) {
  return with_brain(brain, Tag::create, "brain_give_experience",
                    [&](ContextEntry&, const std::shared_ptr<agent::Brain>& found) -> Result<> {
                      IMPRINT_CHECK(check_pointer("brain_give_experience", "data", data));
                      IMPRINT_ASSIGN(
                          const bool taken,
                          found->give_experience(source, {static_cast<const std::byte*>(data), size}));
                      return taken ? Result<>() : make_error(ErrorCode::not_ready, "");
                    });
}

}  // namespace imprint::abi
