#include "compute/nn/modules/norms.h"

#include <algorithm>

#include "compute/base/text.h"
#include "compute/nn/layer_parameters.h"

namespace imprint::nn {
namespace {

// [channels] beside [batch, channels, ...].
Tensor along_channels(const Tensor& per_channel, int rank) {
  Shape shape{1, per_channel.shape().element_count()};
  while (shape.rank() < rank) shape.append(1);
  return reshape(per_channel, shape);
}

Tensor scaled(const Tensor& x, const Variable& weight, const Variable& bias) {
  return x * along_channels(weight.value(), x.rank()) + along_channels(bias.value(), x.rank());
}

// networks: 0, or those of a kennel, which come first.
bool has_channels(const Tensor& x, std::int64_t channels, std::int64_t networks) {
  const int first = networks > 0 ? 1 : 0;
  return x.rank() >= first + 2 && x.extent(first + 1) == channels &&
         (networks == 0 || x.extent(0) == networks);
}

std::string expected_channels(std::int64_t channels, std::int64_t networks) {
  return text("[", networks > 0 ? text(networks, ", ") : "", "batch, ", channels, ", ...]");
}

Shape per_channel(std::int64_t channels, std::int64_t networks) {
  return networks > 0 ? Shape{networks, channels} : Shape{channels};
}

}  // namespace

BatchNorm::BatchNorm(const std::string& name, std::int64_t channels, const BatchNormOptions& options)
    : name_(name), channels_(channels), options_(options) {
  const Shape shape = per_channel(channels, options.groups);
  if (options.affine) {
    weight_ = add_constant(parameters_, name, "weight", shape, 1);
    bias_ = add_constant(parameters_, name, "bias", shape, 0);
  }
  mean_ = add_constant(buffers_, name, "running_mean", shape, 0);
  variance_ = add_constant(buffers_, name, "running_var", shape, 1);
  batches_ = Variable::zeros(name + ".num_batches_tracked", {}, DType::int32);
  buffers_.add("num_batches_tracked", batches_);
}

Tensor BatchNorm::operator()(const Tensor& x) const {
  Pass evaluation;
  return (*this)(x, evaluation);
}

Tensor BatchNorm::operator()(const Tensor& x, Pass& pass) const {
  if (!x.ok()) return x;
  if (!has_channels(x, channels_, options_.groups))
    return unfit_input("batch norm", name_, x, expected_channels(channels_, options_.groups));
  if (options_.groups == 0) return normalised(x, pass);
  return channels_as_networks(normalised(networks_as_channels(x), pass), options_.groups);
}

// x: [batch, channels of all networks, ...].
Tensor BatchNorm::normalised(const Tensor& x, Pass& pass) const {
  Tensor centre = along_channels(mean_.value(), x.rank()),
         spread = along_channels(variance_.value(), x.rank());
  if (pass.trains()) {
    Axes axes{0};
    for (int axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
    const auto count = static_cast<double>(x.shape().element_count()) / static_cast<double>(x.extent(1));
    centre = mean(x, axes, true);
    spread = mean(square(x - centre), axes, true);
    const Tensor momentum(options_.momentum), kept(1 - options_.momentum);
    const Tensor unbiased = Tensor(options_.momentum * count / std::max(count - 1, 1.0)) * spread;
    pass.update(Update::assign(
        mean_, kept * mean_.value() + momentum * reshape(stop_gradient(centre), mean_.shape())));
    pass.update(Update::assign(variance_,
                               kept * variance_.value() + reshape(stop_gradient(unbiased), mean_.shape())));
    pass.update(Update::assign(batches_, batches_.value() + 1));
  }
  const Tensor normal = (x - centre) * rsqrt(spread + Tensor(options_.epsilon));
  return options_.affine ? scaled(normal, weight_, bias_) : normal;
}

GroupNorm::GroupNorm(const std::string& name, std::int64_t groups, std::int64_t channels,
                     const GroupNormOptions& options)
    : name_(name), groups_(groups), channels_(channels), options_(options) {
  if (!options.affine) return;
  weight_ = add_constant(parameters_, name, "weight", per_channel(channels, options.networks), 1);
  bias_ = add_constant(parameters_, name, "bias", per_channel(channels, options.networks), 0);
}

Tensor GroupNorm::operator()(const Tensor& x) const {
  if (!x.ok()) return x;
  if (groups_ < 1 || channels_ % groups_ != 0)
    return Tensor(make_error(ErrorCode::invalid_argument,
                             text("group norm '", name_, "': found ", channels_, " channels in ", groups_,
                                  " groups, expected groups that divide the channels")));
  if (!has_channels(x, channels_, options_.networks))
    return unfit_input("group norm", name_, x, expected_channels(channels_, options_.networks));
  if (options_.networks == 0) return normalised(x, groups_);
  return channels_as_networks(normalised(networks_as_channels(x), options_.networks * groups_),
                              options_.networks);
}

Tensor GroupNorm::normalised(const Tensor& x, std::int64_t groups) const {
  const Tensor lines = reshape(x, {x.extent(0), groups, -1});
  const Tensor centred = lines - mean(lines, {-1}, true);
  const Tensor spread = mean(square(centred), {-1}, true);
  const Tensor normal = reshape(centred * rsqrt(spread + Tensor(options_.epsilon)), x.shape());
  return options_.affine ? scaled(normal, weight_, bias_) : normal;
}

GroupNorm instance_norm(const std::string& name, std::int64_t channels, const GroupNormOptions& options) {
  return GroupNorm(name, channels, channels, options);
}

RmsNorm::RmsNorm(const std::string& name, std::int64_t extent, const RmsNormOptions& options)
    : name_(name), extent_(extent), options_(options) {
  const Shape shape = options.groups > 0 ? Shape{options.groups, 1, extent} : Shape{extent};
  weight_ = add_constant(parameters_, name, "weight", shape, 1);
}

Tensor RmsNorm::operator()(const Tensor& x) const {
  if (!x.ok()) return x;
  const bool is_kennel = options_.groups > 0;
  if (x.rank() < 1 || x.extent(-1) != extent_ ||
      (is_kennel && (x.rank() < 3 || x.extent(0) != options_.groups)))
    return unfit_input(
        "rms norm", name_, x,
        is_kennel ? text("[", options_.groups, ", batch..., ", extent_, "]") : text("[..., ", extent_, "]"));
  const Tensor squares = mean(square(x), {-1}, true);
  return x * rsqrt(squares + Tensor(options_.epsilon)) * beside_rows(weight_.value(), x);
}

Tensor LocalResponseNorm::operator()(const Tensor& x) const {
  if (!x.ok()) return x;
  if (x.rank() < 2 || x.rank() == Shape::kMaxRank || size_ < 1)
    return unfit_input("local response norm", text(size_), x,
                       "[batch, channels, ...] and a size of 1 or more");
  std::vector<std::pair<std::int64_t, std::int64_t>> amounts(static_cast<std::size_t>(x.rank()));
  amounts[1] = {size_ / 2, (size_ - 1) / 2};
  const Tensor squares = mean(window(pad(square(x), amounts), 1, size_), {-1});
  return x / pow(Tensor(options_.k) + Tensor(options_.alpha) * squares, Tensor(options_.beta));
}

}  // namespace imprint::nn
