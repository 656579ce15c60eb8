#ifndef IMPRINT_STUDIO_H_
#define IMPRINT_STUDIO_H_
// The studio: one brain learns from many copies of a headless game, in processes of one or many computers.
// For training builds only: it talks to other processes through MPI, which a shipped game never does.
//
//   #include <imprint/studio.h>
//   namespace studio = imprint::studio;
//   studio::share(desc);                                   // an imp_brain_desc, before brain_create
//   ... context_create (on studio::device()), brain_create, agent_create, context_warmup as ever
//   studio::Member member = studio::join(context.handle(), brain.handle());
//   while (member.frame()) {                               // between frames, once per frame
//     if (member.restarts()) world.begin(member.seed());   // all worlds and episodes begin again
//     ... a frame as ever: frame_begin .. frame_end
//     member.episode_ended(score);                         // for the report
//   }
//
// Start it with `imprint studio --games N GAME ARGS...`, or with mpirun; alone it is one game of one.
//
// A failure that a game cannot mend ends the process and with it the job: stderr names rank and remedy.
// Functions are for one thread, the one that runs the frames.

#include <imprint/imprint.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

namespace imprint::studio {

std::uint32_t rank();   // of this game: 0 .. ranks() - 1
std::uint32_t ranks();  // games of this run
// For imp_standalone_info::device: the next of the devices of `imprint studio --devices`. Default "cpu".
std::string device();

// How the games share what they learn.
enum class Share : std::uint8_t {
  updates,      // each learns its own minibatches; after each learn step all take the mean of all brains
  minibatches,  // all learn the same minibatches, of everyone's rows: PPO without a cell
  actors        // learners learn from the steps of actors, which only play and wait for none: PPO, DQN, SAC
};

// `imprint studio` sets them in the environment; the defaults are its defaults.
struct Settings {
  std::uint64_t steps = 0;  // decisions of all games that learning counts; 0: Member::end() ends the run
  double seconds = 0;       // of rank 0, after which the run ends; 0: any
  std::string folder;       // for checkpoints, the curve and the brain; empty: nothing is written
  std::uint32_t exchange_period = 1;     // learn steps between exchanges
  std::uint32_t checkpoint_period = 50;  // exchanges; 0: no checkpoints
  std::uint64_t seed = 1;                // of Member::seed()
  double report_period_s = 1;            // 0: no report
  std::uint32_t evaluators = 0;          // the last ranks evaluate: see evaluates()
  std::string curriculum;                // a file of lessons and parameters of worlds; empty: none
  Share share = Share::updates;
  // ---- Share::actors ----
  std::uint32_t actors = 0, learners = 1;  // processes
  std::int64_t actor = -1;                 // number of this process among the actors; -1: it learns
  std::string learner;                     // HOST:PORT of an actor's learner; empty: found in the folder
  std::string listen = "127.0.0.1";        // HOST or HOST:PORT where a learner hears its actors
  double replay_ratio = 1;                 // DQN, SAC: minibatches per step; actors wait for them
  std::uint32_t league_period = 0;         // checkpoints until one becomes an opponent; 0: no league
  // ---- Member::begin_episode ----
  std::uint64_t record_period = 0;  // every n-th episode of each game is kept in the folder; 0: none
  std::string replay;               // a file of such an episode: the game plays it once and learns nothing
  std::string pictures;             // a folder for pictures of the replay; empty: none

  static Settings from_environment();
};

// This game evaluates: it plays with the newest weights, learns nothing, and its scores are reported apart.
// Set its agents to Mode::inference. No game waits for it, except for 2 ms and the end of its frame at an
// exchange.
bool evaluates(const Settings& settings = Settings::from_environment());

// Gives each game its own exploration (seed), and with Share::minibatches a link on header.next, which points
// to memory that lives as long as the process. rollout_steps and batch_size stay this game's own.
void share(imp_brain_desc& desc, const Settings& settings = Settings::from_environment());

// One episode of one agent, from Member::begin_episode. Begin its world from seed() and parameters() alone:
// then its file plays it again, step by step with the same bits. The member lives longer.
class Episode {
 public:
  Episode();  // none
  Episode(Episode&&) noexcept;
  Episode& operator=(Episode&&) noexcept;
  ~Episode();

  std::uint64_t seed() const;
  const std::map<std::string, double>& parameters() const;  // as Member::draw_parameters
  // Call with what the agent observed and agent_act's answer, before the world takes it. Kept where the
  // episode is recorded. In a replay the observation must be the logged one, bit by bit, and the answer is
  // replaced by the logged one.
  void decided(std::span<const float> observation, std::span<std::uint32_t> branches,
               std::span<float> continuous = {});
  void ended(double score);  // instead of Member::episode_ended. The end of a replay is that of the run
  bool replays() const;
  // Whether to draw: then one picture per step, or as many as it likes. rgba: top row first. They become
  // 000000.png, 000001.png and so on.
  bool wants_pictures() const;
  void picture(std::uint32_t width, std::uint32_t height, std::span<const std::uint8_t> rgba);

 private:
  struct Parts;
  friend class Member;
  explicit Episode(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// Whom to play against: Member::draw_opponent.
struct Opponent {
  std::string brain;      // a file for brain_load_weights; empty: the newest weights
  std::size_t entry = 0;  // of the league
};

class Member {
 public:
  Member(Member&&) noexcept;
  Member& operator=(Member&&) noexcept;
  ~Member();

  // Call between frames, once per frame. When exchange_period learn steps have begun, it completes them,
  // waits for all games and, with Share::updates, averages their brains. False: the run is over, in all games
  // at once. With Share::actors no game waits for another; a learner's game plays nothing: there it returns
  // false when the run is over, and not before.
  bool frame();
  // True once after join and, where this game learns, after each checkpoint. Then begin all worlds again,
  // from seed(), and call agent_end_episode for each agent in the next frame. A run that was resumed from
  // this checkpoint goes on with the same bits.
  bool restarts();
  std::uint64_t seed() const;  // another one for each rank and each restart
  // The newest checkpoint's brain file of this rank; empty before the first.
  const std::string& checkpoint() const;
  void episode_ended(double score);
  // Instead of episode_ended and draw_parameters: an episode that can be recorded and played again.
  Episode begin_episode();
  // Parameters of the world in the next episode, by name: drawn by the curriculum of this moment. The same in
  // a resumed run.
  std::map<std::string, double> draw_parameters();
  const std::string& lesson() const;  // "" without lessons
  // For games of two sides: brains of the run's own checkpoints, the hard ones most often, and in half of the
  // matches the newest weights. The opponent acts by a brain without a learner.
  Opponent draw_opponent();
  void match_ended(const Opponent& opponent, double score);  // of the learner: 1 a win, 0.5 a draw, 0
  // Ends the run at the next exchange; one rank is enough.
  void end();
  // Decisions of all games, as of the newest exchange. Those of agents in Mode::inference do not count.
  std::uint64_t steps() const;

 private:
  struct Parts;
  friend class Episode;
  friend Member join(imp_context, imp_brain, const Settings&, const imp_api*);
  explicit Member(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// After context_warmup, in all games of the run, with brains of one desc that share() has seen. All take rank
// 0's weights, or their own state from the newest checkpoint in Settings::folder. One brain or kennel per
// process. api: null = the library that the studio was linked with.
Member join(imp_context context, imp_brain brain, const Settings& settings = Settings::from_environment(),
            const imp_api* api = nullptr);

}  // namespace imprint::studio

#endif  // IMPRINT_STUDIO_H_
