#include "compute/model/quantise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <set>
#include <string_view>
#include <unordered_map>

#include "compute/base/at.h"
#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/onnx/format/fields.h"

namespace imprint {

namespace {

using namespace onnx::field;

constexpr const char* kMicrosoft = "com.microsoft";

struct Use {
  std::size_t node = 0, slot = 0;
};

// A weight's form in the result.
struct Form {
  int bits = 8;
  int axis = 0;  // 8 bits: of the scales
};

struct Numbers {
  std::vector<std::uint8_t> bytes;  // int8, or two of 4 bits per byte
  std::vector<float> scales;
  double squared_error = 0, squared_sum = 0;
};

// The scale with the least squared error of x / scale as whole numbers from low to high. `first` makes the
// farthest number fit.
float best_scale(std::span<const float> x, float first, float low, float high) {
  float best = first;
  double least = INFINITY;
  for (int shrink = 0; shrink < 8 && first != 0; ++shrink) {
    const float scale = first * (1.0f - 0.03f * static_cast<float>(shrink));
    double error = 0;
    for (const float value : x) {
      const double change =
          static_cast<double>(std::clamp(std::nearbyint(value / scale), low, high) * scale - value);
      error += change * change;
    }
    if (error >= least) continue;
    least = error;
    best = scale;
  }
  return best;
}

// Appends the whole numbers of x by best_scale() to `whole`.
void quantise_run(std::span<const float> x, float first, float low, float high,
                  std::vector<std::int8_t>& whole, Numbers& to) {
  const float scale = best_scale(x, first, low, high);
  to.scales.push_back(scale);
  for (const float value : x) {
    const float number = scale == 0 ? 0 : std::clamp(std::nearbyint(value / scale), low, high);
    whole.push_back(static_cast<std::int8_t>(number));
    const double change = static_cast<double>(number * scale - value);
    to.squared_error += change * change;
    to.squared_sum += static_cast<double>(value) * static_cast<double>(value);
  }
}

float farthest(std::span<const float> x) {
  float most = 0;
  for (const float value : x)
    if (std::abs(value) > std::abs(most)) most = value;
  return most;
}

// A scale per index of the axis; numbers from -127 to 127.
Numbers quantise_channels(std::span<const float> x, const std::vector<std::int64_t>& extents, int axis) {
  std::int64_t outer = 1, inner = 1;
  const std::int64_t channels = extents[at(axis)];
  for (int a = 0; a < static_cast<int>(extents.size()); ++a)
    if (a != axis) (a < axis ? outer : inner) *= extents[at(a)];
  Numbers to;
  to.bytes.resize(x.size());
  std::vector<float> channel(at(outer * inner));
  std::vector<std::int8_t> whole;
  for (std::int64_t c = 0; c < channels; ++c) {
    const auto element = [&](std::int64_t i) { return at((i / inner * channels + c) * inner + i % inner); };
    for (std::int64_t i = 0; i < outer * inner; ++i) channel[at(i)] = x[element(i)];
    whole.clear();
    quantise_run(channel, std::abs(farthest(channel)) / 127, -127, 127, whole, to);
    for (std::int64_t i = 0; i < outer * inner; ++i)
      to.bytes[element(i)] = static_cast<std::uint8_t>(whole[at(i)]);
  }
  return to;
}

// [depth, columns] as MatMulNBits takes it: [columns, blocks of the depth, bytes], numbers plus 8.
Numbers quantise_blocks(std::span<const float> x, std::int64_t depth, std::int64_t columns,
                        std::int64_t block) {
  Numbers to;
  std::vector<float> run(at(block));
  std::vector<std::int8_t> whole;
  for (std::int64_t column = 0; column < columns; ++column)
    for (std::int64_t begin = 0; begin < depth; begin += block) {
      const std::int64_t count = std::min(block, depth - begin);
      for (std::int64_t i = 0; i < count; ++i) run[at(i)] = x[at((begin + i) * columns + column)];
      const std::span<const float> taken(run.data(), at(count));
      whole.clear();
      quantise_run(taken, farthest(taken) / -8, -8, 7, whole, to);  // the farthest number is -8 exactly
      whole.resize(at(block), 0);
      for (std::size_t i = 0; i < whole.size(); i += 2)
        to.bytes.push_back(static_cast<std::uint8_t>((whole[i] + 8) | (whole[i + 1] + 8) << 4));
    }
  return to;
}

// ---- writing ----

using Writer = protozero::pbf_writer;

void write_tensor(Writer& graph, const std::string& name, onnx::ElementType type,
                  std::span<const std::int64_t> extents, std::span<const std::byte> bytes) {
  std::string text;
  Writer tensor(text);
  tensor.add_packed_int64(kExtents, extents.begin(), extents.end());
  tensor.add_int32(kElementType, static_cast<std::int32_t>(type));
  tensor.add_string(kTensorName, name);
  tensor.add_bytes(kRaw, reinterpret_cast<const char*>(bytes.data()), bytes.size());
  graph.add_message(kInitializer, text);
}

void write_int(Writer& node, const char* name, std::int64_t value) {
  std::string text;
  Writer attribute(text);
  attribute.add_string(kAttributeName, name);
  attribute.add_int64(kInt, value);
  attribute.add_int32(kKind, static_cast<std::int32_t>(onnx::AttributeKind::int_value));
  node.add_message(kAttribute, text);
}

std::string node_text(const std::string& op, const std::vector<std::string>& inputs,
                      const std::string& output) {
  std::string text;
  Writer node(text);
  for (const std::string& input : inputs) node.add_string(kNodeInput, input);
  node.add_string(kNodeOutput, output);
  node.add_string(kOpType, op);
  return text;
}

class Quantiser {
 public:
  Quantiser(const onnx::Model& model, const QuantiseOptions& options) : model_(model), options_(options) {
    for (std::size_t n = 0; n < model.graph.nodes.size(); ++n) {
      const onnx::Node& node = model.graph.nodes[n];
      for (std::size_t slot = 0; slot < node.inputs.size(); ++slot) {
        uses_[node.inputs[slot]].push_back({n, slot});
        names_.insert(node.inputs[slot]);
      }
      names_.insert(node.outputs.begin(), node.outputs.end());
      for (const onnx::Attribute& attribute : node.attributes)
        for (const onnx::Graph& body : attribute.graphs) add_names(body);
    }
    for (const onnx::TensorData& tensor : model.graph.initializers) {
      names_.insert(tensor.name);
      initializers_.insert(tensor.name);
    }
    for (const onnx::ValueInfo& output : model.graph.outputs) outputs_.insert(output.name);
    for (const onnx::TensorData& tensor : model.graph.initializers)
      if (const auto form = form_of(tensor)) forms_.emplace(tensor.name, *form);
  }

