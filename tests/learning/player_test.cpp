// The player's own files: a pet that only the player's games overwrite, and a reaction time.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "samples/pet/keeping.h"
#include "samples/pet/kept/kept_beside.h"
#include "samples/pet/kept/names_file.h"
#include "samples/pet/yard/reaction_meter.h"

namespace pet {
namespace {

TEST(Keeping, OwnPetIsRememberedAndKept) {
  const Keeping first = keeping({}, "own", false);
  EXPECT_EQ(first.load, "");
  EXPECT_EQ(first.save, "own");
  const Keeping again = keeping({}, "own", true);
  EXPECT_EQ(again.load, "own");
  EXPECT_TRUE(again.remembered);
  EXPECT_EQ(again.save, "own");
  EXPECT_NE(again.words().find("own"), std::string::npos);
  EXPECT_EQ(keeping({}, "", false).save, "") << "no place to keep it";
}

TEST(Keeping, NothingElseOverwritesTheOwnPet) {
  Options load, teacher, off, fresh, replay;
  load.load = "other";
  teacher.teacher = TeacherKind::demo;
  off.teacher = TeacherKind::off;
  fresh.fresh = true;
  replay.replay = "log";
  for (Options options : {load, teacher, off, fresh, replay}) {
    const Keeping unasked = keeping(options, "own", true);
    EXPECT_EQ(unasked.save, "");
    EXPECT_EQ(unasked.load, options.load) << "a script or a log does not start from the person's pet either";
    EXPECT_FALSE(unasked.remembered);
    EXPECT_NE(unasked.words().find("--save"), std::string::npos);
    options.save = "asked";
    EXPECT_EQ(keeping(options, "own", true).save, "asked");
  }
}

TEST(Keeping, TheOwnPetMayBeKeptElsewhere) {
  Options options;
  options.save = "elsewhere";
  const Keeping made = keeping(options, "own", true);
  EXPECT_EQ(made.load, "own");
  EXPECT_EQ(made.save, "elsewhere");
}

TEST(Keeping, AnUnreadablePetIsKeptAsideWithItsNames) {
  const std::string folder = testing::TempDir() + "pet-aside", own = folder + "/own.imprint";
  std::filesystem::create_directories(folder);
  CueNames names;
  ASSERT_EQ(names.set(Cue::bed, "home"), "");
  for (const char* place : {".unread", ".unread-2"}) {
    EXPECT_FALSE(keep_aside(own)) << "there is none";
    std::ofstream(own) << "no pet" << place;
    ASSERT_EQ(write_names(names_file(own), names), "");
    EXPECT_EQ(keep_aside(own), own + place);
    EXPECT_FALSE(std::filesystem::exists(own) || std::filesystem::exists(names_file(own)));
    EXPECT_STREQ(read_names(names_file(own + place))->of(Cue::bed), "home");
    std::string text;
    std::getline(std::ifstream(own + place), text);
    EXPECT_EQ(text, std::string("no pet") + place);
  }
  ASSERT_EQ(write_names(names_file(own), names), "");
  EXPECT_FALSE(keep_aside(own)) << "names without a pet";
  EXPECT_STREQ(read_names(names_file(own))->of(Cue::bed), "home") << "stay unchanged";
  std::filesystem::remove_all(folder);
}

TEST(Keeping, RemembersHowQuickThePlayerIs) {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("imprint-player-test-" + std::to_string(getpid()) + ".txt"))
          .string();
  EXPECT_FALSE(read_reaction(file));
  EXPECT_TRUE(write_reaction(file, 0.9134));
  EXPECT_NEAR(read_reaction(file).value_or(0.0), 0.913, 1e-9);
  for (const char* wrong :
       {"", "reaction_ms", "reaction_ms x", "reaction_ms -3", "reaction_ms nan", "speed 900"}) {
    std::ofstream(file) << wrong;
    EXPECT_FALSE(read_reaction(file)) << wrong;
  }
  std::filesystem::remove(file);
  EXPECT_FALSE(write_reaction("", 1.0));
}

// Presses reaction_s seconds after each onset; errs: with the wrong word every third time.
double measured(double reaction_s, bool errs, std::uint32_t* presses = nullptr) {
  ReactionMeter test(3);
  double onset = -1.0;
  bool pressed = false, acted = false;
  std::uint32_t seen = 0;
  for (int i = 0; i < 60 * 300 && !test.done(); ++i) {
    test.step();
    const PetView& pet = test.view().pet;
    if (pet.acting && !acted) onset = test.view().time_s, pressed = false, ++seen;
    acted = pet.acting;
    if (onset >= 0.0 && !pressed && test.view().time_s >= onset + reaction_s - 1e-9) {
      pressed = true;
      const bool wrong = errs && seen % 3 == 0;
      test.press((pet.action == Action::spin) != wrong);
    }
  }
  if (presses) *presses = seen;
  EXPECT_TRUE(test.done());
  return test.seconds();
}

TEST(ReactionMeter, MeasuresFromTheOnset) {
  for (const double reaction : {0.3, 0.6, 0.9, 1.5, 2.5})
    EXPECT_NEAR(measured(reaction, false), reaction, 1.0 / 60.0 + 1e-6);
}

TEST(ReactionMeter, WrongWordsDoNotCount) {
  std::uint32_t presses = 0;
  EXPECT_NEAR(measured(0.8, true, &presses), 0.8, 1.0 / 60.0 + 1e-6);
  EXPECT_GT(presses, ReactionMeter::kPresses);
}

TEST(ReactionMeter, GuessesDoNotCount) {
  ReactionMeter test(1);
  for (int i = 0; i < 600; ++i) {
    test.press(i % 2 == 0);  // hammers both keys: hits each onset within a step or two
    test.step();
  }
  EXPECT_EQ(test.seconds() == 0.0, test.presses() == 0);
  if (test.presses() > 0) {
    EXPECT_GE(test.seconds(), 0.15);
  }
  ReactionMeter silent(1);
  for (int i = 0; i < 600; ++i) silent.step();
  EXPECT_EQ(silent.presses(), 0u);
}

}  // namespace
}  // namespace pet
