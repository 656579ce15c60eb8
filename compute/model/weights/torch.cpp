// PyTorch's files: a zip file with a pickle and one entry per storage, or before version 1.6 pickles with the
// storages behind them.

#include <algorithm>
#include <array>
#include <functional>

#include "compute/base/quote.h"
#include "compute/model/weights/pickle.h"

namespace imprint::weights {
namespace {

using safetensors::Type;

constexpr int kDeepest = 32;                 // containers inside of each other
constexpr std::uint64_t kTensorBytes = 320;  // of a map's entry with the names and parts of its tensor
// The whole number of 80 bits that legacy files begin with, as a pickle of protocol 2.
constexpr std::array<unsigned char, 14> kLegacy{0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c,
                                                0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};

struct StorageType {
  std::string_view name;
  Type type;
};
constexpr std::array kStorages{
    StorageType{"torch.FloatStorage", Type::float32},     StorageType{"torch.HalfStorage", Type::float16},
    StorageType{"torch.BFloat16Storage", Type::bfloat16}, StorageType{"torch.DoubleStorage", Type::float64},
    StorageType{"torch.LongStorage", Type::int64},        StorageType{"torch.IntStorage", Type::int32},
    StorageType{"torch.ShortStorage", Type::int16},       StorageType{"torch.CharStorage", Type::int8},
    StorageType{"torch.ByteStorage", Type::uint8},        StorageType{"torch.BoolStorage", Type::boolean}};

std::optional<Type> storage_type(const std::string& name) {
  const auto found = std::ranges::find(kStorages, name, &StorageType::name);
  return found == kStorages.end() ? std::nullopt : std::optional(found->type);
}

using FindStorage = std::function<std::optional<Bytes>(const std::string& key)>;

// A strided view as a place in its storage and a stride per axis: 0 for an axis that never takes a step.
std::vector<std::int64_t> checked_strides(const PickleValue& tensor, std::int64_t stored) {
  if (tensor.strides.size() != tensor.extents.size()) corrupt("a tensor whose strides do not fit its shape");
  // Sums begin inside of the storage, so that none can wrap.
  if (tensor.whole < 0 || tensor.whole > stored) corrupt("a tensor that begins outside of its storage");
  std::vector<std::int64_t> strides;
  std::int64_t last = tensor.whole;
  for (std::size_t i = 0; i < tensor.strides.size(); ++i) {
    const std::int64_t stride = tensor.strides[i], steps = tensor.extents[i] - 1;
    if (stride < 0) corrupt("a tensor with a negative stride");
    if (steps > 0 && stride > (stored - last) / steps) corrupt("a tensor that reaches beyond its storage");
    strides.push_back(steps > 0 ? stride : 0);
    last += strides.back() * std::max<std::int64_t>(steps, 0);
  }
  if (last >= stored) corrupt("a tensor that reaches beyond its storage");
  return strides;
}

// The elements of a strided view of a storage.
safetensors::Array array_of(const PickleValue& tensor, Type type, Bytes storage, Allowance& allowance) {
  safetensors::Array out;
  out.type = type;
  out.shape = known_shape(tensor.extents);
  const std::size_t size = type_size(type);
  const auto count = static_cast<std::size_t>(out.shape.element_count());
  if (count == 0) return out;
  const std::vector<std::int64_t> strides =
      checked_strides(tensor, static_cast<std::int64_t>(storage.size() / size));
  allowance.take(count * size);
  std::vector<std::byte> bytes(count * size);
  std::array<std::int64_t, Shape::kMaxRank> index{};
  std::int64_t from = tensor.whole;
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(bytes.data() + i * size, storage.data() + static_cast<std::size_t>(from) * size, size);
    for (int axis = out.shape.rank() - 1; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      from += strides[a];
      if (++index[a] < out.shape[axis]) break;
      from -= strides[a] * out.shape[axis];
      index[a] = 0;
    }
  }
  out.bytes = SharedBytes(std::move(bytes));
  return out;
}

// Tensors below a value, with the keys on the way joined by dots.
class Collector {
 public:
  Collector(File& out, const FindStorage& find, Allowance& allowance)
      : out_(out), find_(find), allowance_(allowance) {}

  void collect(const PickleValue& value, const std::string& name, int depth) {
    allowance_.take(32 + name.size());  // values that contain each other are visited as often
    if (depth > kDeepest) lacking(text("entry ", quote(name), ": containers nested deeper than ", kDeepest));
    if (name.size() > kLongestName)
      lacking(text("entry ", quote(name), ": a name of more than ", kLongestName, " bytes"));
    switch (value.kind) {
      case Kind::dictionary:
        for (std::size_t i = 0; i + 1 < value.parts.size(); i += 2) {
          const PickleValue& key = *value.parts[i];
          if (key.kind == Kind::words || key.kind == Kind::whole)
            collect(*value.parts[i + 1], joined(name, key), depth + 1);
          else
            leave_out(out_, name, "an entry whose key is neither a string nor a number");
        }
        return;
      case Kind::list:
      case Kind::tuple:
        for (std::size_t i = 0; i < value.parts.size(); ++i)
          collect(*value.parts[i], joined(name, text(i)), depth + 1);
        return;
      case Kind::tensor:
        return add(value, name);
      case Kind::unknown:
      case Kind::global:
        return leave_out(out_, name, text("made by ", quote(value.words), ", which is not called"));
      case Kind::nothing:
        return;
      default:
        leave_out(out_, name, "no tensor");
    }
  }

