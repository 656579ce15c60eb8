#include "tools/studio/run_folder.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "compute/base/text.h"

namespace imprint::studio {
namespace {

namespace fs = std::filesystem;

// All or nothing.
Result<> replace_file(const std::string& path, const std::string& content) {
  const std::string fresh = path + ".new";
  {
    std::ofstream stream(fresh, std::ios::binary | std::ios::trunc);
    stream << content;
    stream.flush();
    if (!stream)
      return make_error(ErrorCode::io, text("cannot write '", fresh,
                                            "'. Free some space on that disk, or "
                                            "choose another --folder."));
  }
  std::error_code error;
  fs::rename(fresh, path, error);
  if (error) return make_error(ErrorCode::io, text("cannot replace '", path, "': ", error.message()));
  return {};
}

Result<> make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return make_error(ErrorCode::io, text("cannot make the folder '", path, "': ", error.message()));
  return {};
}

}  // namespace

std::string RunFolder::brain_of(std::uint64_t checkpoint, std::uint32_t rank) const {
  return text(path_, "/checkpoints/", checkpoint, "/rank-", rank, ".brain");
}

Result<> RunFolder::make_folders() const {
  IMPRINT_CHECK(make_folder(path_ + "/checkpoints"));
  return make_folder(path_ + "/alive");
}

Result<> RunFolder::make_checkpoint_folder(std::uint64_t number) const {
  return make_folder(text(path_, "/checkpoints/", number));
}

Result<std::optional<Checkpoint>> RunFolder::newest() const {
  std::ifstream stream(path_ + "/checkpoint");
  if (!stream) return std::optional<Checkpoint>();
  Checkpoint found;
  std::string words[4];
  stream >> words[0] >> found.number >> words[1] >> found.exchanges >> words[2] >> found.steps >> words[3] >>
      found.ranks;
  if (stream && words[0] == "checkpoint" && words[3] == "ranks" && found.ranks > 0)
    return std::optional(found);
  return make_error(ErrorCode::corrupt_file,
                    text("'", path_,
                         "/checkpoint' is damaged. Remove it to begin again, or name another "
                         "--folder."));
}

Result<> RunFolder::complete(const Checkpoint& checkpoint) const {
  IMPRINT_CHECK(replace_file(path_ + "/checkpoint",
                             text("checkpoint ", checkpoint.number, "\nexchanges ", checkpoint.exchanges,
                                  "\nsteps ", checkpoint.steps, "\nranks ", checkpoint.ranks, "\n")));
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_ + "/checkpoints", ignored)) {
    std::uint64_t number = 0;
    std::istringstream name(entry.path().filename().string());
    if (name >> number && number + 1 < checkpoint.number) fs::remove_all(entry.path(), ignored);
  }
  return {};
}

Result<> RunFolder::cut_curve(std::uint64_t exchanges) const {
  std::ifstream stream(curve());
  if (!stream) return {};
  std::string kept, line;
  while (std::getline(stream, line)) {
    std::uint64_t number = 0;
    std::istringstream row(line);
    if (!(row >> number) || number <= exchanges) kept += line + "\n";  // the first line names the columns
  }
  return replace_file(curve(), kept);
}

void RunFolder::note_alive(std::uint32_t rank, std::uint64_t exchanges, bool waits) const {
  char computer[256] = {};
  (void)gethostname(computer, sizeof computer - 1);
  (void)replace_file(text(path_, "/alive/", rank), text(exchanges, waits ? " waits " : " plays ",
                                                        static_cast<long>(getpid()), " ", computer, "\n"));
}

std::optional<Alive> read_alive(const std::string& folder, std::uint32_t rank) {
  std::ifstream stream(text(folder, "/alive/", rank));
  Alive alive;
  std::string doing;
  if (!(stream >> alive.exchanges >> doing >> alive.process >> alive.computer)) return std::nullopt;
  alive.rank = rank;
  alive.waits = doing == "waits";
  return alive;
}

}  // namespace imprint::studio
