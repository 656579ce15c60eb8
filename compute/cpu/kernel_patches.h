// Part of kernel_bodies.h: patches of images, and their transforms (compute/graph/schedule/winograd.h).

namespace imprint::cpu {
namespace {

template <int N>
struct Pairs {
  typename Some<N>::Type even, odd;
};

// The even and the odd elements of 2 N.
template <int N>
inline Pairs<N> split_pairs(typename Some<N>::Type low, typename Some<N>::Type high) {
  if constexpr (N == 16)
    return {__builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
            __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)};
  else if constexpr (N == 8)
    return {__builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14),
            __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15)};
  else
    return {__builtin_shufflevector(low, high, 0, 2, 4, 6), __builtin_shufflevector(low, high, 1, 3, 5, 7)};
}

template <int N>
inline void store_pairs(const Pairs<N>& pairs, float* to) {
  const typename Some<N>::Type even = pairs.even, odd = pairs.odd;
  if constexpr (N == 16) {
    store(to, __builtin_shufflevector(even, odd, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23));
    store(to + N,
          __builtin_shufflevector(even, odd, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31));
  } else if constexpr (N == 8) {
    store(to, __builtin_shufflevector(even, odd, 0, 8, 1, 9, 2, 10, 3, 11));
    store(to + N, __builtin_shufflevector(even, odd, 4, 12, 5, 13, 6, 14, 7, 15));
  } else {
    store(to, __builtin_shufflevector(even, odd, 0, 4, 1, 5));
    store(to + N, __builtin_shufflevector(even, odd, 2, 6, 3, 7));
  }
}

void read_patches(const PatchRow& p) {
  const float *const a = p.rows[0], *const b = p.rows[1], *const c = p.rows[2], *const d = p.rows[3];
  const std::int64_t pitch = patch_scratch(p.patches) / 4, count = p.columns;
  float *const first = p.scratch, *const second = first + pitch, *const third = second + pitch,
               *const fourth = third + pitch;
  IMPRINT_EACH_ELEMENT first[i] = a[i] - c[i];
  IMPRINT_EACH_ELEMENT second[i] = b[i] + c[i];
  IMPRINT_EACH_ELEMENT third[i] = c[i] - b[i];
  IMPRINT_EACH_ELEMENT fourth[i] = b[i] - d[i];
  for (int row = 0; row < 4; ++row) {
    float* const from = p.scratch + row * pitch;
    for (std::int64_t i = p.columns; i < pitch; ++i) from[i] = 0;
    float* const to = p.values + 4 * row * p.plane;
    for (std::int64_t x = 0; x < p.patches; x += kLanes) {
      const float* const at = from + 2 * x;
      const Pairs<kLanes> left = split_pairs<kLanes>(load(at), load(at + kLanes)),
                          right = split_pairs<kLanes>(load(at + 2), load(at + 2 + kLanes));
      store(to + x, left.even - right.even);
      store(to + x + p.plane, left.odd + right.even);
      store(to + x + 2 * p.plane, right.even - left.odd);
      store(to + x + 3 * p.plane, left.odd - right.odd);
    }
  }
}

void write_places(const PlaceRow& p) {
  for (std::int64_t x = 0; x < p.patches; x += kLanes) {
    Lanes upper[4], lower[4];
    IMPRINT_UNROLL for (int column = 0; column < 4; ++column) {
      const float* const from = p.values + column * p.plane + x;
      const Lanes second = load(from + 4 * p.plane), third = load(from + 8 * p.plane);
      upper[column] = load(from) + second + third;
      lower[column] = second - third - load(from + 12 * p.plane);
    }
    const std::int64_t left = p.columns - 2 * x;
    const auto write = [&](const Lanes* values, float* row) {
      const Pairs<kLanes> places = {values[0] + values[1] + values[2], values[1] - values[2] - values[3]};
      if (left >= 2 * kLanes) return store_pairs<kLanes>(places, row + 2 * x);
      float edge[2 * kLanes];
      store_pairs<kLanes>(places, edge);
      copy_row(reinterpret_cast<const Bits*>(edge), reinterpret_cast<Bits*>(row + 2 * x), left);
    };
    write(upper, p.rows[0]);
    if (p.rows[1]) write(lower, p.rows[1]);
  }
}

}  // namespace
}  // namespace imprint::cpu
