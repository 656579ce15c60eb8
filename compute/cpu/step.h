#pragma once
// A kernel of the schedule on the CPU: steps that run one after the other. Most are chains: elementwise
// operations on a block of elements that stays in the innermost cache, one operation at a time.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "compute/base/at.h"
#include "compute/cpu/kernels.h"
#include "compute/cpu/strided.h"
#include "compute/graph/graph.h"

namespace imprint::cpu {

// An element as raw bits.
using Word [[gnu::may_alias]] = std::uint32_t;

Word word_of(double value, DType dtype);

// The memory of a run, as one thread sees it. The executable numbers the buffers. The workspace belongs to
// the running step on this thread: kBlock elements per register of a chain, kMatmulScratch of a product, or
// both for a product with a chain.
struct Memory {
  std::byte* const* buffers = nullptr;
  std::byte* workspace = nullptr;
  const std::int64_t* extents = nullptr;  // of the run, by position in Schedule::extents
  // A buffer without memory of its own: some of its elements are in the workspace. first: where its first
  // element would be.
  std::int32_t piece = -1;
  std::uintptr_t first = 0;

  template <class T>
  T* data(std::int32_t buffer, std::int64_t element = 0) const {
    if (buffer == piece) return reinterpret_cast<T*>(first + at(element) * sizeof(T));
    return reinterpret_cast<T*>(buffers[at(buffer)]) + element;
  }
};

// How much of a count a run uses, where the count is that of a named axis (Extent) and all that is inside it.
struct UsedPart {
  std::int32_t extent = -1;  // position in Schedule::extents; -1: all
  std::int64_t bound = 1;

  std::int64_t of(const Memory& memory, std::int64_t whole) const {
    return extent < 0 ? whole : whole / bound * memory.extents[extent];
  }
};

// The part of each innermost run of a fold that a run uses. Its terms are folded as if no others lay between.
struct UsedLine {
  struct Digit {
    std::int64_t inner = 1, places = 1;  // position = element / run / inner % places
    UsedPart part;
  };
  std::vector<Digit> digits;  // the innermost first, whose inner is 1
  std::int64_t run = 1;       // neighbours that are all used or all not

  struct Stretch {
    bool is_used = false;
    std::int64_t end = 0;  // of the neighbours that are all used or all not
  };
  Stretch stretch(const Memory& memory, std::int64_t element) const {
    const std::int64_t block = run * digits[0].places, begin = element / block * block,
                       used = begin + run * digits[0].part.of(memory, digits[0].places);
    bool is_used = element < used;
    for (std::size_t i = 1; i < digits.size() && is_used; ++i) {
      const Digit& digit = digits[i];
      is_used = element / run / digit.inner % digit.places < digit.part.of(memory, digit.places);
    }
    return {is_used, is_used ? used : begin + block};
  }
};

inline constexpr std::int64_t kBlock = 512;  // elements per block of a chain

class Step {
 public:
  virtual ~Step() = default;
  // Parts that write different elements and read none that another part writes: threads compute them in any
  // order, with the same bits for any division. 1: the step is one whole.
  virtual std::int64_t part_count() const { return 1; }
  // Time of all parts, in elements that are moved or computed, roughly.
  virtual std::int64_t work() const { return 0; }
  virtual void run(const Memory& memory, Parts parts) const = 0;
};

struct Chain;

// Can compute the chain that reads its result too, piece by piece, while the piece is in the cache of the
// thread that computed it.
class OpenStep : public Step {
 public:
  virtual std::int32_t result() const = 0;  // buffer
  // False: pieces of the result stand in the workspace until the chain has read them.
  virtual bool stores_result() const { return true; }
  virtual std::int64_t scratch() const = 0;  // elements, before that of a chain
  // Computes the chain too, in a workspace after scratch(). False: the chain must be a step of its own.
  // is_last_reader: no other step reads result(), which may then become a buffer of the chain. is_apart: the
  // chain belongs to another task.
  virtual bool take(Chain& chain, bool is_last_reader, bool is_apart) = 0;
};

// Writes the same in each run.
class SameStep : public Step {
 public:
  explicit SameStep(std::unique_ptr<Step> step) : step_(std::move(step)) {}
  // From now on nothing else writes there.
  void run_once(const Memory& memory) {
    step_->run(memory, {0, step_->part_count()});
    is_done_ = true;
  }
  std::int64_t part_count() const override { return is_done_ ? 1 : step_->part_count(); }
  std::int64_t work() const override { return is_done_ ? 0 : step_->work(); }
  void run(const Memory& memory, Parts parts) const override {
    if (!is_done_) step_->run(memory, parts);
  }

