#pragma once
// One derivative rule per primitive op. Each rule consists of tensor operations, so derivatives fuse and
// differentiate again.

#include <vector>

#include "compute/tensor/tensor.h"

namespace imprint::graph {

// One node of the backward walk: its output, the loss's gradient with respect to that output, and slots for
// the gradients with respect to its inputs.
class Adjoint {
 public:
  Adjoint(tensor::NodeRef node, Tensor gradient, std::vector<bool> needed)
      : node_(node),
        output_(std::move(node)),
        gradient_(std::move(gradient)),
        needed_(std::move(needed)),
        given_(needed_.size()) {}

  const tensor::Node& node() const { return *node_; }
  const Tensor& output() const { return output_; }
  const Tensor& gradient() const { return gradient_; }
  Tensor input(std::size_t i) const { return Tensor(node_->inputs[i]); }
  std::size_t input_count() const { return node_->inputs.size(); }
  int axis() const { return static_cast<int>(node_->ints[0]); }

  bool needs(std::size_t i) const { return needed_[i]; }  // whether input i leads to a requested target
  void give(std::size_t i, Tensor gradient) { given_[i] = std::move(gradient); }
  const Tensor& given(std::size_t i) const { return given_[i]; }

 private:
  tensor::NodeRef node_;
  Tensor output_;
  Tensor gradient_;
  std::vector<bool> needed_;
  std::vector<Tensor> given_;
};

// Gives a gradient for every needed input.
using Derivative = void (*)(Adjoint& adjoint);

// The op's derivative, by its row; null where no gradient passes: rounding, comparisons, stop_gradient.
Derivative derivative_of(tensor::Op op);

inline bool is_differentiable(tensor::Op op) { return derivative_of(op) != nullptr; }

// The derivatives that rows of op.h name (derivatives_shape.cpp).
namespace derivatives {
void uncast(Adjoint& adjoint);
void unchoose(Adjoint& adjoint);
void unreshape(Adjoint& adjoint);
void unpermute(Adjoint& adjoint);
void unexpand(Adjoint& adjoint);
void unslice(Adjoint& adjoint);
void unview_windows(Adjoint& adjoint);
void rewindow(Adjoint& adjoint);
void unpad(Adjoint& adjoint);
void unconcat(Adjoint& adjoint);
void ungather(Adjoint& adjoint);
void untake(Adjoint& adjoint);
void unreduce_sum(Adjoint& adjoint);
void unreduce_prod(Adjoint& adjoint);
void unreduce_extreme(Adjoint& adjoint);
void uncontract(Adjoint& adjoint);
void uncumsum(Adjoint& adjoint);
void unrecur(Adjoint& adjoint);
void unscatter(Adjoint& adjoint);
}  // namespace derivatives

}  // namespace imprint::graph
