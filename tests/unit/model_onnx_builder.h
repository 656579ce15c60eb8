#pragma once
// Small ONNX files, written field by field, for tests that need a particular file.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

namespace imprint::test {

using Extents = std::vector<std::int64_t>;

// TensorProto.DataType
inline constexpr int kFloat = 1, kUint8 = 2, kInt8 = 3, kInt32 = 6, kInt64 = 7, kBool = 9, kFloat16 = 10;

class OnnxBuilder {
 public:
  explicit OnnxBuilder(std::int64_t opset = 17, std::int64_t ir_version = 8)
      : opset_(opset), ir_version_(ir_version) {}

  // dims: a number, or a symbol of a free dimension.
  OnnxBuilder& input(const std::string& name, const std::vector<std::string>& dims, int type = 1) {
    return value(11, name, dims, type);
  }
  OnnxBuilder& output(const std::string& name, const std::vector<std::string>& dims = {}, int type = 1) {
    return value(12, name, dims, type);
  }

  OnnxBuilder& floats(const std::string& name, const Extents& extents, const std::vector<float>& values) {
    return graph_field(5, [&](protozero::pbf_writer& tensor) {
      tensor.add_packed_int64(1, extents.begin(), extents.end());
      tensor.add_int32(2, 1);
      tensor.add_packed_float(4, values.begin(), values.end());
      tensor.add_string(8, name);
    });
  }
  OnnxBuilder& longs(const std::string& name, const Extents& extents, const Extents& values) {
    return graph_field(5, [&](protozero::pbf_writer& tensor) {
      for (const std::int64_t extent : extents)
        tensor.add_int64(1, extent);  // not packed, as proto2 writers do
      tensor.add_int32(2, 7);
      tensor.add_string(9, reinterpret_cast<const char*>(values.data()), values.size() * 8);
      tensor.add_string(8, name);
    });
  }

  struct Attribute {
    std::string name;
    std::function<void(protozero::pbf_writer&)> write;
  };
  static Attribute number(const std::string& name, std::int64_t value) {
    return {name, [value](protozero::pbf_writer& out) {
              out.add_int64(3, value);
              out.add_int32(20, 2);
            }};
  }
  static Attribute real(const std::string& name, float value) {
    return {name, [value](protozero::pbf_writer& out) {
              out.add_float(2, value);
              out.add_int32(20, 1);
            }};
  }
  static Attribute text(const std::string& name, const std::string& value) {
    return {name, [value](protozero::pbf_writer& out) {
              out.add_string(4, value);
              out.add_int32(20, 3);
            }};
  }
  static Attribute numbers(const std::string& name, const std::vector<float>& values) {
    return {name, [values](protozero::pbf_writer& out) {
              for (const float value : values) out.add_float(7, value);
              out.add_int32(20, 6);
            }};
  }
  static Attribute words(const std::string& name, const std::vector<std::string>& values) {
    return {name, [values](protozero::pbf_writer& out) {
              for (const std::string& value : values) out.add_string(9, value);
              out.add_int32(20, 8);
            }};
  }
  // The graph of another builder.
  static Attribute body(const std::string& name, const OnnxBuilder& from) {
    return {name, [graph = from.graph_](protozero::pbf_writer& out) {
              out.add_message(6, graph);
              out.add_int32(20, 5);
            }};
  }
  // The value of the function's attribute `of`.
  static Attribute reference(const std::string& name, const std::string& of, int kind) {
    return {name, [of, kind](protozero::pbf_writer& out) {
              out.add_int32(20, kind);
              out.add_string(21, of);
            }};
  }
  static Attribute list(const std::string& name, const Extents& values) {
    return {name, [values](protozero::pbf_writer& out) {
              for (const std::int64_t value : values) out.add_int64(8, value);
              out.add_int32(20, 7);
            }};
  }

  OnnxBuilder& node(const std::string& op, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs, const std::vector<Attribute>& attributes = {},
                    const std::string& name = "", const std::string& domain = "") {
    return graph_field(1, [&](protozero::pbf_writer& out) {
      for (const std::string& input_name : inputs) out.add_string(1, input_name);
      for (const std::string& output_name : outputs) out.add_string(2, output_name);
      if (!name.empty()) out.add_string(3, name);
      out.add_string(4, op);
      for (const Attribute& attribute : attributes) {
        protozero::pbf_writer part(out, 5);
        part.add_string(1, attribute.name);
        attribute.write(part);
      }
      if (!domain.empty()) out.add_string(7, domain);
    });
  }

