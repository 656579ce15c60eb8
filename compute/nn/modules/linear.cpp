#include "compute/nn/modules/linear.h"

#include "compute/base/text.h"
#include "compute/nn/layer_parameters.h"

namespace imprint::nn {

Linear::Linear(const std::string& name, std::int64_t in, std::int64_t out, const LinearOptions& options)
    : name_(name), groups_(options.groups), has_bias_(options.bias) {
  InitialValues wanted{.rows = in,
                       .columns = out,
                       .fan_in = in,
                       .fan_out = out,
                       .groups = options.groups,
                       .seed = options.seed};
  const bool is_kennel = options.groups > 0;
  weight_ =
      FormedWeight(parameters_, buffers_, name, is_kennel ? Shape{options.groups, in, out} : Shape{in, out},
                   is_kennel ? WeightForm::plain : options.weight_form, options.weight_values, wanted, true);
  if (!has_bias_) return;
  wanted.rows = 1;
  bias_ = add_parameter(parameters_, name, "bias", is_kennel ? Shape{options.groups, 1, out} : Shape{out},
                        options.bias_values, wanted);
}

Tensor Linear::operator()(const Tensor& x) const {
  Pass evaluation;
  return (*this)(x, evaluation);
}

Tensor Linear::operator()(const Tensor& x, Pass& pass) const {
  const Tensor weight = weight_.value(pass);
  if (x.ok() && weight.ok()) {
    const std::int64_t in = weight.extent(-2);
    const bool fits =
        x.rank() >= 1 && x.extent(-1) == in && (groups_ == 0 || (x.rank() >= 3 && x.extent(0) == groups_));
    if (!fits) {
      const std::string in_text = text(in);
      const std::string expected = groups_ > 0 ? text(groups_, ", batch..., ", in_text) : "..., " + in_text;
      return Tensor(make_error(
          ErrorCode::shape_mismatch,
          text("linear '", name_, "': found input ", x.shape().text(), ", expected [", expected, "]")));
    }
  }
  const bool has_more_axes = groups_ > 0 && x.ok() && x.rank() > 3;
  const Tensor product = matmul(has_more_axes ? reshape(x, {groups_, -1, x.extent(-1)}) : x, weight);
  const Tensor y = has_bias_ ? product + bias_.value() : product;
  if (!has_more_axes || !y.ok()) return y;
  Shape shape = x.shape();
  shape[shape.rank() - 1] = y.extent(-1);
  return reshape(y, shape);
}

Bilinear::Bilinear(const std::string& name, std::int64_t in1, std::int64_t in2, std::int64_t out,
                   const BilinearOptions& options)
    : name_(name) {
  InitialValues wanted{
      .rows = out, .columns = in1 * in2, .fan_in = in1, .fan_out = out, .seed = options.seed};
  weight_ = add_parameter(parameters_, name, "weight", {out, in1, in2}, options.values, wanted);
  wanted.columns = 1;
  if (options.bias) bias_ = add_parameter(parameters_, name, "bias", {out}, options.values, wanted);
}

Tensor Bilinear::operator()(const Tensor& a, const Tensor& b) const {
  const Tensor weight = weight_.value();
  if (!a.ok() || !b.ok() || !weight.ok()) return a.ok() ? b.ok() ? weight : b : a;
  const std::int64_t out = weight.extent(0), in1 = weight.extent(1), in2 = weight.extent(2);
  if (a.rank() < 1 || a.extent(-1) != in1) return unfit_input("bilinear", name_, a, text("[..., ", in1, "]"));
  if (b.rank() != a.rank() || b.extent(-1) != in2)
    return unfit_input("bilinear", name_, b, text("[..., ", in2, "]"));
  // a's product with all matrices at once, then each output's with b.
  const Tensor first = matmul(a, reshape(permute(weight, {1, 0, 2}), {in1, out * in2}));
  Shape split = a.shape();
  split[split.rank() - 1] = out;
  split.append(in2);
  const Tensor product = sum(reshape(first, split) * unsqueeze(b, -2), {-1});
  return bias_.ok() ? product + bias_.value() : product;
}

}  // namespace imprint::nn
