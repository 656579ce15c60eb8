#include "compute/tensor/pages/scan_page.h"

#include <algorithm>
#include <bit>

#include "compute/base/text.h"
#include "compute/tensor/build.h"

namespace imprint::tensor {
namespace {

// ---- the device's kernels ----

constexpr char kSum[] = R"(
#define State VALUE
#if FOURS == 1
State[4] four_elements(int line, int four) {
  vec4 x = imp_four_0(imp_row_0(line) + four);
  return State[4](x.x, x.y, x.z, x.w);
}
#else
State element(int i) { return imp_load_0(i); }
#endif
#if TOTALS == 1
void keep_total(int i, State state) { imp_store_0(i, state); }
#elif FOURS == 1
void keep_four(int four, State states[4]) {
  imp_keep_four_0(four, vec4(states[0], states[1], states[2], states[3]));
}
#else
void keep(int i, State state) { imp_store_0(i, state); }
#endif
#if CHUNKS > 1 && TOTALS == 0 && ONE_PASS == 0
State chunk_total(int i) { return imp_load_1(i); }
#endif
State identity() { return VALUE(0); }
State combine(State a, State b) {
  PRECISE State sum = a + b;
  return sum;
}
#if ONE_PASS == 1
uint[1] words_of(State state) { return uint[1](BITS_OF(state)); }
State of_words(uint words[1]) { return OF_BITS(words[0]); }
#endif
)";

// A factor of the state before, and a term. Elements are terms and factors.
constexpr char kRecurrence[] = R"(
struct State { float factor, term; };
State identity() { return State(1.0, 0.0); }
State combine(State a, State b) {
  PRECISE float factor = a.factor * b.factor, term = b.factor * a.term + b.term;
  return State(factor, term);
}
#if ONE_PASS == 1
uint[2] words_of(State state) { return uint[2](floatBitsToUint(state.factor), floatBitsToUint(state.term)); }
State of_words(uint words[2]) { return State(uintBitsToFloat(words[0]), uintBitsToFloat(words[1])); }
#endif
#if FOURS == 1
State[4] four_elements(int line, int four) {
  vec4 a = imp_four_1(imp_row_1(line) + four), b = imp_four_0(imp_row_0(line) + four);
  return State[4](State(a.x, b.x), State(a.y, b.y), State(a.z, b.z), State(a.w, b.w));
}
#else
State element(int i) { return State(imp_load_1(i), imp_load_0(i)); }
#endif
#if TOTALS == 1
void keep_total(int i, State state) { imp_store_0(i, state.factor); imp_store_1(i, state.term); }
#elif FOURS == 1
void keep_four(int four, State states[4]) {
  imp_keep_four_0(four, vec4(states[0].term, states[1].term, states[2].term, states[3].term));
}
#else
void keep(int i, State state) { imp_store_0(i, state.term); }
#endif
#if CHUNKS > 1 && TOTALS == 0 && ONE_PASS == 0
State chunk_total(int i) { return State(imp_load_2(i), imp_load_3(i)); }
#endif
)";

// at: the element's position along the axis; -1: none yet.
constexpr char kExtreme[] = R"(
struct State { VALUE value; int at; };
State identity() { return State(VALUE(0), -1); }
State combine(State a, State b) {
  if (b.at < 0) return a;
  return a.at < 0 || IS_NAN(b.value) || (!IS_NAN(a.value) && b.value BEATS a.value) ? b : a;
}
State element(int i) { return State(imp_load_0(i), i / INNER % LENGTH); }
#if TOTALS == 1
void keep_total(int i, State state) { imp_store_0(i, state.value); imp_store_1(i, state.at); }
#else
void keep(int i, State state) { imp_store_0(i, state.value); imp_store_1(i, state.at); }
#endif
#if CHUNKS > 1 && TOTALS == 0
State chunk_total(int i) { return State(imp_load_1(i), imp_load_2(i)); }
#endif
)";

std::string prelude(ScanKind kind, DType dtype) {
  const bool is_float = dtype == DType::float32;
  const std::string value = text("#define VALUE ", is_float ? "float" : "int", "\n#define BITS_OF ",
                                 is_float ? "floatBitsToUint" : "uint", "\n#define OF_BITS ",
                                 is_float ? "uintBitsToFloat" : "int", "\n");
  switch (kind) {
    case ScanKind::sum:
      return value + kSum;
    case ScanKind::recurrence:
      return kRecurrence;
    case ScanKind::max:
    case ScanKind::min:
      return value + text("#define BEATS ", kind == ScanKind::max ? ">=" : "<=", "\n#define IS_NAN(x) ",
                          is_float ? "imp_is_nan(x)" : "false", "\n", kExtreme);
  }
  return {};
}

bool has_two_values(ScanKind kind) { return kind != ScanKind::sum; }
bool is_extreme(ScanKind kind) { return kind == ScanKind::max || kind == ScanKind::min; }

// How a scan is spread over workgroups (shaders/pages/scan.glsl).
struct Layout {
  std::int64_t length = 1, inner = 1, lines = 1;
  std::int64_t run = 8, sides = 1, together = 1, slices = 1, columns = 1, chunks = 1, tiles = 1;
  bool fours = false;     // elements come four at a time
  bool one_pass = false;  // one kernel for several chunks of a line

  std::int64_t groups() const { return (lines + columns - 1) / columns * chunks; }
};

