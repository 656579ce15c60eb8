#include "compute/nn/modules/composed_page.h"

#include <string>

#include "compute/graph/gradients/autodiff.h"
#include "compute/tensor/composites/composites.h"

namespace imprint::nn {

std::vector<Tensor> composed_gradients(const Composition& composition, std::span<const Tensor> inputs,
                                       std::span<const Tensor> gradients) {
  std::vector<Tensor> places;
  for (const Tensor& given : inputs)
    places.push_back(input(std::to_string(places.size()), given.shape(), given.dtype()));
  std::vector<Tensor> by;
  for (const Tensor& place : places)
    if (place.dtype() == DType::float32) by.push_back(place);
  const auto found = vjp(composition(places), by, gradients);
  if (!found) return std::vector<Tensor>(inputs.size(), Tensor(found.error()));
  const std::vector<Tensor> own = substitute(*found, places, inputs);
  std::vector<Tensor> result;
  std::size_t next = 0;
  for (const Tensor& given : inputs)
    result.push_back(given.dtype() == DType::float32 ? own[next++] : Tensor());
  return result;
}

}  // namespace imprint::nn
