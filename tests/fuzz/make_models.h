#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace imprint::fuzz {

struct ModelSeed {
  std::string name;
  std::vector<std::byte> bytes;
};
std::vector<ModelSeed> model_seeds();

}  // namespace imprint::fuzz
