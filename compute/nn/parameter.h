#pragma once
// Parameters: variables with the names under which files store them.
//
// A kennel is many networks of one shape. Each of its variables holds the weights of all of them; the first
// axis counts the networks. In this room `groups` is that count; 0 means one plain network without that axis.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compute/program/program.h"
#include "compute/tensor/tensor.h"

namespace imprint::nn {

struct Parameter {
  std::string name;  // in its collection, parts joined by dots: "policy.0.weight"
  Variable variable;
  bool transposed = false;  // PyTorch's file holds the transpose of its last two axes

  Tensor value() const { return variable.value(); }
};

// An ordered collection of parameters, or of an optimiser's state. Copies share the variables.
class Parameters {
 public:
  void add(std::string name, Variable variable, bool transposed = false);
  void add(std::string_view prefix, const Parameters& nested);  // "prefix.name"; an empty prefix adds no dot

  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  const Parameter& operator[](std::size_t i) const { return items_[i]; }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

  const Parameter* find(std::string_view name) const;  // null when not found
  // The parameters whose names match, or do not match, the pattern, in order; '*' stands for any characters.
  // A parameter that neither gradients() nor the optimiser gets is frozen. A pattern that fits no name gives
  // none, which an optimiser refuses.
  Parameters matching(std::string_view pattern) const;
  Parameters without(std::string_view pattern) const;
  std::vector<Tensor> values() const;  // in order; for gradients()
  std::vector<Variable> variables() const;
  std::int64_t element_count() const;

 private:
  std::vector<Parameter> items_;
};

// target = source, one assignment per parameter. Error: invalid_argument when the collections differ in
// number or shapes.
Result<std::vector<Update>> copy_parameters(const Parameters& target, const Parameters& source);
// target = target + rate * (source - target), for a target network. rate: a number or a float32 scalar
// tensor. Errors: as copy_parameters. Lillicrap et al., Continuous Control with Deep Reinforcement Learning,
// 2016.
Result<std::vector<Update>> follow_parameters(const Parameters& target, const Parameters& source,
                                              const Tensor& rate);

// parameter = function(parameter), for every parameter. Error: that of a tensor that carries one, or
// shape_mismatch.
Result<std::vector<Update>> map_parameters(const Parameters& parameters,
                                           const std::function<Tensor(const Parameter&)>& function);

}  // namespace imprint::nn
