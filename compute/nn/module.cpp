#include "compute/nn/module.h"

#include "compute/base/text.h"

namespace imprint::nn {

Pass::Pass(const std::string& name, std::uint64_t seed) {
  const std::int32_t content[] = {static_cast<std::int32_t>(static_cast<std::uint32_t>(seed)),
                                  static_cast<std::int32_t>(static_cast<std::uint32_t>(seed >> 32)), 0, 0};
  generator_ = Variable(name + ".generator", {4}, std::span<const std::int32_t>(content));
  state_.add("generator", generator_);
}

void Pass::finish(std::vector<Update>& updates) const {
  updates.insert(updates.end(), updates_.begin(), updates_.end());
  if (stream_ > 0) updates.push_back(Update::assign(generator_, generator_next(generator_.value())));
}

Parameters Module::parameters() const {
  Parameters all = parameters_;
  if (held_) all.add("", held_->parameters());
  return all;
}

Residual::Residual(Module body, Module shortcut) : body_(std::move(body)), shortcut_(std::move(shortcut)) {
  parameters_.add("body", body_.parameters());
  parameters_.add("shortcut", shortcut_.parameters());
  buffers_.add("body", body_.buffers());
  buffers_.add("shortcut", shortcut_.buffers());
}

Tensor OverGroups::operator()(const Tensor& x, Pass& pass) const {
  if (!x.ok()) return x;
  if (x.rank() < 2)
    return Tensor(make_error(ErrorCode::shape_mismatch, text("over groups: found input ", x.shape().text(),
                                                             ", expected [groups, batch, ...]")));
  Shape merged{x.extent(0) * x.extent(1)};
  for (int axis = 2; axis < x.rank(); ++axis) merged.append(x.extent(axis));
  const Tensor y = layer_(reshape(x, merged), pass);
  if (!y.ok() || y.rank() < 1) return y;
  Shape split{x.extent(0), x.extent(1)};
  for (int axis = 1; axis < y.rank(); ++axis) split.append(y.extent(axis));
  return reshape(y, split);
}

}  // namespace imprint::nn
