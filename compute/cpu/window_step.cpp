// Depthwise convolutions, pools and the borders of padded images. An image is split into its phases by the
// strides, so that the elements of one term lie in a row for all positions. Rows follow each other at one
// pitch: a fold runs over a whole image at once, and computes a few elements between the rows that are not
// read.

#include <algorithm>
#include <numeric>

#include "compute/cpu/step.h"

namespace imprint::cpu {

using namespace graph;

namespace {

constexpr std::int64_t kRoundUp = 64;  // a fold reads no further than its last vector, which stays inside

std::int64_t quotient_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Rows of the image that the windows of `rows` rows of positions read.
std::int64_t image_rows(const WindowPlan& plan, std::int64_t rows) {
  return (rows - 1) * plan.row_stride + (plan.height - 1) * plan.row_dilation + 1;
}

// The image in phases: [row phase][column phase][rows][columns].
struct Phases {
  std::int64_t rows, columns, rows_of_phase, pitch;
  bool in_place;  // strides of 1: the image itself

  explicit Phases(const WindowPlan& plan)
      : rows(image_rows(plan, plan.rows)),
        columns((plan.columns - 1) * plan.column_stride + (plan.width - 1) * plan.column_dilation + 1),
        rows_of_phase(quotient_up(rows, plan.row_stride)),
        pitch(quotient_up(columns, plan.column_stride)),
        in_place(plan.row_stride == 1 && plan.column_stride == 1 && 2 * plan.pitch <= 3 * columns) {
    if (in_place) pitch = plan.pitch;
  }
  std::int64_t elements(const WindowPlan& plan) const {
    return in_place ? 0 : plan.row_stride * plan.column_stride * rows_of_phase * pitch;
  }
};

// Elements of workspace.
std::int64_t scratch_of(const WindowPlan& plan) {
  const Phases phases(plan);
  return plan.height * plan.width + phases.elements(plan) + plan.rows * phases.pitch + kRoundUp;
}

// The first rows of a large image, of which each part stays in the first cache while it is read.
WindowPlan band_of(const WindowPlan& plan) {
  constexpr std::int64_t kNear = 4096, kLeastRows = 4;  // elements, rows
  const std::int64_t window = image_rows(plan, 1),
                     least = std::max(kLeastRows, quotient_up(2 * window, plan.row_stride)),
                     fit = (kNear / plan.pitch - window) / plan.row_stride + 1;
  WindowPlan band = plan;
  band.rows = std::min(plan.rows, std::max(least, fit));
  return band;
}

// The first `rows` rows of the image.
void split(const WindowPlan& plan, const Phases& phases, const KernelSet& kernels, const float* image,
           std::int64_t rows, float* to) {
  for (std::int64_t row = 0; row < std::min(plan.row_stride, rows); ++row)
    for (std::int64_t column = 0; column < std::min(plan.column_stride, phases.columns); ++column) {
      const std::int64_t plane = row * plan.column_stride + column;
      kernels.copy_rows({image + row * plan.pitch + column, plan.pitch * plan.row_stride, plan.column_stride,
                         to + plane * phases.rows_of_phase * phases.pitch, phases.pitch,
                         quotient_up(rows - row, plan.row_stride),
                         quotient_up(phases.columns - column, plan.column_stride)});
    }
}

std::vector<std::int64_t> offsets_of(const WindowPlan& plan, const Phases& phases) {
  std::vector<std::int64_t> offsets;
  for (std::int64_t h = 0; h < plan.height; ++h)
    for (std::int64_t w = 0; w < plan.width; ++w) {
      const std::int64_t row = h * plan.row_dilation, column = w * plan.column_dilation;
      const std::int64_t plane = row % plan.row_stride * plan.column_stride + column % plan.column_stride;
      offsets.push_back((plane * phases.rows_of_phase + row / plan.row_stride) * phases.pitch +
                        column / plan.column_stride);
    }
  return offsets;
}

class WindowStep : public OpenStep {
 public:
  WindowStep(const WindowPlan& plan, const KernelSet& kernels, std::int32_t into)
      : plan_(plan),
        band_(band_of(plan)),
        phases_(band_),
        kernels_(kernels),
        into_(into),
        offsets_(offsets_of(band_, phases_)) {
    const int rank = plan.image.shape.rank();
    if (plan.factors.buffer < 0) return;
    // The window's axes are the last ones; one of extent 1 has no stride.
    const std::int64_t column = plan.width > 1 ? plan.factors.strides[at(last_axis(rank, 0))] : 0,
                       row = plan.height > 1 ? plan.factors.strides[at(last_axis(rank, 1))] : 0;
    for (std::int64_t h = 0; h < plan.height; ++h)
      for (std::int64_t w = 0; w < plan.width; ++w) factor_offsets_.push_back(h * row + w * column);
  }

