#include "samples/pet/keeping.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "samples/pet/kept/folders.h"
#include "samples/pet/kept/kept_beside.h"

namespace pet {
namespace {

std::string own_file(const std::string& name) {
  const std::string folder = data_directory();
  return folder.empty() ? std::string() : (std::filesystem::path(folder) / name).string();
}

}  // namespace

std::string Keeping::words() const {
  if (save.empty()) return "This pet is not kept when you leave: start with --save FILE to keep it.";
  return "This pet is kept in " + save + ".";
}

Keeping keeping(const Options& options, const std::string& own_file, bool own_exists) {
  const bool own = options.load.empty() && options.teacher == TeacherKind::none && !options.fresh &&
                   options.replay.empty();
  Keeping keeping{options.load, options.save, false};
  if (!own) return keeping;
  keeping.remembered = own_exists && !own_file.empty();
  if (keeping.remembered) keeping.load = own_file;
  if (keeping.save.empty()) keeping.save = own_file;
  return keeping;
}

std::optional<std::string> keep_aside(const std::string& pet_file) {
  const std::string aside = free_name(pet_file + ".unread");
  const std::pair<std::string, std::string> moves[] = {
      {names_file(pet_file), names_file(aside)}, {life_file(pet_file), life_file(aside)}, {pet_file, aside}};
  std::error_code error, ignored;
  for (std::size_t i = 0; i < std::size(moves); ++i) {
    std::filesystem::rename(moves[i].first, moves[i].second, error);
    const bool beside = i + 1 < std::size(moves);
    if (!error || (beside && error == std::errc::no_such_file_or_directory)) continue;
    while (i-- > 0) std::filesystem::rename(moves[i].second, moves[i].first, ignored);
    return std::nullopt;
  }
  return aside;
}

std::string own_pet_file(const Options& options) {
  const std::string learner =
      options.learner == Learner::feedback ? std::string() : std::string("-") + name(options.learner);
  return own_file((options.kennel == 1 ? "pet" : "kennel-" + std::to_string(options.kennel)) + learner +
                  ".imprint");
}

std::string reaction_file() { return own_file("player.txt"); }

std::optional<double> read_reaction(const std::string& file) {
  std::ifstream text(file);
  std::string word;
  double milliseconds = 0.0;
  if (!(text >> word >> milliseconds) || word != "reaction_ms" || !(milliseconds > 0.0 && milliseconds < 1e5))
    return std::nullopt;
  return milliseconds * 1e-3;
}

bool write_reaction(const std::string& file, double seconds) {
  if (file.empty()) return false;
  std::ofstream text(file);
  text << "reaction_ms " << std::lround(seconds * 1e3) << "\n";
  text.close();
  return static_cast<bool>(text);
}

}  // namespace pet
