#pragma once
// Writes the kernel that runs the caller's own GLSL, once per row. It gathers the row's inputs into arrays
// before the call, and computes the rest of the task from the result after it.

#include <functional>
#include <string>

#include "compute/kernels/emitter.h"

namespace imprint::kernels {

class CustomEmitter : public Emitter {
 public:
  using Emitter::Emitter;

  // The caller's GLSL, then the function.
  std::string function(const std::string& name, int workgroup_size);

 protected:
  std::string load(graph::NodeIndex node, const ElementIndex& index) override;
  bool in_memory(graph::NodeIndex node) const override {
    return !is_member(node) && Emitter::in_memory(node);
  }

 private:
  bool is_member(graph::NodeIndex node) const;
  void each(std::int64_t count, const std::function<void(const IndexExpression&)>& body);
  void call();
  void store_members();
  void store_result();
  void store(graph::NodeIndex member, const std::string& name, const IndexExpression& linear);

  const graph::GraphNode& anchor_ = graph_[task_.anchor];
};

}  // namespace imprint::kernels
