#include "samples/pet/game.h"

#include <utility>

#include "samples/pet/game_state.h"

namespace pet {

Game::Game(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Game>> Game::create(const Options& options, const imp_vk_device_info& device,
                                           const std::function<void(const std::string&)>& log,
                                           const std::function<void(float)>& progress) {
  PET_ASSIGN(auto state, State::create(options, device, log, progress));
  return std::unique_ptr<Game>(new Game(std::move(state)));
}

Game::~Game() = default;

void Game::input(const Signal& signal) { state_->inputs.push_back(signal); }

void Game::set_auto_cue(bool on) { state_->overlay.auto_cue = on; }

Result<> Game::begin_frame(std::uint64_t frame, std::uint64_t safe_frame, std::uint32_t steps) {
  State& in = *state_;
  ++in.frame;
  // The host may run frames of its own in between (for a picture). Imprint counts the game's frames only.
  in.in_flight.push_back({frame, in.frame});
  while (!in.in_flight.empty() && in.in_flight.front().host_frame <= safe_frame) {
    in.safe_frame = in.in_flight.front().frame;
    in.in_flight.pop_front();
  }
  PET_CHECK(in.context->begin_frame(in.frame, in.safe_frame, in.clock_s));
  in.advance_phase(in.frame);
  if (in.phase == State::Phase::playing) in.play(in.frame, steps);
  in.examine(in.frame);
  return {};
}

Result<> Game::send_work(VkCommandBuffer commands) { return state_->context->send_work(commands); }

Result<> Game::end_frame() {
  State& in = *state_;
  PET_CHECK(in.context->end_frame());
  // Frames after the game only wait for a save. They are not measured: a short game would consist of them
  // mostly.
  if (in.phase != State::Phase::done) {
    in.meters.read(in.context->stats());
    ++in.game_frames;
  }
  in.keeper.step();
  if (const std::string word = in.memories.step(in.frame, in.overlay); !word.empty()) in.report_status(word);
  in.show();
  return {};
}

void Game::close() {
  if (!std::exchange(state_->closed, true)) state_->context->close(state_->frame, state_->clock_s);
}

double Game::time_s() const { return state_->clock_s; }

std::uint32_t Game::replay_steps() { return state_->replay ? state_->replay->steps(state_->frame + 1) : 1; }

bool Game::finished() const { return state_->phase == State::Phase::done; }

void Game::finish() { state_->ended = true; }

std::size_t Game::pet_count() const { return state_->lives.size(); }

const WorldView& Game::yard(std::size_t pet) const { return state_->lives[pet]->world().view(); }

const WorldView* Game::ghost() const { return state_->ghost ? &state_->ghost->world().view() : nullptr; }

BrainContext& Game::context() { return *state_->context; }
const PetBrain& Game::brain() const { return *state_->brain; }
const OverlayState& Game::overlay() const { return state_->overlay; }

const std::vector<Check>& Game::checks() const { return state_->checks; }

const std::vector<std::vector<Action>>& Game::exam_decisions() const { return state_->checkup.decisions(); }

const std::vector<IdleDecision>& Game::idle_decisions() const { return state_->idle; }

std::size_t Game::save(const std::string& path) {
  const std::size_t wish = save_brain(path);
  state_->beside_problems[wish] = state_->save_beside(path);
  return wish;
}

std::size_t Game::save_brain(const std::string& path) {
  return state_->keeper.save(path, PetBrain::Which::first);
}

bool Game::saved(std::size_t wish) const { return state_->keeper.done(wish); }

const std::string& Game::save_problem(std::size_t wish) const {
  const std::string& problem = state_->keeper.problem(wish);
  const auto beside = state_->beside_problems.find(wish);
  return problem.empty() && beside != state_->beside_problems.end() ? beside->second : problem;
}

std::string Game::log_problem() const {
  return state_->log_file ? state_->log_file->problem() : std::string();
}

void Game::show_then(std::optional<std::size_t> memory) { state_->memories.show(memory); }

Report Game::report() const {
  const State& in = *state_;
  Report report;
  report.driver = in.context->driver();
  report.seed = in.options.seed;
  report.teacher = in.teacher();
  report.learner = in.brain->learner();
  report.replayed = in.replay != nullptr;
  report.access = in.options.access;
  report.pets = in.options.kennel;
  report.budget_us = in.options.budget_us;
  report.slice_us = in.options.slice_us;
  report.simulated_seconds = in.clock_s;
  report.frames = in.game_frames;
  report.checks = in.checks;
  if (!in.checks.empty()) report.final_success = in.checks.back().success;
  report.final_per_pet = in.overlay.kennel;
  report.held_90_at_s = held_90(in.checks);
  report.parameters = in.brain->parameter_count();
  Meters meters = in.meters;
  meters.read(in.brain->stats(), in.clock_s);
  meters.fill(report);
  return report;
}

Result<std::string> Game::weights_hash(const imp_vk_device_info& submit_device,
                                       const std::string& saved_file) const {
  const State& in = *state_;
  if (in.options.access != Access::record) return in.brain->hash();
  return hash_of_saved(submit_device, in.brain->setup(), saved_file);
}

}  // namespace pet
