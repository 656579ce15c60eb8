// imprint_pages: checks the pages of the tree and writes their generated parts. Used by tools/figures and by
// the tests.

#include <cstdio>
#include <fstream>
#include <string_view>

#include "tools/pages/checks.h"
#include "tools/pages/loop.h"
#include "tools/pages/tables.h"
#include "tools/pages/words.h"

namespace {

namespace fs = std::filesystem;
using namespace imprint;
using namespace imprint::pages;

constexpr const char* kUsage =
    "usage: imprint_pages check ROOT         links, blocks of code, words, README's length, generated parts\n"
    "       imprint_pages check-installed FOLDER   links\n"
    "       imprint_pages write ROOT         writes the tables and the picture again\n"
    "       imprint_pages extract ROOT OUT   writes the pages' C and C++ to files of their own\n";

constexpr const char* kPicture = "plugin/docs/loop.svg";

int tell(const std::vector<std::string>& faults) {
  for (const std::string& fault : faults) std::fprintf(stderr, "%s\n", fault.c_str());
  return faults.empty() ? 0 : 1;
}

// Writes a generated file, or reports that it differs from the generated text.
void make(const fs::path& root, const fs::path& path, const std::string& made, bool write,
          std::vector<std::string>& faults) {
  if (read(root / path) == made) return;
  if (!write)
    faults.push_back(path.generic_string() +
                     ":1: found an older generated part, expected what tools/figures writes");
  else if (std::ofstream file(root / path, std::ios::binary); !(file << made))
    faults.push_back(path.generic_string() + ":1: cannot be written");
  else
    std::printf("%s\n", path.generic_string().c_str());
}

std::vector<std::string> generated(const fs::path& root, const std::vector<Page>& all, bool write) {
  std::vector<std::string> faults;
  make(root, kPicture, loop_picture(), write, faults);
  for (const Page& page : all) {
    if (const Result<std::string> made = with_tables(root, page); made)
      make(root, page.path, *made, write, faults);
    else
      faults.push_back(made.error().message);
  }
  return faults;
}

int check(const fs::path& root, const std::vector<Page>& all) {
  int status = 0;
  for (const auto& faults : {broken_links(root, all, false), wrong_blocks(root, all), long_readme(all),
                             inverted_words(root, all), generated(root, all, false)})
    status |= tell(faults);
  return status;
}

int check_installed(const fs::path& folder) {
  const std::vector<Page> all = read_pages(folder);
  return all.empty() ? tell({"found no page in " + folder.string()}) : tell(broken_links(folder, all, true));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view command = argc > 2 ? argv[1] : "";
  if (command == "check" && argc == 3) return check(argv[2], read_pages(argv[2]));
  if (command == "check-installed" && argc == 3) return check_installed(argv[2]);
  if (command == "write" && argc == 3) return tell(generated(argv[2], read_pages(argv[2]), true));
  if (command == "extract" && argc == 4) return extract(read_pages(argv[2]), argv[3]) ? 0 : 1;
  std::fputs(kUsage, stderr);
  return 2;
}
