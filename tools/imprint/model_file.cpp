#include "tools/imprint/model_file.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <string_view>

#include "compute/base/json.h"
#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/files/file.h"
#include "compute/model/onnx/import.h"
#include "compute/model/onnx/value.h"

namespace imprint::tools {
namespace {

constexpr std::uint64_t kMostModelBytes = 4 << 20;
constexpr std::size_t kMostModels = 256;  // in one list
constexpr std::size_t kMostItems = 4096;  // in a list of one model

// Members of one object. Errors name the file and the field.
class Fields {
 public:
  Fields(const std::string& file, std::string place, const nlohmann::json& object)
      : file_(file), place_(std::move(place)), object_(object) {}

  Result<> only(std::initializer_list<std::string_view> known, const char* kind) const {
    if (!object_.is_object()) return wrong("", text("an object with the fields of ", kind));
    for (const auto& [key, value] : object_.items())
      if (std::ranges::find(known, key) == known.end())
        return refuse(text(place_, kind, " has no field ", quote(key)));
    return {};
  }
  bool has(const char* key) const { return object_.contains(key); }
  Result<std::string> string(const char* key) const {
    if (has(key) && object_[key].is_string()) return object_[key].get<std::string>();
    return wrong(key, "a text");
  }
  Result<std::int64_t> number(const char* key) const {
    const bool fits = has(key) && object_[key].is_number_unsigned() && object_[key] <= INT32_MAX;
    if (fits) return object_[key].get<std::int64_t>();
    return wrong(key, text("a whole number up to ", INT32_MAX));
  }
  // each(Fields of the object) for every object of a list.
  template <class Each>
  Result<> list(const char* key, const Each& each) const {
    if (!has(key)) return {};
    if (!object_[key].is_array()) return wrong(key, "a list of objects");
    if (object_[key].size() > kMostItems)
      return refuse(
          text(place_, key, ": found ", object_[key].size(), " objects, expected at most ", kMostItems));
    std::size_t i = 0;
    for (const nlohmann::json& one : object_[key])
      IMPRINT_CHECK(each(Fields(file_, text(place_, key, "[", i++, "]."), one)));
    return {};
  }
  Result<Shape> shape(const char* key) const {
    constexpr const char* kExpected = "1 to 8 extents, whose product is below 2^31";
    if (!has(key) || !object_[key].is_array() || object_[key].empty() ||
        object_[key].size() > Shape::kMaxRank)
      return wrong(key, kExpected);
    Shape shape;
    std::int64_t elements = 1;
    for (const nlohmann::json& one : object_[key]) {
      if (!one.is_number_unsigned() || one == 0 || one > INT32_MAX) return wrong(key, kExpected);
      shape.append(one.get<std::int64_t>());
      if ((elements *= shape[shape.rank() - 1]) > INT32_MAX) return wrong(key, kExpected);
    }
    return shape;
  }
  Error refuse(const std::string& found) const {
    return make_error(ErrorCode::corrupt_file, text("'", file_, "': ", found));
  }

 private:
  Error wrong(const std::string& key, const std::string& expected) const {
    const std::string found = key.empty()        ? clipped(object_.dump())
                              : has(key.c_str()) ? clipped(object_[key].dump())
                                                 : "nothing";
    return refuse(text(place_, key, key.empty() ? "" : ": ", "found ", found, ", expected ", expected));
  }

  const std::string& file_;
  std::string place_;
  const nlohmann::json& object_;
};

// Types of a model's inputs and outputs by name, which are read once per file.
using Types = std::map<std::string, DType>;
class ModelTypes {
 public:
  explicit ModelTypes(const LoadModel& load) : load_(load) {}

  Result<const Types*> of(const std::string& path) {
    const auto [entry, is_new] = known_.try_emplace(path);
    if (!is_new) return &entry->second;
    IMPRINT_ASSIGN(const onnx::Model model, load_(path));
    const auto add = [&](const onnx::ValueInfo& value) {
      entry->second.emplace(value.name, is_float(value.type) ? DType::float32 : DType::int32);
    };
    std::ranges::for_each(model_inputs(model), add);
    std::ranges::for_each(model.graph.outputs, add);
    return &entry->second;
  }