  std::vector<std::string> activations() const {
    std::vector<std::string> names;
    std::set<std::string_view> listed;
    for (const onnx::Node& node : model_.graph.nodes)
      if (multiplies_bytes(node) && !initializers_.contains(node.inputs[0]) &&
          listed.insert(node.inputs[0]).second)
        names.push_back(node.inputs[0]);
    return names;
  }

  Result<QuantisedModel> run(std::span<const std::byte> file) {
    std::string text;
    Writer out(text);
    bool has_microsoft = model_.opsets.contains(kMicrosoft);
    protozero::pbf_reader in(reinterpret_cast<const char*>(file.data()), file.size());
    while (in.next()) {
      if (in.tag() == kGraph && in.wire_type() == protozero::pbf_wire_type::length_delimited) {
        std::string graph;
        IMPRINT_CHECK(write_graph(in.get_view(), graph));
        out.add_message(kGraph, graph);
      } else {
        copy_field(in, out);
      }
    }
    if (makes_blocks_ && !has_microsoft) {
      std::string opset;
      Writer(opset).add_string(kKey, kMicrosoft);
      Writer(opset).add_int64(kValue, 1);
      out.add_message(kOpset, opset);
    }
    const auto bytes = std::as_bytes(std::span(text));
    result_.file.assign(bytes.begin(), bytes.end());
    return std::move(result_);
  }