  std::int64_t part_count() const override { return images(); }
  std::int64_t work() const override {
    return images() * size() * static_cast<std::int64_t>(offsets_.size()) + (chain_ ? chain_->work() : 0);
  }
  std::int32_t result() const override { return into_; }
  std::int64_t scratch() const override {  // in whole cache lines
    constexpr std::int64_t kLine = 16;
    return quotient_up(scratch_of(band_), kLine) * kLine;
  }

  bool take(Chain& chain, bool is_last_reader, bool /*is_apart*/) override {
    if (chain_ || !chain.can_follow(into_, images() * size(), {plan_.image.buffer, plan_.factors.buffer}))
      return false;
    const std::int32_t result = chain.register_of(into_);
    chain.start_anywhere();
    const std::int32_t target = is_last_reader ? chain.overwrite(result) : -1;
    if (target >= 0) into_ = target;
    chain_ = std::move(chain);
    return true;
  }

  void run(const Memory& memory, Parts parts) const override {
    constexpr std::int64_t kNear = 4096;  // elements of the result until the chain reads them
    Memory after = memory;
    after.workspace += at(scratch()) * sizeof(float);
    if (chain_) chain_->prepare(after);
    float* const factors = reinterpret_cast<float*>(memory.workspace);
    float* const scratch = factors + factor_offsets_.size();
    float* result = memory.data<float>(into_, parts.begin * size());
    Walk<2> walk(plan_.outer);
    walk.seek(parts.begin);
    const std::int64_t inner = plan_.outer.extents[walk.inner()];
    std::int64_t open = parts.begin;
    for (std::int64_t image = parts.begin; image < parts.end; ++image, result += size()) {
      const std::int64_t position = image % inner;
      if (image > parts.begin && position == 0) walk.next();
      const auto offset = [&](std::size_t n) {
        return walk.offsets[n] + position * plan_.outer.strides[n][walk.inner()];
      };
      if (!factor_offsets_.empty()) {
        const float* from = memory.data<const float>(plan_.factors.buffer, plan_.factors.offset + offset(1));
        for (std::size_t t = 0; t < factor_offsets_.size(); ++t) factors[t] = from[factor_offsets_[t]];
      }
      const float* const from = memory.data<const float>(plan_.image.buffer, plan_.image.offset + offset(0));
      const bool is_last = position + 1 == inner || image + 1 == parts.end;
      fold(from, is_last ? nullptr : from + plan_.outer.strides[0][walk.inner()], factors, scratch, result);
      if (!chain_ || ((image + 1 - open) * size() < kNear && image + 1 < parts.end)) continue;
      chain_->run(after, {open * size(), (image + 1) * size()});
      open = image + 1;
    }
  }

 private:
  std::int64_t size() const { return plan_.rows * plan_.columns; }

  // Another thread, or a step long before, may have computed the image.
  void fetch(const float* image, std::int64_t row) const {
    constexpr std::int64_t kLine = 16;
    const float* const band = image + row * plan_.row_stride * plan_.pitch;
    const std::int64_t elements = image_rows(plan_, std::min(band_.rows, plan_.rows - row)) * plan_.pitch;
    for (std::int64_t i = 0; i < elements; i += kLine) __builtin_prefetch(band + i);
  }

