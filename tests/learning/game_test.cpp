// Whole games on the CPU, a second long: their files of names and unease, and their logs.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "samples/pet/kept/kept_beside.h"
#include "samples/pet/kept/life_file.h"
#include "samples/pet/kept/names_file.h"
#include "samples/pet/kept/session_log.h"
#include "samples/pet/run.h"
#include "samples/pet/yard/life.h"

namespace pet {
namespace {

Options short_game() {
  Options options;
  options.headless = true;
  options.teacher = TeacherKind::off;
  options.seconds = 0.5;
  options.ghost = false;
  options.access = Access::cpu;
  return options;
}

std::string text_of(const std::string& file) {
  std::ifstream text(file);
  return {std::istreambuf_iterator<char>(text), {}};
}

CueNames with(Cue cue, const char* text) {
  CueNames names;
  EXPECT_EQ(names.set(cue, text), "");
  return names;
}

class PetGame : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    Options options = short_game();
    options.save = pet_;
    ASSERT_EQ(play(options).save_problem, "");
    ASSERT_FALSE(std::filesystem::exists(names_file(pet_))) << "no name was given";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Report play(const Options& options, const std::function<void(Game&)>& first = {}) {
    complaint_.clear();
    const auto run =
        pet::Run::create(nullptr, options, [this](const std::string& message) { complaint_ += message; });
    EXPECT_TRUE(run) << run.error().message;
    if (!run) return {};
    Game& game = (*run)->game();
    if (first) first(game);
    while (!game.finished())
      if (const Result<> done = (*run)->frame(); !done) {
        ADD_FAILURE() << done.error().message;
        return {};
      }
    names_ = game.overlay().names;
    Result<Report> report = (*run)->finish();
    EXPECT_TRUE(report) << report.error().message;
    return report ? *report : Report();
  }

