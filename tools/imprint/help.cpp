#include "tools/imprint/help.h"

#include <CLI/CLI.hpp>
#include <sstream>
#include <string>
#include <utility>

namespace imprint::tools {
namespace {

// Folds long lines at spaces. Words are not cut; an indented line continues without indentation.
std::string fold(const std::string& text, std::size_t width) {
  std::istringstream lines(text);
  std::string folded, line;
  while (std::getline(lines, line)) {
    while (line.size() > width) {
      const std::size_t end = line.rfind(' ', width);
      if (end == std::string::npos) break;
      folded += line.substr(0, end) + "\n";
      line.erase(0, end + 1);
    }
    folded += line + "\n";
  }
  if (!folded.empty()) folded.pop_back();
  return folded;
}

class FoldingFormatter : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    return fold(CLI::Formatter::make_option_desc(option), text_width());
  }

  std::string make_subcommand(const CLI::App* command) const override {
    std::string row = "  " + command->get_display_name();
    row.resize(std::max(row.size() + 1, get_column_width()), ' ');
    for (const char c : fold(command->get_description(), text_width())) {
      row += c;
      if (c == '\n') row.append(get_column_width(), ' ');
    }
    return row + "\n";
  }

  // A command that starts another program.
  std::string make_usage(const CLI::App* command, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(command, std::move(name));
    if (!command->get_prefix_command()) return usage;
    while (!usage.empty() && usage.back() == '\n') usage.pop_back();
    return usage + " GAME [ARGS...]\n";
  }

  std::string make_description(const CLI::App* command) const override {
    return folded_block(CLI::Formatter::make_description(command));
  }
  std::string make_footer(const CLI::App* command) const override {
    return folded_block(CLI::Formatter::make_footer(command));
  }

 private:
  std::size_t text_width() const { return kHelpWidth - get_column_width(); }
  static std::string folded_block(const std::string& text) {
    return text.empty() ? text : fold(text, kHelpWidth) + "\n";
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<FoldingFormatter>(); }

}  // namespace imprint::tools