  // next: the image after it, or null.
  void fold(const float* image, const float* next, const float* factors, float* split_image,
            float* result) const {
    float* const folded = split_image + phases_.elements(band_);
    const bool dense = phases_.pitch == plan_.columns;
    WindowFold fold{.offsets = offsets_.data(),
                    .factors = factor_offsets_.empty() ? nullptr : factors,
                    .terms = static_cast<std::int64_t>(offsets_.size()),
                    .largest = plan_.largest,
                    .fuses = plan_.fuses};
    for (std::int64_t row = 0; row < plan_.rows; row += band_.rows, result += band_.rows * plan_.columns) {
      const std::int64_t rows = std::min(band_.rows, plan_.rows - row);
      fold.elements = image + row * plan_.row_stride * plan_.pitch;
      if (row + rows < plan_.rows)
        fetch(image, row + rows);
      else if (next)
        fetch(next, 0);
      if (!phases_.in_place) {
        split(band_, phases_, kernels_, fold.elements, image_rows(plan_, rows), split_image);
        fold.elements = split_image;
      }
      const bool by_rows = !dense && plan_.columns >= kernels_.panel_columns / 2;  // a vector
      fold.count = by_rows ? plan_.columns : (rows - 1) * phases_.pitch + plan_.columns;
      fold.rows = by_rows ? rows : 1;
      fold.row = phases_.pitch;
      fold.result_row = plan_.columns;
      fold.result = dense || by_rows ? result : folded;
      kernels_.window_fold(fold);
      if (!dense && !by_rows)
        kernels_.copy_rows({folded, phases_.pitch, 1, result, plan_.columns, rows, plan_.columns});
    }
  }

  std::int64_t images() const {
    std::int64_t count = 1;
    for (int loop = 0; loop < plan_.outer.depth; ++loop) count *= plan_.outer.extents[at(loop)];
    return count;
  }

  // The place of the window's last axis but `before`.
  int last_axis(int rank, int before) const {
    int axis = rank - 1;
    while (plan_.image.shape[axis] == 1) --axis;
    if (before == 0) return axis;
    for (--axis; plan_.image.shape[axis] == 1;) --axis;
    return axis;
  }

  WindowPlan plan_, band_;  // of an image, and of the rows that are computed together
  Phases phases_;           // of the band
  const KernelSet& kernels_;
  std::int32_t into_;
  std::vector<std::int64_t> offsets_, factor_offsets_;
  std::optional<Chain> chain_;
};

// The axes before the first padded one are images, which lie one after the other. The border is all that is
// between the rows of an image's inside.
class BorderStep : public Step {
 public:
  BorderStep(const GraphNode& pad, const Shape& source, const KernelSet& kernels, std::int32_t into)
      : kernels_(kernels), into_(into), value_(word_of(pad.floats[0], pad.dtype)) {
    const Strides strides = row_major_strides(pad.shape);
    int axis = 0;
    for (; axis < pad.shape.rank() && source[axis] == pad.shape[axis]; ++axis) images_ *= source[axis];
    Shape inside;
    Strides inside_strides{};
    for (; axis < pad.shape.rank(); ++axis) {
      inside_strides[at(inside.rank())] = strides[at(axis)];
      inside.append(source[axis]);
      first_ += strides[at(axis)] * pad.ints[2 * at(axis)];
      image_ *= pad.shape[axis];
    }
    is_empty_ = inside.element_count() == 0;
    if (!is_empty_) inside_ = loops_over<1>(inside, {inside_strides});
  }

  std::int64_t part_count() const override { return images_; }
  // As much as the steps that write and read the whole value, so that it is divided as they are: the border
  // shares cache lines with the inside.
  std::int64_t work() const override { return images_ * image_; }

  void run(const Memory& memory, Parts parts) const override {
    Word* image = memory.data<Word>(into_, parts.begin * image_);
    for (std::int64_t i = parts.begin; i < parts.end; ++i, image += image_) {
      std::int64_t filled = 0;  // or inside
      if (!is_empty_)
        each_run(inside_, [&](const auto& offsets, std::int64_t count, const auto& strides) {
          const std::int64_t runs = strides[0] == 1 ? 1 : count, length = count / runs;
          for (std::int64_t run = 0; run < runs; ++run) {
            const std::int64_t begin = first_ + offsets[0] + run * strides[0];
            fill(image + filled, begin - filled);
            filled = begin + length;
          }
        });
      fill(image + filled, image_ - filled);
    }
  }

