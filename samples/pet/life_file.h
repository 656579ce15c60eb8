#ifndef IMPRINT_SAMPLES_PET_LIFE_FILE_H_
#define IMPRINT_SAMPLES_PET_LIFE_FILE_H_
// What of a pet's life is kept beside its mind: how uneasy it is about the sofa (Life::unease).

#include <span>
#include <string>
#include <vector>

namespace pet {

// A file beside the pet's own: `file` with .life at its end. One line a pet, in the order of the kennel: "unease 0.93".
std::string life_file(const std::string& pet_file);
// Pets that are not in it are at ease, as all are without such a file. Throws std::runtime_error with the line that is wrong, or when the file is there
// and cannot be opened.
std::vector<float> read_life(const std::string& file);
// unease: 0 .. 1 of each pet. To another name first, then renamed; pets at ease need no file and take away the one that is there. A file that read_life
// refuses, and one that it refused before (unread), is moved to the first of file.unread, file.unread-2 ... that is free. Why it is not on disk; empty: it is.
std::string write_life(const std::string& file, std::span<const float> unease, bool unread = false);

}  // namespace pet

#endif  // IMPRINT_SAMPLES_PET_LIFE_FILE_H_
