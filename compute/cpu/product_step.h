#pragma once
// Products of matrices. A product computes the chain that reads its result piece by piece, while the piece is
// in the cache of the thread that computed it.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "compute/cpu/patch_product.h"
#include "compute/cpu/step.h"

namespace imprint::cpu {

// The right operand of a product in images: its rows and columns are windows, and no strides describe it.
struct WindowMatrix {
  Strided matrices;  // the first elements of all matrices: [batch...]
  std::int64_t depth = 0, columns = 0;
  std::vector<std::int64_t> rows, runs;  // offsets of rows; of runs of columns in a row
  std::int64_t run = 0, column = 1;      // columns of a run, and their stride
};
// shape: [batch..., depth, columns]. Nothing: its axes are not those of the source.
std::optional<WindowMatrix> window_matrix(const Strided& source, const Shape& shape);
// The elements of a product's result, and the terms, that a run uses.
struct UsedProduct {
  UsedPart elements, depth;
};
// A constant operand of whole numbers (whole_numbers.cpp), as pairs along the terms: rows of the left one, or
// panels of kWholeColumns columns of the right one.
struct WholeOperand {
  float limit = 0;  // of numbers of the other operand
  std::int64_t pairs = 0;
  bool left = false;
  std::vector<std::int32_t> numbers;
};
// buffer: the constant's. Null: it has other numbers, is small, or the kernels have no such product.
std::shared_ptr<const WholeOperand> whole_operand(const float* buffer, const Strided& operand, bool left,
                                                  const KernelSet& kernels);
// Rows and columns of the whole product begin at these. False: the other operand has other numbers, and c is
// undefined.
bool whole_product(const WholeOperand& whole, const Matmul& m, std::int64_t first_row,
                   std::int64_t first_column, const WholeKernels& kernels);
struct ProductOptions {
  UsedProduct used = {};
  std::shared_ptr<const WholeOperand> whole = nullptr;    // one of both operands, or null
  std::shared_ptr<const PatchOperand> patches = nullptr;  // null: a product of windows or a matrix
  std::int64_t threads = 1;                               // that share the step
  bool by_columns = false;                                // they share the columns of wide products
  std::int64_t panel = 0;                                 // Matmul::b_panel
  std::int64_t left_tile = 0;                             // rows of the left operand's tiles: Matmul::a_tile
  bool is_convolution = false;                            // the left operand has the weights
  bool fuses = false;                                     // Matmul::fuses
};
// For all matrices; layouts of a and b over the batch. `one` lacks the pointers.
struct Product {
  Matmul one;
  Strided a, b;
  Loops<2> matrices;
  std::shared_ptr<const WindowMatrix> windows;  // null: b is a matrix
  std::int32_t into = -1;
  ProductOptions options;
};

class ProductParts {
 public:
  ProductParts(const Product& product, std::int64_t matrices, bool has_chain);
  std::int64_t count() const { return matrices_ * rows_ * columns_; }
  bool are_columns() const { return columns_ > 1 && rows_ == 1; }  // of each matrix

  // use(matrix, rows, columns) for the parts, as few calls as they need.
  template <class Use>
  void each(Parts parts, const Matmul& one, Use use) const;

 private:
  // Where a part of the columns begins.
  std::int64_t begin(std::int64_t part, std::int64_t columns) const {
    return part == columns_ ? columns : (columns * part / columns_ + unit_ / 2) / unit_ * unit_;
  }
  std::int64_t matrices_, columns_ = 1, rows_ = 1, rows_of_part_ = 1;
  std::int64_t unit_;  // of the columns: no part begins inside
};

class ProductStep : public OpenStep {
 public:
  ProductStep(Product product, const KernelSet& kernels);
  std::int64_t part_count() const override { return parts_.count(); }
  std::int64_t work() const override;
  void run(const Memory& memory, Parts parts) const override;

  std::int32_t result() const override { return product_.into; }
  bool stores_result() const override { return piece_ == 0; }
  std::int64_t scratch() const override;
  bool take(Chain& chain, bool is_last_reader, bool is_apart) override;

  // A small result of many terms, as two steps that many threads share: the sums of all blocks of
  // kMatmulDepth terms, then the sum of those in order. 0: the product has another form.
  std::int64_t blocks_of_terms() const;
  std::int64_t elements() const { return matrices_ * product_.one.rows * product_.one.columns; }
  std::unique_ptr<Step> sums_of_blocks(std::int32_t sums) const;  // [blocks, elements]
  std::unique_ptr<Step> sum_of_blocks(std::int32_t sums) const;

 private:
  template <class Use>
  void each_piece(Parts rows, Parts columns, Use use) const;
  // c: of the first row and column, rows c_row apart.
  void compute(const Memory& memory, std::int64_t matrix, Parts rows, Parts columns, float* c,
               std::int64_t c_row) const;
  void follow(Memory memory, std::int64_t matrix, Parts rows, Parts columns, const float* c,
              std::int64_t c_row) const;
  std::int64_t piece_row(Parts columns) const;
  std::int64_t largest_piece() const;  // elements

  Product product_;
  const KernelSet& kernels_;
  std::int64_t matrices_;
  ProductParts parts_;
  std::optional<Chain> chain_;
  std::int64_t piece_ = 0;  // elements of the largest piece in the workspace; 0: the result has memory
};

// Null: the result has no elements.
std::unique_ptr<ProductStep> product_step(const Strided& a, const Strided& b, std::int32_t into,
                                          const KernelSet& kernels, const ProductOptions& options);
std::unique_ptr<ProductStep> product_step(const Strided& a, const WindowMatrix& b, std::int32_t into,
                                          const KernelSet& kernels, const ProductOptions& options);

}  // namespace imprint::cpu
