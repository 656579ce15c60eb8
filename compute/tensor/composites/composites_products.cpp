// Products by letters, and what is made of them.

#include <algorithm>
#include <cmath>
#include <string>

#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/narrow_floats.h"

namespace imprint {

using namespace tensor;

namespace {

bool has(const std::string& letters, char letter) { return letters.find(letter) != letters.npos; }

// An operand with one letter per axis.
struct Lettered {
  Tensor value;
  std::string letters;
};

// Axes whose letter nothing else uses are summed; a letter twice becomes the diagonal.
Lettered reduced(Lettered in, const std::string& needed) {
  for (std::size_t i = 0; i < in.letters.size(); ++i) {
    const std::size_t again = in.letters.find(in.letters[i], i + 1);
    if (again == std::string::npos) continue;
    const char letter = in.letters[i];
    in.value = movedim(movedim(in.value, static_cast<int>(i), -1), static_cast<int>(again) - 1, -1);
    in.value = diagonal(in.value);
    in.letters.erase(again, 1);
    in.letters.erase(i, 1);
    in.letters += letter;
    i = static_cast<std::size_t>(-1);  // positions have moved
  }
  Axes lonely;
  std::string kept;
  for (std::size_t i = 0; i < in.letters.size(); ++i) {
    if (has(needed, in.letters[i]))
      kept += in.letters[i];
    else
      lonely.push_back(static_cast<int>(i));
  }
  if (!lonely.empty()) in.value = sum(in.value, lonely);
  in.letters = kept;
  return in;
}

// The operand's axes in the order of the letters; letters that it lacks become extents of 1.
Tensor arranged(const Lettered& in, const std::string& letters) {
  Axes order;
  Shape shape;
  for (const char letter : letters) {
    const std::size_t at = in.letters.find(letter);
    shape.append(at == std::string::npos ? 1 : in.value.extent(static_cast<int>(at)));
    if (at != std::string::npos) order.push_back(static_cast<int>(at));
  }
  return reshape(permute(in.value, order), shape);
}

std::int64_t count_of(const Lettered& in, const std::string& letters) {
  std::int64_t count = 1;
  for (const char letter : letters) count *= in.value.extent(static_cast<int>(in.letters.find(letter)));
  return count;
}

// The product of two operands, with the letters that are still needed.
Lettered contracted(const Lettered& a, const Lettered& b, const std::string& needed) {
  std::string both, inner, left, right;
  for (const char letter : a.letters)
    (has(b.letters, letter) ? has(needed, letter) ? both : inner : left) += letter;
  for (const char letter : b.letters)
    if (!has(a.letters, letter)) right += letter;
  const std::string letters = both + left + right;
  if (inner.empty()) return {arranged(a, letters) * arranged(b, letters), letters};
  const std::int64_t rows = count_of(a, left), columns = count_of(b, right), terms = count_of(a, inner),
                     batch = count_of(a, both);
  const Tensor product = matmul(reshape(arranged(a, both + left + inner), {batch, rows, terms}),
                                reshape(arranged(b, both + inner + right), {batch, terms, columns}));
  Shape shape;
  for (const char letter : letters) {
    const Lettered& owner = has(a.letters, letter) ? a : b;
    shape.append(owner.value.extent(static_cast<int>(owner.letters.find(letter))));
  }
  return {reshape(product, shape), letters};
}

struct Formula {
  std::vector<std::string> operands;
  std::string result;
  bool ok = false;
};

// The formula without spaces, and with letters for the axes that "..." stands for.
std::string spelled_out(std::string_view text, std::span<const Tensor> operands) {
  std::string compact;
  for (const char c : text)
    if (c != ' ') compact += c;
  if (compact.find("...") == compact.npos) return compact;
  const std::size_t arrow = std::min(compact.find("->"), compact.size());
  // The axes of each operand that letters do not name.
  std::vector<std::size_t> open(operands.size() + 1);
  std::size_t operand = 0, begin = 0, most = 0;
  for (std::size_t i = 0; i <= arrow; ++i) {
    if (i < arrow && compact[i] != ',') continue;
    const std::string part = compact.substr(begin, i - begin);
    const auto letters =
        static_cast<int>(part.size() - static_cast<std::size_t>(std::ranges::count(part, '.')));
    if (operand < operands.size() && part.find("...") != part.npos)
      open[operand] = static_cast<std::size_t>(std::max(0, operands[operand].rank() - letters));
    most = std::max(most, open[std::min(operand++, operands.size())]);
    begin = i + 1;
  }
  std::string fresh, out;
  for (const char* c = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"; *c; ++c)
    if (!has(compact, *c) && fresh.size() < most) fresh += *c;
  if (fresh.size() < most) return compact;  // which is refused
  operand = 0;
  for (std::size_t i = 0; i < compact.size(); ++i) {
    if (compact[i] == ',') ++operand;
    if (compact.compare(i, 3, "...") != 0) {
      out += compact[i];
      continue;
    }
    out += fresh.substr(i > arrow ? 0 : most - open[std::min(operand, operands.size())]);
    i += 2;
  }
  if (arrow < compact.size()) return out;
  std::string once;
  for (char c = 'A'; c <= 'z'; ++c)
    if (c != '.' && c != ',' && std::ranges::count(compact, c) == 1) once += c;
  return out + "->" + fresh + once;
}

Formula parsed(std::string_view text) {
  Formula formula;
  const std::size_t arrow = text.find("->");
  const std::string_view left = text.substr(0, arrow);
  std::string letters, once;
  formula.operands.emplace_back();
  for (const char c : left) {
    if (c == ' ') continue;
    if (c == ',') {
      formula.operands.emplace_back();
      continue;
    }
    if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z')) return {};
    formula.operands.back() += c;
    letters += c;
  }
  if (arrow == text.npos) {
    for (const char c : letters)
      if (std::count(letters.begin(), letters.end(), c) == 1) formula.result += c;
    std::sort(formula.result.begin(), formula.result.end());
  } else {
    for (const char c : text.substr(arrow + 2)) {
      if (c == ' ') continue;
      if (!has(letters, c) || has(formula.result, c)) return {};
      formula.result += c;
    }
  }
  formula.ok = true;
  return formula;
}

}  // namespace

Tensor einsum(std::string_view letters, std::span<const Tensor> operands) {
  if (const Tensor* failed = first_error(operands)) return *failed;
  const Formula formula = parsed(spelled_out(letters, operands));
  if (!formula.ok || formula.operands.size() != operands.size())
    return failure(ErrorCode::invalid_argument, "einsum",
                   text("found '", letters, "' for ", operands.size(),
                        " operands, expected letters per operand, and a result of letters that occur"));
  std::vector<std::int64_t> extents(128, -1);
  std::vector<Lettered> terms;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    bool fits = operands[i].rank() == static_cast<int>(formula.operands[i].size());
    for (int axis = 0; fits && axis < operands[i].rank(); ++axis) {
      std::int64_t& extent =
          extents[static_cast<std::size_t>(formula.operands[i][static_cast<std::size_t>(axis)])];
      if (extent < 0) extent = operands[i].extent(axis);
      fits = extent == operands[i].extent(axis);
    }
    if (!fits)
      return failure(ErrorCode::shape_mismatch, "einsum",
                     text("found ", describe(operands[i]), " for '", formula.operands[i],
                          "', expected one axis per letter and equal extents for equal letters"));
    terms.push_back({operands[i], formula.operands[i]});
  }
  // The letters that the result and the operands after the i-th need.
  const auto needed_after = [&](std::size_t i) {
    std::string needed = formula.result;
    for (std::size_t k = i + 1; k < terms.size(); ++k) needed += formula.operands[k];
    return needed;
  };
  Lettered out = reduced(terms[0], needed_after(0));
  for (std::size_t i = 1; i < terms.size(); ++i) {
    const std::string needed = needed_after(i);
    out = contracted(out, reduced(terms[i], needed + out.letters), needed);
    out = reduced(out, needed);
  }
  return out.value.ok() ? arranged(out, formula.result) : out.value;
}

Tensor einsum(std::string_view letters, std::initializer_list<Tensor> operands) {
  return einsum(letters, std::span<const Tensor>(operands.begin(), operands.size()));
}

Tensor tensordot(const Tensor& a, const Tensor& b, int axes) {
  if (!a.ok() || !b.ok()) return a.ok() ? b : a;
  Shape shape;
  std::int64_t inner = 1;
  bool fits = axes >= 0 && axes <= a.rank() && axes <= b.rank();
  for (int i = 0; fits && i < axes; ++i) {
    fits = a.extent(a.rank() - axes + i) == b.extent(i);
    inner *= b.extent(i);
  }
  if (!fits || a.rank() + b.rank() - 2 * axes > Shape::kMaxRank)
    return failure(ErrorCode::shape_mismatch, "tensordot",
                   text("found ", describe(a), " and ", describe(b), ", expected the last ", axes,
                        " extents of the first to equal the first ones of the second"));
  for (int i = 0; i < a.rank() - axes; ++i) shape.append(a.extent(i));
  for (int i = axes; i < b.rank(); ++i) shape.append(b.extent(i));
  return reshape(matmul(reshape(a, {-1, inner}), reshape(b, {inner, -1})), shape);
}

Tensor outer(const Tensor& a, const Tensor& b) {
  if (!a.ok() || !b.ok()) return a.ok() ? b : a;
  if (a.rank() != 1 || b.rank() != 1)
    return failure(ErrorCode::shape_mismatch, "outer",
                   text("found ", describe(a), " and ", describe(b), ", expected one axis each"));
  return unsqueeze(a, 1) * b;
}

Tensor kron(const Tensor& a, const Tensor& b) {
  if (!a.ok() || !b.ok()) return a.ok() ? b : a;
  if (a.rank() != 2 || b.rank() != 2)
    return failure(ErrorCode::shape_mismatch, "kron",
                   text("found ", describe(a), " and ", describe(b), ", expected two axes each"));
  const std::int64_t rows = a.extent(0), columns = a.extent(1);
  return reshape(reshape(a, {rows, 1, columns, 1}) * reshape(b, {1, b.extent(0), 1, b.extent(1)}),
                 {rows * b.extent(0), columns * b.extent(1)});
}

Tensor cross(const Tensor& a, const Tensor& b, int axis) {
  if (!a.ok() || !b.ok()) return a.ok() ? b : a;
  const std::optional<int> position = normalize_axis(axis, a.rank());
  if (!position) return bad_axis("cross", axis, a);
  if (a.shape() != b.shape() || a.extent(*position) != 3)
    return failure(
        ErrorCode::shape_mismatch, "cross",
        text("found ", describe(a), " and ", describe(b), ", expected equal shapes and 3 elements"));
  return roll(a, -1, *position) * roll(b, 1, *position) - roll(a, 1, *position) * roll(b, -1, *position);
}

Tensor norm(const Tensor& x, double p, const Axes& axes, bool keep_dims) {
  if (!x.ok()) return x;
  if (is_narrow_float(x))
    return rounded_once(x, [&](const Tensor& wide) { return norm(wide, p, axes, keep_dims); });
  if (std::isinf(p)) return p > 0 ? max(abs(x), axes, keep_dims) : min(abs(x), axes, keep_dims);
  if (p == 0) return sum(cast(not_equal(x, 0.0f), DType::float32), axes, keep_dims);
  if (p == 1) return sum(abs(x), axes, keep_dims);
  // Where the sum is 0 its root has no derivative: it stays away from there. Powers of 0 likewise.
  const Tensor size = abs(x);
  const Tensor powers =
      p == 2 ? square(x) : where(size > 0.0f, pow(where(size > 0.0f, size, 1.0f), Tensor(p)), 0.0f);
  const Tensor sums = sum(powers, axes, keep_dims);
  const Tensor safe = where(sums > 0.0f, sums, 1.0f);
  return where(sums > 0.0f, p == 2 ? sqrt(safe) : pow(safe, Tensor(1 / p)), sums);
}

}  // namespace imprint
