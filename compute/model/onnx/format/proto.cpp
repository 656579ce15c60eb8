#include "compute/model/onnx/format/proto.h"

#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <new>

#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/onnx/format/reader.h"
#include "compute/model/onnx/format/tensor_data.h"

namespace imprint::onnx {

namespace {

std::string normal_domain(std::string domain) { return domain == "ai.onnx" ? std::string() : domain; }

class Parser {
 public:
  // file: null, or the bytes that are read, which large tensors then share.
  explicit Parser(std::size_t file_bytes, std::shared_ptr<std::vector<std::byte>> file = nullptr)
      : bytes_left_(kModelBytesPerByte * file_bytes + kModelBytes), file_(std::move(file)) {}

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
          model.producer = words(message, "producer_name");
          break;
        case 3:
          producer_version = words(message, "producer_version");
          break;
        case 7:
          if (has_graph) damaged("a second graph");
          graph(submessage(message, "graph"), model.graph, 0);
          has_graph = true;
          break;
        case 8:
          opset(submessage(message, "opset_import"), model);
          break;
        case 14: {
          auto [key, value] = string_pair(submessage(message, "metadata_props"));
          charge(kMapEntryBytes);
          model.metadata[key] = value;
          break;
        }
        case 25:
          model.functions.push_back(function(submessage(message, "function")));
          break;
        default:
          message.skip();
      }
    }
    if (!has_graph) damaged("not an ONNX file, or truncated: it has no graph");
    if (model.opsets.empty()) damaged("no operator set is declared: truncated?");
    if (!producer_version.empty()) model.producer += " " + producer_version;
    return model;
  }

 private:
  static constexpr std::size_t kAllocation = 16;  // the allocator's own part
  static constexpr std::size_t kMapEntryBytes = 2 * sizeof(std::string) + 4 * sizeof(void*) + kAllocation;

  // A message of two bytes becomes a struct of two hundred: the count bounds what a hostile file can make us
  // allocate.
  void charge(std::size_t bytes) {
    if (bytes > bytes_left_)
      throw Refused{ErrorCode::unsupported,
                    imprint::text("more than ", kModelBytesPerByte, " bytes of memory per byte of the file")};
    bytes_left_ -= bytes;
  }
  void count() {
    if (++parts_ > kMaxParts)
      throw Refused{ErrorCode::unsupported,
                    imprint::text("more than ", kMaxParts, " nodes, attributes, tensors and names")};
  }

  template <class T>
  void room(std::vector<T>& out, std::size_t count) {
    if (count == 0) return;
    charge(count * sizeof(T) + kAllocation);
    out.reserve(out.size() + count);
  }

  std::string name(pbf_reader& message, const char* field) {
    std::string out = words(message, field);
    if (out.size() >= sizeof(std::string) / 2) charge(out.size() + 1 + kAllocation);
    return out;
  }

  // Repeated numbers, packed or one by one. Growing lists take up to three times their size.
  template <class T>
  void append_integers(pbf_reader& message, std::vector<T>& out, const char* field) {
    if (message.has_wire_type(pbf_wire_type::varint)) {
      charge(2 * sizeof(T));
      out.push_back(static_cast<T>(message.get_int64()));
      return;
    }
    expect(message, pbf_wire_type::length_delimited, field);
    const auto values = message.get_packed_int64();
    const auto length = static_cast<std::size_t>(values.size());
    charge(2 * sizeof(T) * length);
    grow(out, length);
    for (const std::int64_t value : values) out.push_back(static_cast<T>(value));
  }
  template <class T, class Get, class GetPacked>
  void append_reals(pbf_reader& message, std::vector<T>& out, const char* field, pbf_wire_type single,
                    Get get, GetPacked get_packed) {
    if (message.has_wire_type(single)) {
      charge(2 * sizeof(T));
      out.push_back(get());
      return;
    }
    expect(message, pbf_wire_type::length_delimited, field);
    const auto values = get_packed();
    const auto length = static_cast<std::size_t>(values.size());
    charge(2 * sizeof(T) * length);
    grow(out, length);
    for (const T value : values) out.push_back(value);
  }
  void append_floats(pbf_reader& message, std::vector<float>& out, const char* field) {
    append_reals(
        message, out, field, pbf_wire_type::fixed32, [&] { return message.get_float(); },
        [&] { return message.get_packed_float(); });
  }
  void append_doubles(pbf_reader& message, std::vector<double>& out, const char* field) {
    append_reals(
        message, out, field, pbf_wire_type::fixed64, [&] { return message.get_double(); },
        [&] { return message.get_packed_double(); });
  }

  std::pair<std::string, std::string> string_pair(pbf_reader message) {
    count();
    std::pair<std::string, std::string> pair;
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          pair.first = name(message, "key");
          break;
        case 2:
          pair.second = name(message, "value");
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
          domain = name(message, "domain");
          break;
        case 2:
          version = integer(message, "version");
          break;
        default:
          message.skip();
      }
    }
    charge(kMapEntryBytes);
    model.opsets[normal_domain(domain)] = version;
  }

  Function function(pbf_reader message) {
    count();
    charge(3 * sizeof(Function));  // the list grows
    Function out;
    Model opsets;
    const FieldCounts counts = count_fields(message);
    room(out.graph.inputs, counts[4]);
    room(out.graph.outputs, counts[5]);
    room(out.graph.nodes, counts[7]);
    room(out.defaults, counts[11]);
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          out.name = name(message, "function name");
          break;
        case 4:
          count(), out.graph.inputs.emplace_back().name = name(message, "function input");
          break;
        case 5:
          count(), out.graph.outputs.emplace_back().name = name(message, "function output");
          break;
        case 7:
          out.graph.nodes.push_back(node(submessage(message, "node"), 0));
          break;
        case 9:
          opset(submessage(message, "opset_import"), opsets);
          break;
        case 10:
          out.domain = normal_domain(name(message, "function domain"));
          break;
        case 11:
          out.defaults.push_back(attribute(submessage(message, "attribute"), 0));
          break;
        default:
          message.skip();
      }
    }
    out.opset = opsets.opset();
    return out;
  }

  void graph(pbf_reader message, Graph& graph, int depth) {
    count();
    if (depth > kMaxDepth)
      throw Refused{ErrorCode::unsupported,
                    imprint::text("found subgraphs nested deeper than ", kMaxDepth, " levels")};
    const FieldCounts counts = count_fields(message);
    room(graph.nodes, counts[1]);
    room(graph.initializers, counts[5] + counts[15]);
    room(graph.inputs, counts[11]);
    room(graph.outputs, counts[12]);
    room(graph.values, counts[13]);
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          graph.nodes.push_back(node(submessage(message, "node"), depth));
          break;
        case 2:
          graph.name = name(message, "graph name");
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
          graph.initializers.push_back(sparse_tensor(submessage(message, "sparse_initializer")));
          break;
        default:
          message.skip();
      }
    }
  }

  Node node(pbf_reader message, int depth) {
    count();
    Node node;
    const FieldCounts counts = count_fields(message);
    room(node.inputs, counts[1]);
    room(node.outputs, counts[2]);
    room(node.attributes, counts[5]);
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          name_list(message, node.inputs, "node input");
          break;
        case 2:
          name_list(message, node.outputs, "node output");
          break;
        case 3:
          node.name = name(message, "node name");
          break;
        case 4:
          node.op_type = name(message, "op_type");
          break;
        case 5:
          node.attributes.push_back(attribute(submessage(message, "attribute"), depth));
          break;
        case 7:
          node.domain = normal_domain(name(message, "domain"));
          break;
        default:
          message.skip();
      }
    }
    if (node.op_type.empty()) damaged(imprint::text("node ", quote(node.name), " has no op_type"));
    return node;
  }

  void name_list(pbf_reader& message, std::vector<std::string>& out, const char* field) {
    count();
    out.push_back(name(message, field));
  }

  Attribute attribute(pbf_reader message, int depth) {
    count();
    Attribute out;
    AttributeKind seen = AttributeKind::undefined;
    const FieldCounts counts = count_fields(message);
    room(out.strings, counts[9]);
    room(out.tensors, counts[10]);
    room(out.graphs, counts[11]);
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          out.name = name(message, "attribute name");
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
          out.strings.assign(1, name(message, "s"));
          seen = AttributeKind::string_value;
          break;
        case 5:
          charge(sizeof(TensorData));
          out.tensors.assign(1, tensor(submessage(message, "t")));
          seen = AttributeKind::tensor;
          break;
        case 6:
          charge(sizeof(Graph));
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
        case 21:
          out.reference = name(message, "ref_attr_name");
          break;
        default:
          message.skip();
      }
    }
    // Older files have no type field; the field that is present tells the type.
    if (out.kind == AttributeKind::undefined) out.kind = seen;
    if (!out.reference.empty()) return out;
    // A proto3 writer leaves out a value that is zero or empty.
    if (out.kind == AttributeKind::float_value && out.floats.empty()) out.floats.push_back(0);
    if (out.kind == AttributeKind::int_value && out.ints.empty()) out.ints.push_back(0);
    if (out.kind == AttributeKind::string_value && out.strings.empty()) out.strings.emplace_back();
    const bool hollow = (out.kind == AttributeKind::tensor && out.tensors.empty()) ||
                        (out.kind == AttributeKind::graph && out.graphs.empty());
    if (hollow) damaged(imprint::text("attribute ", quote(out.name), " has a type but no value"));
    return out;
  }

  ValueInfo value_info(pbf_reader message) {
    count();
    ValueInfo info;
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          info.name = name(message, "value name");
          break;
        case 2:
          value_type(submessage(message, "type"), info, 0);
          break;
        default:
          message.skip();
      }
    }
    return info;
  }

  // A tensor, a sequence of tensors, or an optional of either. Other types stay unknown.
  void value_type(pbf_reader type, ValueInfo& info, int depth) {
    while (type.next()) {
      const bool list = type.tag() == 4 || type.tag() == 9;
      if (type.tag() == 1) {
        info.is_tensor = depth == 0;
        tensor_type(submessage(type, "tensor_type"), info);
      } else if (list && depth < 2) {
        count();
        (type.tag() == 4 ? info.sequence : info.optional) = true;
        pbf_reader inner = submessage(type, "type of elements");
        while (inner.next()) {
          if (inner.tag() == 1)
            value_type(submessage(inner, "type of elements"), info, depth + 1);
          else
            inner.skip();
        }
      } else {
        type.skip();
      }
    }
  }

  void tensor_type(pbf_reader message, ValueInfo& info) {
    count();
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          info.type = static_cast<ElementType>(static_cast<std::int32_t>(integer(message, "elem_type")));
          break;
        case 2: {
          pbf_reader shape = submessage(message, "shape");
          info.shape.emplace();
          room(*info.shape, count_fields(shape)[1]);
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
          out.symbol = name(message, "dim_param");
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
          name_list(message, out.strings, "string_data");
          charge(2 * sizeof(std::string));  // the list grows
          break;
        case 7:
          append_integers(message, fields.ints64, "int64_data");
          break;
        case 8:
          out.name = name(message, "tensor name");
          break;
        case 9: {
          expect(message, pbf_wire_type::length_delimited, "raw_data");
          const protozero::data_view view = message.get_view();
          fields.raw = raw_bytes(view.data(), view.size());
          break;
        }
        case 10:
          append_doubles(message, fields.doubles, "double_data");
          break;
        case 11:
          append_integers(message, fields.uints64, "uint64_data");
          break;
        case 13:
          check(set_external(string_pair(submessage(message, "external_data")), out));
          break;
        case 14:
          external = integer(message, "data_location") == 1;
          break;
        default:
          message.skip();
      }
    }
    if (external && !out.external)
      damaged(imprint::text("tensor ", quote(out.name), " is external and does not say where"));
    if (!external) out.external.reset();
    if (!fields.raw) charge(fields.bytes(out.type));
    check(fill_bytes(out, std::move(fields)));
    return out;
  }

  static void check(const Result<>& status) {
    if (!status) throw Refused{status.error().code, status.error().message};
  }

  TensorData sparse_tensor(pbf_reader message) {
    count();
    TensorData out, indices;
    std::vector<std::int64_t> extents;
    while (message.next()) {
      if (message.tag() == 1)
        out = tensor(submessage(message, "values"));
      else if (message.tag() == 2)
        indices = tensor(submessage(message, "indices"));
      else if (message.tag() == 3)
        append_integers(message, extents, "dims");
      else
        message.skip();
    }
    check(make_dense(out, indices, std::move(extents), bytes_left_));
    charge(out.bytes.size());
    return out;
  }

  // A large tensor moves down by up to three bytes, over its own length, which has been read: float32 values
  // are read in place at multiples of four.
  SharedBytes raw_bytes(const char* data, std::size_t size) {
    constexpr std::size_t kShared = 16'384;  // whose length takes three bytes, after one of the tag
    if (!file_ || size < kShared) {
      charge(size);
      const auto* begin = reinterpret_cast<const std::byte*>(data);
      return SharedBytes(std::vector<std::byte>(begin, begin + size));
    }
    const auto from = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(data) - file_->data());
    const std::size_t to = from / 4 * 4;
    if (to != from) std::memmove(file_->data() + to, file_->data() + from, size);
    return {std::span<const std::byte>(*file_).subspan(to, size), file_};
  }

  std::size_t bytes_left_;
  std::size_t parts_ = 0;
  std::shared_ptr<std::vector<std::byte>> file_;
};

Result<Model> parse(std::span<const std::byte> bytes, std::shared_ptr<std::vector<std::byte>> file) {
  const auto damaged_error = [](const std::string& reason) {
    return make_error(ErrorCode::corrupt_file, "onnx: " + reason);
  };
  if (bytes.empty()) return damaged_error("the file is empty");
  try {
    return Parser(bytes.size(), std::move(file))
        .model(pbf_reader(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  } catch (const Refused& refused) {
    return make_error(refused.code, "onnx: " + refused.reason);
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::out_of_host_memory, "onnx: out of memory");
  } catch (const protozero::end_of_buffer_exception&) {
    return damaged_error("not an ONNX file, or truncated: it ends inside a field");
  } catch (const std::exception&) {
    return damaged_error("not an ONNX file, or damaged: found bytes that are no protobuf message");
  }
}

}  // namespace

Result<Model> parse(std::span<const std::byte> bytes) { return parse(bytes, nullptr); }

Result<Model> parse_in_place(std::vector<std::byte> bytes) {
  auto file = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  const std::span<const std::byte> all = *file;
  return parse(all, std::move(file));
}

}  // namespace imprint::onnx