 private:
  // Nothing: the weight stays.
  std::optional<Form> form_of(const onnx::TensorData& tensor) const {
    const auto used = uses_.find(tensor.name);
    const auto rank = static_cast<int>(tensor.extents.size());
    if (tensor.type != onnx::ElementType::float32 || rank < 2 || used == uses_.end() ||
        outputs_.contains(tensor.name) || tensor.element_count() < options_.least_elements ||
        tensor.bytes.empty())
      return std::nullopt;
    const auto is_product = [&](const Use& use) {
      const onnx::Node& node = model_.graph.nodes[use.node];
      return node.domain.empty() && node.op_type == "MatMul" && use.slot == 1 && node.inputs.size() == 2 &&
             node.outputs.size() == 1;
    };
    if (options_.bits == 4 && rank == 2 && !in_bodies_.contains(tensor.name) &&
        std::ranges::all_of(used->second, is_product))
      return Form{4, 0};
    const Use& use = used->second[0];
    const onnx::Node& node = model_.graph.nodes[use.node];
    if (!node.domain.empty()) return std::nullopt;
    const std::string& op = node.op_type;
    if (op == "MatMul" && use.slot == 1) return Form{8, rank - 1};
    if (op == "Gemm" && use.slot == 1) {
      const onnx::Attribute* transposed = node.find_attribute("transB");
      return Form{8, transposed && !transposed->ints.empty() && transposed->ints[0] != 0 ? 0 : 1};
    }
    if (op == "Conv" && use.slot == 1) return Form{8, 0};
    if (op == "ConvTranspose" && use.slot == 1) return Form{8, 1};
    if (op == "Gather" && use.slot == 0) return Form{8, 0};
    if ((op == "LSTM" || op == "GRU" || op == "RNN") && (use.slot == 1 || use.slot == 2)) return Form{8, 1};
    return std::nullopt;
  }

  // By a weight of 8 bits.
  bool multiplies_bytes(const onnx::Node& node) const {
    const bool is_product =
        node.domain.empty() && (node.op_type == "Conv" || node.op_type == "ConvTranspose" ||
                                node.op_type == "Gemm" || node.op_type == "MatMul");
    if (!is_product || node.inputs.size() < 2) return false;
    const auto form = forms_.find(node.inputs[1]);
    return form != forms_.end() && form->second.bits == 8;
  }

  // Names that bodies use.
  void add_names(const onnx::Graph& body) {
    for (const onnx::Node& node : body.nodes) {
      in_bodies_.insert(node.inputs.begin(), node.inputs.end());
      names_.insert(node.inputs.begin(), node.inputs.end());
      names_.insert(node.outputs.begin(), node.outputs.end());
      for (const onnx::Attribute& attribute : node.attributes)
        for (const onnx::Graph& inside : attribute.graphs) add_names(inside);
    }
    for (const onnx::ValueInfo& output : body.outputs) in_bodies_.insert(output.name);
  }

  std::string new_name(std::string name) {
    while (!names_.insert(name).second) name += "_";
    return name;
  }

  static void copy_field(protozero::pbf_reader& in, Writer& out) {
    switch (in.wire_type()) {
      case protozero::pbf_wire_type::varint:
        return out.add_uint64(in.tag(), in.get_uint64());
      case protozero::pbf_wire_type::fixed64:
        return out.add_fixed64(in.tag(), in.get_fixed64());
      case protozero::pbf_wire_type::fixed32:
        return out.add_fixed32(in.tag(), in.get_fixed32());
      default:
        return out.add_bytes(in.tag(), in.get_view());
    }
  }

  Result<> write_graph(protozero::data_view view, std::string& text) {
    Writer out(text);
    std::size_t initializer = 0, node = 0;
    for (protozero::pbf_reader all(view); all.next();)
      if (all.tag() != kInitializer && all.tag() != kSparseInitializer) {
        all.skip();
      } else if (initializer < model_.graph.initializers.size()) {
        const onnx::TensorData& tensor = model_.graph.initializers[initializer++];
        const bool as_it_is = all.tag() == kInitializer && !tensor.external;
        const protozero::data_view bytes = all.get_view();
        IMPRINT_CHECK(write_initializer(tensor, as_it_is ? bytes : protozero::data_view(), out));
      }
    protozero::pbf_reader in(view);
    while (in.next()) {
      if (in.tag() == kInitializer || in.tag() == kSparseInitializer) {
        in.skip();
      } else if (in.tag() == kInput) {  // up to ir_version 3 initializers are listed too
        const protozero::data_view info = in.get_view();
        protozero::pbf_reader value(info);
        if (value.next(1) && forms_.contains(value.get_string())) continue;
        out.add_message(kInput, info);
      } else if (in.tag() == kNode) {
        const protozero::data_view bytes = in.get_view();
        if (node == model_.graph.nodes.size())
          return make_error(ErrorCode::corrupt_file, "file: found more nodes than in the model");
        write_node(model_.graph.nodes[node++], bytes, out);
      } else {
        copy_field(in, out);
      }
    }
    return {};
  }

