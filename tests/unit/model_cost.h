#pragma once
// The cost of reading a file, which is bounded.

#include <gtest/gtest.h>

#include <cstddef>
#include <ctime>
#include <optional>
#include <span>

#include "compute/model/onnx/import.h"
#include "tests/unit/model_heap.h"

namespace imprint::test {

// CPU time, which does not grow on a busy machine: 25 times a bomb's limit, for emulated processors too.
class Cost {
 public:
  ~Cost() {
    EXPECT_LT(std::clock() - start_, 5 * CLOCKS_PER_SEC);
    EXPECT_LE(heap_.peak_bytes(), std::size_t{64} << 20);
  }

 private:
  HeapWatch heap_;
  std::clock_t start_ = std::clock();
};

// Parses and imports, with free dimensions of 1. The error, or nothing.
inline std::optional<Error> taken(std::span<const std::byte> bytes) {
  const auto model = onnx::parse(bytes);
  if (!model) return model.error();
  const auto shapes = shapes_with_free_dimensions(*model, 1);
  const auto imported = import_onnx(*model, shapes ? *shapes : std::map<std::string, Shape>());
  if (imported) return std::nullopt;
  return imported.error();
}

}  // namespace imprint::test
