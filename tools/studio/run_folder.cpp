#include "tools/studio/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <span>
#include <sstream>
#include <string_view>
#include <system_error>

#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/files/event_file.h"
#include "compute/model/files/file.h"

namespace imprint::studio {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRemedy = ". Free some space on that disk, or choose another --folder.";

Result<> replace_file(const std::string& path, const std::string& content) {
  const Result<> written = write_file_atomic(path, std::as_bytes(std::span(content)));
  if (written) return {};
  return make_error(written.error().code, written.error().message + kRemedy);
}

Result<> make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    return make_error(ErrorCode::io, text("cannot make the folder '", path, "': ", error.message(), kRemedy));
  return {};
}

std::string words_of(const Checkpoint& checkpoint) {
  return text("checkpoint ", checkpoint.number, "\nexchanges ", checkpoint.exchanges, "\nsteps ",
              checkpoint.steps, "\nranks ", checkpoint.ranks, "\n");
}

std::optional<Checkpoint> read_words(std::istream& stream) {
  Checkpoint found;
  std::string words[4];
  stream >> words[0] >> found.number >> words[1] >> found.exchanges >> words[2] >> found.steps >> words[3] >>
      found.ranks;
  if (!stream || words[0] != "checkpoint" || words[3] != "ranks" || found.ranks == 0) return std::nullopt;
  return found;
}

}  // namespace

std::string RunFolder::brain_of(std::uint64_t checkpoint, std::uint32_t rank) const {
  return text(path_, "/checkpoints/", checkpoint, "/rank-", rank, ".brain");
}

std::string RunFolder::learner(std::uint32_t rank) const { return text(path_, "/learners/", rank); }

std::string RunFolder::episode(std::uint32_t rank, std::uint64_t number) const {
  return text(path_, "/episodes/", rank, "-", number >> 32, "-", number & UINT32_MAX, ".episode");
}

std::string RunFolder::league_brain(const std::string& name) const { return text(path_, "/league/", name); }

std::string RunFolder::league_of(std::uint64_t checkpoint) const {
  return text(path_, "/checkpoints/", checkpoint, "/league");
}

Result<> RunFolder::make_folders(const Use& use) const {
  if (use.league) IMPRINT_CHECK(make_folder(path_ + "/league"));
  if (use.episodes) IMPRINT_CHECK(make_folder(path_ + "/episodes"));
  if (use.learners) IMPRINT_CHECK(make_folder(path_ + "/learners"));
  IMPRINT_CHECK(make_folder(path_ + "/checkpoints"));
  return make_folder(path_ + "/alive");
}

Result<> RunFolder::make_checkpoint_folder(std::uint64_t number) const {
  return make_folder(text(path_, "/checkpoints/", number));
}

Result<std::optional<Checkpoint>> RunFolder::newest() const {
  std::ifstream stream(path_ + "/checkpoint");
  if (!stream) return std::optional<Checkpoint>();
  if (const std::optional<Checkpoint> found = read_words(stream)) return found;
  return make_error(ErrorCode::corrupt_file,
                    text(quote(path_ + "/checkpoint"),
                         ": found other words, expected checkpoint, exchanges, steps and ranks, each with "
                         "its number. Remove the file to begin again, or name another --folder."));
}

std::optional<Checkpoint> RunFolder::before(std::uint64_t number) const {
  std::ifstream stream(text(path_, "/checkpoints/", number - 1, "/checkpoint"));
  return read_words(stream);
}

Result<> RunFolder::complete(const Checkpoint& checkpoint) const {
  const std::string words = words_of(checkpoint);
  IMPRINT_CHECK(replace_file(text(path_, "/checkpoints/", checkpoint.number, "/checkpoint"), words));
  IMPRINT_CHECK(replace_file(path_ + "/checkpoint", words));
  const auto earlier = list_folder(path_ + "/checkpoints");
  if (!earlier) return {};  // they stay
  for (const fs::path path : *earlier) {
    std::uint64_t number = 0;
    std::istringstream name(path.filename().string());
    std::error_code ignored;
    if (name >> number && number + 1 < checkpoint.number) fs::remove_all(path, ignored);
  }
  return {};
}

