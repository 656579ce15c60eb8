#pragma once
// Types of 16 bits by parameter: which weights are stored so, and which products compute so. PyTorch's
// autocast and model.to(torch.bfloat16), for chosen parts of a network.
//
//   const DtypePolicy policy("net.types", network.parameters(),
//                            {{"*", {.compute = DType::float16}}, {"head.*", {}}});  // all but the head
//   Pass pass("net", 1);
//   const Tensor loss = policy(cross_entropy(network(x, pass), labels), pass);
//   ... gradients and an optimiser of network.parameters(), which stay float32 ...
//
// Trainer takes the same rules (TrainerOptions::dtypes). Storage is for inference:
//
//   const DtypePolicy small("net.small", network.parameters(), {{"*.weight", {.storage = DType::bfloat16}}});
//   ... run small.pack() once ...
//   const Tensor y = small(network(x));
//   Parameters model = small.state();   // the whole model, its weights half as large:
//   model.add("", network.buffers());   // save_state(session, model), and load_state later

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "compute/nn/parameter.h"
#include "compute/nn/pass.h"

namespace imprint::nn {

// float32, float16 or bfloat16.
struct ParameterTypes {
  // The variable that programs read has it. 16 bits: a copy of the weight, half of its memory.
  DType storage = DType::float32;
  // Both operands of a product with the weight are rounded to it, and those of the products of its gradients;
  // sums and results are float32. float16 runs on matrix units where there are any, and needs a loss scale in
  // training (LossScaler); bfloat16 has float32's range and few digits.
  DType compute = DType::float32;
};

struct DtypeRule {
  std::string pattern;  // of the parameters' names; '*' stands for any characters
  ParameterTypes types = {};
};

// Products are those of linear layers, convolutions, attention's projections and recurrent layers' inputs.
// Other operations compute in float32.
class DtypePolicy {
 public:
  // The last rule that matches a parameter counts. A rule that matches none, or has a type that is
  // no float, gives outputs that carry the error.
  DtypePolicy(const std::string& name, const Parameters& parameters, const std::vector<DtypeRule>& rules);

  // The output, computed so. With a pass: statistics that it updates, too. Differentiate the result, by the
  // parameters themselves; parameters of 16 bits get no gradient.
  Tensor operator()(const Tensor& output) const;
  Tensor operator()(const Tensor& output, Pass& pass) const;
  std::vector<Tensor> operator()(std::span<const Tensor> outputs) const;
  std::vector<Tensor> operator()(std::span<const Tensor> outputs, Pass& pass) const;

  // The updates that copy weights to their storage of 16 bits, which is 0 before.
  std::vector<Update> pack() const;
  // All parameters, under their names, as programs read them: those of 16 bits as stored, the others as they
  // are. With the network's buffers it is a complete model for files.
  const Parameters& state() const { return state_; }
  std::uint64_t bytes() const;  // of all parameters, as programs read them
  bool computes_in(DType dtype) const;
  ParameterTypes types_of(const Variable& parameter) const;
  // A table: per parameter its name, shape, types and bytes.
  std::string summary() const;

 private:
  struct Entry {
    Parameter parameter;
    ParameterTypes types;
    Variable stored;  // ok(): of 16 bits
  };
  friend class DtypeRewriter;

  std::vector<Entry> entries_;
  std::unordered_map<const void*, std::size_t> entry_of_;  // by the variable's state
  Parameters state_;
  std::optional<Error> error_;
};

}  // namespace imprint::nn
