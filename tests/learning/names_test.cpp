// The player's own words for the commands, and their file.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <sys/resource.h>
#include <unistd.h>

#include "samples/pet/kept/kept_beside.h"
#include "samples/pet/kept/names_file.h"
#include "samples/pet/kept/session_log.h"

namespace pet {
namespace {

std::string temporary(const char* what) {
  return (std::filesystem::temp_directory_path() / ("imprint-names-" + std::to_string(getpid()) + what))
      .string();
}

TEST(CueNames, AreFoundByAnyCaseAndByTheirOwnWord) {
  CueNames names;
  EXPECT_FALSE(names.changed());
  EXPECT_EQ(names.find("SIT"), Cue::sit);
  EXPECT_EQ(names.set(Cue::sit, "  Platz, mein Guter "), "");
  EXPECT_STREQ(names.of(Cue::sit), "Platz, mein Guter");
  EXPECT_TRUE(names.changed());
  EXPECT_EQ(names.find(" platz, MEIN guter"), Cue::sit);
  EXPECT_EQ(names.find("sit"), Cue::sit) << "no other command can have this name";
  EXPECT_EQ(names.find("none"), std::nullopt);
  EXPECT_EQ(names.find(""), std::nullopt);
  EXPECT_EQ(names.set(Cue::sit, " "), "");
  EXPECT_STREQ(names.of(Cue::sit), "sit");
  EXPECT_FALSE(names.changed());
}

TEST(CueNames, RefusesUnprintableAndEqualNames) {
  CueNames names;
  ASSERT_EQ(names.set(Cue::bed, "K\u00f6rbchen"), "");
  ASSERT_EQ(names.set(Cue::bed, std::string(kCueNameBytes - 1, 'a')), "");
  ASSERT_EQ(names.set(Cue::bed, "home"), "");
  for (const std::string& text :
       {std::string("Home"), std::string("bed"), std::string("SPIN"), std::string(kCueNameBytes, 'a'),
        std::string("a\tb"), std::string("\xc3"), std::string("\xff\xfe"), std::string("\u5750\u4e0b"),
        std::string("a\x7f")}) {
    EXPECT_NE(names.set(Cue::sit, text), "") << text;
    EXPECT_STREQ(names.of(Cue::sit), "sit");
  }
  EXPECT_EQ(names.set(Cue::bed, "HOME"), "") << "its own name";
}

TEST(CueNames, AreKeptBesideThePet) {
  const std::string file = names_file(temporary("kept"));
  CueNames names;
  EXPECT_FALSE(read_names(file)->changed()) << "no file: default names";
  ASSERT_EQ(names.set(Cue::fetch, "bring it back"), "");
  ASSERT_EQ(write_names(file, names), "");
  EXPECT_EQ(read_names(file)->find("Bring it back"), Cue::fetch);
  ASSERT_EQ(write_names(file, CueNames()), "");
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_NE(write_names("/nowhere/at/all.names", names), "");
  for (const char* wrong :
       {"", "x", "imprint-pet-names 2\n", "imprint-pet-names 1\ndance x\n", "imprint-pet-names 1\nsit\n",
        "imprint-pet-names 1\nsit bed\n", "imprint-pet-names 1\nsit \xff\n"}) {
    std::ofstream(file) << wrong;
    EXPECT_FALSE(read_names(file)) << wrong;
  }
  std::filesystem::remove(file);
}

// No file handle is left; later some are.
TEST(CueNames, AnUnreadableFileDiffersFromNone) {
  const std::string file = names_file(temporary("closed"));
  CueNames names;
  ASSERT_EQ(names.set(Cue::bed, "home"), "");
  ASSERT_EQ(write_names(file, names), "");
  rlimit handles{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &handles), 0);
  const rlimit none{0, handles.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const Result<CueNames> closed = read_names(file);
  const std::string why = closed ? "" : closed.error().message;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &handles), 0);
  EXPECT_NE(why.find("cannot open " + file), std::string::npos) << why;
  EXPECT_STREQ(read_names(file)->of(Cue::bed), "home");
  std::filesystem::remove(file);
}

TEST(CueNames, AnUnreadableFileIsKeptAsideWhenReplaced) {
  const std::string file = names_file(temporary("aside"));
  CueNames names;
  ASSERT_EQ(names.set(Cue::bed, "home"), "");
  for (const char* place : {".unread", ".unread-2"}) {
    std::ofstream(file) << place;
    ASSERT_EQ(write_names(file, names), "");
    EXPECT_STREQ(read_names(file)->of(Cue::bed), "home");
    std::string text;
    std::getline(std::ifstream(file + place), text);
    EXPECT_EQ(text, place);
  }
  std::ofstream(file) << "x";
  ASSERT_EQ(write_names(file, CueNames()), "");
  EXPECT_FALSE(std::filesystem::exists(file));
  for (const char* place : {".unread", ".unread-2", ".unread-3"})
    EXPECT_TRUE(std::filesystem::remove(file + place)) << place;
}

TEST(CueNames, OlderLogsAreReadWithTheirVersion) {
  const std::string file = temporary("log");
  std::ofstream(file) << "imprint-pet-log 2\nseed 1 pets 1 idle 1 teacher person\n1 0 cue sit\n";
  EXPECT_EQ(SessionLogReader::open(file)->header().version, 2u);
  std::ofstream(file) << "imprint-pet-log 1\nseed 1 pets 1 idle 0\n1 0 cue sit\n";
  EXPECT_EQ(SessionLogReader::open(file)->header().version, 1u);
  for (const std::uint32_t version : {1u, 2u, kLogVersion}) {
    LogHeader header;
    header.version = version;
    EXPECT_TRUE(SessionLogWriter::create(file, header));
    EXPECT_EQ(SessionLogReader::open(file)->header().version, version);
  }
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace pet
