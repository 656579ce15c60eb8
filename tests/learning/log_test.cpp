// The log of a session: written, read, and refused with the wrong line.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "samples/pet/kept/session_log.h"

namespace pet {
namespace {

std::string temporary_log() {
  return (std::filesystem::temp_directory_path() / ("imprint-yard-test-" + std::to_string(getpid()) + ".log"))
      .string();
}

TEST(SessionLog, ComesBackAsItWasWritten) {
  const std::string path = temporary_log();
  std::vector<Signal> events = {signal(SignalKind::redraw, 0xffffffffffffffffull),
                                give_cue(Cue::fetch),
                                signal(SignalKind::praise),
                                signal(SignalKind::scold),
                                signal(SignalKind::treat),
                                signal(SignalKind::click),
                                signal(SignalKind::show),
                                move(SignalKind::move_player, {1.1f, -0.3f}),
                                move(SignalKind::move_ball, {0.1f, 1e-7f}),
                                signal(SignalKind::snapshot),
                                signal(SignalKind::undo, 2),
                                signal(SignalKind::learning, 1),
                                signal(SignalKind::no),
                                signal(SignalKind::reaction, 910),
                                then_cue(Cue::bed),
                                move(SignalKind::lure, {-1.5f, 2.25f}),
                                signal(SignalKind::let_go),
                                name_cue(Cue::bed, "go to your place")};
  {
    const auto made = SessionLogWriter::create(path, {7, 3, true, TeacherKind::careless});
    ASSERT_TRUE(made) << made.error().message;
    SessionLogWriter& writer = **made;
    for (std::size_t i = 0; i < events.size(); ++i) writer.write(10 + i / 4, i % 3, events[i]);
    writer.write_steps(20, 0);
    writer.write_end(21);
  }
  Result<SessionLogReader> read = SessionLogReader::open(path);
  ASSERT_TRUE(read) << read.error().message;
  SessionLogReader& reader = *read;
  EXPECT_EQ(reader.header().seed, 7u);
  EXPECT_EQ(reader.header().pets, 3u);
  EXPECT_TRUE(reader.header().idle);
  EXPECT_EQ(reader.header().teacher, TeacherKind::careless);
  EXPECT_EQ(reader.end_frame(), 21u);
  EXPECT_EQ(reader.steps(19), 1u);
  EXPECT_EQ(reader.steps(20), 0u);
  std::vector<Signal> back;
  for (std::uint64_t frame = 1; frame < 21; ++frame) {
    for (std::size_t pet = 0; pet < 3; ++pet) reader.read(frame, pet, back);
  }
  ASSERT_EQ(back.size(), events.size());
  // Each pet's events come in order; between pets of one frame the order is that of the pets.
  for (const Signal& event : events) {
    EXPECT_NE(std::find_if(back.begin(), back.end(),
                           [&](const Signal& other) {
                             return other.kind == event.kind && other.cue == event.cue &&
                                    other.number == event.number && other.text == event.text &&
                                    other.position.x == event.position.x &&
                                    other.position.y == event.position.y;
                           }),
              back.end());
  }
  std::filesystem::remove(path);
}

TEST(SessionLog, NoticesWriteFailures) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  EXPECT_FALSE(SessionLogWriter::create("/dev/full", {7, 3, true, TeacherKind::careless}));
  const std::string path = (std::filesystem::temp_directory_path() / "imprint-log-written.txt").string();
  {
    const auto made = SessionLogWriter::create(path, {7, 3, true, TeacherKind::careless});
    ASSERT_TRUE(made) << made.error().message;
    SessionLogWriter& writer = **made;
    writer.write_end(9);
    EXPECT_EQ(writer.problem(), "");
  }
  std::filesystem::remove(path);
}

TEST(SessionLog, SaysWhichLineIsWrong) {
  const std::string path = temporary_log();
  const std::string head = "imprint-pet-log 3\nseed 1 pets 1 idle 0\n";
  const std::vector<std::string> wrong = {"",
                                          "imprint-pet-log 3\n",
                                          "imprint-pet-log 4\nseed 1 pets 1 idle 0\n",
                                          "imprint-pet-log 1\nseed x pets 1 idle 0\n",
                                          "imprint-pet-log 1\nseed 1 pets 0 idle 0\n",
                                          "imprint-pet-log 1\nseed 1 pets 1 idle 0 teacher stranger\n",
                                          "imprint-pet-log 1\nseed 1 pets 1 idle 0 dance\n",
                                          head + "1 0 dance\n",
                                          head + "1 1 praise\n",
                                          head + "1 0 cue dance\n",
                                          head + "1 0 then dance\n",
                                          "imprint-pet-log 1\nseed 1 pets 1 idle 1\n",
                                          head + "5 0 praise\n4 0 praise\n",
                                          head + "1 steps 100000\n",
                                          head + "1 0 move_ball 1\n",
                                          head + "1 0 lure 1\n",
                                          head + "1 0 name dance x\n",
                                          head + "1 0 name sit bed\n",
                                          head + "one 0 praise\n",
                                          head + "1 -1 praise\n"};
  for (const std::string& text : wrong) {
    std::ofstream(path) << text;
    EXPECT_FALSE(SessionLogReader::open(path)) << text;
  }
  std::ofstream(path) << head << "5 0 praise\n";
  EXPECT_EQ(SessionLogReader::open(path)->header().teacher, TeacherKind::none)
      << "an older log, without a teacher";
  EXPECT_EQ(SessionLogReader::open(path)->end_frame(), 6u)
      << "a log that was cut off ends after its last event";
  std::filesystem::remove(path);
  EXPECT_FALSE(SessionLogReader::open(path));
}

}  // namespace
}  // namespace pet
