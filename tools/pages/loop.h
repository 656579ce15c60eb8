#pragma once
// The picture of plugin/docs/concepts.md: the steps from an observation to a better brain, and the GPU time
// that they take.

#include <string>

namespace imprint::pages {

// An SVG document. The same bytes each time.
std::string loop_picture();

}  // namespace imprint::pages
