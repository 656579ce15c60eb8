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
#if CHUNKS > 1 && TOTALS == 0
State chunk_total(int i) { return imp_load_1(i); }
#endif
State identity() { return VALUE(0); }
State combine(State a, State b) { return a + b; }
)";

// A factor of the state before, and a term. Elements are terms and factors.
constexpr char kRecurrence[] = R"(
struct State { float factor, term; };
State identity() { return State(1.0, 0.0); }
State combine(State a, State b) { return State(a.factor * b.factor, b.factor * a.term + b.term); }
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
#if CHUNKS > 1 && TOTALS == 0
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
  const std::string value = text("#define VALUE ", is_float ? "float" : "int", "\n");
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

// How a scan is spread over workgroups (shaders/pages/scan.glsl).
struct Layout {
  std::int64_t length = 1, inner = 1, lines = 1;
  std::int64_t run = 8, together = 1, slices = 1, columns = 1, chunks = 1, tiles = 1;
  bool fours = false;  // elements come four at a time

  std::int64_t groups() const { return (lines + columns - 1) / columns * chunks; }
};

std::int64_t pieces_of(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

Layout layout_of(ScanKind kind, const Tensor& input, int axis, const PageLimits& limits) {
  const Shape& shape = input.shape();
  const bool is_extreme = kind == ScanKind::max || kind == ScanKind::min,
             has_two_values = is_extreme || kind == ScanKind::recurrence;
  Layout layout;
  layout.length = shape[axis];
  layout.fours =
      !is_extreme && input.dtype() == DType::float32 && axis == shape.rank() - 1 && layout.length % 4 == 0;
  for (int k = axis + 1; k < shape.rank(); ++k) layout.inner *= shape[k];
  layout.lines = shape.element_count() / layout.length;
  layout.run = has_two_values || layout.fours ? 4 : 8;
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
  // Chunks fill the device; a few tiles are not worth a second kernel. Those of fours are the smallest.
  const std::int64_t few = layout.fours && !has_two_values ? 8 : 4,
                     most = std::max<std::int64_t>(1, few / 2 * limits.groups / blocks);
  layout.tiles = tiles <= few ? tiles : pieces_of(tiles, most);
  layout.chunks = pieces_of(tiles, layout.tiles);
  return layout;
}

LibraryPage page_of(ScanKind kind, DType dtype, const ScanOptions& options, const Layout& layout,
                    bool totals) {
  LibraryPage page;
  page.name = totals ? "scan totals" : "scan";
  page.constants = {{"TOTALS", totals},        {"LENGTH", layout.length},    {"INNER", layout.inner},
                    {"LINES", layout.lines},   {"RUN", layout.run},          {"TOGETHER", layout.together},
                    {"SLICES", layout.slices}, {"COLUMNS", layout.columns},  {"CHUNKS", layout.chunks},
                    {"TILES", layout.tiles},   {"REVERSE", options.reverse}, {"EXCLUSIVE", options.exclusive},
                    {"FOURS", layout.fours}};
  page.glsl = prelude(kind, dtype);
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
  const bool is_extreme = kind == ScanKind::max || kind == ScanKind::min;
  const Layout layout = layout_of(kind, inputs[0], options.axis, limits);
  std::vector<Tensor> operands(inputs.begin(), inputs.end());
  const auto outputs_of = [&](const Shape& of, bool totals) {
    std::vector<PageOutput> outputs{{of, dtype}};
    if (is_extreme) outputs.push_back({of, DType::int32});
    if (totals && kind == ScanKind::recurrence) outputs.push_back({of, DType::float32});
    return outputs;
  };
  if (layout.chunks > 1) {
    LibraryPage totals = page_of(kind, dtype, options, layout, true);
    totals.outputs = outputs_of({layout.lines, layout.chunks}, true);
    for (Tensor& total : run_page(std::move(totals), inputs)) operands.push_back(std::move(total));
  }
  LibraryPage scan = page_of(kind, dtype, options, layout, false);
  scan.outputs = outputs_of(shape, false);
  return run_page(std::move(scan), operands);
}

}  // namespace imprint::tensor
