// Products of matrices, and the chains that read their results.

#include <algorithm>

#include "compute/cpu/product_step.h"

namespace imprint::cpu {

using namespace tensor;

namespace {

// Elements of a result that stay in an eighth of a second cache until a chain reads them.
constexpr std::int64_t kNear = 1 << 15;
constexpr std::int64_t kColumns = 64, kRows = 24;  // multiples of the tiles of all kernel sets
constexpr std::int64_t kTile = 32;                 // columns of the widest tile
constexpr std::int64_t kPieceRows = 264;           // of a piece, unless it has few columns
static_assert(kPieceRows % kRows == 0);
constexpr std::int64_t kEven = 2;  // rows: fewer in a tile take as long, and parts of a step should be equal

// Columns of a piece, of which all have as many except the last.
std::int64_t piece_of(std::int64_t columns, std::int64_t pieces) {
  return ((columns + pieces - 1) / pieces + kTile - 1) / kTile * kTile;
}

}  // namespace

// Each part of columns packs the right operand of its columns, and reads all of the left one. Wide products
// have two for each thread, since another process may take a core.
ProductParts::ProductParts(const Product& product, std::int64_t matrices, bool has_chain)
    : matrices_(matrices), unit_(kTile) {
  constexpr std::int64_t kLeastRows = 32;  // per packing of the right operand
  const Matmul& one = product.one;
  const std::int64_t threads = std::max<std::int64_t>(product.options.threads / matrices, 1);
  const bool is_wide = one.columns >= 2 * threads * kColumns;
  // Each thread packs its own windows or pixels: with the rows of weights divided, each would pack all.
  constexpr std::int64_t kManyPlaces = 512;
  const bool shares_places = product.options.is_convolution && is_wide && one.columns >= kManyPlaces;
  std::int64_t rows = shares_places || (product.options.by_columns && is_wide && one.columns >= one.rows)
                          ? 1
                          : std::clamp<std::int64_t>(one.rows / kLeastRows, 1, threads);
  if (const auto& patches = product.options.patches) {  // all rows read the same patches
    constexpr std::int64_t kManyRows = 64;
    unit_ = patches->unit();
    rows = std::clamp<std::int64_t>(one.rows / kManyRows, 1, threads);
    columns_ = rows > 1 ? 1 : std::min(threads, patches->patch_rows());
    const std::int64_t whole = patches->tile_rows();
    rows_of_part_ = rows > 1 ? ((one.rows + rows - 1) / rows + whole - 1) / whole * whole : one.rows;
    rows_ = (one.rows + rows_of_part_ - 1) / rows_of_part_;
    return;
  }
  const bool by_columns = rows == 1 && threads > 1 && one.columns >= threads * kTile;
  if (by_columns)
    columns_ = is_wide ? 2 * threads : threads;
  else if (has_chain)  // whole blocks of it
    columns_ = std::clamp<std::int64_t>(one.columns / kBlock, 1, 4);
  else
    columns_ = (one.columns + kColumns - 1) / kColumns;
  if (rows == 1 && !by_columns) rows = std::clamp<std::int64_t>(2 * one.rows / kLeastRows, 1, threads);
  const std::int64_t whole = std::max(kEven, product.options.left_tile);
  rows_of_part_ = ((one.rows + rows - 1) / rows + whole - 1) / whole * whole;
  rows_ = (one.rows + rows_of_part_ - 1) / rows_of_part_;
}

template <class Use>
void ProductParts::each(Parts parts, const Matmul& one, Use use) const {
  for (std::int64_t part = parts.begin; part < parts.end;) {
    const std::int64_t column = part % columns_, row = part / columns_ % rows_,
                       matrix = part / columns_ / rows_, left = parts.end - part;
    const bool is_whole = column == 0 && left >= columns_;  // all columns of some rows
    const std::int64_t columns = is_whole ? columns_ : std::min(columns_ - column, left),
                       rows = is_whole ? std::min(rows_ - row, left / columns_) : 1;
    use(matrix, Parts{row * rows_of_part_, std::min(one.rows, (row + rows) * rows_of_part_)},
        Parts{begin(column, one.columns), begin(column + columns, one.columns)});
    part += rows * columns;
  }
}

ProductStep::ProductStep(Product product, const KernelSet& kernels)
    : product_(std::move(product)),
      kernels_(kernels),
      matrices_(element_count(product_.matrices)),
      parts_(product_, matrices_, false) {}

std::int64_t ProductStep::work() const {
  const Matmul& one = product_.one;
  return matrices_ * one.rows * one.columns * (one.depth / 8 + 1) + (chain_ ? chain_->work() : 0);
}

std::int64_t ProductStep::scratch() const {
  return piece_ + (product_.options.patches ? product_.options.patches->scratch() : kMatmulScratch);
}

void ProductStep::run(const Memory& memory, Parts parts) const {
  Memory after = memory;
  after.workspace += at(scratch()) * sizeof(float);
  if (piece_ > 0) after.piece = product_.into;
  if (chain_) chain_->prepare(after);
  float* const piece = reinterpret_cast<float*>(after.workspace) - piece_;
  const std::int64_t all_columns = product_.one.columns;
  const UsedPart used = product_.options.used.elements;
  const std::int64_t used_rows = used.of(memory, matrices_ * product_.one.rows);
  const auto result = [&](std::int64_t matrix, Parts rows, Parts columns) {
    return memory.data<float>(product_.into,
                              (matrix * product_.one.rows + rows.begin) * all_columns + columns.begin);
  };
  parts_.each(parts, product_.one, [&](std::int64_t matrix, Parts rows, Parts columns) {
    rows.end = std::min(rows.end, used_rows - matrix * product_.one.rows);
    if (rows.begin >= rows.end) return;
    if (!chain_ && !product_.options.patches)
      return compute(memory, matrix, rows, columns, result(matrix, rows, columns), all_columns);
    each_piece(rows, columns, [&](Parts of_rows, Parts of_columns) {
      float* const c = piece_ > 0 ? piece : result(matrix, of_rows, of_columns);
      const std::int64_t c_row = piece_ > 0 ? piece_row(of_columns) : all_columns;
      compute(memory, matrix, of_rows, of_columns, c, c_row);
      if (chain_) follow(after, matrix, of_rows, of_columns, c, c_row);
    });
  });
}

// Rows of a piece in the workspace. Those at multiples of a kilobyte would share lines of the first cache.
std::int64_t ProductStep::piece_row(Parts columns) const {
  const std::int64_t count = columns.end - columns.begin;
  return count == product_.one.columns ? count : count + kTile / 2;
}

// Pieces that stay near. Whole numbers are packed by rows of the left operand, others by columns of the
// right.
template <class Use>
void ProductStep::each_piece(Parts rows, Parts columns, Use use) const {
  if (const auto& patches = product_.options.patches) {
    for (std::int64_t column = columns.begin; column < columns.end; column += patches->piece())
      use(rows, Parts{column, std::min(column + patches->piece(), columns.end)});
    return;
  }
  const bool by_rows = product_.options.whole && !product_.options.whole->left;
  const std::int64_t all_rows = rows.end - rows.begin, all_columns = columns.end - columns.begin,
                     fit = by_rows ? all_columns : std::max(kBlock, kNear / all_rows),
                     width = piece_of(all_columns, (all_columns + fit - 1) / fit),
                     height = std::max(kPieceRows, kNear / width / kRows * kRows);
  for (std::int64_t row = rows.begin; row < rows.end; row += height)
    for (std::int64_t column = columns.begin; column < columns.end; column += width)
      use(Parts{row, std::min(row + height, rows.end)}, Parts{column, std::min(column + width, columns.end)});
}

void ProductStep::compute(const Memory& memory, std::int64_t matrix, Parts rows, Parts columns, float* c,
                          std::int64_t c_row) const {
  const Matmul& one = product_.one;
  const Loops<2>& matrices = product_.matrices;
  Matmul next = one;
  next.depth = product_.options.used.depth.of(memory, one.depth);
  next.scratch = reinterpret_cast<float*>(memory.workspace);
  if (product_.windows) {
    next.b_rows = product_.windows->rows.data();
    next.b_runs = product_.windows->runs.data();
    next.b_run = product_.windows->run;
  }
  Walk<2> walk(matrices);
  walk.seek(matrix);
  const std::int64_t inner = matrix % matrices.extents[walk.inner()];
  const auto offset = [&](std::size_t n) {
    return walk.offsets[n] + inner * matrices.strides[n][walk.inner()];
  };
  if (const auto& patches = product_.options.patches)
    return patches->compute(memory.data<const float>(product_.b.buffer, product_.b.offset + offset(1)), rows,
                            columns, c, c_row, next.scratch, kernels_);
  next.rows = rows.end - rows.begin;
  next.columns = columns.end - columns.begin;
  next.first_column = columns.begin;
  const std::int64_t row =
      one.a_tile == 0 ? rows.begin * one.a_row : rows.begin / product_.options.left_tile * one.a_tile;
  next.a = memory.data<const float>(product_.a.buffer, product_.a.offset + offset(0) + row);
  const std::int64_t before = one.b_panel != 0   ? columns.begin / kernels_.constant_panel * one.b_panel
                              : product_.windows ? 0
                                                 : columns.begin * one.b_column;
  next.b = memory.data<const float>(product_.b.buffer, product_.b.offset + offset(1) + before);
  next.c = c;
  next.c_row = c_row;
  const auto& whole = product_.options.whole;
  if (!whole || next.depth != one.depth ||
      !whole_product(*whole, next, rows.begin, columns.begin, kernels_.whole))
    kernels_.matmul(next);
}

void ProductStep::follow(Memory memory, std::int64_t matrix, Parts rows, Parts columns, const float* c,
                         std::int64_t c_row) const {
  const Matmul& one = product_.one;
  const std::int64_t first = (matrix * one.rows + rows.begin) * one.columns, count = rows.end - rows.begin;
  const auto run = [&](const float* from, Parts elements) {
    memory.first = reinterpret_cast<std::uintptr_t>(from) - at(elements.begin) * sizeof(float);
    chain_->run(memory, elements);
  };
  if (columns.end - columns.begin == one.columns) return run(c, {first, first + count * one.columns});
  for (std::int64_t row = 0; row < count; ++row, c += c_row) {
    const std::int64_t begin = first + row * one.columns;
    run(c, {begin + columns.begin, begin + columns.end});
  }
}

// In whole cache lines. Of any rows and columns that each_piece is called for: fewer rows have wider pieces.
std::int64_t ProductStep::largest_piece() const {
  constexpr std::int64_t kLine = 16;
  const Matmul& one = product_.one;
  const std::int64_t rows = std::min(one.rows, kPieceRows), whole = one.rows * (one.columns + kTile / 2);
  std::int64_t most = std::max(kBlock * rows, kNear) + (kTile + kTile / 2) * rows;
  if (const auto& patches = product_.options.patches)
    most = one.rows * (patches->piece() + kTile / 2);
  else if (product_.options.whole && !product_.options.whole->left)
    most = std::max(rows * one.columns, kNear) + kTile / 2 * one.rows;
  return (std::min(most, whole) + kLine - 1) / kLine * kLine;
}

bool ProductStep::take(Chain& chain, bool is_last_reader, bool is_apart) {
  const Matmul& one = product_.one;
  const bool uses_all = product_.options.used.elements.extent < 0 && product_.options.used.depth.extent < 0;
  if (chain_ || !uses_all) return false;
  const std::int64_t elements = matrices_ * one.rows * one.columns;
  if (!chain.can_follow(product_.into, elements, {product_.a.buffer, product_.b.buffer})) return false;
  // Steps after the other task share elements: what threads write by columns would go from core to core.
  if (is_apart && product_.options.threads > 1 && !product_.options.patches && parts_.are_columns()) {
    Product by_rows = product_;
    by_rows.options.is_convolution = false;
    if (ProductParts(by_rows, matrices_, true).are_columns()) return false;
    product_.options.is_convolution = false;
  }
  const std::int32_t result = chain.register_of(product_.into);
  chain.start_anywhere();
  const std::int32_t target = is_last_reader ? chain.overwrite(result) : -1;
  if (target >= 0) product_.into = target;
  chain_ = std::move(chain);
  parts_ = ProductParts(product_, matrices_, true);
  if (is_last_reader && target < 0 && chain_->reads(result)) piece_ = largest_piece();
  return true;
}

namespace {

constexpr std::int64_t kMostSums = 4096;  // elements of a result whose terms are divided

class BlocksStep : public Step {
 public:
  BlocksStep(Product product, std::int64_t blocks, const KernelSet& kernels, std::int32_t sums)
      : product_(std::move(product)), blocks_(blocks), kernels_(kernels), sums_(sums) {}
  std::int64_t part_count() const override { return blocks_; }
  std::int64_t work() const override {
    const Matmul& one = product_.one;
    return one.rows * one.columns * (one.depth / 8 + 1);
  }
  void run(const Memory& memory, Parts parts) const override {
    const Matmul& one = product_.one;
    Matmul next = one;
    next.scratch = reinterpret_cast<float*>(memory.workspace);
    for (std::int64_t block = parts.begin; block < parts.end; ++block) {
      const std::int64_t term = block * kMatmulDepth;
      next.depth = std::min(kMatmulDepth, one.depth - term);
      next.a = memory.data<const float>(product_.a.buffer, product_.a.offset + term * one.a_depth);
      next.b = memory.data<const float>(product_.b.buffer, product_.b.offset + term * one.b_depth);
      next.c = memory.data<float>(sums_, block * one.rows * one.columns);
      kernels_.matmul(next);
    }
  }

