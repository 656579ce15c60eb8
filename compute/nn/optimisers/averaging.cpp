#include "compute/nn/optimisers/averaging.h"

#include <unordered_map>

namespace imprint::nn {

AveragedParameters::AveragedParameters(const std::string& name, const Parameters& parameters,
                                       const AveragingOptions& options)
    : options_(options), source_(parameters), count_(Variable::zeros(name + ".count", {1}, DType::int32)) {
  for (const Parameter& parameter : parameters)
    averages_.add(parameter.name, Variable::zeros(name + "." + parameter.name, parameter.variable.shape()),
                  parameter.transposed);
  state_.add("average", averages_);
  state_.add("count", count_);
}

void AveragedParameters::follow(std::vector<Update>& updates) const {
  std::unordered_map<const tensor::VariableState*, Tensor> assigned;
  for (const Update& update : updates)
    if (!update.by_rows) assigned.emplace(update.target.state().get(), update.value);
  const Tensor count = reshape(count_.value(), {});
  // The share of the new value: 1 at first, then 1 - decay or 1 / (count + 1).
  const Tensor share = options_.decay > 0 ? where(equal(count, 0), 1.0f, Tensor(1 - options_.decay))
                                          : recip(cast(count + 1, DType::float32));
  for (std::size_t i = 0; i < source_.size(); ++i) {
    const auto next = assigned.find(source_[i].variable.state().get());
    const Tensor value = next == assigned.end() ? source_[i].value() : next->second;
    const Tensor average = averages_[i].value();
    updates.push_back(Update::assign(averages_[i].variable, average + share * (value - average)));
  }
  updates.push_back(Update::assign(count_, count_.value() + 1));
}

std::vector<Update> AveragedParameters::swap() const {
  std::vector<Update> updates;
  for (std::size_t i = 0; i < source_.size(); ++i) {
    updates.push_back(Update::assign(source_[i].variable, averages_[i].value()));
    updates.push_back(Update::assign(averages_[i].variable, source_[i].value()));
  }
  return updates;
}

}  // namespace imprint::nn
