#pragma once
// JSON of files, read so that no nesting can take the stack: copying, writing and destroying it cost a frame
// a level.

#include <string_view>

namespace imprint {

// Json: one of nlohmann's. Discarded (is_discarded) for what is no JSON, and for what nests deeper than
// `deepest` levels.
template <class Json>
Json parse_shallow_json(std::string_view text, int deepest = 8) {
  bool is_too_deep = false;
  const auto guard = [&](int depth, typename Json::parse_event_t, const Json&) {
    is_too_deep = is_too_deep || depth > deepest;
    return depth <= deepest;
  };
  Json json = Json::parse(text.begin(), text.end(), guard, false);
  return is_too_deep ? Json(Json::value_t::discarded) : json;
}

}  // namespace imprint
