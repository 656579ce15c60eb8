#pragma once
// Writes the kernel of a page: one load function per input, one store function per output, then its GLSL.

#include <string>

#include "compute/kernels/emitter.h"

namespace imprint::kernels {

class PageEmitter : public Emitter {
 public:
  using Emitter::Emitter;

  std::string function(const std::string& name);

 private:
  std::string load_function(std::size_t input);
  std::string quad_function(std::size_t input);
  std::string four_functions(std::size_t input);
  std::string eight_functions(std::size_t input);
  std::string store_function(std::size_t output);
  std::string continued_function();
  std::string kept_functions(std::size_t output);
  std::size_t output_of(const graph::Store& store) const;
  std::string take_body();  // what was written since the last call

  const graph::GraphNode& anchor_ = graph_[task_.anchor];
};

}  // namespace imprint::kernels
