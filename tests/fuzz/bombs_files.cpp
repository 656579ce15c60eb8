#include <cstdint>
#include <cstring>
#include <string>

#include "compute/base/hash.h"
#include "compute/vk/pipelines/kernel_archive.h"
#include "compute/vk/pipelines/pipeline_blob.h"
#include "imprint/version.h"
#include "plugin/agent/brain_programs.h"
#include "tests/fuzz/bombs.h"
#include "tests/fuzz/seed_brain.h"
#include "tests/unit/model_weights_builder.h"

namespace imprint::fuzz {
namespace {

// JSON that any reader of JSON is given.
struct JsonBomb {
  const char* name;
  std::string (*make)();
};
constexpr JsonBomb kJsonBombs[] = {
    {"nesting", [] { return std::string(kMostBombBytes, '['); }},
    {"closed nesting",
     [] { return std::string(kMostBombBytes / 2, '[') + std::string(kMostBombBytes / 2, ']'); }},
    {"nested objects",
     [] {
       return filled(
           "", [](int i) { return i ? "\"a\":{" : "{"; }, "");
     }},
    {"empty lists",
     [] {
       return filled(
           "[", [](int) { return "[]"; }, "]");
     }},
    {"empty objects",
     [] {
       return filled(
           "[", [](int) { return "{}"; }, "]");
     }},
    {"zeros",
     [] {
       return filled(
           "[", [](int) { return "0"; }, "]");
     }},
    {"members",
     [] {
       return filled(
           "{", [](int i) { return quoted(i) + ":0"; }, "}");
     }},
    {"members of one name",
     [] {
       return filled(
           "{", [](int) { return "\"a\":0"; }, "}");
     }},
    {"long numbers",
     [] {
       return filled(
           "[", [](int) { return std::string(500, '9'); }, "]");
     }},
    {"long fractions",
     [] {
       return filled(
           "[", [](int) { return "0." + std::string(500, '3') + "e-300"; }, "]");
     }},
    {"one long number", [] { return std::string(kMostBombBytes, '9'); }},
    {"one long text", [] { return "\"" + std::string(kMostBombBytes, 'x') + "\""; }},
    {"one name that is long", [] { return "{\"" + std::string(kMostBombBytes, 'x') + "\":0}"; }},
    {"escapes", [] { return "\"" + std::string(kMostBombBytes, '\\') + "\""; }},
    {"white space", [] { return std::string(kMostBombBytes, ' '); }}};

FileBytes with_length(const std::string& header, std::uint64_t length, std::size_t data = 0) {
  FileBytes out(8 + header.size() + data);
  std::memcpy(out.data(), &length, 8);
  std::memcpy(out.data() + 8, header.data(), header.size());
  return out;
}
FileBytes safetensors_of(const std::string& header, std::size_t data = 0) {
  return with_length(header, header.size(), data);
}

std::string tensor(const std::string& shape, std::uint64_t from, std::uint64_t to) {
  return R"({"dtype":"F32","shape":)" + shape + ",\"data_offsets\":[" + std::to_string(from) + "," +
         std::to_string(to) + "]}";
}

struct Body {
  std::string name;
  std::function<FileBytes()> make;
};

std::vector<Body> safetensors_bodies() {
  std::vector<Body> bodies;
  for (const JsonBomb& bomb : kJsonBombs)
    bodies.push_back({bomb.name, [bomb] { return safetensors_of(bomb.make()); }});
  const auto add = [&](const char* name, std::function<FileBytes()> make) {
    bodies.push_back({name, std::move(make)});
  };
  add("empty tensors", [] {
    return safetensors_of(filled(
        "{", [](int i) { return quoted(i) + ":" + tensor("[0]", 0, 0); }, "}"));
  });
  add("empty tensors of large factors", [] {
    return safetensors_of(filled(
        "{", [](int i) { return quoted(i) + ":" + tensor("[0,4611686018427387904]", 0, 0); }, "}"));
  });
  add("small tensors", [] {
    constexpr std::uint64_t kCount = 14'000;
    std::string header = "{";
    for (std::uint64_t i = 0; i < kCount; ++i)
      header += (i ? "," : "") + quoted(static_cast<int>(i)) + ":" + tensor("[1]", 4 * i, 4 * i + 4);
    return safetensors_of(header + "}", 4 * kCount);
  });
  add("tensors that overlap", [] {
    return safetensors_of(filled(
                              "{", [](int i) { return quoted(i) + ":" + tensor("[100]", 0, 400); }, "}"),
                          400);
  });
  add("huge tensors", [] {
    return safetensors_of(filled(
        "{", [](int i) { return quoted(i) + ":" + tensor("[4611686018427387904]", 0, UINT64_MAX); }, "}"));
  });
  add("long shapes", [] {
    return safetensors_of(R"({"a":)" +
                              tensor(filled(
                                         "[", [](int) { return "1"; }, "]"),
                                     0, 4) +
                              "}",
                          4);
  });
  add("metadata", [] {
    return safetensors_of(filled(R"({"__metadata__":{)", [](int i) { return quoted(i) + ":\"\""; }, "}}"));
  });
  for (const std::uint64_t length :
       {std::uint64_t{1} << 31, std::uint64_t{1} << 63, UINT64_MAX, UINT64_MAX - 7})
    bodies.push_back(
        {"a header of " + std::to_string(length) + " bytes", [length] { return with_length("{}", length); }});
  return bodies;
}

void add_brains(std::vector<Bomb>& bombs) {
  for (Body& body : safetensors_bodies()) {
    bombs.push_back({"a brain with " + body.name, BombKind::brain,
                     [make = body.make] { return enveloped(make(), seed_brain()); }});
    bombs.push_back({body.name, BombKind::demonstrations, body.make});
    bombs.push_back({std::move(body.name), BombKind::safetensors, std::move(body.make)});
  }
  bombs.push_back({"a brain with a long schema", BombKind::brain, [] {
                     const std::string schema(kMostBombBytes - 1000, 'x');
                     return enveloped(safetensors_of(R"({"__metadata__":{"schema":")" + schema + "\"}}"), [] {
                       agent::BrainSpec other = seed_brain();
                       other.observation.count = 7;
                       return other;
                     }());
                   }});
}

void add_tables(std::vector<Bomb>& bombs) {
  for (const JsonBomb& bomb : kJsonBombs) {
    bombs.push_back({bomb.name, BombKind::table, [bomb] { return bytes_of(bomb.make()); }});
    bombs.push_back({std::string("a table with ") + bomb.name, BombKind::table,
                     [bomb] { return bytes_of(R"({"imprint_tuning":1,"tables":)" + bomb.make() + "}"); }});
    bombs.push_back({bomb.name, BombKind::profile, [bomb] { return bytes_of(bomb.make()); }});
    bombs.push_back({bomb.name, BombKind::brain_file, [bomb] { return bytes_of(bomb.make()); }});
    bombs.push_back({bomb.name, BombKind::model_file, [bomb] { return bytes_of(bomb.make()); }});
  }
  const std::string device = R"({"device":{"name":"n","driver":"d","vendor":1,)"
                             R"("device":2,"driver_version":3,"pipeline_cache_uuid":"00"},"kernels":{)";
  bombs.push_back({"kernels of one table", BombKind::table, [device] {
                     return bytes_of(filled(R"({"imprint_tuning":1,"tables":[)" + device,
                                            [](int i) { return quoted(i) + ":\"v\""; }, "}}]}"));
                   }});
  bombs.push_back({"tables", BombKind::table, [device] {
                     return bytes_of(filled(R"({"imprint_tuning":1,"tables":[)",
                                            [&](int) { return device + "}}"; }, "]}"));
                   }});
}

void add_brain_files(std::vector<Bomb>& bombs) {
  const auto add = [&](const char* name, std::function<std::string()> make) {
    bombs.push_back({name, BombKind::brain_file, [make = std::move(make)] { return bytes_of(make()); }});
  };
  const std::string brain = R"({"observation_count":3,"branch_sizes":[4])";
  add("brains", [brain] {
    return filled(
        "[", [&](int) { return brain + "}"; }, "]");
  });
  add("a long scale", [brain] {
    return filled(
        brain + ",\"observation_scale\":[", [](int) { return "1"; }, "]}");
  });
  add("many layers", [brain] {
    return filled(
        brain + ",\"hidden_sizes\":[", [](int) { return "1"; }, "]}");
  });
  add("long options", [brain] { return brain + ",\"feedback\":\"" + std::string(500'000, 'x') + "\"}"; });
  add("a long option",
      [brain] { return brain + ",\"feedback\":{\"" + std::string(500'000, 'x') + "\":1}}"; });
  add("an option of a long text",
      [brain] { return brain + ",\"feedback\":{\"batch_size\":\"" + std::string(500'000, 'x') + "\"}}"; });
  add("streams", [brain] {
    return filled(
        brain + ",\"streams\":[", [](int) { return "{}"; }, "]}");
  });
  add("wide layers", [brain] { return brain + ",\"hidden_sizes\":[1048576,1048576]}"; });
  add("a large tensor", [brain] { return brain + ",\"observations\":[4294967296,4294967296]}"; });
}

void add_model_files(std::vector<Bomb>& bombs) {
  const auto add = [&](const char* name, std::function<std::string()> make) {
    bombs.push_back({name, BombKind::model_file, [make = std::move(make)] { return bytes_of(make()); }});
  };
  const std::string model = R"({"path":")" + std::string(kManyInputs) + "\"";
  add("models", [model] {
    return filled(
        "[", [&](int) { return model + ",\"bindings\":[]}"; }, "]");
  });
  add("models, as many as may be", [model] {
    std::string list = "[";
    for (int i = 0; i < 256; ++i) list += (i ? "," : "") + model + ",\"bindings\":[]}";
    return list + "]";
  });
  for (const char* key : {"extents", "states", "bindings"})
    bombs.push_back({key, BombKind::model_file, [model, key] {
                       const std::string item =
                           std::string(key) == "states"    ? R"({"input":"v7","output":"y"})"
                           : std::string(key) == "extents" ? R"({"name":"N","value":1})"
                                                           : R"({"name":"v24999","shape":[2147483647]})";
                       return bytes_of(filled(
                           model + ",\"" + key + "\":[", [&](int) { return item; }, "]}"));
                     }});
}

// Demonstrations of `rows` rows, whose arrays begin at the same byte where they may.
FileBytes demonstrations_of(std::uint64_t rows, const std::string& branch_sizes) {
  const std::string n = std::to_string(rows);
  const std::uint64_t bytes = 4 * rows;
  const auto array = [](const char* type, const std::string& shape, std::uint64_t from, std::uint64_t to) {
    return std::string(R"({"dtype":")") + type + R"(","shape":)" + shape + R"(,"data_offsets":[)" +
           std::to_string(from) + "," + std::to_string(to) + "]}";
  };
  return safetensors_of(R"({"__metadata__":{"format":"imprint demonstrations 1","goal_count":"1",)"
                        R"("branch_sizes":")" +
                            branch_sizes + R"("},"observation":)" + array("F32", "[" + n + ",1]", 0, bytes) +
                            R"(,"goal":)" + array("I32", "[" + n + "]", bytes, 2 * bytes) + R"(,"weight":)" +
                            array("F32", "[" + n + "]", 2 * bytes, 3 * bytes) + R"(,"branches":)" +
                            array("I32", "[" + n + ",1]", 3 * bytes, 4 * bytes) + "}",
                        static_cast<std::size_t>(4 * bytes));
}

void add_demonstrations(std::vector<Bomb>& bombs) {
  const auto add = [&](const char* name, std::function<FileBytes()> make) {
    bombs.push_back({name, BombKind::demonstrations, std::move(make)});
  };
  add("rows", [] { return demonstrations_of(60'000, "2"); });
  add("rows that are not there", [] { return demonstrations_of(1, "2 " + std::string(900'000, '2')); });
  add("many sizes", [] {
    std::string sizes = "2";
    for (int i = 0; i < 400'000; ++i) sizes += " 2";
    return demonstrations_of(1, sizes);
  });
}

template <class T>
void put(FileBytes& file, std::size_t at, T value) {
  std::memcpy(file.data() + at, &value, sizeof value);
}

// With the hash that the content should have.
FileBytes archive_of(FileBytes content, std::uint32_t table_bytes) {
  FileBytes file = bytes_of("imp-kern");
  file.resize(32 + content.size());
  put(file, 8, std::uint32_t{1});
  put(file, 12, table_bytes);
  const Hash128 hash = Hasher().number(table_bytes).bytes(content).digest();
  put(file, 16, hash.low);
  put(file, 24, hash.high);
  std::memcpy(file.data() + 32, content.data(), content.size());
  return file;
}

void add_archives(std::vector<Bomb>& bombs) {
  bombs.push_back({"counts of 2^32", BombKind::archive, [] {
                     FileBytes content(500'000, std::byte{0xFF});
                     const FileBytes maker = bytes_of(IMP_VERSION_STRING);
                     put(content, 0, static_cast<std::uint32_t>(maker.size()));
                     std::memcpy(content.data() + 4, maker.data(), maker.size());
                     put(content, 4 + maker.size(), std::uint32_t{0});
                     return archive_of(std::move(content), 500'000);
                   }});
  bombs.push_back({"kernels", BombKind::archive, [] {
                     std::vector<vk::ArchivedKernel> kernels;
                     for (std::uint64_t i = 0; i < 30'000; ++i)
                       kernels.push_back({{i, i}, "", {vk::kSpirvMagic}});
                     return vk::write_kernel_archive({}, "", std::move(kernels));
                   }});
  bombs.push_back({"profiles", BombKind::archive,
                   [] { return vk::write_kernel_archive(std::vector<vk::CapabilityProfile>(800), "", {}); }});
  bombs.push_back(
      {"sizes of 2^64", BombKind::cache, [] { return FileBytes(kMostBombBytes, std::byte{0xFF}); }});
  bombs.push_back({"a wrapped cache of garbage", BombKind::cache,
                   [] { return vk::wrap_pipeline_cache(FileBytes(kMostBombBytes / 2, std::byte{0xFF})); }});
}

void add_weights(std::vector<Bomb>& bombs) {
  for (const test::TorchBomb& bomb : test::kTorchBombs)
    bombs.push_back({bomb.name, BombKind::weights, [bomb] { return bytes_of(bomb.make()); }});
  const auto add = [&](const char* name, std::function<std::string()> make) {
    bombs.push_back({name, BombKind::weights, [make = std::move(make)] { return bytes_of(make()); }});
  };
  add("an array of many axes", [] {
    return test::npy(
        "{'descr': '<f4', 'fortran_order': False, 'shape': (" + test::repeated("1,", 30'000) + ")}", "");
  });
  add("entries of one content", [] {
    std::vector<std::pair<std::string, std::string>> entries(10'000, {"a.npy", ""});
    return test::zip_of(entries);
  });
  add("entries", [] {
    std::vector<std::pair<std::string, std::string>> entries;
    for (int i = 0; i < 10'000; ++i) entries.emplace_back(std::to_string(i), "");
    return test::zip_of(entries);
  });
  for (const std::uint64_t count : {std::uint64_t{1} << 31, UINT64_MAX})
    add("tensors of GGUF that are not there", [count] {
      std::string file("GGUF");
      test::put(file, std::uint32_t{3});
      test::put(file, count);
      test::put(file, std::uint64_t{0});
      return file + std::string(kMostBombBytes, '\0');
    });
  // Tensors of one content: of 4 bits each, or floats.
  for (const std::uint32_t type : {0u, 2u})
    add(type ? "tensors of GGUF with 4 bits that overlap" : "tensors of GGUF that overlap", [type] {
      constexpr std::uint64_t kTensors = 15'000;
      std::string file("GGUF");
      test::put(file, std::uint32_t{3});
      test::put(file, kTensors);
      test::put(file, std::uint64_t{0});
      for (std::uint64_t i = 0; i < kTensors; ++i) {
        const std::string name = std::to_string(i);
        test::put(file, std::uint64_t{name.size()});
        file += name;
        test::put(file, std::uint32_t{1});
        test::put(file, std::uint64_t{type ? 320'000u : 50'000u});
        test::put(file, type);
        test::put(file, std::uint64_t{0});
      }
      return file + std::string(200'000, '\1');
    });
  add("one large tensor of GGUF with 4 bits", [] {
    std::string file("GGUF");
    test::put(file, std::uint32_t{3});
    test::put(file, std::uint64_t{1});
    test::put(file, std::uint64_t{0});
    test::put(file, std::uint64_t{1});
    file += "a";
    test::put(file, std::uint32_t{1});
    test::put(file, std::uint64_t{1'760'000});  // 18 bytes for 32 numbers
    test::put(file, std::uint32_t{2});
    test::put(file, std::uint64_t{0});
    return file + std::string(7, '\0') + std::string(990'000, '\1');
  });
  add("metadata of GGUF", [] {
    std::string file("GGUF");
    test::put(file, std::uint32_t{3});
    test::put(file, std::uint64_t{0});
    test::put(file, UINT64_MAX);
    return file + std::string(kMostBombBytes, '\0');
  });
}

}  // namespace

std::vector<Bomb> file_bombs() {
  std::vector<Bomb> bombs = {
      {kHarmless, BombKind::brain, [] { return enveloped(safetensors_of("{}"), seed_brain()); }},
      {kHarmless, BombKind::safetensors, [] { return safetensors_of("{}"); }},
      {kHarmless, BombKind::demonstrations, [] { return demonstrations_of(1, "2"); }},
      {kHarmless, BombKind::archive, [] { return vk::write_kernel_archive({}, "", {}); }},
      {kHarmless, BombKind::cache, [] { return vk::wrap_pipeline_cache({}); }},
      {kHarmless, BombKind::weights, [] { return bytes_of(test::torch_of("}")); }}};
  for (const BombKind kind : {BombKind::table, BombKind::profile, BombKind::brain_file, BombKind::model_file})
    bombs.push_back({kHarmless, kind, [] { return bytes_of("{}"); }});
  add_brains(bombs);
  add_tables(bombs);
  add_brain_files(bombs);
  add_model_files(bombs);
  add_demonstrations(bombs);
  add_archives(bombs);
  add_weights(bombs);
  return bombs;
}

}  // namespace imprint::fuzz
