// Products of matrices.

#include <algorithm>
#include <iterator>
#include <optional>

#include "compute/cpu/step.h"

namespace imprint::cpu {

using namespace graph;
using namespace tensor;

namespace {

class NoStep : public Step {
 public:
  void run(const Memory&, Parts) const override {}
};

// A product's parts: blocks of columns of each matrix. If these are few, then blocks of rows of each.
class ProductParts {
 public:
  ProductParts(std::int64_t matrices, const Matmul& one)
      : matrices_(matrices), columns_((one.columns + kColumns - 1) / kColumns) {
    constexpr std::int64_t kEnough = 16;
    const std::int64_t most = (one.rows + kRows - 1) / kRows;
    rows_ = std::clamp(kEnough / (matrices_ * columns_), std::int64_t{1}, most);
    rows_of_part_ = ((one.rows + rows_ - 1) / rows_ + kRows - 1) / kRows * kRows;
    rows_ = (one.rows + rows_of_part_ - 1) / rows_of_part_;
  }
  std::int64_t count() const { return matrices_ * rows_ * columns_; }

  // use(matrix, rows, columns) for the parts, as few calls as they need.
  template <class Use>
  void each(Parts parts, const Matmul& one, Use use) const {
    const Parts all_columns{0, one.columns};
    for (std::int64_t part = parts.begin; part < parts.end;) {
      const std::int64_t row = part / columns_ % rows_, matrix = part / columns_ / rows_,
                         of_matrix = rows_ * columns_;
      if (part % of_matrix == 0 && parts.end - part >= of_matrix) {
        use(matrix, Parts{0, one.rows}, all_columns);
        part += of_matrix;
        continue;
      }
      const std::int64_t column = part % columns_, end = std::min(columns_, column + parts.end - part);
      use(matrix, Parts{row * rows_of_part_, std::min(one.rows, (row + 1) * rows_of_part_)},
          Parts{column * kColumns, std::min(one.columns, end * kColumns)});
      part += end - column;
    }
  }

 private:
  static constexpr std::int64_t kColumns = 64, kRows = 16;  // multiples of the tiles of all kernel sets
  std::int64_t matrices_, columns_, rows_ = 1, rows_of_part_ = 1;
};

// Products of `one` for all matrices, and what follows them.
class ProductStep : public Step {
 public:
  // matrices: a's and b's layouts over the batch.
  ProductStep(const Matmul& one, const Strided& a, const Strided& b, const Loops<2>& matrices,
              std::optional<WindowMatrix> windows, std::int32_t into, const KernelSet& kernels)
      : one_(one),
        a_(a),
        b_(b),
        matrices_(matrices),
        windows_(std::move(windows)),
        into_(into),
        product_(kernels.matmul),
        cut_(element_count(matrices), one) {
    if (!windows_) return;
    one_.b_rows = windows_->rows.data();
    one_.b_runs = windows_->runs.data();
    one_.b_run = windows_->run;
  }

  std::int64_t part_count() const override { return cut_.count(); }
  std::int64_t work() const override {
    return element_count(matrices_) * one_.rows * one_.columns * (one_.depth / 8 + 1) +
           (next_ ? next_->work() : 0);
  }

  bool finish_with(Chain& chain) override {
    if (next_ || one_.depth == 0 || chain.count != element_count(matrices_) * one_.rows * one_.columns)
      return false;
    bool reads = false;
    for (const Register& each : chain.registers) {
      if (each.buffer == into_ && each.offset != 0) return false;
      reads |= each.buffer == into_;
    }
    for (const auto* instructions : {&chain.once, &chain.block})
      for (const Instruction& each : *instructions)
        if (each.from == into_) return false;
    // Neither the operands nor the product may be overwritten while parts of them are still read.
    for (const std::int32_t written : written_buffers(chain))
      if (written == a_.buffer || written == b_.buffer || written == into_) return false;
    if (!reads) return false;
    // A part begins anywhere in a row: no load is the same for all.
    std::vector<Instruction> block;
    for (std::vector<Instruction>* from : {&chain.once, &chain.block})
      std::ranges::copy_if(*from, std::back_inserter(block), [&](const Instruction& each) {
        return from == &chain.block || each.kind == Instruction::Kind::load;
      });
    std::erase_if(chain.once, [](const Instruction& each) { return each.kind == Instruction::Kind::load; });
    chain.block = std::move(block);
    next_ = std::move(chain);
    return true;
  }

