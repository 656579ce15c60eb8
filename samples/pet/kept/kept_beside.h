#pragma once
// Small files of lines that are kept beside a pet's own file, below a heading that says what they are. A
// person may write in them.

#include <functional>
#include <span>
#include <stdexcept>
#include <string>

namespace pet {

std::string names_file(const std::string& pet_file);  // CueNames: .names at its end
std::string life_file(const std::string& pet_file);   // Life::unease: .life at its end
// The first of file, file-2, file-3 ... that neither a pet nor what is kept beside it has.
std::string free_name(const std::string& file);

// Hands every line below the heading to take, which says what is wrong with it; empty: nothing. Nothing to
// hand over without such a file. Throws std::runtime_error with the line that is wrong, or when the file is
// there and cannot be opened.
void read_lines(const std::string& file, const std::string& heading,
                const std::function<std::string(const std::string&)>& take);

// Whether read, which is a use of read_lines, takes the file.
template <typename Read>
bool takes(const Read& read, const std::string& file) {
  try {
    (void)read(file);
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

// Puts heading and lines where the file is: to another name first, then renamed. Without lines the file is
// taken away. keep_old: the file that was there is moved to free_name(file + ".unread") first. Why it is not
// on disk; empty: it is.
std::string replace_lines(const std::string& file, const std::string& heading,
                          std::span<const std::string> lines, bool keep_old);

}  // namespace pet
