#pragma once
// Private: numbers of onnx.proto's fields, for writers of files.

#include <cstdint>

namespace imprint::onnx::field {

enum ModelField : std::uint32_t { kIrVersion = 1, kProducer = 2, kGraph = 7, kOpset = 8, kMetadata = 14 };
enum PairField : std::uint32_t { kKey = 1, kValue = 2 };  // of an operator set and of metadata
enum GraphField : std::uint32_t {
  kNode = 1,
  kGraphName = 2,
  kInitializer = 5,
  kInput = 11,
  kOutput = 12,
  kSparseInitializer = 15
};
enum NodeField : std::uint32_t {
  kNodeInput = 1,
  kNodeOutput = 2,
  kNodeName = 3,
  kOpType = 4,
  kAttribute = 5,
  kDomain = 7
};
enum TensorField : std::uint32_t { kExtents = 1, kElementType = 2, kTensorName = 8, kRaw = 9 };
enum AttributeField : std::uint32_t {
  kAttributeName = 1,
  kFloat = 2,
  kInt = 3,
  kString = 4,
  kFloats = 7,
  kInts = 8,
  kStrings = 9,
  kKind = 20
};

}  // namespace imprint::onnx::field
