#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_set>

#include "compute/base/text.h"
#include "compute/base/zeroed_bytes.h"
#include "compute/tensor/build.h"
#include "compute/tensor/int64_words.h"
#include "compute/tensor/known_zeros.h"

namespace imprint {

namespace tensor {
namespace {

struct LiveZeros {
  std::mutex mutex;
  std::unordered_set<const std::byte*> begins;
};

// Variables of static duration may end later: each block keeps it.
const std::shared_ptr<LiveZeros>& live_zeros() {
  static const auto live = std::make_shared<LiveZeros>();
  return live;
}

class ZeroBlock {
 public:
  explicit ZeroBlock(std::size_t size) : bytes_(make_zeroed_bytes(size)) {
    const std::lock_guard lock(live_->mutex);
    live_->begins.insert(bytes_.get());
  }
  ZeroBlock(const ZeroBlock&) = delete;
  ZeroBlock& operator=(const ZeroBlock&) = delete;
  ~ZeroBlock() {
    const std::lock_guard lock(live_->mutex);
    live_->begins.erase(bytes_.get());
  }
  const std::byte* begin() const { return bytes_.get(); }

 private:
  std::shared_ptr<LiveZeros> live_ = live_zeros();
  ZeroedBytes bytes_;
};

}  // namespace

SharedBytes known_zeros(std::size_t size) {
  const auto block = std::make_shared<const ZeroBlock>(size);
  return {{block->begin(), size}, block};
}

bool are_known_zeros(const SharedBytes& bytes) {
  LiveZeros& live = *live_zeros();
  const std::lock_guard lock(live.mutex);
  return live.begins.contains(bytes.data());
}

}  // namespace tensor

using namespace tensor;

namespace {

struct MadeVariable {
  std::shared_ptr<VariableState> state;
  NodeRef node;
  std::shared_ptr<const Error> error;
};

MadeVariable make_variable(std::string name, const Shape& shape, DType dtype) {
  MadeVariable made;
  const std::string quoted = text("variable '", name, "'");
  Tensor value = make(Op::variable, std::span<const Tensor>(), {.shape = shape, .dtype = dtype});
  if (!value.ok()) {
    made.error =
        std::make_shared<const Error>(make_error(value.error().code, quoted + ": " + value.error().message));
    return made;
  }
  made.state = std::make_shared<VariableState>();
  made.state->name = std::move(name);
  made.state->dtype = dtype;
  made.state->shape = shape;
  Node& node = const_cast<Node&>(*value.node());  // not shared yet
  node.variable = made.state;
  node.label = made.state->name;
  made.node = value.node();
  return made;
}

MadeVariable make_variable(std::string name, const Shape& shape, DType dtype, SharedBytes initial) {
  MadeVariable made = make_variable(std::move(name), shape, dtype);
  if (made.error) return made;
  const std::size_t expected = static_cast<std::size_t>(shape.element_count());
  if (initial.size() != expected * dtype_size(dtype)) {
    return {{},
            {},
            std::make_shared<const Error>(make_error(
                ErrorCode::shape_mismatch,
                text("variable '", made.state->name, "': found ", initial.size() / dtype_size(dtype),
                     " initial values for shape ", shape.text(), ", expected ", expected)))};
  }
  made.state->initial = std::move(initial);
  return made;
}

SharedBytes copy_of(std::span<const std::byte> bytes) {
  return SharedBytes(std::vector(bytes.begin(), bytes.end()));
}

}  // namespace

Variable::Variable(std::string name, Shape shape, std::span<const float> initial) {
  MadeVariable made = make_variable(std::move(name), shape, DType::float32, copy_of(std::as_bytes(initial)));
  state_ = std::move(made.state);
  error_ = std::move(made.error);
  node_ = std::move(made.node);
}

Variable::Variable(std::string name, Shape shape, std::span<const std::int32_t> initial) {
  MadeVariable made = make_variable(std::move(name), shape, DType::int32, copy_of(std::as_bytes(initial)));
  state_ = std::move(made.state);
  error_ = std::move(made.error);
  node_ = std::move(made.node);
}

Variable::Variable(std::string name, Shape shape, std::span<const std::int64_t> initial)
    : Variable(std::move(name), shape, DType::int64, std::as_bytes(initial)) {}

Variable::Variable(std::string name, Shape shape, DType dtype, std::span<const std::byte> initial)
    : Variable(std::move(name), shape, dtype, copy_of(initial)) {}

Variable::Variable(std::string name, Shape shape, DType dtype, SharedBytes initial) {
  MadeVariable made = make_variable(std::move(name), shape, dtype, std::move(initial));
  state_ = std::move(made.state);
  error_ = std::move(made.error);
  node_ = std::move(made.node);
}

Variable Variable::zeros(std::string name, Shape shape, DType dtype) {
  Variable out;
  // Refuses a bad shape before it allocates the content.
  MadeVariable made = make_variable(std::move(name), shape, dtype);
  if (made.state) {
    try {
      made.state->initial = known_zeros(made.state->bytes());
    } catch (const std::bad_alloc&) {
      made = {
          {},
          {},
          std::make_shared<const Error>(make_error(
              ErrorCode::out_of_host_memory,
              text("variable '", made.state->name, "': not enough host memory for shape ", shape.text())))};
    }
  }
  out.state_ = std::move(made.state);
  out.error_ = std::move(made.error);
  out.node_ = std::move(made.node);
  return out;
}

Variable Variable::external(std::string name, Shape shape, DType dtype) {
  Variable out;
  MadeVariable made = make_variable(std::move(name), shape, dtype);
  if (made.state) made.state->external = true;
  out.state_ = std::move(made.state);
  out.error_ = std::move(made.error);
  out.node_ = std::move(made.node);
  return out;
}

std::uint64_t tensor::VariableState::bytes() const {
  return static_cast<std::uint64_t>(shape.element_count()) * dtype_size(dtype);
}

Shape tensor::VariableState::kernel_shape() const {
  return dtype == DType::int64 ? shape_of_words(shape) : shape;
}

const std::string& Variable::name() const {
  static const std::string kNone;
  return state_ ? state_->name : kNone;
}

const Shape& Variable::shape() const {
  static const Shape kScalar;
  return state_ ? state_->shape : kScalar;
}

DType Variable::dtype() const { return state_ ? state_->dtype : DType::float32; }

std::uint64_t Variable::bytes() const { return state_ ? state_->bytes() : 0; }

Tensor Variable::value() const {
  if (error_) return Tensor(*error_);
  if (!node_)
    return failure(ErrorCode::invalid_argument, "variable",
                   "value() of a default-constructed variable. Assign a variable first.");
  return Tensor(node_);
}

}  // namespace imprint