  // A model-local function, whose nodes are those of another builder.
  OnnxBuilder& function(const std::string& domain, const std::string& name,
                        const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                        const OnnxBuilder& nodes, const std::vector<Attribute>& defaults = {}) {
    std::string bytes;
    protozero::pbf_writer out(bytes);
    out.add_string(1, name);
    for (const std::string& input_name : inputs) out.add_string(4, input_name);
    for (const std::string& output_name : outputs) out.add_string(5, output_name);
    protozero::pbf_reader graph(nodes.graph_);
    while (graph.next())
      if (graph.tag() == 1)
        out.add_message(7, graph.get_view());
      else
        graph.skip();
    out.add_string(10, domain);
    for (const Attribute& attribute : defaults) {
      protozero::pbf_writer part(out, 11);
      part.add_string(1, attribute.name);
      attribute.write(part);
    }
    functions_.push_back(bytes);
    return *this;
  }

  // Bytes of any element type.
  OnnxBuilder& raw(const std::string& name, const Extents& extents, int type, const std::string& values) {
    return graph_field(5, [&](protozero::pbf_writer& tensor) {
      tensor.add_packed_int64(1, extents.begin(), extents.end());
      tensor.add_int32(2, type);
      tensor.add_string(9, values);
      tensor.add_string(8, name);
    });
  }

  // A sparse initializer, float32. Places: row-major [n], or [n, rank] by `place_extents`.
  OnnxBuilder& sparse(const std::string& name, const Extents& extents, const std::vector<float>& values,
                      const Extents& place_extents, const Extents& places) {
    return graph_field(15, [&](protozero::pbf_writer& out) {
      {
        protozero::pbf_writer tensor(out, 1);
        tensor.add_int64(1, static_cast<std::int64_t>(values.size()));
        tensor.add_int32(2, kFloat);
        tensor.add_packed_float(4, values.begin(), values.end());
        tensor.add_string(8, name);
      }
      {
        protozero::pbf_writer tensor(out, 2);
        tensor.add_packed_int64(1, place_extents.begin(), place_extents.end());
        tensor.add_int32(2, kInt64);
        tensor.add_packed_int64(7, places.begin(), places.end());
      }
      out.add_packed_int64(3, extents.begin(), extents.end());
    });
  }

  OnnxBuilder& graph_field(std::uint32_t tag, const std::function<void(protozero::pbf_writer&)>& write) {
    std::string bytes;
    protozero::pbf_writer message(bytes);
    write(message);
    protozero::pbf_writer(graph_).add_message(tag, bytes);
    return *this;
  }

  std::vector<std::byte> bytes() const {
    std::string file;
    protozero::pbf_writer model(file);
    model.add_int64(1, ir_version_);
    model.add_message(7, graph_);
    std::string opset;
    protozero::pbf_writer(opset).add_int64(2, opset_);
    model.add_message(8, opset);
    for (const std::string& function : functions_) model.add_message(25, function);
    const auto* begin = reinterpret_cast<const std::byte*>(file.data());
    return {begin, begin + file.size()};
  }

 private:
  OnnxBuilder& value(std::uint32_t tag, const std::string& name, const std::vector<std::string>& dims,
                     int type) {
    return graph_field(tag, [&](protozero::pbf_writer& info) {
      info.add_string(1, name);
      protozero::pbf_writer outer(info, 2);
      protozero::pbf_writer tensor(outer, 1);
      tensor.add_int32(1, type);
      if (dims.empty()) return;
      protozero::pbf_writer shape(tensor, 2);
      for (const std::string& dim : dims) {
        protozero::pbf_writer part(shape, 1);
        if (dim[0] == '-' || (dim[0] >= '0' && dim[0] <= '9'))
          part.add_int64(1, std::stoll(dim));
        else
          part.add_string(2, dim);
      }
    });
  }

  std::int64_t opset_, ir_version_;
  std::string graph_;
  std::vector<std::string> functions_;
};

}  // namespace imprint::test
