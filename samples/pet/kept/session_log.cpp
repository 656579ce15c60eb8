#include "samples/pet/kept/session_log.h"

#include <array>
#include <cinttypes>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>

namespace pet {
namespace {

constexpr const char* kFirstWord = "imprint-pet-log";

std::optional<std::uint32_t> version_of(const std::string& line) {
  for (std::uint32_t version = 1; version <= kLogVersion; ++version) {
    if (line == kFirstWord + (" " + std::to_string(version))) return version;
  }
  return std::nullopt;
}
constexpr std::array<const char*, 19> kWords = {
    "redraw",      "cue",       "praise",   "scold",  "treat",    "click", "show",
    "move_player", "move_ball", "snapshot", "undo",   "learning", "no",    "reaction_ms",
    "then",        "learner",   "lure",     "let_go", "name"};

std::optional<SignalKind> kind_of(const std::string& word) {
  for (std::size_t i = 0; i < kWords.size(); ++i) {
    if (word == kWords[i]) return static_cast<SignalKind>(i);
  }
  return std::nullopt;
}

std::optional<Cue> cue_of(const std::string& word) {
  for (std::size_t i = 0; i < kCueCount; ++i) {
    if (word == name(static_cast<Cue>(i))) return static_cast<Cue>(i);
  }
  return std::nullopt;
}

std::optional<TeacherKind> teacher_of(const std::string& word) {
  for (const TeacherKind kind :
       {TeacherKind::none, TeacherKind::demo, TeacherKind::praise, TeacherKind::careless, TeacherKind::off}) {
    if (word == name(kind)) return kind;
  }
  return std::nullopt;
}

std::optional<Learner> learner_of(const std::string& word) {
  for (const Learner learner : kLearners) {
    if (word == name(learner)) return learner;
  }
  return std::nullopt;
}

bool read_signal(std::istringstream& line, const std::string& word, Signal& signal) {
  const std::optional<SignalKind> kind = kind_of(word);
  if (!kind) return false;
  signal.kind = *kind;
  switch (*kind) {
    case SignalKind::cue:
    case SignalKind::then: {
      std::string text;
      line >> text;
      const std::optional<Cue> cue = cue_of(text);
      if (cue) signal.cue = *cue;
      return cue.has_value();
    }
    case SignalKind::name: {
      std::string of, text;
      line >> of;
      std::getline(line, text);
      const std::optional<Cue> cue = cue_of(of);
      if (!cue || *cue == Cue::none || !CueNames().set(*cue, text).empty()) return false;
      const std::size_t begin = text.find_first_not_of(" \t\r");
      signal = name_cue(*cue, begin == std::string::npos ? std::string() : text.substr(begin));
      return true;
    }
    case SignalKind::learner: {
      std::string text;
      line >> text;
      const std::optional<Learner> learner = learner_of(text);
      if (learner) signal.number = static_cast<std::uint64_t>(*learner);
      return learner.has_value();
    }
    case SignalKind::move_player:
    case SignalKind::move_ball:
    case SignalKind::lure:
      return static_cast<bool>(line >> signal.position.x >> signal.position.y);
    case SignalKind::redraw:
    case SignalKind::undo:
    case SignalKind::learning:
    case SignalKind::reaction:
      return static_cast<bool>(line >> signal.number);
    default:
      return true;
  }
}

}  // namespace

SessionLogWriter::SessionLogWriter(const std::string& path, const LogHeader& header)
    : path_(path), file_(std::fopen(path.c_str(), "w")) {
  if (!file_) throw std::runtime_error("cannot write the log " + path);
  std::fprintf(file_, "%s %u\nseed %" PRIu64 " pets %u idle %d teacher %s learner %s\n", kFirstWord,
               header.version, header.seed, header.pets, header.idle ? 1 : 0, name(header.teacher),
               name(header.learner));
  // A full disk or device is known now rather than after the game.
  if (const std::string why = problem(); !why.empty()) {
    std::fclose(file_);
    throw std::runtime_error(why);
  }
}

SessionLogWriter::~SessionLogWriter() { std::fclose(file_); }

std::string SessionLogWriter::problem() {
  if (std::fflush(file_) == 0 && !std::ferror(file_)) return {};
  return "cannot write the log " + path_;
}

void SessionLogWriter::write(std::uint64_t frame, std::size_t pet, const Signal& signal) {
  std::fprintf(file_, "%" PRIu64 " %zu %s", frame, pet, kWords[static_cast<std::size_t>(signal.kind)]);
  switch (signal.kind) {
    case SignalKind::cue:
    case SignalKind::then:
      std::fprintf(file_, " %s", name(signal.cue));
      break;
    case SignalKind::name:
      std::fprintf(file_, " %s %s", name(signal.cue), signal.text.data());
      break;
    case SignalKind::learner:
      std::fprintf(file_, " %s", name(static_cast<Learner>(signal.number)));
      break;
    case SignalKind::move_player:
    case SignalKind::move_ball:
    case SignalKind::lure:
      std::fprintf(file_, " %.9g %.9g", static_cast<double>(signal.position.x),
                   static_cast<double>(signal.position.y));
      break;
    case SignalKind::redraw:
    case SignalKind::undo:
    case SignalKind::learning:
    case SignalKind::reaction:
      std::fprintf(file_, " %" PRIu64, signal.number);
      break;
    default:
      break;
  }
  std::fputc('\n', file_);
}

void SessionLogWriter::write_steps(std::uint64_t frame, std::uint32_t steps) {
  std::fprintf(file_, "%" PRIu64 " steps %u\n", frame, steps);
}

void SessionLogWriter::write_end(std::uint64_t frame) { std::fprintf(file_, "%" PRIu64 " end\n", frame); }

SessionLogReader::SessionLogReader(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read the log " + path);
  std::string text;
  std::size_t number = 0;
  const auto refuse = [&](const char* expected) -> std::runtime_error {
    return std::runtime_error(path + ", line " + std::to_string(number) + ": expected " + expected +
                              ", found \"" + text + "\"");
  };
  const auto next = [&] { return ++number, static_cast<bool>(std::getline(file, text)); };
  const std::optional<std::uint32_t> version = next() ? version_of(text) : std::nullopt;
  if (!version) throw refuse("\"imprint-pet-log 3\", or 1 or 2");
  header_.version = *version;
  if (!next()) throw refuse("seed, pets and idle");
  std::istringstream head(text);
  std::array<std::string, 3> words;
  int idle = 0;
  if (!(head >> words[0] >> header_.seed >> words[1] >> header_.pets >> words[2] >> idle) ||
      words[0] != "seed" || words[1] != "pets" || words[2] != "idle" || header_.pets == 0 ||
      header_.pets > 1024) {
    throw refuse("\"seed N pets N idle 0|1\"");
  }
  header_.idle = idle != 0;
  if (header_.version == 1 && header_.idle)
    throw refuse("idle 0: what a pet does unasked is not what it was when this log was written");
  if (std::string word, who; head >> word) {
    const std::optional<TeacherKind> teacher = head >> who ? teacher_of(who) : std::nullopt;
    if (word != "teacher" || !teacher) throw refuse("\"teacher person|demo|praise|careless|off\" after idle");
    header_.teacher = *teacher;
  }
  if (std::string word, which; head >> word) {
    const std::optional<Learner> learner = head >> which ? learner_of(which) : std::nullopt;
    if (word != "learner" || !learner) throw refuse("\"learner feedback|dqn|coach|ppo\" after teacher");
    header_.learner = *learner;
  }
  events_.resize(header_.pets);
  std::uint64_t last = 0;
  while (next()) {
    if (text.empty()) continue;
    std::istringstream line(text);
    std::uint64_t frame = 0;
    std::string where;
    if (!(line >> frame >> where) || frame < last)
      throw refuse("a frame that is not before the last one, and a pet");
    last = frame;
    end_frame_ = frame + 1;
    if (where == "end") {
      end_frame_ = frame;
      break;
    }
    if (where == "steps") {
      std::uint32_t steps = 0;
      if (!(line >> steps) || steps > 64) throw refuse("a number of steps up to 64");
      steps_.push_back({frame, steps});
      continue;
    }
    std::string word;
    Signal signal;
    const std::size_t pet = where.find_first_not_of("0123456789") == std::string::npos && where.size() < 5
                                ? std::stoul(where)
                                : header_.pets;
    if (pet >= header_.pets || !(line >> word) || !read_signal(line, word, signal))
      throw refuse("a pet of this log and an event");
    changes_learner_ = changes_learner_ || signal.kind == SignalKind::learner;
    events_[pet].push_back({frame, signal});
  }
}

void SessionLogReader::read(std::uint64_t frame, std::size_t pet, std::vector<Signal>& signals) {
  std::deque<Event>& events = events_[pet];
  while (!events.empty() && events.front().frame <= frame) {
    if (events.front().frame == frame) signals.push_back(events.front().signal);
    events.pop_front();
  }
}

std::uint32_t SessionLogReader::steps(std::uint64_t frame) {
  while (!steps_.empty() && steps_.front().frame < frame) steps_.pop_front();
  return !steps_.empty() && steps_.front().frame == frame ? steps_.front().steps : 1;
}

}  // namespace pet
