#include "compute/nn/parameter.h"

#include "compute/base/text.h"

namespace imprint::nn {

namespace {

// '*' takes as little as it can, and one more character each time the rest does not fit.
bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = pattern.npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != pattern.npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace

void Parameters::add(std::string name, Variable variable, bool transposed) {
  items_.push_back({std::move(name), std::move(variable), transposed});
}

void Parameters::add(std::string_view prefix, const Parameters& nested) {
  for (const Parameter& parameter : nested)
    items_.push_back({prefix.empty() ? parameter.name : std::string(prefix) + "." + parameter.name,
                      parameter.variable, parameter.transposed});
}

Parameters Parameters::matching(std::string_view pattern) const {
  Parameters out;
  for (const Parameter& parameter : items_)
    if (matches(pattern, parameter.name)) out.items_.push_back(parameter);
  return out;
}

Parameters Parameters::without(std::string_view pattern) const {
  Parameters out;
  for (const Parameter& parameter : items_)
    if (!matches(pattern, parameter.name)) out.items_.push_back(parameter);
  return out;
}

const Parameter* Parameters::find(std::string_view name) const {
  for (const Parameter& parameter : items_)
    if (parameter.name == name) return &parameter;
  return nullptr;
}

std::vector<Tensor> Parameters::values() const {
  std::vector<Tensor> out;
  for (const Parameter& parameter : items_) out.push_back(parameter.value());
  return out;
}

std::vector<Variable> Parameters::variables() const {
  std::vector<Variable> out;
  for (const Parameter& parameter : items_) out.push_back(parameter.variable);
  return out;
}

std::int64_t Parameters::element_count() const {
  std::int64_t count = 0;
  for (const Parameter& parameter : items_) count += parameter.variable.shape().element_count();
  return count;
}

Result<std::vector<Update>> follow_parameters(const Parameters& target, const Parameters& source,
                                              const Tensor& rate) {
  if (target.size() != source.size())
    return make_error(ErrorCode::invalid_argument,
                      text("copy_parameters: found ", source.size(), " parameters, expected ", target.size(),
                           ". Build both networks alike."));
  std::vector<Update> updates;
  for (std::size_t i = 0; i < target.size(); ++i) {
    const Tensor to = target[i].value(), from = source[i].value();
    if (to.ok() && from.ok() && (to.shape() != from.shape() || to.dtype() != from.dtype()))
      return make_error(
          ErrorCode::invalid_argument,
          text("copy_parameters: found ", source[i].name, " ", from.shape().text(), ", expected ",
               target[i].name, " ", to.shape().text(), ". Build both networks alike."));
    const Tensor value = rate.node() ? lerp(to, from, rate) : rate;
    if (!value.ok()) return value.error();
    updates.push_back(Update::assign(target[i].variable, value));
  }
  return updates;
}

Result<std::vector<Update>> copy_parameters(const Parameters& target, const Parameters& source) {
  IMPRINT_ASSIGN(std::vector<Update> updates, follow_parameters(target, source, Tensor(1.0f)));
  for (std::size_t i = 0; i < updates.size(); ++i) updates[i].value = source[i].value();
  return updates;
}

Result<std::vector<Update>> map_parameters(const Parameters& parameters,
                                           const std::function<Tensor(const Parameter&)>& function) {
  std::vector<Update> updates;
  for (const Parameter& parameter : parameters) {
    const Tensor value = function(parameter);
    if (!value.ok()) return value.error();
    if (value.shape() != parameter.variable.shape())
      return make_error(ErrorCode::shape_mismatch,
                        text("map_parameters: found ", value.shape().text(), " for ", parameter.name,
                             ", expected ", parameter.variable.shape().text()));
    updates.push_back(Update::assign(parameter.variable, value));
  }
  return updates;
}

}  // namespace imprint::nn
