#include "compute/base/json.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "compute/base/quote.h"
#include "compute/base/text.h"

namespace imprint {
namespace {

using Json = nlohmann::json;

// Memory of the parts of a nlohmann::json, including the allocator's overhead. A growing vector holds its old
// and new storage at once: three times its content.
constexpr std::size_t kAllocation = 16;
constexpr std::size_t kElementBytes = 3 * sizeof(Json);
constexpr std::size_t kListBytes = sizeof(Json::array_t) + kAllocation;
constexpr std::size_t kObjectBytes = sizeof(Json::object_t) + kAllocation;
constexpr std::size_t kMemberBytes = sizeof(Json::object_t::value_type) + 4 * sizeof(void*) + kAllocation;
constexpr std::size_t kTextBytes = sizeof(std::string) + kAllocation;

std::size_t heap_bytes(const std::string& text) {
  return text.size() < sizeof(std::string) / 2 ? 0 : text.size() + 1 + kAllocation;
}

// Checks a text before it becomes a value. Each event returns whether to continue.
class Guard {
 public:
  explicit Guard(std::size_t text_bytes) : bytes_left_(kJsonBytesPerByte * text_bytes + kJsonBytes) {}

  const std::string& problem() const { return problem_; }

  bool null() { return value(0); }
  bool boolean(bool) { return value(0); }
  bool number_integer(Json::number_integer_t) { return value(0); }
  bool number_unsigned(Json::number_unsigned_t) { return value(0); }
  bool number_float(Json::number_float_t, const std::string&) { return value(0); }
  bool string(std::string& text) { return value(kTextBytes + heap_bytes(text)); }
  bool binary(Json::binary_t&) { return refuse("binary data: no JSON text holds any"); }

  bool start_object(std::size_t) { return value(kObjectBytes) && open(true); }
  bool start_array(std::size_t) { return value(kListBytes) && open(false); }
  bool key(std::string& name) {
    if (!take(kMemberBytes + heap_bytes(name))) return false;
    names_.push_back(std::move(name));
    return true;
  }
  bool end_object() {
    const auto first = names_.begin() + static_cast<std::ptrdiff_t>(levels_.back().first_name);
    std::sort(first, names_.end());
    if (const auto twice = std::adjacent_find(first, names_.end()); twice != names_.end())
      return refuse(text(quote(*twice), " twice in one object"));
    names_.erase(first, names_.end());
    levels_.pop_back();
    return true;
  }
  bool end_array() {
    levels_.pop_back();
    return true;
  }
  bool parse_error(std::size_t byte, const std::string&, const nlohmann::detail::exception&) {
    return refuse(text("no JSON at byte ", byte));
  }

 private:
  struct Level {
    bool is_object;
    std::size_t first_name;  // index in names_ of the object's first name
  };

  bool refuse(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }
  bool take(std::size_t bytes) {
    if (bytes > bytes_left_)
      return refuse(text("JSON of more than ", kJsonBytesPerByte, " bytes of memory per byte of text"));
    bytes_left_ -= bytes;
    return true;
  }
  // key() has already counted an object's members.
  bool value(std::size_t own_bytes) {
    return take(own_bytes + (levels_.empty() || levels_.back().is_object ? 0 : kElementBytes));
  }
  bool open(bool is_object) {
    if (levels_.size() == kDeepestJson)
      return refuse(text("JSON nested deeper than ", kDeepestJson, " levels"));
    levels_.push_back({is_object, names_.size()});
    return true;
  }

  std::size_t bytes_left_;
  std::vector<Level> levels_;
  std::vector<std::string> names_;  // names in the open objects, innermost last
  std::string problem_;
};

}  // namespace

Result<Json> parse_json(std::string_view content) {
  Guard guard(content.size());
  if (!Json::sax_parse(content.begin(), content.end(), &guard))
    return make_error(ErrorCode::corrupt_file, "found " + guard.problem());
  return Json::parse(content.begin(), content.end(), nullptr, false);
}

}  // namespace imprint
