#include "compute/graph/gradients/loop_gradient.h"

#include "compute/base/text.h"
#include "compute/graph/gradients/autodiff.h"
#include "compute/tensor/build.h"

namespace imprint::graph {

using namespace tensor;

namespace {

bool has_gradient(const NodeRef& node) { return node->dtype == DType::float32; }

// Builds the loop backwards. Its carry: the gradients of the forward carry, then sums of the gradients by the
// shared values. Its rows: the forward step's carry and rows, which keep their placeholders, then the
// gradients of the step's results. Its results: the gradients by the forward rows.
class Backward {
 public:
  Backward(const NodeRef& loop, std::span<const Tensor> of_outputs, const std::vector<bool>& needed)
      : loop_(loop), body_(*loop->loop), of_outputs_(of_outputs), needed_(needed) {}

  Result<std::vector<Tensor>> run() {
    for (std::size_t i = 0; i < needed_.size(); ++i)
      if (needed_[i] && !has_gradient(loop_->inputs[i]))
        return make_error(ErrorCode::unsupported,
                          text("gradients: input ", i, " of a loop: found ",
                               dtype_name(loop_->inputs[i]->dtype), ", expected float32. Cast it first."));
    add_carries();
    add_rows();
    add_targets();
    if (is_empty(total_)) return std::vector<Tensor>(loop_->inputs.size());
    IMPRINT_ASSIGN(const std::vector<Tensor> found, gradients(total_, targets_));
    std::size_t next = 0;
    for (std::size_t i = 0; i < body_.carry.size(); ++i)
      if (has_gradient(body_.carry[i])) back_.next.push_back(found[next++].node());
    const std::size_t sums = next;
    for (std::size_t k = sums; k < back_.carry.size(); ++k)
      back_.next.push_back((Tensor(back_.carry[k]) + found[next++]).node());
    for (; next < found.size(); ++next) back_.results.push_back(found[next].node());
    back_.steps = body_.steps;
    back_.reverse = !body_.reverse;
    back_.name = body_.name;
    IMPRINT_ASSIGN(const std::vector<Tensor> outputs, make_loop(std::move(back_), std::move(values_)));
    std::vector<Tensor> given(loop_->inputs.size());
    for (std::size_t i = 0; i < outputs.size() && i < targets_of_.size(); ++i)
      given[targets_of_[i]] = outputs[i];
    return given;
  }

 private:
  Tensor gradient_of(std::size_t output) const {
    return output < of_outputs_.size() ? of_outputs_[output] : Tensor();
  }

  void add_to_total(const NodeRef& value, const NodeRef& gradient) {
    const Tensor part = sum(Tensor(value) * Tensor(gradient));
    total_ = is_empty(total_) ? part : total_ + part;
  }

  void add_carries() {
    for (std::size_t i = 0; i < body_.carry.size(); ++i) {
      const NodeRef& carry = body_.carry[i];
      if (!has_gradient(carry)) continue;
      back_.carry.push_back(loop_placeholder(carry->shape, DType::float32));
      const Tensor last = gradient_of(i);
      values_.carry.push_back(is_empty(last) ? zeros(carry->shape) : last);
      add_to_total(body_.next[i], back_.carry.back());
    }
  }

  void add_rows() {
    const std::size_t carries = body_.carry.size(), saved = body_.results.size() - carries;
    for (std::size_t i = 0; i < carries; ++i) {
      back_.rows.push_back(body_.carry[i]);
      values_.stacks.push_back(loop_output(loop_, carries + saved + i));
    }
    for (std::size_t i = 0; i < body_.rows.size(); ++i) {
      back_.rows.push_back(body_.rows[i]);
      values_.stacks.emplace_back(loop_->inputs[carries + i]);
    }
    for (std::size_t i = 0; i < body_.results.size(); ++i) {
      const Tensor gradient = gradient_of(carries + i);
      if (is_empty(gradient) || !has_gradient(body_.results[i])) continue;
      back_.rows.push_back(loop_placeholder(body_.results[i]->shape, DType::float32));
      values_.stacks.push_back(gradient);
      add_to_total(body_.results[i], back_.rows.back());
    }
  }

  // Carries, then shared values, then rows: the order of the backward loop's outputs.
  void add_targets() {
    const std::size_t carries = body_.carry.size(), rows = body_.rows.size();
    for (std::size_t i = 0; i < carries; ++i)
      if (has_gradient(body_.carry[i])) add_target(body_.carry[i], i);
    for (std::size_t i = 0; i < body_.shared.size(); ++i) {
      const NodeRef& shared = body_.shared[i];
      const std::size_t input = carries + rows + i;
      back_.shared.push_back(shared);
      values_.shared.emplace_back(loop_->inputs[input]);
      if (!needed_[input] || !has_gradient(shared)) continue;
      add_target(shared, input);
      back_.carry.push_back(loop_placeholder(shared->shape, DType::float32));
      values_.carry.push_back(zeros(shared->shape));
    }
    for (std::size_t i = 0; i < rows; ++i)
      if (needed_[carries + i] && has_gradient(body_.rows[i])) add_target(body_.rows[i], carries + i);
  }

  void add_target(const NodeRef& node, std::size_t input) {
    targets_.emplace_back(node);
    targets_of_.push_back(input);
  }

  const NodeRef& loop_;
  const Loop& body_;
  std::span<const Tensor> of_outputs_;
  const std::vector<bool>& needed_;
  Loop back_;
  Tensor total_;       // of which the gradients by the targets are those of the step
  LoopInputs values_;  // of the loop backwards
  std::vector<Tensor> targets_;
  std::vector<std::size_t> targets_of_;  // the loop's input of each target
};

}  // namespace

Result<std::vector<Tensor>> loop_gradients(const NodeRef& loop, std::span<const Tensor> of_outputs,
                                           const std::vector<bool>& needed) {
  return Backward(loop, of_outputs, needed).run();
}

}  // namespace imprint::graph
