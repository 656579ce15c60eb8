// Boxes: non-maximum suppression, regions of interest. Elements without doubles.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/onnx/op.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/ops/detection.h"
#include "compute/tensor/pages/box_suppression.h"

namespace imprint::onnx {
namespace {

constexpr std::int64_t kOverlapsPerOperation = 512;
constexpr std::int64_t kMostGrid = 64;  // samples of a bin along an axis

// Two opposite corners of a box that may be given as centre and size.
std::array<float, 4> corners_of(const float* box, bool centred) {
  if (!centred) return {box[0], box[1], box[2], box[3]};
  return {box[0] - box[2] / 2, box[1] - box[3] / 2, box[0] + box[2] / 2, box[1] + box[3] / 2};
}

struct Suppression {
  std::int64_t most = 0;
  float overlap = 0, score = 0;
  bool by_score = false;
};

// The boxes [n, 4] that stay, the best first.
std::vector<std::int64_t> kept_by_score(std::span<const float> boxes, std::span<const float> scores,
                                        const Suppression& form) {
  std::vector<std::int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  if (form.by_score)
    std::erase_if(order, [&](std::int64_t i) { return !(scores[static_cast<std::size_t>(i)] > form.score); });
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    const float x = scores[static_cast<std::size_t>(a)], y = scores[static_cast<std::size_t>(b)];
    return x > y || (std::isnan(y) && !std::isnan(x));  // NaN last: a sort needs one order
  });
  std::vector<float> sorted;
  for (const std::int64_t i : order)
    sorted.insert(sorted.end(), boxes.begin() + i * 4, boxes.begin() + i * 4 + 4);
  std::vector<std::int64_t> kept = tensor::kept_boxes(sorted, form.most, form.overlap);
  for (std::int64_t& i : kept) i = order[static_cast<std::size_t>(i)];
  return kept;
}

// boxes [batch, n, 4], scores [batch, classes, n]. How many stay follows from the values, which must be
// known.
void non_max_suppression(OpContext& context) {
  const Value boxes = context.value(0), scores = context.value(1);
  const bool known = boxes.foldable() && scores.foldable() &&
                     context.mover().may_fold(ElementType::float32, boxes.shape().element_count()) &&
                     context.mover().may_fold(ElementType::float32, scores.shape().element_count());
  if (!known)
    return context.unsupported(
        "boxes or scores computed at run time: its shape must follow from the input shapes alone");
  const Shape &box = boxes.shape(), &score = scores.shape();
  if (!context.require(is_float(boxes.type()) && is_float(scores.type()) && box.rank() == 3 && box[2] == 4 &&
                           score.rank() == 3 && score[0] == box[0] && score[2] == box[1],
                       text("boxes ", box.text(), " and scores ", score.text(), " do not fit")))
    return;
  if (score.element_count() == 0) return context.set(0, context.mover().reshape(known_vector({}), {0, 3}));
  Suppression form;
  form.most = context.has(2) ? context.known_int(2, "max_output_boxes_per_class") : 0;
  form.overlap = context.has(3) ? static_cast<float>(context.known_number(3, "iou_threshold")) : 0;
  form.by_score = context.has(4);
  if (form.by_score) form.score = static_cast<float>(context.known_number(4, "score_threshold"));
  const std::int64_t lists = score[0] * score[1], each = score[2];
  if (context.failure() ||
      !context.may_make(lists *
                        (each * std::clamp<std::int64_t>(form.most, 0, each) / kOverlapsPerOperation + 1)))
    return;
  const bool centred = context.int_attribute("center_point_box", 0) != 0;
  std::vector<float> list(static_cast<std::size_t>(each * 4));
  HostArray out;
  out.type = ElementType::int64;
  for (std::int64_t batch = 0; batch < score[0]; ++batch) {
    for (std::int64_t i = 0; i < each; ++i)
      std::ranges::copy(corners_of(boxes.host()->floats.data() + (batch * each + i) * 4, centred),
                        list.begin() + i * 4);
    for (std::int64_t label = 0; label < score[1]; ++label) {
      const std::span<const float> row(scores.host()->floats.data() + (batch * score[1] + label) * each,
                                       static_cast<std::size_t>(each));
      for (const std::int64_t i : kept_by_score(list, row, form))
        out.ints.insert(out.ints.end(), {batch, label, i});
    }
  }
  out.shape = {static_cast<std::int64_t>(out.ints.size()) / 3, 3};
  context.set(0, Value::known(std::move(out)));
}

// ---- regions of interest ----

