// Part of kernel_bodies.h: products of float matrices, in tiles whose sums stay in registers.

namespace imprint::cpu {
namespace {

typedef float Lanes __attribute__((vector_size(kLanes * 4)));
constexpr int kHalf = kLanes > 4 ? kLanes / 2 : kLanes;  // columns of the narrowest panel
// Constant panels of one vector, so that tiles of one to three vectors read any number of them.
constexpr bool kVectorsApart = kLanes == 16;
constexpr std::int64_t kConstantPanel = kVectorsApart ? kLanes : 2 * kLanes;

template <class Vector = Lanes>
inline Vector load(const float* from) {
  Vector value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}
template <class Vector>
inline void store(float* to, Vector value) {
  __builtin_memcpy(to, &value, sizeof value);
}

// *factor times each lane. AVX-512 multiplies by memory that it broadcasts: a register that several products
// share costs a third of the speed on Zen 4.
template <class Vector>
inline Vector scaled(const float* factor, Vector row) {
#ifdef __AVX512F__
  Vector product;
  if constexpr (sizeof(Vector) == 64)
    asm("vmulps %1%{1to16%}, %2, %0" : "=v"(product) : "m"(*factor), "v"(row));
  else
    asm("vmulps %1%{1to8%}, %2, %0" : "=v"(product) : "m"(*factor), "v"(row));
  return product;
#else
  return (*factor - Vector{}) * row;
#endif
}

// A panel of b: `depth` rows of Vectors * kLanes columns, `stride` apart.
struct Panel {
  const float* elements;
  std::int64_t stride;
  std::int64_t depth;
  std::int64_t columns;  // of the panel inside c
};

// sum + *factor times each lane.
template <bool Fused, class Vector>
inline Vector add_scaled(Vector sum, const float* factor, Vector row) {
  if constexpr (Fused) return add_product<true>(*factor - Vector{}, row, sum);
  return sum + scaled(factor, row);
}

// apart: from one vector of a panel's row to the next, if Apart.
// Rows x (Vectors * Lane) outputs in registers, which arrays are only when their loops are unrolled.
template <bool Fused, int Rows, int Vectors, int Lane = kLanes, bool Apart = false>
inline void tile(const float* a, std::int64_t a_row, std::int64_t a_depth, const Panel& panel, float* c,
                 std::int64_t c_row, bool first, std::int64_t apart = Lane) {
  typedef typename Some<Lane>::Type Vector;
  Vector sums[Rows][Vectors];
  IMPRINT_UNROLL for (int r = 0; r < Rows; ++r) IMPRINT_UNROLL for (int v = 0; v < Vectors; ++v) sums[r][v] =
      Vector{};
  const float* b = panel.elements;
  for (std::int64_t k = 0; k < panel.depth; ++k, b += panel.stride) {
    Vector row[Vectors];
    IMPRINT_UNROLL for (int v = 0; v < Vectors; ++v) row[v] = load<Vector>(b + v * (Apart ? apart : Lane));
    IMPRINT_UNROLL for (int r = 0; r < Rows; ++r) IMPRINT_UNROLL for (int v = 0; v < Vectors; ++v)
        sums[r][v] = add_scaled<Fused>(sums[r][v], a + r * a_row + k * a_depth, row[v]);
  }
  if (panel.columns == Vectors * Lane) {
    IMPRINT_UNROLL for (int r = 0; r < Rows; ++r) IMPRINT_UNROLL for (int v = 0; v < Vectors; ++v) {
      float* target = c + r * c_row + v * Lane;
      store(target, first ? sums[r][v] : load<Vector>(target) + sums[r][v]);
    }
    return;
  }
  float edge[Rows][Vectors * Lane];
  IMPRINT_UNROLL for (int r = 0; r < Rows; ++r) IMPRINT_UNROLL for (int v = 0; v < Vectors; ++v)
      store(edge[r] + v * Lane, sums[r][v]);
  for (int r = 0; r < Rows; ++r)
    for (std::int64_t n = 0; n < panel.columns; ++n)
      c[r * c_row + n] = first ? edge[r][n] : c[r * c_row + n] + edge[r][n];
}

// `depth` pieces of N to 2 N columns, which begin at from + rows[i], to rows that are `width` apart: two
// vectors each, which may overlap.
template <int N>
inline void copy_pieces(const std::int64_t* rows, std::int64_t depth, const float* from, std::int64_t columns,
                        float* to, std::int64_t width) {
  for (std::int64_t row = 0; row < depth; ++row, to += width) {
    const float* const piece = from + rows[row];
    typename Some<N>::Type first, last;
    __builtin_memcpy(&first, piece, sizeof first);
    __builtin_memcpy(&last, piece + columns - N, sizeof last);
    store(to, first);
    store(to + columns - N, last);
  }
}

// A panel of windows: the part of each run that lies in it, for all rows.
inline void copy_windows(const Matmul& m, std::int64_t k, std::int64_t n, const Panel& panel, float* to,
                         std::int64_t width) {
  const std::int64_t* const rows = m.b_rows + k;
  for (std::int64_t done = 0; done < panel.columns;) {
    const std::int64_t column = m.first_column + n + done, run = column / m.b_run, inside = column % m.b_run;
    std::int64_t length = m.b_run - inside;
    if (length > panel.columns - done) length = panel.columns - done;
    const float* const from = m.b + m.b_runs[run] + inside * m.b_column;
    float* const target = to + done;
    if (m.b_column == 1 && length >= kLanes && length <= 2 * kLanes)
      copy_pieces<kLanes>(rows, panel.depth, from, length, target, width);
    else if (m.b_column == 1 && length >= kHalf && length <= 2 * kHalf)
      copy_pieces<kHalf>(rows, panel.depth, from, length, target, width);
    else if (m.b_column == 1 && length >= 4 && length <= 8)
      copy_pieces<4>(rows, panel.depth, from, length, target, width);
    else
      for (std::int64_t row = 0; row < panel.depth; ++row)
        copy_run(from + rows[row], m.b_column, target + row * width, length);
    done += length;
  }
  for (std::int64_t row = 0; panel.columns < width && row < panel.depth; ++row)
    for (std::int64_t column = panel.columns; column < width; ++column) to[row * width + column] = 0;
}

// 4 x 4 elements, whose columns are `stride` apart, as rows `width` apart.
inline void transpose_four(const float* from, std::int64_t stride, float* to, std::int64_t width) {
  typedef typename Some<4>::Type Four;
  Four c[4];
  for (int i = 0; i < 4; ++i) __builtin_memcpy(&c[i], from + i * stride, sizeof c[i]);
  const Four low01 = __builtin_shufflevector(c[0], c[1], 0, 4, 1, 5),
             low23 = __builtin_shufflevector(c[2], c[3], 0, 4, 1, 5),
             high01 = __builtin_shufflevector(c[0], c[1], 2, 6, 3, 7),
             high23 = __builtin_shufflevector(c[2], c[3], 2, 6, 3, 7);
  const Four rows[4] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                        __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                        __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                        __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
  for (int i = 0; i < 4; ++i) __builtin_memcpy(to + i * width, &rows[i], sizeof rows[i]);
}

// Rows of a panel of a transposed matrix, of which a line of each column at a time, fetched ahead: columns so
// far apart share few sets of the first cache, and their lines do not stay there. Returns the rows copied.
inline std::int64_t copy_lines(const Matmul& m, const Panel& panel, float* to, std::int64_t width) {
  constexpr std::int64_t kLine = 16, kLinesAhead = 2;
  std::int64_t row = 0;
  for (; row + kLine <= panel.depth; row += kLine, to += kLine * width)
    for (std::int64_t column = 0; column < width; column += 4) {
      const float* const from = panel.elements + row + column * m.b_column;
      for (std::int64_t i = 0; i < 4; ++i) __builtin_prefetch(from + kLinesAhead * kLine + i * m.b_column);
      for (std::int64_t i = 0; i < kLine; i += 4)
        transpose_four(from + i, m.b_column, to + i * width + column, width);
    }
  return row;
}

// A copy of a panel with rows of `width` columns, padded with zeros.
inline void copy_panel(const Matmul& m, const Panel& panel, float* to, std::int64_t width) {
  constexpr std::int64_t kFarColumns = 512;
  std::int64_t row = 0;
  if (m.b_depth == 1 && m.b_column > 1 && panel.columns == width) {  // a transposed matrix
    if (m.b_column >= kFarColumns) {
      row = copy_lines(m, panel, to, width);
      to += row * width;
    }
    for (; row + 4 <= panel.depth; row += 4, to += 4 * width)
      for (std::int64_t column = 0; column < width; column += 4)
        transpose_four(panel.elements + row + column * m.b_column, m.b_column, to + column, width);
  }
  for (; row < panel.depth; ++row, to += width) {
    const float* from = panel.elements + row * m.b_depth;
    if (m.b_column == 1 && panel.columns == width) {
      copy_row(reinterpret_cast<const Bits*>(from), reinterpret_cast<Bits*>(to), width);
      continue;
    }
    for (std::int64_t column = 0; column < panel.columns; ++column) to[column] = from[column * m.b_column];
    for (std::int64_t column = panel.columns; column < width; ++column) to[column] = 0;
  }
}

// Rows of b that are far apart share no pages, those at multiples of a kilobyte no cache, and those that
// begin inside a cache line take two lines for each of their vectors: worth a copy where many rows of a use
// it.
inline bool has_far_rows(const Matmul& m, std::int64_t width) {
  constexpr std::int64_t kLine = 16;
  return m.b_column == 1 && !m.b_rows && m.b_panel == 0 &&
         (m.b_depth > 1024 || m.b_depth % 256 == 0 || m.b_depth % kLine != 0) && m.rows > 16 &&
         m.b_depth > width;
}

// Copies of `count` whole panels that are neighbours, as copy_panel makes them, row by row: a row's pieces
// share pages, and the rows after it are on their way.
template <int Vectors>
inline void copy_panels(const Matmul& m, std::int64_t depth, const float* from, int count, float* to) {
  constexpr std::int64_t kWidth = Vectors * kLanes, kRowsAhead = 6;
  for (std::int64_t row = 0; row < depth; ++row, from += m.b_depth, to += kWidth)
    for (int i = 0; i < count; ++i) {
      for (std::int64_t v = 0; v < Vectors; ++v) {
        const float* const piece = from + i * kWidth + v * kLanes;
        __builtin_prefetch(piece + kRowsAhead * m.b_depth, 0, 3);
        store(to + i * depth * kWidth + v * kLanes, load(piece));
      }
    }
}

// The panel of b at row k and column n: in place, where whole vectors are contiguous and near; else a copy.
inline Panel panel_of(const Matmul& m, std::int64_t k, std::int64_t depth, std::int64_t n, std::int64_t width,
                      float* scratch) {
  Panel panel{m.b, m.b_depth, depth, m.columns - n};
  if (panel.columns > width) panel.columns = width;
  if (m.b_panel != 0)
    return {m.b + n / kConstantPanel * m.b_panel + k * kConstantPanel, kConstantPanel, depth, panel.columns};
  if (m.b_rows) {
    copy_windows(m, k, n, panel, scratch, width);
  } else {
    panel.elements += k * m.b_depth + n * m.b_column;
    if (m.b_column == 1 && panel.columns == width && !has_far_rows(m, width)) return panel;
    copy_panel(m, panel, scratch, width);
  }
  panel.elements = scratch;
  panel.stride = width;
  return panel;
}

// All rows of a times panels of b that stay in the second cache. A tile's rows of a stay in the first.
template <bool Fused, int Vectors, bool Apart>
inline void rows_of_panels(const Matmul& m, const float* a, const Panel* panels, int count, float* c,
                           bool first) {
  std::int64_t row = 0;
  const auto take = [&]<int Rows>() {
    const float* rows =
        m.a_tile == 0 ? a + row * m.a_row : a + row / kTileRows * m.a_tile + row % kTileRows * m.a_row;
    float* to = c + row * m.c_row;
    for (int i = 0; i < count; to += panels[i++].columns)
      if (panels[i].columns <= kHalf)
        tile<Fused, Rows, 1, kHalf>(rows, m.a_row, m.a_depth, panels[i], to, m.c_row, first);
      else if (Vectors > 2 && panels[i].columns > kLanes && panels[i].columns <= 2 * kLanes)
        tile<Fused, Rows, 2, kLanes, Apart>(rows, m.a_row, m.a_depth, panels[i], to, m.c_row, first,
                                            m.b_panel);
      else if (Vectors > 1 && panels[i].columns <= kLanes)
        tile<Fused, Rows, 1>(rows, m.a_row, m.a_depth, panels[i], to, m.c_row, first);
      else
        tile<Fused, Rows, Vectors, kLanes, Apart>(rows, m.a_row, m.a_depth, panels[i], to, m.c_row, first,
                                                  m.b_panel);
    row += Rows;
  };
  while (m.rows - row >= kTileRows) take.template operator()<kTileRows>();
  if (m.rows - row >= 4) take.template operator()<4>();
  if (m.rows - row >= 2) take.template operator()<2>();
  if (m.rows - row >= 1) take.template operator()<1>();
}

// Width of the next panel. A few columns beyond one vector are a panel of their own, half as wide.
template <int Vectors>
inline std::int64_t panel_width(std::int64_t left) {
  if (Vectors > 2 && left > 2 * kLanes) return Vectors * kLanes;
  if (left > kLanes + (kHalf < kLanes ? kHalf : 0)) return (Vectors > 2 ? 2 : Vectors) * kLanes;
  return left > kHalf ? kLanes : kHalf;
}

template <bool Fused, int Vectors, bool Apart>
inline void blocks_of(const Matmul& m) {
  constexpr std::int64_t kWidth = Vectors * kLanes;
  constexpr int kMostPanels = 64;
  Panel panels[kMostPanels];
  for (std::int64_t k = 0; k < m.depth; k += kMatmulDepth) {
    const std::int64_t depth = m.depth - k < kMatmulDepth ? m.depth - k : kMatmulDepth;
    const std::int64_t fit = (Apart ? 2 : 1) * kMatmulScratch / (depth * kWidth),
                       most = fit < kMostPanels ? fit : kMostPanels;
    for (std::int64_t n = 0; n < m.columns;) {
      const std::int64_t begin = n;
      int count = 0;
      if (has_far_rows(m, kWidth)) {
        const std::int64_t whole = (m.columns - n) / kWidth;
        count = static_cast<int>(whole < most ? whole : most);
        copy_panels<Vectors>(m, depth, m.b + k * m.b_depth + n, count, m.scratch);
        for (int i = 0; i < count; ++i, n += kWidth)
          panels[i] = {m.scratch + i * depth * kWidth, kWidth, depth, kWidth};
      }
      for (std::int64_t width = 0; count < most && n < m.columns; ++count, n += width) {
        width = panel_width<Vectors>(m.columns - n);
        panels[count] = panel_of(m, k, depth, n, width, m.scratch + count * depth * kWidth);
      }
      rows_of_panels<Fused, Vectors, Apart>(m, m.a + k * m.a_depth, panels, count, m.c + begin, k == 0);
    }
  }
}

template <bool Fused, int Vectors>
inline void blocks(const Matmul& m) {
  if (kVectorsApart && m.b_panel != 0)
    blocks_of<Fused, Vectors, kVectorsApart>(m);
  else
    blocks_of<Fused, Vectors, false>(m);
}

// A single row cannot share b's vectors with another; several partial sums keep the adders busy.
template <bool Fused>
inline void one_row(const Matmul& m) {
  constexpr int kVectors = 64 / kLanes < 8 ? 64 / kLanes : 8;
  constexpr std::int64_t kWidth = kVectors * kLanes;
  Matmul rest = m;
  if (m.b_column == 1 && !m.b_rows && m.b_panel == 0)
    for (std::int64_t n = 0; n + kWidth <= m.columns; n += kWidth) {
      for (std::int64_t k = 0; k < m.depth; k += kMatmulDepth) {
        const std::int64_t depth = m.depth - k < kMatmulDepth ? m.depth - k : kMatmulDepth;
        tile<Fused, 1, kVectors>(m.a + k * m.a_depth, m.a_row, m.a_depth,
                                 panel_of(m, k, depth, n, kWidth, m.scratch), m.c + n, m.c_row, k == 0);
      }
      rest.b += kWidth;
      rest.c += kWidth;
      rest.columns -= kWidth;
    }
  if (rest.columns > kLanes)
    blocks<Fused, 2>(rest);
  else if (rest.columns > 0)
    blocks<Fused, 1>(rest);
}

// AVX-512 has registers for tiles of three vectors, which need fewer loads for each multiply-add.
template <bool Fused>
inline void product_of(const Matmul& m) {
  constexpr bool kIsWide = Fused && kLanes == 16;
  if (m.rows == 1)
    one_row<Fused>(m);
  else if (m.columns <= kLanes)
    blocks<Fused, 1>(m);
  else if (kIsWide && m.columns > 2 * kLanes)
    blocks<Fused, kIsWide ? 3 : 2>(m);
  else
    blocks<Fused, 2>(m);
}

void find_product(const Matmul& m) {
  if (m.depth == 0) {
    for (std::int64_t row = 0; row < m.rows; ++row)
      for (std::int64_t column = 0; column < m.columns; ++column) m.c[row * m.c_row + column] = 0;
    return;
  }
  if (kFuses && m.fuses)
    product_of<kFuses>(m);
  else
    product_of<false>(m);
}

}  // namespace
}  // namespace imprint::cpu
