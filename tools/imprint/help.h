#pragma once
// How --help is laid out.

#include <memory>

namespace CLI {
class FormatterBase;
}

namespace imprint::tools {

inline constexpr int kHelpWidth = 100;  // characters

// CLI11's own layout, folded at spaces to kHelpWidth. Commands take it from the one that they are added to.
std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace imprint::tools
