#include "compute/vk/pipelines/newer_matrices.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string_view>
#include <unordered_set>

namespace imprint::vk {
namespace {

// Operations and capabilities of the SPIR-V specification and of both extensions.
enum : std::uint32_t {
  kName = 5,
  kExtension = 10,
  kCapability = 17,
  kTypeInt = 21,
  kTypeFloat = 22,
  kConstantTrue = 41,
  kConstantFalse = 42,
  kConstant = 43,
  kSpecConstant = 50,
  kLoad = 61,
  kDecorate = 71,
  kCompositeExtract = 81,
  kOlderCapability = 5357,
  kOlderType = 5358,
  kOlderLoad = 5359,
  kOlderStore = 5360,
  kOlderMultiplyAdd = 5361,
  kOlderLength = 5362,
  kNewerType = 4456,
  kNewerLoad = 4457,
  kNewerStore = 4458,
  kNewerMultiplyAdd = 4459,
  kNewerLength = 4460,
  kNewerCapability = 6022
};
enum : std::uint32_t { kLeft, kRight, kSums };  // uses
constexpr std::size_t kHeader = 5, kBound = 3;  // words
constexpr std::string_view kOlder = "SPV_NV_cooperative_matrix", kNewer = "SPV_KHR_cooperative_matrix";

// use(operation, words): the first word has the length and the operation. False: the module is damaged.
template <typename Use>
bool each(const Spirv& spirv, Use use) {
  for (std::size_t i = kHeader; i < spirv.size();) {
    const std::size_t length = spirv[i] >> 16;
    if (length == 0 || i + length > spirv.size()) return false;
    use(spirv[i] & 0xffff, std::span(spirv).subspan(i, length));
    i += length;
  }
  return true;
}

std::string_view text_of(std::span<const std::uint32_t> words) {
  const char* text = reinterpret_cast<const char*>(words.data() + 1);
  return {text, strnlen(text, 4 * (words.size() - 1))};
}

// The matrices of a module, and whether it can be translated.
struct Found {
  std::uint32_t unsigned_type = 0, yes = 0, no = 0;
  std::unordered_set<std::uint32_t> narrow_floats;  // types
  std::unordered_set<std::uint32_t> specialised;    // constants
  std::unordered_set<std::uint32_t> halves;         // types of matrices
  bool has_matrices = false, has_right = false, multiplies = false, is_fit = true;
};

// The fewest words of an instruction that is translated.
std::size_t least_words(std::uint32_t op) {
  switch (op) {
    case kOlderType:
    case kOlderLoad:
      return 6;
    case kOlderStore:
      return 5;
    case kCapability:
    case kExtension:
      return 2;
    default:
      return 1;
  }
}

bool makes_matrix(std::uint32_t op) {
  return op != kOlderType && op != kLoad && op != kOlderLoad && op != kCompositeExtract && op != kName &&
         op != kDecorate;
}

Found look(const Spirv& spirv) {
  Found found;
  const bool whole = each(spirv, [&](std::uint32_t op, std::span<const std::uint32_t> words) {
    const auto word = [&](std::size_t i) { return i < words.size() ? words[i] : 0; };
    if (op == kTypeInt && word(2) == 32 && word(3) == 0) found.unsigned_type = word(1);
    if (op == kTypeFloat && word(2) == 16) found.narrow_floats.insert(word(1));
    if (op == kConstantTrue) found.yes = word(2);
    if (op == kConstantFalse) found.no = word(2);
    if (op == kSpecConstant) found.specialised.insert(word(2));
    if (op == kOlderType) {
      found.has_matrices = true;
      if (found.narrow_floats.contains(word(2))) {
        found.halves.insert(word(1));
        if (found.specialised.contains(word(4))) found.has_right = true;
      }
    }
    if (op == kOlderMultiplyAdd) found.multiplies = true;
    const std::uint32_t layout = op == kOlderLoad ? word(5) : op == kOlderStore ? word(4) : found.no;
    if (layout != found.yes && layout != found.no) found.is_fit = false;
    if (words.size() < least_words(op)) found.is_fit = false;
    if (found.halves.contains(word(1)) && makes_matrix(op)) found.is_fit = false;
  });
  found.is_fit = found.is_fit && whole && found.has_matrices && found.unsigned_type != 0 &&
                 (found.has_right || !found.multiplies);
  return found;
}

}  // namespace

std::optional<Spirv> in_newer_matrices(const Spirv& spirv) {
  if (spirv.size() < kHeader) return std::nullopt;
  const Found found = look(spirv);
  if (!found.is_fit) return std::nullopt;

  Spirv out(spirv.begin(), spirv.begin() + kHeader);
  const std::uint32_t numbers = out[kBound];  // constants 0 to 2: layouts and uses
  out[kBound] += 3;
  const auto put = [&](std::initializer_list<std::uint32_t> words) { out.insert(out.end(), words); };
  const auto first = [](std::uint32_t op, std::size_t length) {
    return static_cast<std::uint32_t>(length) << 16 | op;
  };
  const auto layout = [&](std::uint32_t by_columns) { return numbers + (by_columns == found.yes ? 1 : 0); };
  bool has_numbers = false;
  each(spirv, [&](std::uint32_t op, std::span<const std::uint32_t> words) {
    const auto rest = [&](std::size_t from) { out.insert(out.end(), words.begin() + from, words.end()); };
    const std::size_t length = words.size();
    switch (op) {
      case kCapability:
        return put({words[0], words[1] == kOlderCapability ? kNewerCapability : words[1]});
      case kExtension: {
        if (text_of(words) != kOlder) return rest(0);
        std::array<std::uint32_t, kNewer.size() / 4 + 1> text{};
        std::memcpy(text.data(), kNewer.data(), kNewer.size());
        out.push_back(first(kExtension, text.size() + 1));
        out.insert(out.end(), text.begin(), text.end());
        return;
      }
      case kOlderType: {
        for (std::uint32_t number = 0; number < 3 && !has_numbers; ++number)
          put({first(kConstant, 4), found.unsigned_type, numbers + number, number});
        has_numbers = true;
        const std::uint32_t use = !found.halves.contains(words[1])       ? kSums
                                  : found.specialised.contains(words[4]) ? kRight
                                                                         : kLeft;
        out.push_back(first(kNewerType, length + 1));
        rest(1);
        return put({numbers + use});
      }
      case kOlderLoad:
        put({first(kNewerLoad, length), words[1], words[2], words[3], layout(words[5]), words[4]});
        return rest(6);
      case kOlderStore:
        put({first(kNewerStore, length), words[1], words[2], layout(words[4]), words[3]});
        return rest(5);
      case kOlderMultiplyAdd:
        out.push_back(first(kNewerMultiplyAdd, length));
        return rest(1);
      case kOlderLength:
        out.push_back(first(kNewerLength, length));
        return rest(1);
      default:
        return rest(0);
    }
  });
  return out;
}

}  // namespace imprint::vk
