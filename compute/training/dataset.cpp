#include "compute/training/dataset.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "compute/base/philox.h"
#include "compute/base/text.h"

namespace imprint::training {
namespace {

std::size_t index_of(std::int64_t value) { return static_cast<std::size_t>(value); }

template <class Number>
void copy_row(const std::vector<Number>& from, std::int64_t sample, std::vector<Number>& to, std::int64_t row,
              std::int64_t count) {
  std::copy_n(from.begin() + sample * count, count, to.begin() + row * count);
}

void copy_sample(const HostTensor& from, std::int64_t sample, HostTensor& to, std::int64_t row,
                 std::int64_t count) {
  if (dtype_is_float(to.dtype))
    copy_row(from.floats, sample, to.floats, row, count);
  else
    copy_row(from.ints, sample, to.ints, row, count);
}

class InMemory final : public Dataset {
 public:
  InMemory(std::vector<NamedTensor> data, std::int64_t size)
      : data_(std::make_shared<const std::vector<NamedTensor>>(std::move(data))), size_(size) {
    for (const NamedTensor& field : *data_)
      fields_.push_back({field.name, Shape(field.values.shape.extents().subspan(1)), field.values.dtype});
  }
  std::int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return fields_; }
  Result<> read(std::int64_t sample, std::span<HostTensor> batch, std::int64_t row) const override {
    for (std::size_t i = 0; i < data_->size(); ++i)
      copy_sample((*data_)[i].values, sample, batch[i], row, fields_[i].shape.element_count());
    return {};
  }
  std::optional<DatasetArrays> arrays() const override {
    DatasetArrays all;
    for (const NamedTensor& field : *data_)
      all.arrays.push_back({field.name, field.values.shape, field.values.dtype, packed(field.values)});
    all.batch = [](std::span<const Tensor> arrays, const Tensor& rows) {
      std::vector<Tensor> fields;
      for (const Tensor& array : arrays) fields.push_back(take(array, 0, rows));
      return fields;
    };
    return all;
  }

 private:
  // Those of four bytes are the host's own.
  SharedBytes packed(const HostTensor& values) const {
    const bool is_float = dtype_is_float(values.dtype);
    const std::span<const std::byte> words =
        is_float ? std::as_bytes(std::span(values.floats)) : std::as_bytes(std::span(values.ints));
    if (dtype_size(values.dtype) == 4) return {words, data_};
    const std::size_t count = words.size() / 4;
    std::vector<std::byte> bytes(count * dtype_size(values.dtype));
    pack_elements(words.data(), count, values.dtype, bytes.data());
    return SharedBytes(std::move(bytes));
  }

  std::shared_ptr<const std::vector<NamedTensor>> data_;
  std::int64_t size_;
  std::vector<Field> fields_;
};

class Subset final : public Dataset {
 public:
  Subset(DatasetRef whole, std::vector<std::int64_t> samples)
      : whole_(std::move(whole)), samples_(std::move(samples)) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(samples_.size()); }
  const std::vector<Field>& fields() const override { return whole_->fields(); }
  Result<> read(std::int64_t sample, std::span<HostTensor> batch, std::int64_t row) const override {
    return whole_->read(samples_[index_of(sample)], batch, row);
  }
  std::optional<DatasetArrays> arrays() const override {
    std::optional<DatasetArrays> all = whole_->arrays();
    if (!all) return all;
    std::vector<std::int32_t> rows;
    for (const std::int64_t sample : samples_)
      rows.push_back(all->rows.empty() ? static_cast<std::int32_t>(sample) : all->rows[index_of(sample)]);
    all->rows = std::move(rows);
    return all;
  }

 private:
  DatasetRef whole_;
  std::vector<std::int64_t> samples_;
};

HostTensor blank(const Field& field) {
  HostTensor out{field.dtype, field.shape, {}, {}};
  const std::size_t count = index_of(field.shape.element_count());
  if (dtype_is_float(field.dtype))
    out.floats.resize(count);
  else
    out.ints.resize(count);
  return out;
}

class Mapped final : public Dataset {
 public:
  Mapped(DatasetRef source, Transform transform)
      : source_(std::move(source)), transform_(std::move(transform)) {}
  std::int64_t size() const override { return source_->size(); }
  const std::vector<Field>& fields() const override { return source_->fields(); }
  Result<> read(std::int64_t sample, std::span<HostTensor> batch, std::int64_t row) const override {
    std::vector<HostTensor> one;
    for (const Field& field : fields()) one.push_back(blank(field));
    IMPRINT_CHECK(source_->read(sample, one, 0));
    transform_(sample, one);
    for (std::size_t i = 0; i < one.size(); ++i) {
      const std::int64_t count = fields()[i].shape.element_count();
      const std::size_t found = dtype_is_float(one[i].dtype) ? one[i].floats.size() : one[i].ints.size();
      if (one[i].dtype != fields()[i].dtype || found != index_of(count))
        return make_error(ErrorCode::shape_mismatch,
                          text("transform: found ", found, " values of ", fields()[i].name, ", expected ",
                               count, ". Keep shape and dtype."));
      copy_sample(one[i], 0, batch[i], row, count);
    }
    return {};
  }

 private:
  DatasetRef source_;
  Transform transform_;
};