 private:
  std::unique_ptr<Step> step_;
  bool is_done_ = false;
};

// ---- chains ----

// Where a chain's value is while a block runs: at the block's offset in a buffer, or in the workspace.
struct Register {
  std::int32_t buffer = -1;  // -1: the workspace
  std::int64_t offset = 0;   // of the buffer's first element, or of the register in the workspace
};

struct Instruction {
  enum class Kind : std::uint8_t { apply, load, add_numbers, fill, iota, uniform, permutation };
  Kind kind = Kind::apply;
  std::int32_t result = -1;  // registers
  std::array<std::int32_t, 3> operands{-1, -1, -1};
  Elementwise function = nullptr;  // apply
  // load, add_numbers: the buffer; uniform, permutation: the buffer of the generator
  std::int32_t from = -1;
  std::int64_t offset = 0;
  Loops<1> loops;  // load; add_numbers: of the numbers, each of which is added to a run of the operand
  AfterSum after;  // add_numbers
  Word value = 0;  // fill
  // iota: element i is i / stride % extent. permutation: extent of the last axis.
  std::int64_t stride = 1, extent = 1;
  std::uint32_t stream = 0;
};

// Copies the value of `result` to a buffer, element by element.
struct ChainStore {
  std::int32_t result = -1;
  std::int32_t buffer = -1;
  std::int64_t offset = 0;
  std::optional<Loops<1>> loops;  // over the elements; none: row-major
};

struct Chain {
  std::int64_t count = 0;  // elements
  std::vector<Register> registers;
  std::vector<Instruction> once;  // the same for every block
  std::vector<Instruction> block;
  std::vector<ChainStore> stores;
  const KernelSet* kernels = nullptr;
  std::int64_t scratch = 0;  // elements of the workspace

  std::int64_t work() const;
  void prepare(const Memory& memory) const;
  void compute(const Memory& memory, std::int64_t begin, std::int64_t length) const;  // without the stores
  void run(const Memory& memory, Parts elements) const;  // from a multiple of kBlock, or start_anywhere()
  const Instruction* stored_sum() const;
  void* find(const Memory& memory, std::int32_t result, std::int64_t begin) const;

  void start_anywhere();  // what was loaded once and repeats in each block is loaded for each block
  std::int32_t register_of(std::int32_t buffer) const;  // that reads the buffer in place; -1: none
  bool loads(std::int32_t buffer) const;                // in another order, or again
  bool writes(std::int32_t buffer) const;
  // Whether a step that computes `result` from these operands, part by part, can compute the chain with it.
  bool can_follow(std::int32_t of, std::int64_t elements, std::initializer_list<std::int32_t> operands) const;
  bool reads(std::int32_t result) const;  // a register
  // Lets the register, which nothing reads afterwards, share the memory of a value that is computed in place.
  // -1: no value is. Otherwise the buffer.
  std::int32_t overwrite(std::int32_t result);
};

class MapStep : public Step {
 public:
  explicit MapStep(Chain chain, UsedPart used = {}) : chain_(std::move(chain)), used_(used) {}
  std::int64_t part_count() const override;  // blocks
  std::int64_t work() const override;
  void run(const Memory& memory, Parts parts) const override;

