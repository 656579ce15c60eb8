// imprint inspect: a model's inputs, outputs and operators, and the parts that Imprint cannot run.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "compute/model/onnx_import.h"
#include "compute/model/policy.h"
#include "tools/imprint/commands.h"

namespace imprint::tools {
namespace {

struct Parameters {
  std::uint64_t count = 0, bytes = 0, tensors = 0;
};

Parameters parameters_of(const onnx::Model& model) {
  Parameters out;
  for (const onnx::TensorData& tensor : model.graph.initializers) {
    ++out.tensors;
    out.bytes += tensor.bytes.size();
    using onnx::ElementType;
    const bool is_float = tensor.type == ElementType::float32 || tensor.type == ElementType::float16 ||
                          tensor.type == ElementType::bfloat16 || tensor.type == ElementType::float64;
    if (is_float) out.count += static_cast<std::uint64_t>(tensor.element_count());
  }
  return out;
}

// Why the model cannot run; empty when it can. Some faults show only with known shapes, so the model is
// imported once with every free dimension at 1.
std::string problem_of(const onnx::Model& model) {
  const auto shapes = shapes_with_free_dimensions(model, 1);
  if (!shapes) return shapes.error().message;
  const auto imported = import_onnx(model, *shapes);
  return imported ? std::string() : imported.error().message;
}

nlohmann::ordered_json to_json(const onnx::ValueInfo& value) {
  nlohmann::ordered_json shape = nullptr;
  if (value.shape) {
    shape = nlohmann::ordered_json::array();
    for (const onnx::Dimension& dimension : *value.shape) {
      if (dimension.value)
        shape.push_back(*dimension.value);
      else
        shape.push_back(dimension.symbol);
    }
  }
  return {{"name", value.name},
          {"type", value.is_tensor ? onnx::element_type_name(value.type) : "not a tensor"},
          {"shape", std::move(shape)}};
}

nlohmann::ordered_json to_json(const std::vector<onnx::ValueInfo>& values) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const onnx::ValueInfo& value : values) out.push_back(to_json(value));
  return out;
}

// Keys differ already. Members are appended, since looking each one up takes quadratic time.
template <class T>
nlohmann::ordered_json to_json(const std::map<std::string, T>& members, const char* without_key) {
  nlohmann::ordered_json::object_t out;
  for (const auto& [key, value] : members) out.push_back({key.empty() ? without_key : key, value});
  return out;
}

void print_json(const onnx::Model& model, const std::vector<OperatorUse>& operators,
                const std::string& problem) {
  const Parameters parameters = parameters_of(model);
  nlohmann::ordered_json uses = nlohmann::ordered_json::array();
  for (const OperatorUse& use : operators)
    uses.push_back({{"name", use.name}, {"count", use.count}, {"supported", use.supported}});
  const nlohmann::ordered_json out{
      {"producer", model.producer},
      {"ir_version", model.ir_version},
      {"opsets", to_json(model.opsets, "ai.onnx")},
      {"graph", model.graph.name},
      {"inputs", to_json(model_inputs(model))},
      {"outputs", to_json(model.graph.outputs)},
      {"nodes", model.graph.nodes.size()},
      {"operators", std::move(uses)},
      {"initializers", parameters.tensors},
      {"parameters", parameters.count},
      {"initializer_bytes", parameters.bytes},
      {"metadata", to_json(model.metadata, "")},
      {"supported", problem.empty()},
      {"problem", problem.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(problem)}};
  // Names in a file need not be UTF-8.
  std::printf("%s\n", out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

void print_values(const char* title, const std::vector<onnx::ValueInfo>& values) {
  std::printf("%s\n", title);
  for (const onnx::ValueInfo& value : values)
    std::printf("  %-24s %-8s %s\n", value.name.c_str(),
                value.is_tensor ? onnx::element_type_name(value.type).c_str() : "not a tensor",
                value.is_tensor ? value.shape_text().c_str() : "");
}

void print_text(const onnx::Model& model, const std::vector<OperatorUse>& operators,
                const std::string& problem) {
  const Parameters parameters = parameters_of(model);
  std::string opsets;
  for (const auto& [domain, version] : model.opsets)
    opsets += (opsets.empty() ? "" : ", ") + (domain.empty() ? std::string("ai.onnx") : domain) + " " +
              std::to_string(version);
  std::printf("graph '%s' by %s, ir version %lld, operators of %s\n", model.graph.name.c_str(),
              model.producer.empty() ? "an unnamed producer" : model.producer.c_str(),
              static_cast<long long>(model.ir_version), opsets.c_str());
  print_values("inputs", model_inputs(model));
  print_values("outputs", model.graph.outputs);
  std::printf(
      "parameters\n  %llu in %llu tensors, %.1f KiB\n", static_cast<unsigned long long>(parameters.count),
      static_cast<unsigned long long>(parameters.tensors), static_cast<double>(parameters.bytes) / 1024);
  std::printf("operators\n");
  for (const OperatorUse& use : operators)
    std::printf("  %-24s %6llu%s\n", use.name.c_str(), static_cast<unsigned long long>(use.count),
                use.supported ? "" : "   not supported");
  if (problem.empty()) std::printf("everything in it is supported\n");
  if (const auto policy = import_policy(model, 1); policy)
    std::printf("as a policy, by %s\n", policy->description.text().c_str());
  if (!problem.empty()) std::printf("cannot be run: %s\n", problem.c_str());
}

Result<> inspect(const std::string& path, bool as_json) {
  IMPRINT_ASSIGN(const onnx::Model model, onnx::load(path));
  const std::vector<OperatorUse> operators = operators_of(model);
  const std::string problem = problem_of(model);
  (as_json ? print_json : print_text)(model, operators, problem);
  return {};
}

}  // namespace

void add_inspect(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "inspect", "print a model's inputs, outputs, operators and parameters, and what is not supported");
  auto path = std::make_shared<std::string>();
  auto as_json = std::make_shared<bool>(false);
  command->add_option("model", *path, "an ONNX file")->required()->type_name("MODEL.onnx");
  command->add_flag("--json", *as_json, "print a JSON object");
  set_work(*command, [path, as_json] { return inspect(*path, *as_json); });
}

}  // namespace imprint::tools