 private:
  static std::string joined(const std::string& name, const PickleValue& key) {
    if (key.words.size() > kLongestName) lacking("a long name in a pickle");  // before it is copied
    return joined(name, key.kind == Kind::words ? key.words : text(key.whole));
  }
  static std::string joined(const std::string& name, const std::string& key) {
    return name.empty() ? key : text(name, ".", key);
  }

  // A tensor that is in several containers is copied for each.
  void add(const PickleValue& tensor, const std::string& name) {
    allowance_.take(kTensorBytes + name.size() + tensor.key.size());
    const auto type = storage_type(tensor.element);
    if (!type) return leave_out(out_, name, text("elements of ", quote(tensor.element)));
    const auto storage = find_(tensor.key);
    if (!storage) corrupt(text("tensor ", quote(name), ": storage ", quote(tensor.key), " is missing"));
    add_tensor(out_, name.empty() ? "tensor" : name,
               reading([&] { return text("tensor ", quote(name)); },
                       [&] { return array_of(tensor, *type, *storage, allowance_); }));
  }

  File& out_;
  const FindStorage& find_;
  Allowance& allowance_;
};

File collected(const PickleValue& root, const FindStorage& find, Allowance& allowance) {
  File out;
  out.format = "PyTorch";
  Collector(out, find, allowance).collect(root, "", 0);
  return out;
}

// The folder in front of data.pkl, which all entries have.
const ZipEntry* pickle_entry(std::span<const ZipEntry> entries) {
  for (const ZipEntry& entry : entries)
    if (entry.name == "data.pkl" || entry.name.ends_with("/data.pkl")) return &entry;
  return nullptr;
}

}  // namespace

bool is_torch_zip(std::span<const ZipEntry> entries) { return pickle_entry(entries) != nullptr; }

File read_torch_zip(std::span<const ZipEntry> entries, Allowance& allowance) {
  const ZipEntry& pickle = *pickle_entry(entries);
  if (pickle.name.size() > kLongestName) lacking(text("entry ", quote(pickle.name), ": a long name"));
  const std::string folder = pickle.name.substr(0, pickle.name.size() - std::string_view("data.pkl").size());
  std::map<std::string_view, Bytes> contents;
  for (const ZipEntry& entry : entries) {
    contents.emplace(entry.name, entry.content);
    if (entry.name == folder + "constants.pkl") lacking("a TorchScript program. Save its state_dict instead");
  }
  if (const auto order = contents.find(folder + "byteorder"); order != contents.end())
    if (order->second.size() >= 3 && std::memcmp(order->second.data(), "big", 3) == 0)
      lacking("big-endian numbers");
  PickleMachine machine(allowance);
  Cursor cursor(pickle.content);
  const PickleValue* root = machine.run(cursor);
  const FindStorage find = [&](const std::string& key) -> std::optional<Bytes> {
    const auto found = contents.find(text(folder, "data/", key));
    return found == contents.end() ? std::nullopt : std::optional(found->second);
  };
  return collected(*root, find, allowance);
}

bool is_torch_legacy(Bytes file) {
  return file.size() > kLegacy.size() && std::memcmp(file.data(), kLegacy.data(), kLegacy.size()) == 0;
}

// Pickles of a magic number, the protocol, the system, the values and the list of storages; then each storage
// as a count and its elements.
File read_torch_legacy(Bytes file, Allowance& allowance) {
  Cursor cursor(file);
  PickleMachine machine(allowance);
  machine.run(cursor);
  machine.run(cursor);
  const PickleValue* system = machine.run(cursor);
  for (std::size_t i = 0; i + 1 < system->parts.size(); i += 2)
    if (system->parts[i]->words == "little_endian" && system->parts[i + 1]->whole == 0)
      lacking("big-endian numbers");
  const PickleValue* root = machine.run(cursor);
  // Types of storages are with the tensors that use them.
  std::map<std::string_view, Type> types;
  for (const PickleValue& value : machine.values())
    if (value.kind == Kind::storage)
      if (const auto type = storage_type(value.element)) types.emplace(value.key, *type);
  const PickleValue* keys = machine.run(cursor);
  if (keys->kind != Kind::list) corrupt("a legacy file without its list of storages");
  std::map<std::string_view, Bytes> contents;
  for (const PickleValue* key : keys->parts) {
    const auto type = types.find(key->words);
    if (type == types.end()) lacking(text("storage ", quote(key->words), " of an unknown type"));
    const auto count = cursor.number<std::uint64_t>();
    if (count > cursor.left()) corrupt(text("storage ", quote(key->words), " ends too early"));
    if (!contents.emplace(key->words, cursor.take(count * type_size(type->second))).second)
      corrupt(text("two storages are named ", quote(key->words)));
  }
  const FindStorage find = [&](const std::string& key) -> std::optional<Bytes> {
    const auto found = contents.find(key);
    return found == contents.end() ? std::nullopt : std::optional(found->second);
  };
  return collected(*root, find, allowance);
}

}  // namespace imprint::weights
