#pragma once

#include <string_view>

namespace imprint {

// Whether the text is well-formed UTF-8 (The Unicode Standard, table 3-7): no stray or missing bytes, no
// overlong forms, no surrogates.
bool is_utf8(std::string_view text);

}  // namespace imprint