 private:
  Product product_;
  std::int64_t blocks_;
  const KernelSet& kernels_;
  std::int32_t sums_;
};

class BlockSumStep : public Step {
 public:
  BlockSumStep(std::int64_t blocks, std::int64_t elements, const KernelSet& kernels, std::int32_t sums,
               std::int32_t into)
      : blocks_(blocks),
        elements_(elements),
        add_(kernels.elementwise(Op::add, DType::float32, DType::float32)),
        sums_(sums),
        into_(into) {}
  std::int64_t work() const override { return blocks_ * elements_; }
  void run(const Memory& memory, Parts) const override {
    float* const into = memory.data<float>(into_);
    std::copy_n(memory.data<const float>(sums_), elements_, into);
    for (std::int64_t block = 1; block < blocks_; ++block)
      add_(into, memory.data<const float>(sums_, block * elements_), nullptr, into, elements_);
  }

 private:
  std::int64_t blocks_, elements_;
  Elementwise add_;
  std::int32_t sums_, into_;
};

}  // namespace

std::int64_t ProductStep::blocks_of_terms() const {
  constexpr std::int64_t kLeastBlocks = 4;
  const ProductOptions& options = product_.options;
  const Matmul& one = product_.one;
  const bool is_plain = !chain_ && !product_.windows && !options.patches && !options.whole &&
                        one.b_panel == 0 && options.used.elements.extent < 0 && options.used.depth.extent < 0;
  if (!is_plain || matrices_ != 1 || elements() > kMostSums) return 0;
  const std::int64_t blocks = (one.depth + kMatmulDepth - 1) / kMatmulDepth;
  return options.threads > 1 && parts_.count() == 1 && blocks >= kLeastBlocks ? blocks : 0;
}

std::unique_ptr<Step> ProductStep::sums_of_blocks(std::int32_t sums) const {
  return std::make_unique<BlocksStep>(product_, blocks_of_terms(), kernels_, sums);
}

std::unique_ptr<Step> ProductStep::sum_of_blocks(std::int32_t sums) const {
  return std::make_unique<BlockSumStep>(blocks_of_terms(), elements(), kernels_, sums, product_.into);
}

namespace {

// Products of `one` for all matrices; layouts of a and b over the batch.
std::unique_ptr<ProductStep> products(const Matmul& one, const Strided& a, const Strided& b,
                                      const Loops<2>& matrices, std::shared_ptr<const WindowMatrix> windows,
                                      std::int32_t into, const KernelSet& kernels,
                                      const ProductOptions& options) {
  auto product = Product{one, a, b, matrices, std::move(windows), into, options};
  product.one.fuses = options.fuses;
  if (options.left_tile > 0) {
    product.one.a_row = 1;
    product.one.a_depth = options.left_tile;
    product.one.a_tile = options.left_tile * one.depth;
  }
  return std::make_unique<ProductStep>(std::move(product), kernels);
}

// A product with this left operand; b is missing.
Matmul rows_of(const Strided& a, std::int64_t columns) {
  const int rank = a.shape.rank();
  return {.rows = a.shape[rank - 2],
          .depth = a.shape[rank - 1],
          .columns = columns,
          .a_row = a.strides[at(rank - 2)],
          .a_depth = a.strides[at(rank - 1)],
          .c_row = columns};
}

Shape batch_of(const Shape& shape) {
  Shape batch;
  for (int axis = 0; axis < shape.rank() - 2; ++axis) batch.append(shape[axis]);
  return batch;
}

}  // namespace

std::unique_ptr<ProductStep> product_step(const Strided& a, const Strided& b, std::int32_t into,
                                          const KernelSet& kernels, const ProductOptions& options) {
  const int rank = a.shape.rank();
  Matmul one = rows_of(a, b.shape[rank - 1]);
  one.b_depth = b.strides[at(rank - 2)];
  one.b_column = b.strides[at(rank - 1)];
  one.b_panel = options.panel;
  const Shape batch = batch_of(a.shape);
  if (batch.element_count() * one.rows * one.columns == 0) return nullptr;
  // Matrices with the same right operand are one matrix with all their rows.
  const Loops<2> loops = loops_over<2>(batch, {a.strides, b.strides});
  const bool joins =
      loops.depth == 1 && loops.strides[1][0] == 0 && loops.strides[0][0] == one.rows * one.a_row;
  if (joins) one.rows *= loops.extents[0];
  return products(one, a, b, joins ? loops_over<2>({}, {}) : loops, nullptr, into, kernels, options);
}

std::unique_ptr<ProductStep> product_step(const Strided& a, const WindowMatrix& b, std::int32_t into,
                                          const KernelSet& kernels, const ProductOptions& options) {
  Matmul one = rows_of(a, b.columns);
  one.b_column = b.column;
  const Shape batch = batch_of(a.shape);
  if (batch.element_count() * one.rows * one.columns == 0) return nullptr;
  return products(one, a, b.matrices, loops_over<2>(batch, {a.strides, b.matrices.strides}),
                  std::make_shared<WindowMatrix>(b), into, kernels, options);
}

std::optional<WindowMatrix> window_matrix(const Strided& source, const Shape& shape) {
  const int rank = shape.rank();
  if (rank < 2 || shape.element_count() == 0) return {};
  WindowMatrix matrix{.depth = shape[rank - 2], .columns = shape[rank - 1]};
  int axis = source.shape.rank() - 1;
  // The axes whose sizes multiply to `count`, from the innermost of those that are left.
  const auto take = [&](std::int64_t count) -> std::optional<Loops<1>> {
    Shape taken;
    Strides strides{};
    std::int64_t product = 1;
    int first = axis + 1;
    while (product < count && first > 0) product *= source.shape[--first];
    if (product != count) return {};
    for (int a = first; a <= axis; ++a) {
      strides[at(taken.rank())] = source.strides[at(a)];
      taken.append(source.shape[a]);
    }
    axis = first - 1;
    return loops_over<1>(taken, {strides});
  };
  const auto columns = take(matrix.columns);
  if (!columns) return {};
  const auto rows = take(matrix.depth);
  if (!rows) return {};
  matrix.run = columns->extents[at(columns->depth) - 1];
  matrix.column = columns->strides[0][at(columns->depth) - 1];
  each_run(*columns,
           [&](const auto& offsets, std::int64_t, const auto&) { matrix.runs.push_back(offsets[0]); });
  each_run(*rows, [&](const auto& offsets, std::int64_t count, const auto& strides) {
    for (std::int64_t i = 0; i < count; ++i) matrix.rows.push_back(offsets[0] + i * strides[0]);
  });
  Strided outer{source.buffer, source.offset, {}, {}};
  for (int a = 0; a <= axis; ++a) {
    outer.strides[at(a)] = source.strides[at(a)];
    outer.shape.append(source.shape[a]);
  }
  const auto matrices = reshaped(outer, batch_of(shape));
  if (!matrices) return {};
  matrix.matrices = *matrices;
  return matrix;
}

}  // namespace imprint::cpu
