#include "samples/pet/kept/session_log.h"

#include <array>
#include <charconv>
#include <cinttypes>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

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

Result<std::unique_ptr<SessionLogWriter>> SessionLogWriter::create(const std::string& path,
                                                                   const LogHeader& header) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (!file) return Error{"cannot write the log " + path};
  std::unique_ptr<SessionLogWriter> made(new SessionLogWriter(path, file));
  std::fprintf(file, "%s %u\nseed %" PRIu64 " pets %u idle %d teacher %s learner %s\n", kFirstWord,
               header.version, header.seed, header.pets, header.idle ? 1 : 0, name(header.teacher),
               name(header.learner));
  // A full disk shows now rather than after the game.
  if (std::string why = made->problem(); !why.empty()) return Error{std::move(why)};
  return made;
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

Result<SessionLogReader> SessionLogReader::open(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Error{"cannot read the log " + path};
  SessionLogReader log;
  std::string line;
  std::size_t number = 0;
  const auto wrong = [&](const char* expected) {
    return Error{path + ", line " + std::to_string(number) + ": found \"" + line + "\", expected " +
                 expected};
  };
  const auto next = [&] { return ++number, static_cast<bool>(std::getline(file, line)); };
  const std::optional<std::uint32_t> version = next() ? version_of(line) : std::nullopt;
  if (!version) return wrong("\"imprint-pet-log 3\", or 1 or 2");
  log.header_.version = *version;
  if (!next()) return wrong("seed, pets and idle");
  if (const char* expected = log.read_header(line)) return wrong(expected);
  log.events_.resize(log.header_.pets);
  while (!log.ended_ && next()) {
    if (line.empty()) continue;
    if (const char* expected = log.read_event(line)) return wrong(expected);
  }
  return log;
}

const char* SessionLogReader::read_header(const std::string& line) {
  std::istringstream head(line);
  std::array<std::string, 3> words;
  int idle = 0;
  if (!(head >> words[0] >> header_.seed >> words[1] >> header_.pets >> words[2] >> idle) ||
      words[0] != "seed" || words[1] != "pets" || words[2] != "idle" || header_.pets == 0 ||
      header_.pets > 1024)
    return "\"seed N pets N idle 0|1\"";
  header_.idle = idle != 0;
  if (header_.version == 1 && header_.idle)
    return "idle 0: idle pets of version 1 played by other rules, so this log cannot be replayed";
  if (std::string word, who; head >> word) {
    const std::optional<TeacherKind> teacher = head >> who ? teacher_of(who) : std::nullopt;
    if (word != "teacher" || !teacher) return "\"teacher person|demo|praise|careless|off\" after idle";
    header_.teacher = *teacher;
  }
  if (std::string word, which; head >> word) {
    const std::optional<Learner> learner = head >> which ? learner_of(which) : std::nullopt;
    if (word != "learner" || !learner) return "\"learner feedback|dqn|coach|ppo\" after teacher";
    header_.learner = *learner;
  }
  return nullptr;
}

const char* SessionLogReader::read_event(const std::string& text) {
  std::istringstream line(text);
  std::uint64_t frame = 0;
  std::string where;
  if (!(line >> frame >> where) || frame < last_frame_)
    return "a frame that is not before the last one, and a pet";
  last_frame_ = frame;
  end_frame_ = frame + 1;
  if (where == "end") {
    end_frame_ = frame;
    ended_ = true;
    return nullptr;
  }
  if (where == "steps") {
    std::uint32_t steps = 0;
    if (!(line >> steps) || steps > 64) return "a number of steps up to 64";
    steps_.push_back({frame, steps});
    return nullptr;
  }
  std::string word;
  Signal signal;
  std::size_t pet = header_.pets;
  std::from_chars(where.data(), where.data() + where.size(), pet);
  if (where.find_first_not_of("0123456789") != std::string::npos || pet >= header_.pets || !(line >> word) ||
      !read_signal(line, word, signal))
    return "a pet of this log and an event";
  changes_learner_ = changes_learner_ || signal.kind == SignalKind::learner;
  events_[pet].push_back({frame, signal});
  return nullptr;
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
