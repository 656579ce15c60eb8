#include "tools/agreement/cases.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "compute/base/text.h"
#include "compute/model/files/file.h"
#include "compute/model/files/safetensors.h"
#include "compute/model/onnx/format/tensor_data.h"
#include "compute/model/onnx/import.h"

namespace imprint::tools {
namespace {

namespace fs = std::filesystem;
using onnx::ElementType;

// ---- protobuf, as far as test data needs it ----

void add_varint(std::vector<std::byte>& out, std::uint64_t value) {
  for (; value >= 128; value >>= 7) out.push_back(static_cast<std::byte>((value & 127) | 128));
  out.push_back(static_cast<std::byte>(value));
}

void add_message(std::vector<std::byte>& out, std::uint32_t tag, std::span<const std::byte> bytes) {
  add_varint(out, tag << 3 | 2);
  add_varint(out, bytes.size());
  out.insert(out.end(), bytes.begin(), bytes.end());
}

// The messages of one tag. Other fields are skipped.
std::vector<std::span<const std::byte>> messages_of(std::span<const std::byte> bytes, std::uint32_t tag) {
  std::vector<std::span<const std::byte>> out;
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (int shift = 0; at < bytes.size() && shift < 64; shift += 7) {
      const auto part = std::to_integer<std::uint64_t>(bytes[at++]);
      value |= (part & 127) << shift;
      if (part < 128) break;
    }
    return value;
  };
  while (at < bytes.size()) {
    const std::uint64_t key = varint();
    std::uint64_t length = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : 0;
    if ((key & 7) == 0) varint();
    if ((key & 7) == 2) length = varint();
    if (length > bytes.size() - at) return {};
    if (key == (tag << 3 | 2)) out.push_back(bytes.subspan(at, length));
    at += length;
  }
  return out;
}

// Tensors of any form, read by the reader of models.
Result<std::vector<onnx::TensorData>> tensors_of(std::span<const std::span<const std::byte>> messages) {
  std::vector<std::byte> graph, file, opset{std::byte{0x10}, std::byte{1}};
  for (const auto message : messages) add_message(graph, 5, message);
  add_message(file, 7, graph);
  add_message(file, 8, opset);
  IMPRINT_ASSIGN(onnx::Model model, onnx::parse(file));
  return std::move(model.graph.initializers);
}

// Files of test data do not say which kind of message they hold: the model's declaration does.
Result<CaseValue> value_of(const std::string& path, const onnx::ValueInfo& info) {
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes, read_file(path));
  CaseValue value;
  std::vector<std::span<const std::byte>> messages{bytes};
  if (!info.is_tensor) {
    std::span<const std::byte> sequence = bytes;
    if (info.optional) {
      messages = messages_of(bytes, 3);  // OptionalProto.tensor_value
      const auto inner = messages_of(bytes, 5);
      if (!inner.empty()) sequence = inner[0];
      value.sequence = info.sequence && !inner.empty();
    }
    if (info.sequence && (!info.optional || value.sequence)) {
      messages = messages_of(sequence, 3);  // SequenceProto.tensor_values
      value.sequence = true;
    }
  }
  IMPRINT_ASSIGN(value.tensors, tensors_of(messages));
  // The test data has bfloat16 as uint16, for readers without that type.
  for (onnx::TensorData& data : value.tensors)
    if (info.type == ElementType::bfloat16 && data.type == ElementType::uint16) data.type = info.type;
  return value;
}

Result<std::vector<Case>> specification_cases(const fs::path& folder, const onnx::Model& model) {
  std::vector<Case> out;
  const std::vector<onnx::ValueInfo> inputs = model_inputs(model);
  for (int set = 0; fs::is_directory(folder / text("test_data_set_", set)); ++set) {
    const fs::path data = folder / text("test_data_set_", set);
    Case& one = out.emplace_back();
    one.name = text(folder.filename().string(), set == 0 ? "" : text(" ", set));
    one.from_specification = true;
    const auto read = [&](const std::vector<onnx::ValueInfo>& infos, const char* kind,
                          std::map<std::string, CaseValue>& into) -> Result<> {
      for (std::size_t i = 0; i < infos.size(); ++i) {
        const fs::path file = data / text(kind, "_", i, ".pb");
        if (!fs::exists(file)) continue;
        IMPRINT_ASSIGN(into[infos[i].name], value_of(file.string(), infos[i]));
      }
      return {};
    };
    IMPRINT_CHECK(read(inputs, "input", one.inputs));
    IMPRINT_CHECK(read(model.graph.outputs, "output", one.outputs));
  }
  return out;
}

Result<std::vector<Case>> reference_cases(const fs::path& path) {
  std::vector<Case> out;
  std::vector<fs::path> files;
  const std::string stem = path.stem().string() + ".";
  IMPRINT_ASSIGN(const std::vector<std::string> beside, list_folder(path.parent_path().string()));
  for (const fs::path file : beside) {
    const std::string name = file.filename().string();
    if (name.starts_with(stem) && name.ends_with("ref.safetensors")) files.push_back(file);
  }
  for (const fs::path& file : files) {
    IMPRINT_ASSIGN(const safetensors::File found, safetensors::load(file.string()));
    const auto model = found.metadata.find("model");
    if (model == found.metadata.end() ||
        fs::path(model->second).filename().string() != path.filename().string())
      continue;  // a reference of another file of this name
    Case one;
    one.name = file.filename().string();
    bool of_one_run = true;
    for (const auto& [name, array] : found.arrays) {
      of_one_run = of_one_run && name.find('@') == std::string::npos;
      if (name.starts_with("in.")) one.inputs[name.substr(3)].tensors = {onnx::tensor_data(name, array)};
      if (name.starts_with("out.")) one.outputs[name.substr(4)].tensors = {onnx::tensor_data(name, array)};
    }
    if (const auto spread = found.metadata.find("spread"); spread != found.metadata.end()) {
      const auto json = nlohmann::json::parse(spread->second, nullptr, false);
      if (json.is_object())
        for (const auto& [name, value] : json.items())
          if (value.is_number()) one.spread[name] = value.get<double>();
    }
    if (of_one_run) out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

std::vector<std::string> find_models(const std::string& folder) {
  std::vector<std::string> out;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().extension() == ".onnx") out.push_back(entry.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

Result<std::vector<Case>> cases_of(const std::string& path, const onnx::Model& model) {
  const fs::path file = path;
  if (fs::is_directory(file.parent_path() / "test_data_set_0"))
    return specification_cases(file.parent_path(), model);
  return reference_cases(file);
}

// The specification's own runner takes 1e-3; sums near 0 have the error of their largest terms. Some of its
// bfloat16 are cut instead of rounded.
Tolerance tolerance_of(const Case& one, const std::string& output, ElementType type) {
  if (one.from_specification) return {type == ElementType::bfloat16 ? 0x1p-7 : 1e-3, 1e-7, 1e-6};
  const double step = type == ElementType::float16 ? 4e-3 : type == ElementType::bfloat16 ? 3e-2 : 1e-5;
  const auto spread = one.spread.find(output);
  return {step, step + (spread == one.spread.end() ? 0 : 2 * spread->second), 0.2 * step};
}

}  // namespace imprint::tools