 private:
  Chain chain_;
  UsedPart used_;  // of the elements
};

struct Gathered;  // chain.cpp

// reduce_*: folds the chain's value `result`, in the order of its elements, without storing it.
class ReduceStep : public Step {
 public:
  // order: of the source's axes in the chain, outermost first; empty: as they are.
  ReduceStep(const graph::GraphNode& node, const Shape& source, std::span<const int> order, Chain chain,
             std::int32_t result, const KernelSet& kernels, std::int32_t into);
  void use(UsedPart elements) { used_ = elements; }  // of the source
  void use_line(UsedLine line) { used_line_ = std::move(line); }
  std::int64_t line() const { return folds_inner_ ? loops_.extents[at(loops_.depth) - 1] : 0; }
  bool has_kernels() const { return fold_ && combine_; }  // false: the operation has none for its dtype
  std::int64_t part_count() const override;  // steps of the outermost loop, if results differ along it
  std::int64_t work() const override;
  void run(const Memory& memory, Parts parts) const override;

 private:
  Chain chain_;
  std::int32_t result_, into_;
  Loops<1> loops_;            // over the source; strides of the result
  bool folds_inner_ = false;  // the innermost loop folds into one element
  void fold_used(const Memory& memory, const Word* values, Parts of_line, Gathered& gathered,
                 Word* target) const;
  UsedPart used_;
  UsedLine used_line_;
  std::int64_t outputs_;
  Word start_;
  Elementwise combine_;
  FoldRun fold_;
};

// ---- windows over images: depthwise convolutions and pools ----

// Folds of [..., rows, columns, window...], whose last axes are views of an image. The window has one or two
// axes; so have its positions.
struct WindowPlan {
  Strided image;
  Strided factors;  // over the same shape, equal at all positions of a window; buffer -1: none
  bool largest = false;
  bool fuses = false;  // Matmul::fuses
  Loops<2> outer;      // over all other axes: the image and the factors
  std::int64_t rows = 1, columns = 1, height = 1, width = 1;  // of the positions, of the window
  std::int64_t row_stride = 1, column_stride = 1, row_dilation = 1, column_dilation = 1;
  std::int64_t pitch = 1;  // elements of the image from row to row
};
// Nothing: the fold has another form.
std::optional<WindowPlan> plan_windows(const graph::GraphNode& fold, const Strided& image,
                                       const Strided& factors);
std::unique_ptr<OpenStep> window_step(const WindowPlan& plan, const KernelSet& kernels, std::int32_t into);

// ---- steps on whole values; operands are row-major unless passed as Strided ----

std::unique_ptr<Step> copy_step(const Strided& from, const Strided& to, UsedPart used = {});
// Fills all of a padded value that is not its source.
std::unique_ptr<Step> border_step(const graph::GraphNode& pad, const Shape& source, const KernelSet& kernels,
                                  std::int32_t into);
std::unique_ptr<Step> fill_step(std::int32_t buffer, std::int64_t count, Word value);
std::unique_ptr<Step> arg_reduce_step(const graph::GraphNode& node, DType dtype, const Strided& source,
                                      std::int32_t into);
std::unique_ptr<Step> gather_step(const graph::GraphNode& node, const Strided& data, const Strided& indices,
                                  std::int32_t into);  // gather and take
std::unique_ptr<Step> scan_step(const graph::GraphNode& node, std::span<const Strided> operands,
                                std::int32_t into);  // cumsum and linear_recurrence
// Add a copy of the base first.
std::unique_ptr<Step> scatter_add_step(const graph::GraphNode& node, const Strided& indices,
                                       const Strided& updates, std::int32_t into);
std::unique_ptr<Step> unwindow_step(const graph::GraphNode& node, const Strided& windows, std::int32_t into);
// target[rows[i]] = values[i], of element_bytes each; rows outside are skipped.
std::unique_ptr<Step> store_rows_step(const Strided& values, const Strided& rows, const Shape& target,
                                      std::size_t element_bytes, std::int32_t into);
// Rounds or wraps words that a caller's function wrote to values of the dtype.
std::unique_ptr<Step> narrow_step(std::int32_t buffer, std::int64_t count, DType dtype,
                                  const KernelSet& kernels);
// Between memory outside the program, which may have elements of fewer than four bytes, and words.
std::unique_ptr<Step> unpack_step(std::int32_t from, DType dtype, const Strided& to);
std::unique_ptr<Step> pack_step(const Strided& from, DType dtype, std::int32_t to);

}  // namespace imprint::cpu