std::int64_t pieces_of(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

// large: chunks of one large tile, for one pass.
Layout layout_of(ScanKind kind, const Tensor& input, int axis, const PageLimits& limits, bool large) {
  const Shape& shape = input.shape();
  Layout layout;
  layout.length = shape[axis];
  layout.fours = !is_extreme(kind) && input.dtype() == DType::float32 && axis == shape.rank() - 1 &&
                 layout.length % 4 == 0;
  for (int k = axis + 1; k < shape.rank(); ++k) layout.inner *= shape[k];
  layout.lines = shape.element_count() / layout.length;
  if (layout.fours && (large || !has_two_values(kind))) layout.sides = 4;
  layout.run = layout.fours ? 4 * layout.sides : has_two_values(kind) ? 4 : 8;
  layout.together = limits.processor ? 1 : layout.run;
  const auto power = [](std::int64_t count) {
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(count)));
  };
  // With neighbouring lines apart by one element, a few of them share each load.
  const std::int64_t invocations = std::min(limits.invocations, 256);
  std::int64_t beside = layout.inner == 1 ? 1 : std::min<std::int64_t>(16, power(layout.lines));
  while (beside > 4 && layout.lines / beside < limits.groups) beside /= 2;  // few lines: more workgroups
  layout.slices =
      std::clamp<std::int64_t>(power(pieces_of(layout.length, layout.run)), 1, invocations / beside);
  layout.columns = std::min(invocations / layout.slices, power(layout.lines));
  const std::int64_t tiles = pieces_of(layout.length, layout.slices * layout.run),
                     blocks = pieces_of(layout.lines, layout.columns);
  // Chunks fill the device; a few tiles are not worth a second kernel.
  const std::int64_t few = (has_two_values(kind) ? 16 : 32) / layout.run,
                     most = std::max<std::int64_t>(
                         1, (large ? limits.groups : few * limits.groups / 2) / blocks);
  layout.tiles = tiles <= few ? tiles : pieces_of(tiles, most);
  layout.chunks = pieces_of(tiles, layout.tiles);
  layout.one_pass =
      !is_extreme(kind) && layout.chunks > 1 && layout.tiles == 1 && layout.chunks <= layout.slices;
  return layout;
}

Layout layout_of(ScanKind kind, const Tensor& input, int axis, const PageLimits& limits) {
  const Layout large = layout_of(kind, input, axis, limits, true);
  return large.one_pass ? large : layout_of(kind, input, axis, limits, false);
}

LibraryPage page_of(ScanKind kind, DType dtype, const ScanOptions& options, const Layout& layout,
                    bool totals) {
  LibraryPage page;
  page.name = totals ? "scan totals" : "scan";
  page.constants = {{"TOTALS", totals},
                    {"LENGTH", layout.length},
                    {"INNER", layout.inner},
                    {"LINES", layout.lines},
                    {"RUN", layout.run},
                    {"TOGETHER", layout.together},
                    {"SLICES", layout.slices},
                    {"COLUMNS", layout.columns},
                    {"CHUNKS", layout.chunks},
                    {"TILES", layout.tiles},
                    {"REVERSE", options.reverse},
                    {"EXCLUSIVE", options.exclusive},
                    {"FOURS", layout.fours},
                    {"SIDES", layout.sides},
                    {"ONE_PASS", layout.one_pass},
                    {"TRIES", options.tries},
                    {"WORDS", has_two_values(kind) ? 2 : 1}};
  if (layout.one_pass) page.marks = 2 * (has_two_values(kind) ? 2 : 1) * layout.lines * layout.chunks;
  page.glsl = text("#define PRECISE", layout.one_pass ? " precise\n" : "\n", prelude(kind, dtype));
  page.includes = {"special_values"};
  page.shader = "pages/scan";
  if (layout.fours) {
    page.fours = {0};
    if (kind == ScanKind::recurrence) page.fours.push_back(1);
    if (!totals) page.kept = {0};
  }
  page.groups = layout.groups();
  page.group_size = static_cast<int>(layout.slices * layout.columns);
  return page;
}

}  // namespace

bool is_long_scan(const Shape& shape, int axis, const PageLimits& limits) {
  const std::int64_t length = shape[axis], lines = shape.element_count() / std::max<std::int64_t>(1, length);
  return length >= 512 && lines < limits.groups * 64;
}

std::vector<Tensor> scan_on_device(ScanKind kind, std::span<const Tensor> inputs, const ScanOptions& options,
                                   const PageLimits& limits) {
  const Shape& shape = inputs[0].shape();
  const DType dtype = inputs[0].dtype();
  const Layout layout = layout_of(kind, inputs[0], options.axis, limits);
  std::vector<Tensor> operands(inputs.begin(), inputs.end());
  const auto outputs_of = [&](const Shape& of, bool totals) {
    std::vector<PageOutput> outputs{{of, dtype}};
    if (is_extreme(kind)) outputs.push_back({of, DType::int32});
    if (totals && kind == ScanKind::recurrence) outputs.push_back({of, DType::float32});
    return outputs;
  };
  if (layout.chunks > 1 && !layout.one_pass) {
    LibraryPage totals = page_of(kind, dtype, options, layout, true);
    totals.outputs = outputs_of({layout.lines, layout.chunks}, true);
    for (Tensor& total : run_page(std::move(totals), inputs)) operands.push_back(std::move(total));
  }
  LibraryPage scan = page_of(kind, dtype, options, layout, false);
  scan.outputs = outputs_of(shape, false);
  return run_page(std::move(scan), operands);
}

}  // namespace imprint::tensor