  void run(const Memory& memory, Parts parts) const override {
    Matmul next = one_;
    next.scratch = reinterpret_cast<float*>(memory.workspace);
    Follower follower{this, {memory.buffers, memory.workspace + kMatmulScratch * sizeof(float)}};
    if (next_) {
      next_->prepare(follower.memory);
      next.finished = [](void* context, std::int64_t row, std::int64_t rows, std::int64_t column,
                         std::int64_t columns) {
        static_cast<const Follower*>(context)->follow(row, rows, column, columns);
      };
      next.context = &follower;
    }
    cut_.each(parts, one_, [&](std::int64_t matrix, Parts rows, Parts columns) {
      Walk<2> walk(matrices_);
      walk.seek(matrix);
      const std::int64_t inner = matrix % matrices_.extents[walk.inner()];
      const auto offset = [&](std::size_t n) {
        return walk.offsets[n] + inner * matrices_.strides[n][walk.inner()];
      };
      next.rows = rows.end - rows.begin;
      next.columns = columns.end - columns.begin;
      next.first_column = columns.begin;
      next.a = memory.data<const float>(a_.buffer, a_.offset + offset(0) + rows.begin * one_.a_row);
      next.b = memory.data<const float>(
          b_.buffer, b_.offset + offset(1) + (windows_ ? 0 : columns.begin * one_.b_column));
      follower.first = (matrix * one_.rows + rows.begin) * one_.columns + columns.begin;
      next.c = memory.data<float>(into_, follower.first);
      product_(next);
    });
  }

 private:
  static std::vector<std::int32_t> written_buffers(const Chain& chain) {
    std::vector<std::int32_t> written;
    for (const ChainStore& store : chain.stores) written.push_back(store.buffer);
    for (const Instruction& each : chain.block)
      if (const std::int32_t buffer = chain.registers[at(each.result)].buffer; buffer >= 0)
        written.push_back(buffer);
    return written;
  }

  struct Follower {
    const ProductStep* step;
    Memory memory;
    std::int64_t first = 0;  // element of the product's, in the result

    void follow(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) const {
      const std::int64_t all = step->one_.columns, begin = first + row * all + column;
      if (columns == all) return step->next_->run(memory, begin, begin + rows * all);
      for (std::int64_t r = 0; r < rows; ++r)
        step->next_->run(memory, begin + r * all, begin + r * all + columns);
    }
  };

  Matmul one_;  // without the operands' memory
  Strided a_, b_;
  Loops<2> matrices_;
  std::optional<WindowMatrix> windows_;
  std::int32_t into_;
  void (*product_)(const Matmul& arguments);
  ProductParts cut_;
  std::optional<Chain> next_;
};

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

std::unique_ptr<Step> matmul_step(const Strided& a, const Strided& b, std::int32_t into,
                                  const KernelSet& kernels) {
  const int rank = a.shape.rank();
  Matmul one = rows_of(a, b.shape[rank - 1]);
  one.b_depth = b.strides[at(rank - 2)];
  one.b_column = b.strides[at(rank - 1)];
  const Shape batch = batch_of(a.shape);
  if (batch.element_count() * one.rows * one.columns == 0) return std::make_unique<NoStep>();
  // Matrices with the same right operand are one matrix with all their rows.
  const Loops<2> loops = loops_over<2>(batch, {a.strides, b.strides});
  const bool joins =
      loops.depth == 1 && loops.strides[1][0] == 0 && loops.strides[0][0] == one.rows * one.a_row;
  if (joins) one.rows *= loops.extents[0];
  return std::make_unique<ProductStep>(one, a, b, joins ? loops_over<2>({}, {}) : loops, std::nullopt, into,
                                       kernels);
}

std::unique_ptr<Step> matmul_step(const Strided& a, const WindowMatrix& b, std::int32_t into,
                                  const KernelSet& kernels) {
  Matmul one = rows_of(a, b.columns);
  one.b_column = b.column;
  const Shape batch = batch_of(a.shape);
  if (batch.element_count() * one.rows * one.columns == 0) return std::make_unique<NoStep>();
  return std::make_unique<ProductStep>(
      one, a, b.matrices, loops_over<2>(batch, {a.strides, b.matrices.strides}), b, into, kernels);
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