  const std::string folder_ = testing::TempDir() + "pet-game";
  const std::string pet_ = folder_ + "/own.imprint", log_ = folder_ + "/log";
  CueNames names_;  // at the end of the game
  std::string complaint_;
};

TEST_F(PetGame, NamesOutliveAGameThatEndsBeforeItsFirstFrame) {
  ASSERT_EQ(write_names(names_file(pet_), with(Cue::bed, "home")), "");
  Options options = short_game();
  options.load = options.save = pet_;
  EXPECT_EQ(play(options, [](Game& game) { game.finish(); }).save_problem, "");
  EXPECT_STREQ(names_.of(Cue::bed), "home");
  EXPECT_STREQ(read_names(names_file(pet_))->of(Cue::bed), "home");
}

TEST_F(PetGame, NamesOutliveAReplay) {
  Options recorded = short_game();
  recorded.load = pet_;
  recorded.log = log_;
  play(recorded);
  ASSERT_EQ(text_of(log_).find("name"), std::string::npos);
  ASSERT_EQ(write_names(names_file(pet_), with(Cue::bed, "home")), "");
  Options again = short_game();
  again.teacher = TeacherKind::none;
  again.replay = log_;
  again.load = again.save = pet_;
  EXPECT_EQ(play(again).save_problem, "");
  EXPECT_STREQ(names_.of(Cue::bed), "home");
  EXPECT_STREQ(read_names(names_file(pet_))->of(Cue::bed), "home");
}

TEST_F(PetGame, LoadedNamesAreInTheLog) {
  ASSERT_EQ(write_names(names_file(pet_), with(Cue::bed, "home")), "");
  Options recorded = short_game();
  recorded.load = pet_;
  recorded.log = log_;
  play(recorded,
       [](Game& game) { EXPECT_STREQ(game.overlay().names.of(Cue::bed), "home") << "from the start"; });
  EXPECT_NE(text_of(log_).find("1 0 name bed home\n"), std::string::npos) << text_of(log_);
  Options again = short_game();
  again.teacher = TeacherKind::none;
  again.replay = log_;
  again.save = folder_ + "/replayed.imprint";
  play(again);
  EXPECT_STREQ(read_names(names_file(again.save))->of(Cue::bed), "home");
}

TEST_F(PetGame, ANewPetTakesNoNamesAway) {
  ASSERT_EQ(write_names(names_file(pet_), with(Cue::bed, "home")), "");
  Options options = short_game();
  options.save = pet_;
  EXPECT_EQ(play(options).save_problem, "");
  EXPECT_STREQ(read_names(names_file(pet_))->of(Cue::bed), "home");
}

TEST_F(PetGame, NamesThatAreGivenBackAreNotKept) {
  ASSERT_EQ(write_names(names_file(pet_), with(Cue::bed, "home")), "");
  Options options = short_game();
  options.load = options.save = pet_;
  EXPECT_EQ(play(options, [](Game& game) { game.input(name_cue(Cue::bed, "")); }).save_problem, "");
  EXPECT_FALSE(std::filesystem::exists(names_file(pet_)));
}

TEST_F(PetGame, NamesThatCannotBeReadStayAndArePutAsideOnlyForOthers) {
  const std::string names = names_file(pet_), nonsense = "nonsense\n";
  std::ofstream(names) << nonsense;
  Options options = short_game();
  options.load = pet_;
  options.save = folder_ + "/other.imprint";
  EXPECT_EQ(play(options).save_problem, "");
  EXPECT_NE(complaint_.find(names), std::string::npos) << complaint_;
  EXPECT_EQ(text_of(names), nonsense) << "a loaded pet's file stays unchanged";

  options.save = pet_;
  EXPECT_EQ(play(options).save_problem, "");
  EXPECT_EQ(text_of(names), nonsense) << "and no name was given";

  EXPECT_EQ(play(options, [](Game& game) { game.input(name_cue(Cue::sit, "Platz")); }).save_problem, "");
  EXPECT_STREQ(read_names(names)->of(Cue::sit), "Platz");
  EXPECT_EQ(text_of(names + ".unread"), nonsense);
}

// A link to itself exists but cannot be opened.
TEST_F(PetGame, NamesThatCannotBeOpenedAreNotTakenAway) {
  const std::string names = names_file(pet_);
  std::filesystem::create_symlink(names, names);
  Options options = short_game();
  options.load = options.save = pet_;
  EXPECT_EQ(play(options).save_problem, "");
  EXPECT_NE(complaint_.find(names), std::string::npos) << complaint_;
  EXPECT_TRUE(std::filesystem::is_symlink(names));
}

// Unreadable while the game starts, readable when it ends.
TEST_F(PetGame, FilesUnreadableAtFirstAreNotOverwrittenLater) {
  const std::string names = names_file(pet_), life = life_file(pet_);
  for (const std::string& file : {names, life}) std::filesystem::create_symlink(file, file);
  Options options = short_game();
  options.load = options.save = pet_;
  const auto unlock = [&](Game& game) {
    for (const std::string& file : {names, life}) std::filesystem::remove(file);
    EXPECT_EQ(write_names(names, with(Cue::bed, "home")), "");
    EXPECT_EQ(write_life(life, std::array{0.5f}), "");
    game.input(name_cue(Cue::sit, "Platz"));
  };
  EXPECT_EQ(play(options, unlock).save_problem, "");
  EXPECT_STREQ(read_names(names)->of(Cue::sit), "Platz");
  EXPECT_STREQ(read_names(names + ".unread")->of(Cue::bed), "home");
  EXPECT_EQ(*read_life(life), std::vector{0.5f});
}

TEST_F(PetGame, UneaseContinuesAfterLoading) {
  EXPECT_FALSE(std::filesystem::exists(life_file(pet_))) << "at ease";
  ASSERT_EQ(write_life(life_file(pet_), std::array{0.5f}), "");
  Options options = short_game();
  options.load = pet_;
  options.save = folder_ + "/later.imprint";
  options.seconds = 9.0;
  EXPECT_EQ(play(options).save_problem, "");
  const std::vector<float> later = *read_life(life_file(options.save));
  ASSERT_EQ(later.size(), 1u);
  EXPECT_NEAR(later[0], 0.5 * std::exp(-9.0 / kUneaseSeconds), 1e-4);
  EXPECT_EQ(*read_life(life_file(pet_)), std::vector{0.5f}) << "a loaded pet's file stays unchanged";

  std::ofstream(life_file(pet_)) << "nonsense\n";
  EXPECT_EQ(play(options).save_problem, "");
  EXPECT_NE(complaint_.find(life_file(pet_) + ", line 1"), std::string::npos) << complaint_;
  EXPECT_FALSE(std::filesystem::exists(life_file(options.save))) << "the pet still loads, at ease";
  options.load = options.save = pet_;
  EXPECT_EQ(play(options).save_problem, "");
  EXPECT_EQ(text_of(life_file(pet_)), "nonsense\n") << "and writes no replacement";
}

TEST_F(PetGame, EachSaveHasItsOwnProblem) {
  const std::string bad = folder_ + "/bad.imprint", good = folder_ + "/good.imprint";
  std::filesystem::create_directory(names_file(bad) + ".new");  // names cannot be written there
  const auto made = pet::Run::create(nullptr, short_game(), [](const std::string&) {});
  ASSERT_TRUE(made) << made.error().message;
  pet::Run& run = **made;
  run.game().input(name_cue(Cue::sit, "Platz"));
  ASSERT_TRUE(run.frame());
  const std::size_t first = run.game().save(bad);
  const std::size_t second = run.game().save(good);
  while (!run.game().saved(second)) ASSERT_TRUE(run.frame());
  EXPECT_NE(run.game().save_problem(first).find(names_file(bad)), std::string::npos)
      << run.game().save_problem(first);
  EXPECT_EQ(run.game().save_problem(second), "");
  EXPECT_TRUE(std::filesystem::exists(bad)) << "the pet itself is kept";
  EXPECT_STREQ(read_names(names_file(good))->of(Cue::sit), "Platz");
}

TEST_F(PetGame, AReplayOfAnOlderLogKeepsItsVersion) {
  std::ofstream(log_)
      << "imprint-pet-log 2\nseed 7 pets 1 idle 1 teacher person\n1 0 redraw 5\n400 0 praise\n480 end\n";
  Options options = short_game();
  options.teacher = TeacherKind::none;
  options.replay = log_;
  options.log = folder_ + "/again";
  const std::string hash = play(options).weights_hash;
  ASSERT_NE(hash, "");
  EXPECT_EQ(SessionLogReader::open(options.log)->header().version, 2u);
  options.replay = options.log;
  options.log.clear();
  EXPECT_EQ(play(options).weights_hash, hash);
}

}  // namespace
}  // namespace pet