  // field: the tensor as the file has it; empty if it is external or sparse there.
  Result<> write_initializer(const onnx::TensorData& tensor, protozero::data_view field, Writer& out) {
    const auto form = forms_.find(tensor.name);
    result_.bytes_before += tensor.bytes.size();
    if (form == forms_.end()) {
      result_.bytes_after += tensor.bytes.size();
      if (field.empty())
        write_tensor(out, tensor.name, tensor.type, tensor.extents, tensor.bytes);
      else
        out.add_message(kInitializer, field);
      return {};
    }
    std::vector<float> x(tensor.bytes.size() / sizeof(float));
    std::memcpy(x.data(), tensor.bytes.data(), tensor.bytes.size());
    if (const auto odd = std::ranges::find_if(x, [](float value) { return !std::isfinite(value); });
        odd != x.end())
      return make_error(ErrorCode::corrupt_file,
                        imprint::text("initializer ", quote(tensor.name), ": element ", odd - x.begin(),
                                      ": found ", *odd, ", expected finite numbers. Train the model again."));
    const std::string whole = new_name(tensor.name + "_quantised"), scale = new_name(tensor.name + "_scale");
    const bool blocks = form->second.bits == 4;
    const Numbers numbers = blocks ? quantise_blocks(x, tensor.extents[0], tensor.extents[1], options_.block)
                                   : quantise_channels(x, tensor.extents, form->second.axis);
    const auto bytes = std::as_bytes(std::span(numbers.bytes)),
               scales = std::as_bytes(std::span(numbers.scales));
    const auto scale_count = static_cast<std::int64_t>(numbers.scales.size());
    if (blocks) {
      makes_blocks_ = true;
      const std::int64_t of_column = (tensor.extents[0] + options_.block - 1) / options_.block;
      const std::int64_t extents[] = {tensor.extents[1], of_column, options_.block / 2};
      write_tensor(out, whole, onnx::ElementType::uint8, extents, bytes);
      write_tensor(out, scale, onnx::ElementType::float32, {&scale_count, 1}, scales);
      packed_.emplace(tensor.name, Packed{whole, scale, tensor.extents[0], tensor.extents[1]});
    } else {
      write_tensor(out, whole, onnx::ElementType::int8, tensor.extents, bytes);
      write_dequantised(tensor, whole, scale, form->second.axis, scales, out);
    }
    Shape shape;
    for (const std::int64_t extent : tensor.extents) shape.append(extent);
    result_.bytes_after += bytes.size() + scales.size();
    result_.weights.push_back(
        {tensor.name, form->second.bits, shape,
         numbers.squared_sum > 0 ? std::sqrt(numbers.squared_error / numbers.squared_sum) : 0});
    return {};
  }

  // Nodes that make the weight under its old name. They stand before the others, in their order of use.
  void write_dequantised(const onnx::TensorData& tensor, const std::string& whole, const std::string& scale,
                         int axis, std::span<const std::byte> scales, Writer& out) {
    std::vector<std::int64_t> extents(tensor.extents.size(), 1);
    extents[at(axis)] = tensor.extents[at(axis)];
    constexpr std::int64_t kScalesPerAxis = 13;  // the opset from which DequantizeLinear has an axis
    if (model_.opset() >= kScalesPerAxis) {
      write_tensor(out, scale, onnx::ElementType::float32, {&extents[at(axis)], 1}, scales);
      std::string node = node_text("DequantizeLinear", {whole, scale}, tensor.name);
      Writer writer(node);
      write_int(writer, "axis", axis);
      return out.add_message(kNode, node);
    }
    write_tensor(out, scale, onnx::ElementType::float32, extents, scales);
    const std::string numbers = new_name(tensor.name + "_numbers");
    std::string cast = node_text("Cast", {whole}, numbers);
    Writer writer(cast);
    write_int(writer, "to", static_cast<std::int64_t>(onnx::ElementType::float32));
    out.add_message(kNode, cast);
    out.add_message(kNode, node_text("Mul", {numbers, scale}, tensor.name));
  }

  void write_node(const onnx::Node& node, protozero::data_view bytes, Writer& out) {
    const auto packed = node.inputs.size() == 2 ? packed_.find(node.inputs[1]) : packed_.end();
    if (packed == packed_.end() && multiplies_bytes(node)) return write_product(node, bytes, out);
    if (packed == packed_.end()) return out.add_message(kNode, bytes);
    const Packed& weight = packed->second;
    std::string text =
        node_text("MatMulNBits", {node.inputs[0], weight.numbers, weight.scales}, node.outputs[0]);
    Writer writer(text);
    if (!node.name.empty()) writer.add_string(kNodeName, node.name);
    writer.add_string(kDomain, kMicrosoft);
    write_int(writer, "K", weight.depth);
    write_int(writer, "N", weight.columns);
    write_int(writer, "bits", 4);
    write_int(writer, "block_size", options_.block);
    out.add_message(kNode, text);
  }

