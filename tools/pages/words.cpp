#include "tools/pages/words.h"

#include <algorithm>
#include <regex>
#include <string_view>

#include "compute/base/text.h"
#include "tools/pages/prose.h"

namespace imprint::pages {
namespace {

namespace fs = std::filesystem;

// `hints`: the pattern is searched only in text that has one of them in lower case, which is much faster.
struct Rule {
  std::vector<std::string_view> hints;
  std::regex pattern;
  const char* expected;
};

constexpr auto kAnyCase = std::regex::icase | std::regex::optimize;

// Words and phrases that are never right.
const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = {
      {{"processor"}, std::regex(R"(\bthe processors?\b)", kAnyCase), "\"the CPU\""},
      {{"ane", "once m"}, std::regex(R"(\banew\b|\bonce more\b)", kAnyCase), "\"again\""},
      {{"for want"}, std::regex(R"(\bfor want of\b)", kAnyCase), "\"without\""},
      {{"but f"}, std::regex(R"(\bbut for\b)", kAnyCase), "\"except\""},
      {{"place of"}, std::regex(R"(\bin the place of\b)", kAnyCase), "\"instead of\""},
      {{"ever", "body"},
       std::regex(R"(\bwhoever\b|\bsomebody\b|\bnobody\b)", kAnyCase),
       "the name of who does it"},
      {{"so m"}, std::regex(R"(\bso many\b)", kAnyCase), "a number"},
      {{"host's"}, std::regex(R"(\bof the host's\s*([,.;:)]|$))", kAnyCase), "\"the host's X\""},
      {{"our"}, std::regex(R"(\bours\b|\bof our own\b)", kAnyCase), "\"Imprint's\""},
      {{"n own"}, std::regex(R"(\ban own\b)", kAnyCase), "\"its own\""},
      {{"to be"}, std::regex(R"(\b(is|are|was|were) to be\b)", kAnyCase), "\"must be\" or the present tense"},
      {{"hen", "thu", "where", "there", "hither", "les", "upo"},
       std::regex(R"(\bhence\b|\bthus\b|\bwhence\b|\bwherein\b|\bwhereby\b|\bthereby\b|\bthereof\b|)"
                  R"(\btherein\b|\bhitherto\b|\blest\b|\bupon\b)",
                  kAnyCase),
       "\"so\", \"in which\", \"on\" or a new sentence"},
      {{"once a", "twice a"},
       std::regex(R"(\b(once|twice) an? (frame|second|minute)\b(?! (is|has|was|ends|begins)\b))", kAnyCase),
       "\"per X\""},
      {{"s a ", "s an ", "n a ", "n an ", "h a ", "h an "},
       std::regex(R"(\b(times|[num]s|[a-z]*seconds|bytes|decisions|dispatches|submissions?|minibatch(es)?) )"
                  R"(an? (frame|second|row|element|step|dispatch|minibatch|update|run|turn)\b)",
                  kAnyCase),
       "\"per X\""},
  };
  return all;
}

// A comment names its subject first.
const Rule& opening() {
  static const Rule rule = {{},
                            std::regex(R"(^\s*(What|Who|Whose|Of)\b(?![^.]*\?))", std::regex::optimize),
                            "a comment that names its subject"};
  return rule;
}

constexpr const char* kExceptions[] = {
    "tests/consumer/pages/bad.cmake",  // tests this check
    "shaders/products/tiles.glsl",     // part of generated kernels, whose bytes stay
};

class Search {
 public:
  explicit Search(std::vector<std::string>& faults) : faults_(faults) {}

  template <class LineAt>
  void look(const Rule& rule, const fs::path& path, const std::string& text, LineAt line_at) {
    if (std::smatch found; std::regex_search(text, found, rule.pattern))
      faults_.push_back(imprint::text(path.generic_string(), ':',
                                      line_at(static_cast<std::size_t>(found.position())), ": found \"",
                                      found.str(), "\", expected ", rule.expected));
  }

  template <class LineAt>
  void look_for_all(const fs::path& path, const std::string& text, LineAt line_at) {
    std::string lower = text;
    for (char& c : lower)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    for (const Rule& rule : rules())
      if (std::ranges::any_of(rule.hints,
                              [&](std::string_view hint) { return lower.find(hint) != lower.npos; }))
        look(rule, path, text, line_at);
  }

  void look_in(const Page& page) {
    for (std::size_t i = 0; i < page.lines.size(); ++i)
      if (page.prose[i]) look_for_all(page.path, page.lines[i], [&](std::size_t) { return i + 1; });
  }

  void look_in(const fs::path& path, Language language, std::string_view content) {
    for (const Passage& passage : passages_of(language, content)) {
      const auto line_at = [&](std::size_t offset) { return passage.line_at(offset); };
      look_for_all(path, passage.text, line_at);
      if (passage.comment) look(opening(), path, passage.text, line_at);
    }
  }

 private:
  std::vector<std::string>& faults_;
};

}  // namespace

std::vector<std::string> inverted_words(const fs::path& root, const std::vector<Page>& pages) {
  std::vector<std::string> faults;
  Search search(faults);
  for (const Page& page : pages) search.look_in(page);
  std::vector<fs::path> files;
  for (auto entry = fs::recursive_directory_iterator(root); entry != fs::recursive_directory_iterator();
       ++entry) {
    const std::string name = entry->path().filename().string();
    if (entry->is_directory() && (name.starts_with('.') || name.starts_with("build")))
      entry.disable_recursion_pending();
    else if (entry->is_regular_file())
      files.push_back(fs::relative(entry->path(), root));
  }
  std::ranges::sort(files);
  for (const fs::path& file : files) {
    if (std::ranges::find(kExceptions, file.generic_string()) != std::end(kExceptions)) continue;
    const std::string extension = file.extension().string();
    if (!extension.empty() && language_of(file, {}) == Language::none) continue;
    const std::string content = read(root / file);
    if (const Language language = language_of(file, content); language != Language::none)
      search.look_in(file, language, content);
  }
  return faults;
}

}  // namespace imprint::pages