 private:
  void fill(Word* to, std::int64_t count) const {
    constexpr std::int64_t kFew = 8;  // elements, as between two rows: less than the call
    if (count > kFew) return kernels_.copy_run(&value_, 0, to, count);
    for (std::int64_t i = 0; i < count; ++i) to[i] = value_;
  }

  const KernelSet& kernels_;
  std::int32_t into_;
  Word value_;
  std::int64_t images_ = 1, image_ = 1;  // elements of one
  std::int64_t first_ = 0;               // element of an image that is inside
  bool is_empty_ = false;                // nothing is inside
  Loops<1> inside_;
};

// An axis that is not 1 long.
struct Axis {
  std::int64_t extent = 1, image = 0, factors = 0;
};

}  // namespace

std::optional<WindowPlan> plan_windows(const GraphNode& fold, const Strided& image, const Strided& factors) {
  const auto folds = [&](int axis) { return std::ranges::find(fold.ints, axis) != fold.ints.end(); };
  std::vector<Axis> window, positions;
  int axis = image.shape.rank() - 1;
  const auto take = [&](std::vector<Axis>& axes) {
    if (image.shape[axis] != 1)
      axes.push_back(
          {image.shape[axis], image.strides[at(axis)], factors.buffer < 0 ? 0 : factors.strides[at(axis)]});
  };
  for (; axis >= 0 && (folds(axis) || image.shape[axis] == 1) && window.size() < 2; --axis) take(window);
  for (; axis >= 0 && image.shape[axis] == 1; --axis) continue;
  for (; axis >= 0 && !folds(axis) && positions.size() < window.size(); --axis) {
    take(positions);
  }
  if (window.empty() || positions.empty()) return {};
  const bool two = window.size() == 2 && positions.size() == 2;
  if (window.size() != positions.size()) return {};
  WindowPlan plan{.image = image, .factors = factors, .largest = fold.op == tensor::Op::reduce_max};
  for (const Axis& one : positions)
    if (one.factors != 0) return {};
  plan.columns = positions[0].extent;
  plan.column_stride = positions[0].image;
  plan.width = window[0].extent;
  plan.column_dilation = window[0].image;
  if (two) {
    plan.pitch = std::gcd(positions[1].image, window[1].image);
    plan.rows = positions[1].extent;
    plan.height = window[1].extent;
    if (plan.pitch < 1) return {};
    plan.row_stride = positions[1].image / plan.pitch;
    plan.row_dilation = window[1].image / plan.pitch;
  }
  const std::int64_t columns =
      (plan.columns - 1) * plan.column_stride + (plan.width - 1) * plan.column_dilation + 1;
  if (plan.column_stride < 1 || plan.column_dilation < 1 || plan.row_stride < 1 || plan.row_dilation < 1)
    return {};
  if (two && columns > plan.pitch) return {};
  if (!two) plan.pitch = columns;
  if (plan.height * plan.width > 256 || plan.row_stride * plan.column_stride > 64) return {};
  Shape outer;
  Strides of_image{}, of_factors{};
  for (int a = 0; a <= axis; ++a) {
    if (folds(a) && image.shape[a] != 1) return {};
    of_image[at(outer.rank())] = image.strides[at(a)];
    of_factors[at(outer.rank())] = factors.buffer < 0 ? 0 : factors.strides[at(a)];
    outer.append(image.shape[a]);
  }
  plan.outer = loops_over<2>(outer, {of_image, of_factors});
  constexpr std::int64_t kMostScratch = std::int64_t{1} << 20;  // elements
  return scratch_of(plan) <= kMostScratch ? std::optional(plan) : std::nullopt;
}

std::unique_ptr<OpenStep> window_step(const WindowPlan& plan, const KernelSet& kernels, std::int32_t into) {
  return std::make_unique<WindowStep>(plan, kernels, into);
}

std::unique_ptr<Step> border_step(const GraphNode& pad, const Shape& source, const KernelSet& kernels,
                                  std::int32_t into) {
  return std::make_unique<BorderStep>(pad, source, kernels, into);
}

}  // namespace imprint::cpu
