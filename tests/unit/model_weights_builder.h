#pragma once
// Writes the files that weights::parse reads: zip files, pickles of PyTorch, arrays of NumPy.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace imprint::test {

// A literal with zeros inside of it.
template <std::size_t count>
std::string raw(const char (&literal)[count]) {
  return {literal, count - 1};
}

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// A zip file of stored entries. Checksums are 0: the reader does not need them.
inline std::string zip_of(const std::vector<std::pair<std::string, std::string>>& entries,
                          std::uint16_t method = 0) {
  std::string out, directory;
  for (const auto& [name, content] : entries) {
    const auto offset = static_cast<std::uint32_t>(out.size()),
               size = static_cast<std::uint32_t>(content.size());
    const auto length = static_cast<std::uint16_t>(name.size());
    put(out, std::uint32_t{0x04034b50});
    out += std::string(14, '\0');
    put(out, size), put(out, size), put(out, length), put(out, std::uint16_t{0});
    out += name + content;
    put(directory, std::uint32_t{0x02014b50});
    put(directory, std::uint32_t{0}), put(directory, std::uint16_t{0}), put(directory, method);
    directory += std::string(8, '\0');
    put(directory, size), put(directory, size), put(directory, length);
    directory += std::string(12, '\0');
    put(directory, offset);
    directory += name;
  }
  const auto begin = static_cast<std::uint32_t>(out.size()),
             count = static_cast<std::uint32_t>(entries.size());
  out += directory;
  put(out, std::uint32_t{0x06054b50}), put(out, std::uint32_t{0});
  put(out, static_cast<std::uint16_t>(count)), put(out, static_cast<std::uint16_t>(count));
  put(out, static_cast<std::uint32_t>(directory.size())), put(out, begin), put(out, std::uint16_t{0});
  return out;
}

inline std::string npy(const std::string& header, const std::string& data) {
  std::string out = raw("\x93NUMPY\x01\0");
  put(out, static_cast<std::uint16_t>(header.size() + 1));
  return out + header + "\n" + data;
}

// ---- pickles ----

inline std::string words(const std::string& text) {
  std::string out = "X";
  put(out, static_cast<std::uint32_t>(text.size()));
  return out + text;
}
inline std::string whole(std::int64_t value) {
  std::string out = raw("\x8a\x08");
  put(out, value);
  return out;
}
// The part of a persistent id that names a storage of 16 floats, before it is looked up.
inline std::string storage_id(const std::string& key) {
  return "(" + words("storage") + "ctorch\nFloatStorage\n" + words(key) + words("cpu") + "K\x10t";
}
// A tensor of one axis.
inline std::string view(const std::string& key, std::int64_t offset, std::int64_t extent,
                        std::int64_t stride) {
  return "ctorch._utils\n_rebuild_tensor_v2\n(" + storage_id(key) + "Q" + whole(offset) + whole(extent) +
         "\x85" + whole(stride) + "\x85\x89NtR";
}
// With one storage of 16 floats, named `key`.
inline std::string torch_of(const std::string& values, const std::string& key = "0") {
  return zip_of({{"a/data.pkl", raw("\x80\x02") + values + "."}, {"a/data/" + key, std::string(64, 'x')}});
}

inline std::string repeated(const std::string& part, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += part;
  return out;
}

// Files below 1 MB that ask for much, with a part of their refusal.
struct TorchBomb {
  const char* name;
  const char* refusal;
  std::string (*make)();
};
// A tensor in a list of `inner`, which is in a list of `outer`.
inline std::string repeated_tensor(const std::string& key, std::size_t inner, std::size_t outer) {
  return torch_of(view(key, 0, 0, 1) + raw("q\0") + "0(" + raw("h\0") + std::string(inner - 1, '2') +
                      "lq\x01" + "0(h\x01" + std::string(outer - 1, '2') + "l",
                  key);
}
inline constexpr TorchBomb kTorchBombs[] = {
    {"keys_of_one_megabyte", "long name",
     [] {
       return torch_of(storage_id(std::string(900'000, 'k')) + "q\x01" + "0" + repeated("h\x01Q0", 1000) +
                       "}");
     }},
    {"keys_again_and_again", "bytes of memory per byte",
     [] {
       return torch_of(storage_id(std::string(1000, 'k')) + "q\x01" + "0" + repeated("h\x01Q0", 200'000) +
                       "}");
     }},
    {"a_tensor_again_and_again", "bytes of memory per byte", [] { return repeated_tensor("0", 1000, 1200); }},
    {"a_tensor_with_a_long_key", "long name",
     [] { return repeated_tensor(std::string(60'000, 'k'), 100, 300); }},
    {"nothing_again_and_again", "bytes of memory per byte",
     [] {
       return torch_of("(" + std::string("N") + std::string(100'000, '2') + "lq\x01" + "0(h\x01" +
                       std::string(100'000, '2') + "l");
     }},
    {"long_keys_of_dictionaries", "long name",
     [] {
       return torch_of("}" + words(std::string(500'000, 'k')) + "Nsq\x01" + "0(h\x01" +
                       std::string(100'000, '2') + "l");
     }},
    {"calls_with_one_long_list", "bytes of memory per byte",
     [] {
       return torch_of("(N" + std::string(350'000, '2') + raw("lq\0") + "0ccollections\nOrderedDict\nq\x01" +
                       "0" + raw("h\0\x85q\x02") + "0" + repeated("h\x01h\x02R0", 60'000) + "}");
     }},
    {"calls_of_a_long_name", "bytes of memory per byte", [] {
       return torch_of("c" + std::string(300'000, 'm') + "\nf\nq\x01" + "0)q\x02" + "0" +
                       repeated("h\x01h\x02R0", 100'000) + "}");
     }}};

}  // namespace imprint::test