class TokenWindows final : public Dataset {
 public:
  TokenWindows(std::vector<std::int32_t> tokens, std::int64_t length)
      : tokens_(std::make_shared<const std::vector<std::int32_t>>(std::move(tokens))),
        length_(length),
        fields_{{"x", {length}, DType::int32}, {"y", {length}, DType::int32}} {}
  std::int64_t size() const override { return static_cast<std::int64_t>(tokens_->size()) - length_; }
  const std::vector<Field>& fields() const override { return fields_; }
  Result<> read(std::int64_t sample, std::span<HostTensor> batch, std::int64_t row) const override {
    for (std::int64_t later : {0, 1})
      std::copy_n(tokens_->begin() + sample + later, length_,
                  batch[index_of(later)].ints.begin() + row * length_);
    return {};
  }
  std::optional<DatasetArrays> arrays() const override {
    DatasetArrays all;
    const Shape shape{static_cast<std::int64_t>(tokens_->size())};
    all.arrays = {{"tokens", shape, DType::int32, {std::as_bytes(std::span(*tokens_)), tokens_}}};
    all.batch = [length = length_](std::span<const Tensor> arrays, const Tensor& rows) {
      const Tensor at = reshape(rows, {rows.extent(0), 1}) + arange(length);
      return std::vector<Tensor>{take(arrays[0], 0, at), take(arrays[0], 0, at + 1)};
    };
    return all;
  }

 private:
  std::shared_ptr<const std::vector<std::int32_t>> tokens_;
  std::int64_t length_;
  std::vector<Field> fields_;
};

}  // namespace

Result<DatasetRef> in_memory(std::vector<NamedTensor> fields) {
  if (fields.empty())
    return make_error(ErrorCode::invalid_argument, "in_memory: found no field, expected one or more");
  const std::int64_t size = fields[0].values.shape.rank() > 0 ? fields[0].values.shape[0] : -1;
  for (const NamedTensor& field : fields) {
    const HostTensor& values = field.values;
    if (dtype_size(values.dtype) > 4)
      return make_error(ErrorCode::dtype_mismatch,
                        text("in_memory: found ", field.name, " of ", dtype_name(values.dtype), ", expected ",
                             values.dtype == DType::float64 ? "float32" : "int32", " or a narrower type."));
    const std::size_t count = dtype_is_float(values.dtype) ? values.floats.size() : values.ints.size();
    if (values.shape.rank() == 0)
      return make_error(ErrorCode::invalid_argument,
                        text("in_memory: found scalar ", field.name, ", expected [samples, ...]"));
    if (values.shape[0] != size || count != index_of(values.shape.element_count()))
      return make_error(ErrorCode::shape_mismatch,
                        text("in_memory: found ", field.name, " ", values.shape.text(), " with ", count,
                             " values, expected ", size, " samples and a value per element"));
  }
  return DatasetRef(std::make_shared<InMemory>(std::move(fields), size));
}

Result<DatasetRef> subset(DatasetRef dataset, std::vector<std::int64_t> samples) {
  for (const std::int64_t sample : samples)
    if (sample < 0 || sample >= dataset->size())
      return make_error(ErrorCode::invalid_argument,
                        text("subset: found sample ", sample, ", expected 0 .. ", dataset->size() - 1));
  return DatasetRef(std::make_shared<Subset>(std::move(dataset), std::move(samples)));
}

Result<Parts> split(DatasetRef dataset, double share, std::uint64_t seed) {
  if (!(share >= 0 && share <= 1))
    return make_error(ErrorCode::invalid_argument, text("split: found share ", share, ", expected 0 to 1"));
  std::vector<std::int64_t> order = shuffled(dataset->size(), seed, 0);
  const auto first = std::llround(share * static_cast<double>(order.size()));
  std::vector<std::int64_t> rest(order.begin() + first, order.end());
  order.resize(static_cast<std::size_t>(first));
  return Parts{std::make_shared<Subset>(dataset, std::move(order)),
               std::make_shared<Subset>(dataset, std::move(rest))};
}

DatasetRef mapped(DatasetRef dataset, Transform transform) {
  return std::make_shared<Mapped>(std::move(dataset), std::move(transform));
}

Result<DatasetRef> token_windows(std::vector<std::int32_t> tokens, std::int64_t length) {
  if (length < 1 || static_cast<std::int64_t>(tokens.size()) < length + 1)
    return make_error(ErrorCode::invalid_argument,
                      text("token_windows: found ", tokens.size(), " tokens for length ", length,
                           ", expected a length of 1 or more and more tokens than that"));
  return DatasetRef(std::make_shared<TokenWindows>(std::move(tokens), length));
}

Alphabet::Alphabet(const std::string& text) : letters_(text) {
  std::sort(letters_.begin(), letters_.end());
  letters_.erase(std::unique(letters_.begin(), letters_.end()), letters_.end());
}

std::vector<std::int32_t> Alphabet::encode(const std::string& text) const {
  std::vector<std::int32_t> tokens;
  for (const char letter : text)
    if (const std::size_t at = letters_.find(letter); at != letters_.npos)
      tokens.push_back(static_cast<std::int32_t>(at));
  return tokens;
}

std::string Alphabet::decode(std::span<const std::int32_t> tokens) const {
  std::string text;
  for (const std::int32_t token : tokens)
    if (token >= 0 && token < size()) text += letters_[static_cast<std::size_t>(token)];
  return text;
}

// Fisher, Yates, with draws that are multiplied into their range: the bias is below count / 2^32.
std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed, std::uint32_t round) {
  std::vector<std::int64_t> order(index_of(std::max<std::int64_t>(count, 0)));
  std::iota(order.begin(), order.end(), 0);
  const PhiloxKey key{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  for (std::size_t i = order.size(); i > 1; --i) {
    const std::uint32_t word = philox(
        {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32), round, 0x5f3759dfu}, key)[0];
    std::swap(order[i - 1], order[index_of(static_cast<std::int64_t>((std::uint64_t{word} * i) >> 32))]);
  }
  return order;
}

}  // namespace imprint::training
