// Part of kernel_bodies.h: products of whole numbers of 16 bits, two terms per multiplication. Sums are
// exact, so they have the bits of a float product whose sums stay below 2^24.

#if defined(__AVX512BW__) || defined(__AVX2__)

namespace imprint::cpu {
namespace {

typedef Int WholeLanes __attribute__((vector_size(kLanes * 4)));
constexpr int kWholeVectors = kWholeColumns / kLanes;
constexpr int kWholeRows = kLanes == 16 ? 8 : 2;  // of a tile: its sums stay in registers

inline WholeLanes load_whole(const Int* from) {
  WholeLanes value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

// sums + the products of both halves of *pair and of each lane.
template <bool Fused>
inline WholeLanes add_pair(WholeLanes sums, const Int* pair, WholeLanes row) {
#ifdef __AVX512BW__
  if constexpr (Fused) {  // AVX512-VNNI
    asm("vpdpwssd %1%{1to16%}, %2, %0" : "+v"(sums) : "m"(*pair), "v"(row));
    return sums;
  }
#endif
  WholeLanes product;
  asm("vpmaddwd %1, %2, %0" : "=v"(product) : "v"(*pair - WholeLanes{}), "v"(row));
  return sums + product;
}

template <bool Fused, int Rows>
inline void whole_tile(const WholeProduct& w, std::int64_t row) {
  WholeLanes sums[Rows][kWholeVectors];
  IMPRINT_UNROLL for (int r = 0; r < Rows; ++r) IMPRINT_UNROLL for (int v = 0; v < kWholeVectors; ++v)
      sums[r][v] = WholeLanes{};
  const Int* a = w.a + row * w.pairs;
  const Int* b = w.b;
  for (std::int64_t k = 0; k < w.pairs; ++k, b += kWholeColumns) {
    WholeLanes numbers[kWholeVectors];
    IMPRINT_UNROLL for (int v = 0; v < kWholeVectors; ++v) numbers[v] = load_whole(b + v * kLanes);
    IMPRINT_UNROLL for (int r = 0; r < Rows; ++r) IMPRINT_UNROLL for (int v = 0; v < kWholeVectors; ++v)
        sums[r][v] = add_pair<Fused>(sums[r][v], a + r * w.pairs + k, numbers[v]);
  }
  float* const to = w.c + row * w.c_row;
  if (w.columns == kWholeColumns) {
    IMPRINT_UNROLL for (int r = 0; r < Rows; ++r) IMPRINT_UNROLL for (int v = 0; v < kWholeVectors; ++v)
        store(to + r * w.c_row + v * kLanes, __builtin_convertvector(sums[r][v], Lanes));
    return;
  }
  float edge[Rows][kWholeColumns];
  IMPRINT_UNROLL for (int r = 0; r < Rows; ++r) IMPRINT_UNROLL for (int v = 0; v < kWholeVectors; ++v)
      store(edge[r] + v * kLanes, __builtin_convertvector(sums[r][v], Lanes));
  for (int r = 0; r < Rows; ++r)
    for (std::int64_t i = 0; i < w.columns; ++i) to[r * w.c_row + i] = edge[r][i];
}

template <bool Fused>
inline void whole_rows(const WholeProduct& w) {
  std::int64_t row = 0;
  for (; row + kWholeRows <= w.rows; row += kWholeRows) whole_tile<Fused, kWholeRows>(w, row);
  for (; row < w.rows; ++row) whole_tile<Fused, 1>(w, row);
}

void find_whole_product(const WholeProduct& w) {
#ifdef __AVX512BW__
  static const bool fused = __builtin_cpu_supports("avx512vnni");
  if (fused) return whole_rows<true>(w);
#endif
  whole_rows<false>(w);
}

// Gathers what is no whole number within the limit.
struct Checked {
  Int limit;
  WholeLanes wrong;

  WholeLanes whole(Lanes x) {
    const WholeLanes number = __builtin_convertvector(x, WholeLanes);
    wrong |= __builtin_convertvector(number, Lanes) != x;  // fractions, NaN and what is out of range
    wrong |= (number > limit) | (number < -limit);
    return number;
  }
  // The pairs of first and second, lane by lane.
  void pack(Lanes first, Lanes second, Int* to) {
    const WholeLanes pairs = (whole(first) & 0xFFFF) | (whole(second) << 16);
    __builtin_memcpy(to, &pairs, sizeof pairs);
  }
  bool passed() const {
    Int any = 0;
    for (int i = 0; i < kLanes; ++i) any |= wrong[i];
    return any == 0;
  }
};

// A row of floats as pairs of neighbours; an odd one out is paired with 0.
bool pack_neighbours(const float* from, Int* to, std::int64_t count, float limit) {
  Checked checked{static_cast<Int>(limit), WholeLanes{}};
  for (std::int64_t begin = 0; begin < count; begin += 2 * kLanes) {
    const std::int64_t rest = count - begin, pairs = rest < 2 * kLanes ? (rest + 1) / 2 : kLanes;
    float even[kLanes] = {}, odd[kLanes] = {};
    for (std::int64_t i = 0; i < pairs; ++i) {
      even[i] = from[begin + 2 * i];
      if (2 * i + 1 < rest) odd[i] = from[begin + 2 * i + 1];
    }
    Int packed[kLanes];
    checked.pack(load(even), load(odd), packed);
    __builtin_memcpy(to + begin / 2, packed, static_cast<std::size_t>(pairs) * sizeof(Int));
  }
  return checked.passed();
}

// The columns [n, n + kWholeColumns) of all rows of m's right operand, as pairs.
bool pack_panel(const Matmul& m, std::int64_t n, Int* to, float limit) {
  constexpr std::int64_t kSlice = 64;
  float rows[(kSlice + 1) * kWholeColumns];
  Checked checked{static_cast<Int>(limit), WholeLanes{}};
  for (std::int64_t k = 0; k < m.depth; k += kSlice) {
    const std::int64_t depth = m.depth - k < kSlice ? m.depth - k : kSlice;
    Panel panel{m.b, m.b_depth, depth, m.columns - n < kWholeColumns ? m.columns - n : kWholeColumns};
    if (m.b_rows) {
      copy_windows(m, k, n, panel, rows, kWholeColumns);
    } else {
      panel.elements += k * m.b_depth + n * m.b_column;
      copy_panel(m, panel, rows, kWholeColumns);
    }
    if (depth % 2 != 0)
      for (std::int64_t i = 0; i < kWholeColumns; ++i) rows[depth * kWholeColumns + i] = 0;
    for (std::int64_t row = 0; row < depth; row += 2, to += kWholeColumns)
      for (int v = 0; v < kWholeVectors; ++v) {
        const float* first = rows + row * kWholeColumns + v * kLanes;
        checked.pack(load(first), load(first + kWholeColumns), to + v * kLanes);
      }
    if (!checked.passed()) return false;
  }
  return true;
}

constexpr WholeKernels kWholeKernels{find_whole_product, pack_neighbours, pack_panel};

}  // namespace
}  // namespace imprint::cpu

#else

namespace imprint::cpu {
namespace {
constexpr WholeKernels kWholeKernels{};
}  // namespace
}  // namespace imprint::cpu

#endif
