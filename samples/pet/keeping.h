#pragma once
// Which pet a window starts with, and in which file it is saved. Only a person's own pet overwrites its file.
// A pet of --load, --teacher, --fresh or --replay is saved only where --save says.

#include <optional>
#include <string>

#include "samples/pet/options.h"

namespace pet {

struct Keeping {
  std::string load;         // empty: a new pet
  std::string save;         // empty: it is not saved
  bool remembered = false;  // load is the person's own pet
  // One line for the screen.
  std::string words() const;
};

// own_file: the file of the person's own pet; empty when there is no place for one.
Keeping keeping(const Options& options, const std::string& own_file, bool own_exists);

// Moves an unreadable pet and the files beside it to free_name(pet_file + ".unread"), and returns that name.
// Nothing on failure; then no file has moved.
std::optional<std::string> keep_aside(const std::string& pet_file);

// The file of the person's own pet. A kennel has another shape, so another file. Empty when there is no place
// for it.
std::string own_pet_file(const Options& options);

// The person's reaction time in seconds. Nothing when it was never measured.
std::optional<double> read_reaction(const std::string& file);
bool write_reaction(const std::string& file, double seconds);
std::string reaction_file();  // empty when there is no place for it

}  // namespace pet