 private:
  const LoadModel& load_;
  std::map<std::string, Types> known_;
};

// A tensor as tensor_create_vk makes it, of the type that the model has there.
Result<agent::SharedTensor> tensor_of(const Fields& fields, const Types& types, const std::string& name) {
  const auto type = types.find(name);
  agent::SharedTensor tensor;
  tensor.name = name;
  tensor.dtype = type == types.end() ? DType::float32 : type->second;
  IMPRINT_ASSIGN(tensor.shape, fields.shape("shape"));
  IMPRINT_ASSIGN(tensor.parts, agent::split(name, tensor.shape, tensor.dtype, UINT64_MAX, 1));
  return tensor;
}

Result<agent::ModelSpec> parse_model(const std::string& file, const nlohmann::json& json, ModelTypes& known) {
  const Fields fields(file, "", json);
  IMPRINT_CHECK(fields.only({"path", "name", "extents", "bounds", "states", "bindings", "run_capacity"},
                            "imp_model_desc"));
  agent::ModelSpec spec;
  IMPRINT_ASSIGN(const std::string path, fields.string("path"));
  spec.path = (std::filesystem::path(file).parent_path() / path).string();
  if (fields.has("name")) {
    IMPRINT_ASSIGN(spec.name, fields.string("name"));
  }
  if (fields.has("run_capacity")) {
    IMPRINT_ASSIGN(const std::int64_t runs, fields.number("run_capacity"));
    spec.run_capacity = static_cast<std::uint32_t>(runs);
  }
  const auto add_extent = [&spec](const Fields& extent) -> Result<> {
    IMPRINT_CHECK(extent.only({"name", "value"}, "imp_model_extent"));
    agent::ModelExtent& made = spec.extents.emplace_back();
    IMPRINT_ASSIGN(made.name, extent.string("name"));
    IMPRINT_ASSIGN(made.value, extent.number("value"));
    return {};
  };
  IMPRINT_CHECK(fields.list("extents", add_extent));
  const auto add_bound = [&spec](const Fields& bound) -> Result<> {
    IMPRINT_CHECK(bound.only({"name", "value"}, "imp_model_extent"));
    DimensionBound made;
    IMPRINT_ASSIGN(made.name, bound.string("name"));
    IMPRINT_ASSIGN(made.most, bound.number("value"));
    if (made.most == 0 && made.name.find('=') != std::string::npos) {
      IMPRINT_ASSIGN(made, parse_bound(made.name));
    }
    spec.bounds.push_back(std::move(made));
    return {};
  };
  IMPRINT_CHECK(fields.list("bounds", add_bound));
  const auto add_state = [&spec](const Fields& state) -> Result<> {
    IMPRINT_CHECK(state.only({"input", "output"}, "imp_model_state"));
    agent::ModelState& made = spec.states.emplace_back();
    IMPRINT_ASSIGN(made.input, state.string("input"));
    IMPRINT_ASSIGN(made.output, state.string("output"));
    return {};
  };
  IMPRINT_CHECK(fields.list("states", add_state));
  if (!fields.has("bindings")) return spec;
  IMPRINT_ASSIGN(const Types* const types, known.of(spec.path));
  const auto add_binding = [&](const Fields& binding) -> Result<> {
    IMPRINT_CHECK(binding.only({"name", "shape"}, "a binding"));
    agent::ModelBinding& made = spec.bindings.emplace_back();
    IMPRINT_ASSIGN(made.name, binding.string("name"));
    IMPRINT_ASSIGN(made.tensor, tensor_of(binding, *types, made.name));
    return {};
  };
  IMPRINT_CHECK(fields.list("bindings", add_binding));
  return spec;
}

}  // namespace

Result<std::vector<agent::ModelSpec>> load_models(const std::string& file, const LoadModel& load) {
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes, read_file(file, kMostModelBytes));
  const auto parsed = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!parsed) return make_error(parsed.error().code, text("'", file, "': ", parsed.error().message));
  const nlohmann::json& json = *parsed;
  std::vector<agent::ModelSpec> models;
  ModelTypes known(load);
  const auto add = [&](const nlohmann::json& one) -> Result<> {
    IMPRINT_ASSIGN(agent::ModelSpec spec, parse_model(file, one, known));
    models.push_back(std::move(spec));
    return {};
  };
  if (!json.is_array()) {
    IMPRINT_CHECK(add(json));
    return models;
  }
  if (json.empty()) return make_error(ErrorCode::corrupt_file, text("'", file, "': the list has no model"));
  if (json.size() > kMostModels)
    return make_error(ErrorCode::corrupt_file, text("'", file, "': found a list of ", json.size(),
                                                    " models, expected at most ", kMostModels));
  for (const nlohmann::json& one : json) IMPRINT_CHECK(add(one));
  return models;
}

}  // namespace imprint::tools
