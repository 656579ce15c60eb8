#pragma once
// Private: values that operators of control and of sequences give during import.

#include <utility>

#include "compute/model/onnx/value.h"

namespace imprint::onnx {

inline Value known_bool(bool flag) {
  HostArray array;
  array.type = ElementType::boolean;
  array.ints.push_back(flag ? 1 : 0);
  return Value::known(std::move(array));
}

}  // namespace imprint::onnx