std::vector<double> RunFolder::read_lesson(std::uint64_t checkpoint,
                                           const std::vector<double>& otherwise) const {
  std::ifstream stream(text(path_, "/checkpoints/", checkpoint, "/lesson"));
  std::vector<double> numbers;
  double number = 0;
  while (numbers.size() <= otherwise.size() && stream >> number) numbers.push_back(number);
  return numbers.size() == otherwise.size() ? numbers : otherwise;
}

Result<> RunFolder::write_lesson(std::uint64_t checkpoint, const std::vector<double>& numbers) const {
  std::ostringstream words;
  words.precision(17);
  for (const double number : numbers) words << number << "\n";
  return replace_file(text(path_, "/checkpoints/", checkpoint, "/lesson"), words.str());
}

Result<> RunFolder::cut_curve(const Checkpoint& from) const {
  if (const auto written = read_file(events())) {
    const std::string_view all(reinterpret_cast<const char*>(written->data()), written->size());
    IMPRINT_CHECK(replace_file(events(), events_up_to(all, static_cast<std::int64_t>(from.steps))));
  }
  std::ifstream stream(curve());
  if (!stream) return {};
  std::string kept, line;
  while (std::getline(stream, line)) {
    std::uint64_t number = 0;
    std::istringstream row(line);
    if (!(row >> number) || number <= from.exchanges)
      kept += line + "\n";  // the first line names the columns
  }
  return replace_file(curve(), kept);
}

// ---- one run at a time ----

Result<RunLock> RunLock::take(const std::string& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file >= 0 && ::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(file);
    return make_error(ErrorCode::wrong_state,
                      text("--folder: found another run in '", folder,
                           "', expected none. Wait for its end, or choose another folder."));
  }
  return RunLock(file);  // file systems without locks let it pass
}

RunLock::~RunLock() {
  if (file_ >= 0) ::close(file_);
}

// ---- how far each rank is ----

Result<std::shared_ptr<AliveNote>> AliveNote::create(const RunFolder& folder, std::uint32_t rank,
                                                     const std::string& computer) {
  const std::string path = text(folder.path(), "/alive/", rank);
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return std::shared_ptr<AliveNote>();
  // The file gets its block now: a write to a mapped hole on a full disk is SIGBUS.
  const int problem = ::posix_fallocate(file, 0, sizeof(Alive));
  void* memory = MAP_FAILED;
  if (problem == 0) memory = ::mmap(nullptr, sizeof(Alive), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (problem != 0)
    return make_error(ErrorCode::io, text("cannot write '", path, "': ", std::strerror(problem), kRemedy));
  if (memory == MAP_FAILED) return std::shared_ptr<AliveNote>();
  Alive* alive = new (memory) Alive;
  std::strncpy(alive->computer, computer.c_str(), sizeof alive->computer - 1);
  alive->process = static_cast<std::uint32_t>(::getpid());
  return std::shared_ptr<AliveNote>(new AliveNote(alive));
}

AliveNote::~AliveNote() { ::munmap(alive_, sizeof(Alive)); }

void AliveNote::set(std::uint64_t exchanges, bool waits) {
  alive_->exchanges = exchanges;
  alive_->waits = waits ? 1 : 0;
}

void AliveNote::add_frame() { ++alive_->frames; }
void AliveNote::set_over() { alive_->over = 1; }

// The tool writes it while the rank maps it.
bool AliveNote::asked_to_end() const { return static_cast<const volatile Alive*>(alive_)->asked_to_end != 0; }

bool ask_to_end(const std::string& folder) {
  if (!read_alive(folder, 0)) return false;
  const int file = ::open((folder + "/alive/0").c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const std::uint32_t asked = 1;
  const bool done = ::pwrite(file, &asked, sizeof asked, offsetof(Alive, asked_to_end)) == sizeof asked;
  ::close(file);
  return done;
}

std::optional<Alive> read_alive(const std::string& folder, std::uint32_t rank) {
  std::ifstream stream(text(folder, "/alive/", rank), std::ios::binary);
  Alive alive;
  if (!stream.read(reinterpret_cast<char*>(&alive), sizeof alive) || alive.process == 0) return std::nullopt;
  alive.computer[sizeof alive.computer - 1] = 0;
  return alive;
}

}  // namespace imprint::studio