  // A product that reads the rounded form of its first operand, if it has one.
  void write_product(const onnx::Node& node, protozero::data_view bytes, Writer& out) {
    const auto range = options_.activations.find(node.inputs[0]);
    if (range == options_.activations.end()) return out.add_message(kNode, bytes);
    auto rounded = rounded_.find(node.inputs[0]);
    if (rounded == rounded_.end())
      rounded = rounded_.emplace(node.inputs[0], write_rounded(node.inputs[0], range->second, out)).first;
    std::string text;
    Writer writer(text);
    bool is_first = true;
    for (protozero::pbf_reader in(bytes); in.next();)
      if (in.tag() == kNodeInput && is_first) {
        is_first = false;
        in.skip();
        writer.add_string(kNodeInput, rounded->second);
      } else {
        copy_field(in, writer);
      }
    out.add_message(kNode, text);
  }

  // uint8: zero is one of the numbers.
  std::string write_rounded(const std::string& name, QuantiseOptions::Range range, Writer& out) {
    const float low = std::min(range.low, 0.0f), high = std::max(range.high, 0.0f);
    const float scale = high > low ? (high - low) / 255 : 1.0f;
    const auto zero = static_cast<std::uint8_t>(std::clamp(std::nearbyint(-low / scale), 0.0f, 255.0f));
    const std::string scale_name = new_name(name + "_scale"), zero_name = new_name(name + "_zero"),
                      whole = new_name(name + "_quantised"), rounded = new_name(name + "_rounded");
    write_tensor(out, scale_name, onnx::ElementType::float32, {}, std::as_bytes(std::span(&scale, 1)));
    write_tensor(out, zero_name, onnx::ElementType::uint8, {}, std::as_bytes(std::span(&zero, 1)));
    out.add_message(kNode, node_text("QuantizeLinear", {name, scale_name, zero_name}, whole));
    out.add_message(kNode, node_text("DequantizeLinear", {whole, scale_name, zero_name}, rounded));
    ++result_.activations;
    return rounded;
  }

  struct Packed {
    std::string numbers, scales;
    std::int64_t depth, columns;
  };

  const onnx::Model& model_;
  const QuantiseOptions& options_;
  std::unordered_map<std::string, std::vector<Use>> uses_;
  std::set<std::string> names_, outputs_, in_bodies_, initializers_;
  std::unordered_map<std::string, std::string> rounded_;  // activations
  std::unordered_map<std::string, Form> forms_;
  std::unordered_map<std::string, Packed> packed_;
  bool makes_blocks_ = false;
  QuantisedModel result_;
};

}  // namespace

std::vector<std::string> quantised_activations(const onnx::Model& model, const QuantiseOptions& options) {
  return Quantiser(model, options).activations();
}

Result<QuantisedModel> quantise_onnx(std::span<const std::byte> file, const onnx::Model& model,
                                     const QuantiseOptions& options) {
  if (options.bits != 8 && options.bits != 4)
    return make_error(ErrorCode::invalid_argument, text("bits: found ", options.bits, ", expected 8 or 4"));
  if (options.block < 16 || options.block > 256 ||
      !std::has_single_bit(static_cast<std::uint64_t>(options.block)))
    return make_error(ErrorCode::invalid_argument,
                      text("block: found ", options.block, ", expected a power of two from 16 to 256"));
  constexpr std::int64_t kRounds = 10;  // the opset of QuantizeLinear
  if (!options.activations.empty() && model.opset() < kRounds)
    return make_error(ErrorCode::unsupported, text("activations: found opset ", model.opset(),
                                                   ", expected 10 or later. Convert the model first."));
  for (const auto& [name, range] : options.activations)
    if (!(range.low <= range.high) || !std::isfinite(range.high - range.low))
      return make_error(ErrorCode::invalid_argument,
                        text("activation '", name, "': found a range from ", range.low, " to ", range.high,
                             ", expected finite numbers in order"));
  std::set<std::string_view> names;
  for (const onnx::TensorData& tensor : model.graph.initializers)
    if (!names.insert(tensor.name).second)
      return make_error(ErrorCode::corrupt_file, text("file: found two initializers ", quote(tensor.name),
                                                      ", expected each name once. Rename one"));
  try {
    return Quantiser(model, options).run(file);
  } catch (const protozero::exception& damage) {
    return make_error(ErrorCode::corrupt_file, text("file: ", damage.what()));
  }
}

}  // namespace imprint
