#pragma once
// Convolutions of 3 x 3 with stride 1 by fewer multiplications (compute/graph/schedule/winograd.h), for
// constant weights.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "compute/cpu/kernels.h"
#include "compute/cpu/strided.h"

namespace imprint::cpu {

struct WindowMatrix;

// The left operand of such a convolution, and the form of its images.
class PatchOperand {
 public:
  // buffer: of the weights [rows, 9 channels]. known: of the same weights, or null; it is returned, if its
  // images have this form. Null: another product, or one that is too small. few_copies: little workspace.
  static std::shared_ptr<const PatchOperand> make(const float* buffer, const Strided& weights,
                                                  const WindowMatrix& windows, const KernelSet& kernels,
                                                  bool few_copies = false,
                                                  std::shared_ptr<const PatchOperand> known = nullptr);

  std::uint64_t bytes() const { return weights_.size() * sizeof(float); }
  // Columns of the product in one row of patches: two rows of places, of which the last may be missing.
  std::int64_t unit() const { return 2 * form_.width; }
  std::int64_t piece() const { return unit() * rows_of_piece_; }  // columns whose patches stay near
  std::int64_t patch_rows() const { return (form_.height + 1) / 2; }
  std::int64_t scratch() const;  // elements, with kMatmulScratch
  std::int64_t tile_rows() const { return tile_rows_; }

  // Rows of the whole product, from a multiple of tile_rows(), and columns from one of unit(), at most a
  // piece. c: of the first row and column; rows are c_row apart.
  void compute(const float* image, Parts rows, Parts columns, float* c, std::int64_t c_row, float* scratch,
               const KernelSet& kernels) const;

 private:
  std::int64_t patches() const { return (form_.width + 1) / 2; }  // of a row
  // Values of a piece: rows of `columns`, `pitch` apart, for each of the 16 values, whose planes have room
  // for a vector after the last row.
  struct Layout {
    std::int64_t columns, pitch, plane, product_plane;
  };
  Layout layout_of(std::int64_t patch_rows) const;
  void read(const float* image, Parts patch_rows, const Layout& layout, float* values, float* scratch,
            const KernelSet& kernels) const;
  std::int64_t weights_plane() const {
    return (form_.rows + tile_rows_ - 1) / tile_rows_ * tile_rows_ * form_.channels;
  }
  void transform(const float* weights);

  struct Form {
    std::int64_t channels = 0, rows = 0, height = 0, width = 0;  // of the product; of the places
    std::int64_t pitch = 0, plane = 0;                           // of a row, and of a channel of the image
    bool operator==(const Form&) const = default;
  };
  static std::optional<Form> form_of(const Strided& weights, const WindowMatrix& windows);

  Form form_;
  void choose_piece(bool few_copies);
  std::int64_t rows_of_piece_ = 1, tile_rows_ = 1;
  std::int64_t rows_at_once_ = 0;  // of the product, for each of the 16 values in turn
  std::vector<float> weights_;     // [16, tiles, channels, tile_rows]
};

}  // namespace imprint::cpu
