#pragma once
// Writes the kernel round a caller's own GLSL, once a row: its inputs are gathered into arrays, and what
// follows from its result for that row is computed behind it.

#include <functional>
#include <string>

#include "compute/kernels/emitter.h"

namespace imprint::kernels {

class CustomEmitter : public Emitter {
 public:
  using Emitter::Emitter;

  // With the caller's text in front.
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
