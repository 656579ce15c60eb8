#pragma once
// Imports and evaluates ONNX files that a test builds.

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "compute/model/onnx/import.h"
#include "tests/reference/interpreter.h"
#include "tests/unit/model_onnx_builder.h"

namespace imprint::test {

inline onnx::Model must_parse(const OnnxBuilder& builder) {
  auto model = onnx::parse(builder.bytes());
  EXPECT_TRUE(model.ok()) << (model ? "" : model.error().message);
  return model ? std::move(*model) : onnx::Model();
}

inline ImportedModel must_import(const OnnxBuilder& builder,
                                 const std::map<std::string, Shape>& shapes = {}) {
  auto imported = import_onnx(must_parse(builder), shapes);
  EXPECT_TRUE(imported.ok()) << (imported ? "" : imported.error().message);
  return imported ? std::move(*imported) : ImportedModel();
}

inline Error refusal(const OnnxBuilder& builder, const std::map<std::string, Shape>& shapes = {}) {
  auto imported = import_onnx(must_parse(builder), shapes);
  EXPECT_FALSE(imported.ok());
  return imported ? Error() : imported.error();
}

inline std::vector<double> run(const OnnxBuilder& builder, const std::map<std::string, Shape>& shapes = {},
                               const reference::Bindings& bindings = {}) {
  const ImportedModel model = must_import(builder, shapes);
  return model.outputs.empty() ? std::vector<double>()
                               : reference::evaluate(model.outputs[0].tensor, bindings);
}

}  // namespace imprint::test
