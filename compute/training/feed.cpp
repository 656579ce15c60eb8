#include "compute/training/feed.h"

#include <limits>
#include <utility>

#include "compute/base/text.h"

namespace imprint::training {
namespace {

std::uint64_t bytes_of(const DatasetArrays& all) {
  std::uint64_t bytes = 0;
  for (const DatasetArrays::Array& array : all.arrays) bytes += array.bytes.size();
  return bytes;
}

Result<> check_fields(const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
  if (found.size() != expected.size())
    return make_error(ErrorCode::shape_mismatch, text("data set: its arrays give ", found.size(),
                                                      " fields, expected ", expected.size()));
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i].ok()) return found[i].error();
    if (found[i].shape() != expected[i].shape() || found[i].dtype() != expected[i].dtype())
      return make_error(ErrorCode::shape_mismatch,
                        text("data set: its arrays give field ", i, " as ", dtype_name(found[i].dtype()),
                             found[i].shape().text(), ", expected ", dtype_name(expected[i].dtype()),
                             expected[i].shape().text()));
  }
  return {};
}

}  // namespace

Result<Feed> Feed::create(const Loader& loader, std::uint64_t most) {
  Feed feed;
  feed.dataset_ = loader.shared_dataset();
  feed.batch_ = loader.options().batch;
  feed.weights_ = input("sample weights", {feed.batch_});
  feed.fields_ = feed.inputs_ = batch_inputs(loader);
  const bool has_numbers = feed.dataset_->size() <= std::numeric_limits<std::int32_t>::max();
  std::optional<DatasetArrays> all =
      most > 0 && has_numbers ? feed.dataset_->arrays() : std::optional<DatasetArrays>();
  if (all && !all->arrays.empty() && bytes_of(*all) <= most) {
    std::vector<Tensor> values;
    for (DatasetArrays::Array& array : all->arrays) {
      feed.arrays_.emplace_back(std::move(array.name), array.shape, array.dtype, std::move(array.bytes));
      values.push_back(feed.arrays_.back().value());
    }
    const Tensor rows = input("rows", {feed.batch_}, DType::int32);
    feed.fields_ = all->batch(values, rows);
    IMPRINT_CHECK(check_fields(feed.fields_, feed.inputs_));
    feed.inputs_ = {rows};
    feed.rows_ = std::move(all->rows);
  }
  feed.inputs_.push_back(feed.weights_);
  return feed;
}

std::uint64_t Feed::bytes() const {
  std::uint64_t bytes = 0;
  for (const Variable& array : arrays_) bytes += array.bytes();
  return bytes;
}

bool Feed::serves(const Loader& loader) const {
  return batch_ == loader.options().batch && (!is_resident() || dataset_ == loader.shared_dataset());
}

Result<bool> Feed::next(Loader& loader, std::vector<HostTensor>& values, std::int64_t& count) const {
  Batch batch;
  if (is_resident()) {
    if (!loader.next_numbers(batch)) return false;
    HostTensor rows{DType::int32, {batch_}, {}, {}};
    for (const std::int64_t sample : batch.samples)
      rows.ints.push_back(rows_.empty() ? static_cast<std::int32_t>(sample)
                                        : rows_[static_cast<std::size_t>(sample)]);
    batch.fields.push_back(std::move(rows));
  } else {
    IMPRINT_ASSIGN(const bool has_batch, loader.next(batch));
    if (!has_batch) return false;
  }
  values = std::move(batch.fields);
  values.push_back(std::move(batch.weights));
  count = batch.count;
  return true;
}

}  // namespace imprint::training
