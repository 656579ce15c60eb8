#pragma once
// The picture of plugin/docs/concepts.md: what happens between an observation and a better brain, and whose
// GPU time it takes.

#include <string>

namespace imprint::pages {

// An SVG document. The same bytes each time.
std::string loop_picture();

}  // namespace imprint::pages
