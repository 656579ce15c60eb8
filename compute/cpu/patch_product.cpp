#include "compute/cpu/patch_product.h"

#include <algorithm>

#include "compute/base/large_pages.h"
#include "compute/cpu/product_step.h"

namespace imprint::cpu {

namespace {

constexpr std::int64_t kValues = 16;           // of a patch
constexpr std::int64_t kRowsAtOnce = 48;       // of the product: whole tiles of all kernel sets
constexpr std::int64_t kNearValues = 3 << 16;  // of a piece: three quarters of a second cache
// channels by rows of the product: 512 KiB of transformed weights
constexpr std::int64_t kNearWeights = 1 << 13;
constexpr std::int64_t kNearPlane = 1 << 16;  // of a piece, for one value

// The rows of windows of 3 x 3 over images with this pitch and plane, at every place.
bool are_windows_of_three(const WindowMatrix& windows, std::int64_t channels, std::int64_t pitch,
                          std::int64_t plane) {
  for (std::int64_t row = 0; row < windows.depth; ++row) {
    const std::int64_t window = row / channels, channel = row % channels;
    if (windows.rows[at(row)] != channel * plane + window / 3 * pitch + window % 3) return false;
  }
  for (std::size_t run = 0; run < windows.runs.size(); ++run)
    if (windows.runs[run] != static_cast<std::int64_t>(run) * pitch) return false;
  return windows.column == 1;
}

}  // namespace

std::optional<PatchOperand::Form> PatchOperand::form_of(const Strided& weights, const WindowMatrix& windows) {
  constexpr std::int64_t kLeastChannels = 16, kLeastRows = 16, kLeastKernels = 1024;
  const int rank = weights.shape.rank();
  const std::int64_t rows = weights.shape[rank - 2], channels = windows.depth / 9;
  if (windows.depth % 9 != 0 || channels < kLeastChannels || rows < kLeastRows || windows.run == 0) return {};
  if (channels * rows < kLeastKernels) return {};  // transforms would take as long as they save
  if (weights.shape.element_count() != rows * windows.depth || weights.strides[at(rank - 1)] != 1 ||
      weights.strides[at(rank - 2)] != windows.depth)
    return {};
  const Form form{
      channels,       rows, windows.columns / windows.run, windows.run, windows.rows[at(3 * channels)],
      windows.rows[1]};
  const bool fits = form.pitch >= form.width + 2 && form.height * form.width == windows.columns;
  if (!fits || !are_windows_of_three(windows, channels, form.pitch, form.plane)) return {};
  return form;
}

std::shared_ptr<const PatchOperand> PatchOperand::make(const float* buffer, const Strided& weights,
                                                       const WindowMatrix& windows, const KernelSet& kernels,
                                                       bool few_copies,
                                                       std::shared_ptr<const PatchOperand> known) {
  constexpr std::int64_t kLeastPatches = 36;
  const auto form = form_of(weights, windows);
  if (!form) return nullptr;
  if (known && known->form_ == *form) return known;
  PatchOperand operand;
  operand.form_ = *form;
  operand.tile_rows_ = kernels.tile_rows;
  if (operand.patch_rows() * operand.patches() < kLeastPatches) return nullptr;
  operand.choose_piece(few_copies);
  operand.transform(buffer + weights.offset);
  return std::make_shared<const PatchOperand>(std::move(operand));
}

// A few rows are computed for all 16 values, which stay in the second cache with the patches of a piece.
// Weights that do not stay there are read once instead: all rows for one value after the other, and as large
// a piece as one of its values allows.
void PatchOperand::choose_piece(bool few_copies) {
  const bool are_far = !few_copies && form_.channels * form_.rows > kNearWeights;
  rows_at_once_ = are_far ? (form_.rows + kRowsAtOnce - 1) / kRowsAtOnce * kRowsAtOnce : kRowsAtOnce;
  const std::int64_t of_row = kValues * (form_.channels + kRowsAtOnce) * patches(),
                     fit = are_far ? kNearPlane / (std::max(form_.channels, form_.rows) * patches())
                                   : kNearValues / of_row,
                     pieces =
                         (patch_rows() + std::max<std::int64_t>(fit, 1) - 1) / std::max<std::int64_t>(fit, 1);
  rows_of_piece_ = (patch_rows() + pieces - 1) / pieces;
}

// Each kernel g of 3 x 3 becomes G g G^T with the rows (1, 0, 0), (1, 1, 1) / 2, (1, -1, 1) / 2 and (0, 0,
// 1).
void PatchOperand::transform(const float* weights) {
  const auto four = [](float a, float b, float c, float* to, std::int64_t step) {
    to[0] = a;
    to[step] = 0.5f * (a + b + c);
    to[2 * step] = 0.5f * (a - b + c);
    to[3 * step] = c;
  };
  const std::int64_t plane = weights_plane();
  weights_.reserve(at(kValues * plane));
  prefer_large_pages(weights_.data(), at(kValues * plane) * sizeof(float));
  weights_.resize(at(kValues * plane));
  for (std::int64_t row = 0; row < form_.rows; ++row)
    for (std::int64_t channel = 0; channel < form_.channels; ++channel) {
      const float* const from = weights + row * 9 * form_.channels + channel;
      const auto element = [&](std::int64_t i, std::int64_t j) { return from[(3 * i + j) * form_.channels]; };
      float* const to =
          weights_.data() + (row / tile_rows_ * form_.channels + channel) * tile_rows_ + row % tile_rows_;
      float half[12];  // [4, 3]
      for (std::int64_t j = 0; j < 3; ++j) four(element(0, j), element(1, j), element(2, j), half + j, 3);
      for (std::int64_t i = 0; i < 4; ++i)
        four(half[3 * i], half[3 * i + 1], half[3 * i + 2], to + 4 * i * plane, plane);
    }
}

std::int64_t PatchOperand::scratch() const {
  const Layout all = layout_of(rows_of_piece_);
  return kMatmulScratch + kValues * (all.plane + all.product_plane) + patch_scratch(patches()) + form_.width +
         2;
}

// An odd number of vectors: equal columns of rows lie in different parts of a cache.
PatchOperand::Layout PatchOperand::layout_of(std::int64_t patch_rows) const {
  constexpr std::int64_t kVector = 16, kHalf = kVector / 2;
  const std::int64_t count = patch_rows * patches(), vectors = (count + kVector - 1) / kVector,
                     pitch = (vectors | 1) * kVector;
  return {(count + kHalf - 1) / kHalf * kHalf, pitch, form_.channels * pitch + kVector,
          rows_at_once_ * pitch + kVector};
}

void PatchOperand::read(const float* image, Parts patch_rows, const Layout& layout, float* values,
                        float* scratch, const KernelSet& kernels) const {
  float* const zeros = scratch + patch_scratch(patches());
  std::fill_n(zeros, form_.width + 2, 0.0f);
  const std::int64_t count = (patch_rows.end - patch_rows.begin) * patches();
  // Another thread may have computed the image.
  constexpr std::int64_t kAhead = 2, kLine = 16;
  const std::int64_t before = 2 * patch_rows.begin * form_.pitch,
                     elements = std::min(2 * patch_rows.end + 2, form_.height + 2) * form_.pitch - before;
  for (std::int64_t channel = 0; channel < form_.channels; ++channel) {
    for (std::int64_t i = 0; channel + kAhead < form_.channels && i < elements; i += kLine)
      __builtin_prefetch(image + (channel + kAhead) * form_.plane + before + i);
    for (std::int64_t row = patch_rows.begin; row < patch_rows.end; ++row) {
      PatchRow patch{.columns = form_.width + 2,
                     .patches = patches(),
                     .values = values + channel * layout.pitch + (row - patch_rows.begin) * patches(),
                     .plane = layout.plane,
                     .scratch = scratch};
      for (std::int64_t i = 0; i < 4; ++i)
        patch.rows[i] = 2 * row + i < form_.height + 2
                            ? image + channel * form_.plane + (2 * row + i) * form_.pitch
                            : zeros;
      kernels.read_patches(patch);
    }
  }
  // Half vectors are multiplied.
  for (std::int64_t row = 0; count < layout.columns && row < kValues * form_.channels; ++row)
    std::fill_n(values + row / form_.channels * layout.plane + row % form_.channels * layout.pitch + count,
                layout.columns - count, 0.0f);
}

void PatchOperand::compute(const float* image, Parts rows, Parts columns, float* c, std::int64_t c_row,
                           float* scratch, const KernelSet& kernels) const {
  const Parts patch_rows{columns.begin / unit(), (columns.end + unit() - 1) / unit()};
  const Layout layout = layout_of(patch_rows.end - patch_rows.begin);
  float* const values = scratch + kMatmulScratch;
  float* const products = values + kValues * layout.plane;
  read(image, patch_rows, layout, values, products + kValues * layout.product_plane, kernels);
  for (std::int64_t begin = rows.begin; begin < rows.end; begin += rows_at_once_) {
    const std::int64_t count = std::min(rows_at_once_, rows.end - begin);
    for (std::int64_t value = 0; value < kValues; ++value)
      kernels.matmul({.a = weights_.data() + value * weights_plane() + begin * form_.channels,
                      .b = values + value * layout.plane,
                      .c = products + value * layout.product_plane,
                      .rows = count,
                      .depth = form_.channels,
                      .columns = layout.columns,
                      .a_row = 1,
                      .a_depth = tile_rows_,
                      .b_depth = layout.pitch,
                      .b_column = 1,
                      .c_row = layout.pitch,
                      .scratch = scratch,
                      .a_tile = tile_rows_ * form_.channels,
                      .fuses = true});
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t row = patch_rows.begin; row < patch_rows.end; ++row) {
        float* const to = c + (begin - rows.begin + i) * c_row + 2 * row * form_.width - columns.begin;
        kernels.write_places({.values = products + i * layout.pitch + (row - patch_rows.begin) * patches(),
                              .plane = layout.product_plane,
                              .patches = patches(),
                              .rows = {to, 2 * row + 1 < form_.height ? to + form_.width : nullptr},
                              .columns = form_.width});
      }
  }
}

}  // namespace imprint::cpu
