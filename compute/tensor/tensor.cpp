#include "compute/tensor/tensor.h"

#include <cstdlib>

#include "compute/base/amount.h"
#include "compute/base/text.h"
#include "compute/tensor/build.h"

namespace imprint {

using namespace tensor;

namespace {

const Error& uninitialised() {
  static const Error kError = make_error(
      ErrorCode::invalid_argument, "uninitialised tensor: it was default-constructed. Assign a value first.");
  return kError;
}

Tensor from_shared(SharedBytes bytes, const Shape& shape, DType dtype) {
  const std::size_t count = bytes.size() / dtype_size(dtype);
  if (shape.element_count() != static_cast<std::int64_t>(count) || bytes.size() % dtype_size(dtype) != 0)
    return failure(ErrorCode::shape_mismatch, "from",
                   text("found ", amount(count, "value"), " for shape ", shape.text(), ", expected ",
                        shape.element_count()));
  Tensor made = make(Op::constant, std::span<const Tensor>(), {.shape = shape, .dtype = dtype});
  if (!made.ok()) return made;
  auto data = std::make_shared<ConstantData>();
  data->bytes = std::move(bytes);
  const_cast<Node&>(*made.node()).constant = std::move(data);  // not shared yet
  return made;
}

Tensor from_values(std::span<const std::byte> bytes, const Shape& shape, DType dtype) {
  return from_shared(SharedBytes(std::vector(bytes.begin(), bytes.end())), shape, dtype);
}

}  // namespace

Tensor::Tensor() = default;
Tensor::Tensor(NodeRef node) : node_(std::move(node)) {}
Tensor::Tensor(Error error) : error_(std::make_shared<const Error>(std::move(error))) {}
Tensor::Tensor(float value) : Tensor(full({}, value, DType::float32)) {}
Tensor::Tensor(int value) : Tensor(full({}, value, DType::int32)) {}
Tensor::Tensor(std::int64_t value)
    : Tensor(std::abs(value / 2) < std::int64_t{1} << 52 ? full({}, static_cast<double>(value), DType::int64)
                                                         : from_int64s(std::span(&value, 1), {})) {}

Tensor Tensor::from(std::span<const float> values, Shape shape) {
  return from_values(std::as_bytes(values), shape, DType::float32);
}

Tensor Tensor::from(std::initializer_list<float> values, Shape shape) {
  return from_values(std::as_bytes(std::span(values.begin(), values.size())), shape, DType::float32);
}

Tensor Tensor::from_ints(std::span<const std::int32_t> values, Shape shape) {
  return from_values(std::as_bytes(values), shape, DType::int32);
}

Tensor Tensor::from_int64s(std::span<const std::int64_t> values, Shape shape) {
  return from_values(std::as_bytes(values), shape, DType::int64);
}

Tensor Tensor::from_bools(std::span<const bool> values, Shape shape) {
  const std::vector<std::uint8_t> bytes(values.begin(), values.end());
  return from_values(std::as_bytes(std::span(bytes)), shape, DType::boolean);
}

Tensor Tensor::from_bytes(std::span<const std::byte> bytes, Shape shape, DType dtype) {
  return from_values(bytes, shape, dtype);
}

Tensor Tensor::from_bytes(SharedBytes bytes, Shape shape, DType dtype) {
  // Device cpu reads constants where they lie, and needs them aligned.
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % sizeof(float) != 0)
    return from_values(bytes, shape, dtype);
  return from_shared(std::move(bytes), shape, dtype);
}

const Error& Tensor::error() const { return error_ ? *error_ : uninitialised(); }

const Shape& Tensor::shape() const {
  static const Shape kScalar;
  return node_ ? node_->shape : kScalar;
}

DType Tensor::dtype() const { return node_ ? node_->dtype : DType::float32; }

std::int64_t Tensor::extent(int axis) const {
  const std::optional<int> position = normalize_axis(axis, rank());
  return position ? shape()[*position] : 0;
}

Tensor Tensor::named(std::string name) const {
  if (!ok()) return *this;
  const bool has_own_name = node_->op == Op::input || node_->op == Op::variable;
  if (node_.use_count() == 1 && !has_own_name) {
    // Only this handle refers to the node, so no other thread reads its label.
    const_cast<Node&>(*node_).label = std::move(name);
    return *this;
  }
  // Already shared: an identity view carries the name, so that gradients still flow to the node itself.
  Tensor view = make(Op::reshape, {*this}, {.shape = shape()});
  if (view.ok()) const_cast<Node&>(*view.node()).label = std::move(name);
  return view;
}

bool tensor::is_empty(const Tensor& tensor) { return !tensor.ok() && &tensor.error() == &uninitialised(); }

Tensor tensor::failure(ErrorCode code, std::string_view op, std::string text) {
  return Tensor(make_error(code, imprint::text(op, ": ", text)));
}

Tensor tensor::bad_axis(std::string_view op, int axis, const Tensor& x) {
  const std::string expected =
      x.rank() == 0 ? ", which is a scalar" : text(", expected ", -x.rank(), " .. ", x.rank() - 1);
  return failure(ErrorCode::shape_mismatch, op, text("found axis ", axis, " of ", describe(x), expected));
}

std::string tensor::dtype_text(const Node& node, std::string_view expected) {
  return text(describe(node), " is ", dtype_name(node.dtype), ", expected ", expected, ". Cast it first.");
}

Tensor tensor::bad_dtype(std::string_view op, const Tensor& x, std::string_view expected) {
  return failure(ErrorCode::dtype_mismatch, op, dtype_text(*x.node(), expected));
}

const Tensor* tensor::first_error(std::span<const Tensor> tensors) {
  for (const Tensor& tensor : tensors)
    if (!tensor.ok()) return &tensor;
  return nullptr;
}

}  // namespace imprint