// Without a number of samples each region has one per element, which only known regions tell.
bool count_samples(OpContext& context, RegionOptions& form) {
  const std::int64_t asked = context.int_attribute("sampling_ratio", 0);
  if (!context.require(asked >= 0 && asked <= kMostGrid, text("sampling_ratio: found ", asked))) return false;
  form.adaptive = asked == 0;
  form.samples = std::max<std::int64_t>(asked, 1);
  if (!form.adaptive) return true;
  const Value corners = context.value(1);
  if (!corners.foldable() || !is_float(corners.type())) {
    context.unsupported("sampling_ratio 0 with regions of run time, whose sizes are not known");
    return false;
  }
  const FloatList& numbers = corners.host()->floats;
  if (!context.mover().may_fold(ElementType::float32, static_cast<std::int64_t>(numbers.size()))) {
    context.unsupported("as many known regions in one model");
    return false;
  }
  for (std::size_t i = 0; i + 3 < numbers.size(); i += 4)
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const double length = static_cast<double>(numbers[i + 3 - axis] - numbers[i + 1 - axis]) * form.scale;
      const double need =
          std::ceil(std::max(length, 1.0) / static_cast<double>(form.bins[static_cast<int>(axis)]));
      if (!(need <= static_cast<double>(kMostGrid))) {
        context.require(false, text("a region of ", length, " elements: found more than ", kMostGrid,
                                    " samples per bin, expected at most that"));
        return false;
      }
      form.samples = std::max(form.samples, static_cast<std::int64_t>(need));
    }
  return true;
}

