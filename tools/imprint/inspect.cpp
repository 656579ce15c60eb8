// imprint inspect: a model's inputs, outputs and operators, and the parts that Imprint cannot run.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "compute/base/amount.h"
#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/files/file.h"
#include "compute/model/onnx/import.h"
#include "compute/model/onnx/value.h"
#include "compute/model/policy.h"
#include "compute/program/loop_parts.h"
#include "tools/imprint/commands.h"
#include "tools/imprint/computer.h"
#include "tools/imprint/file_limits.h"
#include "tools/imprint/graph_picture.h"
#include "tools/imprint/slow_step.h"
#include "tools/imprint/workloads.h"

namespace imprint::tools {
namespace {

struct InspectOptions {
  std::string path, device = "cpu", picture;
  ModelShapes shapes;
  FileLimits limits;
  bool as_json = false;

  ImportOptions import_options() const { return {.constant_limit_bytes = limits.bytes()}; }
};

struct Parameters {
  std::uint64_t count = 0, bytes = 0, tensors = 0;

  void add(const onnx::TensorData& tensor) {
    ++tensors;
    bytes += tensor.bytes.size();
    if (is_float(tensor.type)) count += static_cast<std::uint64_t>(tensor.element_count());
  }
};

// Initializers and tensors of attributes, in the graphs inside of nodes too. The reader bounds their depth.
void add_parameters(const onnx::Graph& graph, Parameters& to) {
  for (const onnx::TensorData& tensor : graph.initializers) to.add(tensor);
  for (const onnx::Node& node : graph.nodes)
    for (const onnx::Attribute& attribute : node.attributes) {
      for (const onnx::TensorData& tensor : attribute.tensors) to.add(tensor);
      for (const onnx::Graph& inside : attribute.graphs) add_parameters(inside, to);
    }
}

Parameters parameters_of(const onnx::Model& model) {
  Parameters all;
  add_parameters(model.graph, all);
  for (const onnx::Function& function : model.functions) add_parameters(function.graph, all);
  return all;
}

// A Loop, Scan, RNN, GRU or LSTM of the program: its body runs `turns` times.
struct LoopUse {
  std::string name;
  std::uint64_t turns = 0, dispatches = 0, bytes_moved = 0;  // the last two of one turn
};

struct Compiled {
  ImportedModel imported;
  ProgramStats stats;
  std::vector<LoopUse> loops;
  std::uint64_t loop_bytes = 0;                              // what loops carry, stack and take from outside
  std::uint64_t int8_products = 0;                           // kernels that multiply packed numbers of 8 bits
  std::vector<std::pair<std::string, std::string>> outputs;  // names, and types with shapes
};

std::vector<LoopUse> loops_of(const Program& program) {
  std::vector<LoopUse> out;
  const std::string prefix = program.name() + ".";
  for (const ScheduleFigures& part : program.schedule()) {
    if (part.repeat == 1) continue;  // values between loops
    const std::string name = part.name.starts_with(prefix) ? part.name.substr(prefix.size()) : part.name;
    LoopUse& loop = out.emplace_back(LoopUse{name, part.repeat, part.dispatches.size(), 0});
    for (const DispatchFigures& dispatch : part.dispatches)
      for (const KernelFigures& kernel : dispatch.kernels)
        loop.bytes_moved += kernel.bytes_read + kernel.bytes_written;
  }
  return out;
}

std::uint64_t int8_products_of(const Program& program) {
  std::uint64_t count = 0;
  for (const ScheduleFigures& part : program.schedule())
    for (const DispatchFigures& dispatch : part.dispatches)
      count += dispatch.glsl.find("imp_dot(") != std::string::npos ? 1 : 0;
  return count;
}

Result<std::uint64_t> loop_bytes(const ProgramDescription& description) {
  if (!program::has_loops(description)) return std::uint64_t{0};
  IMPRINT_ASSIGN(const ProgramSequence parts, program::parts_of_loops(description));
  std::uint64_t bytes = 0;
  for (const Variable& variable : parts.own) bytes += variable.bytes();
  return bytes;
}

// The model as a program of the device, for these shapes. Some faults show only then.
Result<Compiled> compile(const onnx::Model& model, const InspectOptions& options) {
  const SlowStep slow(text("compiling '", options.path, "'"));
  IMPRINT_ASSIGN(
      ImportedModel imported,
      with_remedy(import_at(model, options.path, options.shapes, options.import_options()), options.limits));
  IMPRINT_ASSIGN(Computer computer, Computer::open(options.device));
  const ProgramDescription description{.name = options.path,
                                       .inputs = imported.input_tensors(),
                                       .outputs = imported.output_tensors(),
                                       .slot_count = 1};
  IMPRINT_ASSIGN(const Program program, Program::compile(computer.runtime(), description));
  IMPRINT_ASSIGN(const std::uint64_t bytes, loop_bytes(description));
  Compiled made{.imported = {},
                .stats = program.stats(),
                .loops = loops_of(program),
                .loop_bytes = bytes,
                .int8_products = int8_products_of(program),
                .outputs = {}};
  for (const ImportedValue& output : imported.outputs)
    made.outputs.emplace_back(output.name,
                              text(onnx::element_type_name(output.type), " ", output.tensor.shape().text()));
  made.imported = std::move(imported);
  return made;
}

// An object whose members are moved. (One that grows copies all of its members.)
using Member = std::pair<const char*, nlohmann::ordered_json>;
template <class... Members>
nlohmann::ordered_json object_of(Members... members) {
  nlohmann::ordered_json::object_t out;
  out.reserve(sizeof...(members));
  (out.emplace_back(members.first, std::move(members.second)), ...);
  return nlohmann::ordered_json(std::move(out));
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
  return object_of(Member{"name", value.name},
                   Member{"type", value.is_tensor ? onnx::element_type_name(value.type) : "not a tensor"},
                   Member{"shape", std::move(shape)});
}

nlohmann::ordered_json to_json(const std::vector<onnx::ValueInfo>& values) {
  nlohmann::ordered_json::array_t out;
  out.reserve(values.size());
  for (const onnx::ValueInfo& value : values) out.push_back(to_json(value));
  return nlohmann::ordered_json(std::move(out));
}

// Members are appended, since looking each one up takes quadratic time. Keys differ already.
template <class T>
nlohmann::ordered_json to_json(const std::map<std::string, T>& members, const char* without_key) {
  nlohmann::ordered_json::object_t out;
  out.reserve(members.size());
  for (const auto& [key, value] : members) out.push_back({key.empty() ? without_key : key, value});
  return out;
}

nlohmann::ordered_json to_json(const Compiled& program) {
  nlohmann::ordered_json::object_t outputs;
  outputs.reserve(program.outputs.size());
  std::set<std::string_view> names;
  for (const auto& [name, shape] : program.outputs)
    if (names.insert(name).second) outputs.push_back({name, shape});
  nlohmann::ordered_json::array_t loops;
  for (const LoopUse& loop : program.loops)
    loops.push_back(object_of(Member{"name", loop.name}, Member{"turns", loop.turns},
                              Member{"dispatches_of_a_turn", loop.dispatches},
                              Member{"bytes_moved_of_a_turn", loop.bytes_moved}));
  return {{"outputs", std::move(outputs)},
          {"dispatches", program.stats.dispatches},
          {"kernels", program.stats.kernels},
          {"intermediate_bytes", program.stats.arena_bytes},
          {"input_output_bytes", program.stats.io_bytes},
          {"loop_bytes", program.loop_bytes},
          {"loops", std::move(loops)},
          {"bytes_moved", program.stats.bytes_moved},
          {"operations", program.stats.flops},
          {"quantised_products",
           {{"whole", program.imported.quantised.whole},
            {"float", program.imported.quantised.in_float},
            {"reasons", program.imported.quantised.reasons}}},
          {"int8_products", program.int8_products}};
}

void print_json(const onnx::Model& model, const std::vector<OperatorUse>& operators,
                const Result<Compiled>& program) {
  const std::string problem = program ? "" : program.error().message;
  const Parameters parameters = parameters_of(model);
  nlohmann::ordered_json uses = nlohmann::ordered_json::array();
  for (const OperatorUse& use : operators)
    uses.push_back({{"name", use.name}, {"count", use.count}, {"supported", use.supported}});
  nlohmann::ordered_json bodies = nlohmann::ordered_json::array();
  for (const onnx::BodyUse& body : onnx::bodies_of(model))
    bodies.push_back({{"path", body.path}, {"nodes", body.nodes}, {"missing", body.missing}});
  const nlohmann::ordered_json out = object_of(
      Member{"producer", model.producer}, Member{"ir_version", model.ir_version},
      Member{"opsets", to_json(model.opsets, "ai.onnx")}, Member{"graph", model.graph.name},
      Member{"inputs", to_json(model_inputs(model))}, Member{"outputs", to_json(model.graph.outputs)},
      Member{"nodes", model.graph.nodes.size()}, Member{"operators", std::move(uses)},
      Member{"bodies", std::move(bodies)}, Member{"initializers", parameters.tensors},
      Member{"parameters", parameters.count}, Member{"initializer_bytes", parameters.bytes},
      Member{"metadata", to_json(model.metadata, "")},
      Member{"program", program ? to_json(*program) : nlohmann::ordered_json(nullptr)},
      Member{"supported", problem.empty()},
      Member{"problem", problem.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(problem)});
  // Names in a file need not be UTF-8.
  std::printf("%s\n", out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

void print_values(const char* title, const std::vector<onnx::ValueInfo>& values) {
  std::printf("%s\n", title);
  for (const onnx::ValueInfo& value : values)
    std::printf("  %-24s %-8s %s\n", clipped(value.name).c_str(),
                value.is_tensor ? onnx::element_type_name(value.type).c_str() : "not a tensor",
                value.is_tensor ? clipped(value.shape_text()).c_str() : "");
}

constexpr std::size_t kLongestPolicy = 4096;  // bytes of its text

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

void print_quantised(const QuantisedProducts& products) {
  const std::uint64_t all = products.whole + products.in_float;
  if (all == 0) return;
  std::printf("  %llu of %s after DequantizeLinear in whole numbers\n",
              static_cast<unsigned long long>(products.whole), amount(all, "product").c_str());
  for (const std::string& reason : products.reasons) std::printf("    in float32: %s\n", reason.c_str());
}

void print_program(const Compiled& program, const std::string& device) {
  const ProgramStats& stats = program.stats;
  std::printf("as a program of %s\n", device.c_str());
  for (const auto& [name, shape] : program.outputs)
    std::printf("  %-24s %s\n", clipped(name).c_str(), shape.c_str());
  std::printf("  %s of %s, %.3f billion operations, %.1f MiB read and written\n",
              amount(stats.dispatches, "dispatch").c_str(), amount(stats.kernels, "kernel").c_str(),
              static_cast<double>(stats.flops) * 1e-9, mib(stats.bytes_moved));
  std::printf(
      "  memory besides the weights: %.1f MiB of intermediates (%.1f MiB if none shared memory), %.1f MiB "
      "of inputs and outputs\n",
      mib(stats.arena_bytes), mib(stats.unplanned_bytes), mib(stats.io_bytes));
  for (const LoopUse& loop : program.loops)
    std::printf("  loop %s: %s of %s, %.1f KiB read and written in each\n", loop.name.c_str(),
                amount(loop.turns, "turn").c_str(), amount(loop.dispatches, "dispatch").c_str(),
                static_cast<double>(loop.bytes_moved) / 1024);
  if (program.loop_bytes > 0)
    std::printf("  loops keep %.1f KiB from turn to turn\n", static_cast<double>(program.loop_bytes) / 1024);
  print_quantised(program.imported.quantised);
  if (program.int8_products > 0)
    std::printf("  %s of numbers of 8 bits on this device, summed in int32\n",
                amount(program.int8_products, "product").c_str());
}

void print_bodies(const onnx::Model& model) {
  const std::vector<onnx::BodyUse> bodies = onnx::bodies_of(model);
  if (!bodies.empty()) std::printf("bodies\n");
  for (const onnx::BodyUse& body : bodies) {
    std::string missing;
    for (const std::string& name : body.missing)
      missing += (missing.empty() ? "   not supported: " : ", ") + name;
    std::printf("  %s: %s%s\n", body.path.c_str(), amount(body.nodes, "node").c_str(), missing.c_str());
  }
}

// For one agent: the model is imported again only for other shapes than it was compiled with.
Result<Policy> policy_in(const onnx::Model& model, const Result<Compiled>& program,
                         const InspectOptions& options) {
  IMPRINT_ASSIGN(const auto shapes, policy_shapes(model, 1));
  const bool same = program && std::ranges::all_of(program->imported.inputs, [&](const ImportedValue& input) {
                      const auto found = shapes.find(input.name);
                      return found != shapes.end() && found->second == input.tensor.shape();
                    });
  return same ? policy_of(program->imported, 1) : import_policy(model, 1, options.import_options());
}

void print_text(const onnx::Model& model, const std::vector<OperatorUse>& operators,
                const Result<Compiled>& program, const InspectOptions& options) {
  const Parameters parameters = parameters_of(model);
  std::string opsets;
  for (const auto& [domain, version] : model.opsets)
    opsets += (opsets.empty() ? "" : ", ") + (domain.empty() ? std::string("ai.onnx") : clipped(domain)) +
              " " + std::to_string(version);
  std::printf("graph '%s' by %s, ir version %lld, operators of %s\n", clipped(model.graph.name).c_str(),
              model.producer.empty() ? "an unnamed producer" : clipped(model.producer).c_str(),
              static_cast<long long>(model.ir_version), opsets.c_str());
  print_values("inputs", model_inputs(model));
  print_values("outputs", model.graph.outputs);
  std::printf("parameters\n  %llu in %s, %.1f KiB\n", static_cast<unsigned long long>(parameters.count),
              amount(parameters.tensors, "tensor").c_str(), static_cast<double>(parameters.bytes) / 1024);
  std::printf("operators\n");
  for (const OperatorUse& use : operators)
    std::printf("  %-24s %6llu%s\n", clipped(use.name).c_str(), static_cast<unsigned long long>(use.count),
                use.supported ? "" : "   not supported");
  print_bodies(model);
  if (program) print_program(*program, options.device);
  if (program) std::printf("everything in it is supported\n");
  if (const auto policy = policy_in(model, program, options); policy)
    std::printf("as a policy, by %s\n", clipped(policy->description.text(), kLongestPolicy).c_str());
  if (!program) std::printf("cannot be run: %s\n", program.error().message.c_str());
}

Result<> inspect(InspectOptions options) {
  if (!options.picture.empty()) IMPRINT_CHECK(check_replaceable(options.picture));
  IMPRINT_ASSIGN(const onnx::Model model, load_limited(options.path, options.limits));
  const std::vector<OperatorUse> operators = operators_of(model);
  const Result<Compiled> program = compile(model, options);
  if (options.as_json)
    print_json(model, operators, program);
  else
    print_text(model, operators, program, options);
  if (options.picture.empty()) return {};
  const std::string picture = graph_picture(model.graph);
  return write_file_atomic(options.picture, std::as_bytes(std::span(picture)));
}

}  // namespace

void add_inspect(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "inspect", "print a model's inputs, outputs, operators and parameters, and what is not supported");
  auto options = std::make_shared<InspectOptions>();
  command->add_option("model", options->path, "an ONNX file")->required()->type_name("MODEL.onnx");
  add_shape_option(*command, options->shapes);
  command->add_option("--batch", options->shapes.batch, "size of the model's open dimensions")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31))
      ->option_text("N=1");
  command->add_option("--device", options->device, kDeviceHelp)->option_text("DEVICE=cpu");
  command->add_option("--svg", options->picture, "draw the graph into this file")->type_name("FILE.svg");
  add_memory_limit_option(*command, options->limits);
  command->add_flag("--json", options->as_json, "print a JSON object");
  set_work(*command, [options] { return inspect(*options); });
}

}  // namespace imprint::tools
