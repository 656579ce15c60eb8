#pragma once
// Which pet a window opens with, and which file it goes to at the end. A person's own pet is overwritten by
// nothing but itself: whoever plays with another one (--load), lets a script teach (--teacher), starts anew
// (--fresh) or replays a log keeps that pet only in a file of its own (--save).

#include <optional>
#include <string>

#include "samples/pet/options.h"

namespace pet {

struct Keeping {
  std::string load;         // empty: a new pet
  std::string save;         // empty: it is not kept
  bool remembered = false;  // load is the person's own pet
  // One line for the screen.
  std::string words() const;
};

// own_file: where the person's own pet is kept; empty when there is no such place.
Keeping keeping(const Options& options, const std::string& own_file, bool own_exists);

// Moves a pet that cannot be read out of the way of the next one, with what is kept beside it: to
// free_name(pet_file + ".unread"), which is the answer. Nothing when that cannot be done: then all is where
// it was.
std::optional<std::string> keep_aside(const std::string& pet_file);

// The person's own pet; a kennel has another shape, so another file. Empty when there is no place for it.
std::string own_pet_file(const Options& options);

// What is known of the person. Nothing when it was never measured.
std::optional<double> read_reaction(const std::string& file);
bool write_reaction(const std::string& file, double seconds);
std::string reaction_file();  // empty when there is no place for it

}  // namespace pet
