#include "compute/model/onnx_proto.h"

#include <exception>
#include <limits>
#include <new>
#include <protozero/pbf_reader.hpp>

#include "compute/model/onnx_tensor_data.h"

namespace imprint::onnx {

namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

// Thrown and caught inside this file only, as protozero's own exceptions are.
struct Refused {
  ErrorCode code;
  std::string reason;
};

[[noreturn]] void damaged(const std::string& reason) { throw Refused{ErrorCode::corrupt_file, reason}; }

// A field of another wire type than its number promises would be read as garbage (and trips protozero's
// asserts in a debug build).
void expect(const pbf_reader& message, pbf_wire_type type, const char* field) {
  if (!message.has_wire_type(type)) damaged(std::string("field ") + field + " has the wrong wire type");
}

std::string text(pbf_reader& message, const char* field) {
  expect(message, pbf_wire_type::length_delimited, field);
  return message.get_string();
}
std::int64_t integer(pbf_reader& message, const char* field) {
  expect(message, pbf_wire_type::varint, field);
  return message.get_int64();
}
pbf_reader submessage(pbf_reader& message, const char* field) {
  expect(message, pbf_wire_type::length_delimited, field);
  return message.get_message();
}

// Repeated whole numbers, packed or one by one.
template <class T>
void append_integers(pbf_reader& message, std::vector<T>& out, const char* field) {
  if (message.has_wire_type(pbf_wire_type::varint)) {
    out.push_back(static_cast<T>(message.get_int64()));
    return;
  }
  expect(message, pbf_wire_type::length_delimited, field);
  for (const std::int64_t value : message.get_packed_int64()) out.push_back(static_cast<T>(value));
}

void append_floats(pbf_reader& message, std::vector<float>& out, const char* field) {
  if (message.has_wire_type(pbf_wire_type::fixed32)) {
    out.push_back(message.get_float());
    return;
  }
  expect(message, pbf_wire_type::length_delimited, field);
  for (const float value : message.get_packed_float()) out.push_back(value);
}

void append_doubles(pbf_reader& message, std::vector<double>& out, const char* field) {
  if (message.has_wire_type(pbf_wire_type::fixed64)) {
    out.push_back(message.get_double());
    return;
  }
  expect(message, pbf_wire_type::length_delimited, field);
  for (const double value : message.get_packed_double()) out.push_back(value);
}

std::string normal_domain(std::string domain) { return domain == "ai.onnx" ? std::string() : domain; }

class Parser {
 public:
  Model model(pbf_reader message) {
    Model model;
    bool has_graph = false;
    std::string producer_version;
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          model.ir_version = integer(message, "ir_version");
          break;
        case 2:
          model.producer = text(message, "producer_name");
          break;
        case 3:
          producer_version = text(message, "producer_version");
          break;
        case 7:
          graph(submessage(message, "graph"), model.graph, 0);
          has_graph = true;
          break;
        case 8:
          opset(submessage(message, "opset_import"), model);
          break;
        case 14: {
          auto [key, value] = string_pair(submessage(message, "metadata_props"));
          model.metadata[key] = value;
          break;
        }
        case 25:
          ++model.function_count;
          message.skip();
          break;
        default:
          message.skip();
      }
    }
    if (!has_graph) damaged("not an ONNX file, or truncated: there is no graph in it");
    if (model.opsets.empty()) damaged("no operator set is declared: truncated?");
    if (!producer_version.empty()) model.producer += " " + producer_version;
    return model;
  }

 private:
  // Every message costs a struct of ours many times its two bytes in the file: the count bounds what a
  // hostile file can make us allocate.
  void count() {
    if (++parts_ > kMaxParts)
      throw Refused{ErrorCode::unsupported,
                    "more than " + std::to_string(kMaxParts) + " nodes, attributes and tensors"};
  }

  std::pair<std::string, std::string> string_pair(pbf_reader message) {
    count();
    std::pair<std::string, std::string> pair;
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          pair.first = text(message, "key");
          break;
        case 2:
          pair.second = text(message, "value");
          break;
        default:
          message.skip();
      }
    }
    return pair;
  }

  void opset(pbf_reader message, Model& model) {
    count();
    std::string domain;
    std::int64_t version = 0;
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          domain = text(message, "domain");
          break;
        case 2:
          version = integer(message, "version");
          break;
        default:
          message.skip();
      }
    }
    model.opsets[normal_domain(domain)] = version;
  }

  void graph(pbf_reader message, Graph& graph, int depth) {
    count();
    if (depth > kMaxDepth)
      throw Refused{ErrorCode::unsupported, "subgraphs are nested deeper than " + std::to_string(kMaxDepth)};
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          graph.nodes.push_back(node(submessage(message, "node"), depth));
          break;
        case 2:
          graph.name = text(message, "graph name");
          break;
        case 5:
          graph.initializers.push_back(tensor(submessage(message, "initializer")));
          break;
        case 11:
          graph.inputs.push_back(value_info(submessage(message, "input")));
          break;
        case 12:
          graph.outputs.push_back(value_info(submessage(message, "output")));
          break;
        case 13:
          graph.values.push_back(value_info(submessage(message, "value_info")));
          break;
        case 15:
          ++graph.sparse_initializer_count;
          message.skip();
          break;
        default:
          message.skip();
      }
    }
  }

  Node node(pbf_reader message, int depth) {
    count();
    Node node;
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          name_list(message, node.inputs, "node input");
          break;
        case 2:
          name_list(message, node.outputs, "node output");
          break;
        case 3:
          node.name = text(message, "node name");
          break;
        case 4:
          node.op_type = text(message, "op_type");
          break;
        case 5:
          node.attributes.push_back(attribute(submessage(message, "attribute"), depth));
          break;
        case 7:
          node.domain = normal_domain(text(message, "domain"));
          break;
        default:
          message.skip();
      }
    }
    if (node.op_type.empty()) damaged("a node has no op_type");
    return node;
  }

  void name_list(pbf_reader& message, std::vector<std::string>& out, const char* field) {
    count();
    out.push_back(text(message, field));
  }

  Attribute attribute(pbf_reader message, int depth) {
    count();
    Attribute out;
    AttributeKind seen = AttributeKind::undefined;
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          out.name = text(message, "attribute name");
          break;
        case 2:
          expect(message, pbf_wire_type::fixed32, "f");
          out.floats.assign(1, message.get_float());
          seen = AttributeKind::float_value;
          break;
        case 3:
          out.ints.assign(1, integer(message, "i"));
          seen = AttributeKind::int_value;
          break;
        case 4:
          out.strings.assign(1, text(message, "s"));
          seen = AttributeKind::string_value;
          break;
        case 5:
          out.tensors.assign(1, tensor(submessage(message, "t")));
          seen = AttributeKind::tensor;
          break;
        case 6:
          out.graphs.assign(1, {});
          graph(submessage(message, "g"), out.graphs[0], depth + 1);
          seen = AttributeKind::graph;
          break;
        case 7:
          append_floats(message, out.floats, "floats");
          seen = AttributeKind::floats;
          break;
        case 8:
          append_integers(message, out.ints, "ints");
          seen = AttributeKind::ints;
          break;
        case 9:
          name_list(message, out.strings, "strings");
          seen = AttributeKind::strings;
          break;
        case 10:
          out.tensors.push_back(tensor(submessage(message, "tensors")));
          seen = AttributeKind::tensors;
          break;
        case 11:
          out.graphs.emplace_back();
          graph(submessage(message, "graphs"), out.graphs.back(), depth + 1);
          seen = AttributeKind::graphs;
          break;
        case 20:
          out.kind = static_cast<AttributeKind>(integer(message, "attribute type"));
          break;
        default:
          message.skip();
      }
    }
    // Files from before the type field say it by which field is there.
    if (out.kind == AttributeKind::undefined) out.kind = seen;
    // A proto3 writer leaves out a value that is zero or empty.
    if (out.kind == AttributeKind::float_value && out.floats.empty()) out.floats.push_back(0);
    if (out.kind == AttributeKind::int_value && out.ints.empty()) out.ints.push_back(0);
    if (out.kind == AttributeKind::string_value && out.strings.empty()) out.strings.emplace_back();
    const bool hollow = (out.kind == AttributeKind::tensor && out.tensors.empty()) ||
                        (out.kind == AttributeKind::graph && out.graphs.empty());
    if (hollow) damaged("attribute '" + out.name + "' has a type but no value");
    return out;
  }

  ValueInfo value_info(pbf_reader message) {
    count();
    ValueInfo info;
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          info.name = text(message, "value name");
          break;
        case 2: {
          pbf_reader type = submessage(message, "type");
          while (type.next()) {
            if (type.tag() == 1)
              tensor_type(submessage(type, "tensor_type"), info);
            else
              type.skip();
          }
          break;
        }
        default:
          message.skip();
      }
    }
    return info;
  }

  void tensor_type(pbf_reader message, ValueInfo& info) {
    count();
    info.is_tensor = true;
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          info.type = static_cast<ElementType>(static_cast<std::int32_t>(integer(message, "elem_type")));
          break;
        case 2: {
          pbf_reader shape = submessage(message, "shape");
          info.shape.emplace();
          while (shape.next()) {
            if (shape.tag() == 1)
              info.shape->push_back(dimension(submessage(shape, "dim")));
            else
              shape.skip();
          }
          break;
        }
        default:
          message.skip();
      }
    }
  }

  Dimension dimension(pbf_reader message) {
    count();
    Dimension out;
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          out.value = integer(message, "dim_value");
          // Some exporters write -1 for a free dimension.
          if (*out.value < 0) out.value.reset();
          break;
        case 2:
          out.symbol = text(message, "dim_param");
          break;
        default:
          message.skip();
      }
    }
    return out;
  }

  TensorData tensor(pbf_reader message) {
    count();
    TensorData out;
    TypedFields fields;
    bool external = false;
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          append_integers(message, out.extents, "dims");
          break;
        case 2:
          out.type = static_cast<ElementType>(static_cast<std::int32_t>(integer(message, "data_type")));
          break;
        case 4:
          append_floats(message, fields.floats, "float_data");
          break;
        case 5:
          append_integers(message, fields.ints32, "int32_data");
          break;
        case 6:
          ++fields.string_count;
          message.skip();
          break;
        case 7:
          append_integers(message, fields.ints64, "int64_data");
          break;
        case 8:
          out.name = text(message, "tensor name");
          break;
        case 9: {
          expect(message, pbf_wire_type::length_delimited, "raw_data");
          const protozero::data_view view = message.get_view();
          const auto* begin = reinterpret_cast<const std::byte*>(view.data());
          fields.raw.emplace(begin, begin + view.size());
          break;
        }
        case 10:
          append_doubles(message, fields.doubles, "double_data");
          break;
        case 11:
          append_integers(message, fields.uints64, "uint64_data");
          break;
        case 13:
          external_entry(string_pair(submessage(message, "external_data")), out);
          break;
        case 14:
          external = integer(message, "data_location") == 1;
          break;
        default:
          message.skip();
      }
    }
    if (external && !out.external) damaged("tensor '" + out.name + "' is external and says not where");
    if (!external) out.external.reset();
    if (auto status = fill_bytes(out, std::move(fields)); !status)
      throw Refused{status.error().code, status.error().message};
    return out;
  }

  void external_entry(const std::pair<std::string, std::string>& entry, TensorData& out) {
    if (!out.external) out.external.emplace();
    const auto number = [&]() -> std::uint64_t {
      std::uint64_t value = 0;
      for (const char digit : entry.second) {
        if (digit < '0' || digit > '9' || value > (std::numeric_limits<std::uint64_t>::max() - 9) / 10)
          damaged("tensor '" + out.name + "': external " + entry.first + " '" + entry.second +
                  "' is not a number of bytes");
        value = value * 10 + static_cast<std::uint64_t>(digit - '0');
      }
      return value;
    };
    if (entry.first == "location") out.external->location = entry.second;
    if (entry.first == "offset") out.external->offset = number();
    if (entry.first == "length") out.external->length = number();
  }

  std::size_t parts_ = 0;
};

}  // namespace

Result<Model> parse(std::span<const std::byte> bytes) {
  const auto damaged_error = [](const std::string& reason) {
    return make_error(ErrorCode::corrupt_file, "onnx: " + reason);
  };
  if (bytes.empty()) return damaged_error("the file is empty");
  try {
    return Parser().model(pbf_reader(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  } catch (const Refused& refused) {
    return make_error(refused.code, "onnx: " + refused.reason);
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::out_of_host_memory, "onnx: out of memory");
  } catch (const protozero::end_of_buffer_exception&) {
    return damaged_error("not an ONNX file, or truncated: it ends in the middle of a field");
  } catch (const std::exception&) {
    return damaged_error(
        "not an ONNX file, or damaged: its bytes are not a protobuf message, which every ONNX file is");
  }
}

}  // namespace imprint::onnx
