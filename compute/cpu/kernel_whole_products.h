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
  for (int r = 0; r < Rows; ++r) {
    float* to = w.c + (row + r) * w.c_row;
    float edge[kWholeColumns];
    float* target = w.columns == kWholeColumns ? to : edge;
    IMPRINT_UNROLL for (int v = 0; v < kWholeVectors; ++v)
        store(target + v * kLanes, __builtin_convertvector(sums[r][v], Lanes));
    for (std::int64_t i = 0; target == edge && i < w.columns; ++i) to[i] = edge[i];
  }
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

// Two rows of floats as pairs. Nothing else than whole numbers up to the limit passes: false.
bool pack_rows(const float* first, const float* second, Int* to, std::int64_t count, float limit) {
  Int wrong = 0;
  IMPRINT_EACH_ELEMENT {
    const float x = first[i], y = second ? second[i] : 0.0f;
    const bool in_range = (x <= limit) & (x >= -limit) & (y <= limit) & (y >= -limit);
    const Int a = in_range ? static_cast<Int>(x) : 0, b = in_range ? static_cast<Int>(y) : 0;
    wrong |= !in_range | (static_cast<float>(a) != x) | (static_cast<float>(b) != y);
    to[i] = (a & 0xFFFF) | static_cast<Int>(static_cast<std::uint32_t>(b) << 16);
  }
  return wrong == 0;
}

// A row of floats as pairs of neighbours; an odd one out is paired with 0.
bool pack_neighbours(const float* from, Int* to, std::int64_t count, float limit) {
  constexpr std::int64_t kChunk = 256;
  float even[kChunk], odd[kChunk];
  for (std::int64_t begin = 0; begin < count; begin += 2 * kChunk) {
    const std::int64_t rest = count - begin, length = rest < 2 * kChunk ? rest : 2 * kChunk;
    const std::int64_t pairs = (length + 1) / 2;
    for (std::int64_t i = 0; i < pairs; ++i) {
      even[i] = from[begin + 2 * i];
      odd[i] = 2 * i + 1 < length ? from[begin + 2 * i + 1] : 0.0f;
    }
    if (!pack_rows(even, odd, to + begin / 2, pairs, limit)) return false;
  }
  return true;
}

// Panels of windows in b: rows of m's columns [n, n + kWholeColumns) as pairs.
bool pack_panel(const Matmul& m, std::int64_t n, Int* to, float limit) {
  constexpr std::int64_t kSlice = 16;
  float rows[kSlice * kWholeColumns];
  for (std::int64_t k = 0; k < m.depth; k += kSlice) {
    const std::int64_t depth = m.depth - k < kSlice ? m.depth - k : kSlice;
    Panel panel{m.b, m.b_depth, depth, m.columns - n < kWholeColumns ? m.columns - n : kWholeColumns};
    if (m.b_rows) {
      copy_windows(m, k, n, panel, rows, kWholeColumns);
    } else {
      panel.elements += k * m.b_depth + n * m.b_column;
      copy_panel(m, panel, rows, kWholeColumns);
    }
    for (std::int64_t row = 0; row < depth; row += 2)
      if (!pack_rows(rows + row * kWholeColumns, row + 1 < depth ? rows + (row + 1) * kWholeColumns : nullptr,
                     to + (k + row) / 2 * kWholeColumns, kWholeColumns, limit))
        return false;
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