// x [batch, channels, height, width], corners [regions, 4], batches [regions].
void roi_align_op(OpContext& context) {
  const Tensor x = context.tensor(0), corners = context.tensor(1), batches = context.tensor(2);
  const std::int64_t rows = context.int_attribute("output_height", 1),
                     columns = context.int_attribute("output_width", 1);
  RegionOptions form;
  form.bins = {rows, columns};
  form.scale = context.float_attribute("spatial_scale", 1);
  const std::string mode = context.string_attribute("mode", "avg");
  form.half_pixel = context.opset() >= 16 &&
                    context.string_attribute("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  form.largest = mode == "max";
  if (mode != "avg" && mode != "max") return context.unsupported("mode " + quote(mode));
  const bool sane = rows >= 1 && columns >= 1 && rows <= 1024 && columns <= 1024;
  if (!context.require(sane && x.rank() == 4 && corners.rank() == 2 && corners.extent(1) == 4 &&
                           batches.shape() == Shape{corners.extent(0)},
                       text("x ", x.shape().text(), ", regions ", corners.shape().text(), " and batches ",
                            batches.shape().text(), " do not fit")) ||
      !context.may_make(128) || !count_samples(context, form))
    return;
  context.checked(Extents{corners.extent(0), x.extent(1), rows, form.samples, columns, form.samples});
  if (!context.failure()) context.set(0, imprint::roi_align(x, corners, batches, form));
}

// Whether an element of an axis is in a bin: [regions, bins, extent].
Tensor in_bins(const Tensor& regions, int axis, std::int64_t bins, std::int64_t extent, double scale) {
  const auto edge = [&](int which) {
    const Tensor raw = imprint::narrow(regions, 1, which, 1) * scale;
    return imprint::reshape(imprint::floor(raw + 0.5f), {regions.extent(0), 1, 1});
  };
  const Tensor start = edge(2 - axis), length = imprint::maximum(edge(4 - axis) - start + 1.0f, 1.0f);
  const Tensor bin = length / static_cast<double>(bins);
  const Tensor number = imprint::cast(imprint::iota({1, bins, 1}, 1), DType::float32),
               place = imprint::cast(imprint::iota({1, 1, extent}, 2), DType::float32);
  return imprint::logical_and(place >= imprint::floor(number * bin) + start,
                              place < imprint::ceil((number + 1.0f) * bin) + start);
}

// x [batch, channels, height, width], regions [n, 5]: batch, x1, y1, x2, y2.
void max_roi_pool(OpContext& context) {
  const Tensor x = context.tensor(0), regions = context.tensor(1);
  const Extents bins = context.ints_attribute("pooled_shape");
  const double scale = context.float_attribute("spatial_scale", 1);
  const bool sane = bins.size() == 2 && bins[0] >= 1 && bins[1] >= 1 && bins[0] <= 1024 && bins[1] <= 1024;
  if (!context.require(
          sane && x.rank() == 4 && regions.rank() == 2 && regions.extent(1) == 5,
          text("x ", x.shape().text(), " and regions ", regions.shape().text(), " do not fit")) ||
      !context.may_make(32))
    return;
  const std::int64_t count = regions.extent(0);
  context.checked(Extents{count, x.extent(1), bins[0], x.extent(2), x.extent(3)});
  context.checked(Extents{count, x.extent(1), bins[0], bins[1], x.extent(3)});
  if (context.failure()) return;
  const Tensor batches =
      imprint::cast(imprint::reshape(imprint::narrow(regions, 1, 0, 1), {count}), DType::int32);
  const Tensor from = imprint::take(x, 0, batches), lowest = Tensor(std::numeric_limits<float>::lowest());
  const Tensor rows = in_bins(regions, 0, bins[0], x.extent(2), scale),
               columns = in_bins(regions, 1, bins[1], x.extent(3), scale);
  const Tensor tall = imprint::max(imprint::where(imprint::reshape(rows, {count, 1, bins[0], x.extent(2), 1}),
                                                  imprint::unsqueeze(from, 2), lowest),
                                   {3});
  const Tensor out =
      imprint::max(imprint::where(imprint::reshape(columns, {count, 1, 1, bins[1], x.extent(3)}),
                                  imprint::unsqueeze(tall, 3), lowest),
                   {4});
  context.set(0, imprint::where(imprint::equal(out, lowest), 0.0f, out));
}

// ---- elements without doubles ----

// Rows of an array, as numbers that compare: a row is all elements with one index of the axis.
struct Rows {
  const HostArray& array;
  std::int64_t outer = 1, count = 1, inner = 1;

  std::size_t at(std::int64_t row, std::int64_t i) const {
    return static_cast<std::size_t>((i / inner * count + row) * inner + i % inner);
  }
  bool less(std::int64_t a, std::int64_t b) const {
    for (std::int64_t i = 0; i < outer * inner; ++i) {
      const std::size_t x = at(a, i), y = at(b, i);
      if (!is_float(array.type)) {
        if (array.ints[x] != array.ints[y]) return array.ints[x] < array.ints[y];
      } else if (const float p = array.floats[x], q = array.floats[y]; p != q) {
        if (std::isnan(p) && std::isnan(q)) continue;
        return p < q || std::isnan(q);
      }
    }
    return false;
  }
};

void unique_op(OpContext& context) {
  Value x = context.value(0);
  const bool flat = !context.has_attribute("axis");
  if (!x.foldable() || !context.mover().may_fold(x.type(), 4 * x.shape().element_count()))
    return context.unsupported(
        "Unique of values computed at run time: its shape must follow from the input shapes alone");
  if (flat) x = context.mover().reshape(x, {x.shape().element_count()});
  const int axis = context.axis(context.int_attribute("axis", 0), x.rank());
  if (!context.require(x.rank() > 0 && x.host(), "a scalar has no axis")) return;
  Rows rows{*x.host()};
  rows.count = x.shape()[axis];
  for (int i = 0; i < axis; ++i) rows.outer *= x.shape()[i];
  for (int i = axis + 1; i < x.rank(); ++i) rows.inner *= x.shape()[i];
  if (!context.mover().may_fold(ElementType::int64, 4 * rows.count))
    return context.unsupported("constants of this size");
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows.count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return rows.less(a, b); });
  // Groups of equal rows; the first of each is the earliest, since the order is stable.
  Extents first, group(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || rows.less(order[i - 1], order[i])) first.push_back(order[i]);
    group[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(first.size()) - 1;
  }
  Extents place(first.size());  // of a group in the output
  std::iota(place.begin(), place.end(), 0);
  if (context.int_attribute("sorted", 1) == 0) {
    Extents by_first = place;
    std::sort(by_first.begin(), by_first.end(), [&](std::int64_t a, std::int64_t b) {
      return first[static_cast<std::size_t>(a)] < first[static_cast<std::size_t>(b)];
    });
    for (std::size_t i = 0; i < by_first.size(); ++i)
      place[static_cast<std::size_t>(by_first[i])] = static_cast<std::int64_t>(i);
  }
  Extents indices(first.size()), counts(first.size(), 0), inverse(order.size());
  for (std::size_t i = 0; i < first.size(); ++i) indices[static_cast<std::size_t>(place[i])] = first[i];
  for (std::size_t i = 0; i < group.size(); ++i) {
    inverse[i] = place[static_cast<std::size_t>(group[i])];
    ++counts[static_cast<std::size_t>(inverse[i])];
  }
  context.set(0, context.mover().take(x, axis, known_vector(indices)));
  context.set(1, known_vector(std::move(indices)));
  context.set(2, known_vector(std::move(inverse)));
  context.set(3, known_vector(std::move(counts)));
}

constexpr std::array kDetectionOps{
    OpHandler{"NonMaxSuppression", non_max_suppression},
    OpHandler{"RoiAlign", roi_align_op},
    OpHandler{"MaxRoiPool", max_roi_pool},
    OpHandler{"Unique", unique_op},
};

}  // namespace

std::span<const OpHandler> detection_ops() { return kDetectionOps; }

}  // namespace imprint::onnx
