#include "tests/unit/house_rules.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <regex>
#include <string_view>

namespace imprint::house {
namespace {

namespace fs = std::filesystem;

struct Room {
  std::string_view path;
  bool vulkan;  // may include Vulkan's headers
};

// In the direction of data flow: a room includes itself and the rooms before it. Folders of a room come
// before the room.
constexpr Room kRooms[] = {
    {"compute/base/", false},      {"compute/vk/", true},          {"compute/tensor/", false},
    {"compute/graph/", false},     {"compute/cpu/", false},        {"compute/kernels/", true},
    {"compute/program/", true},    {"compute/tuning/", true},      {"compute/nn/", false},
    {"compute/model/", false},     {"compute/training/", false},   {"compute/include/", true},
    {"engine-bridge/host/", true}, {"engine-bridge/frame/", true}, {"engine-bridge/context", true},
    {"engine-bridge/own/", true},  {"plugin/agent/spec/", true},   {"plugin/agent/decide/", true},
    {"plugin/agent/learn/", true}, {"plugin/agent/keep/", true},   {"plugin/agent/models/", true},
    {"plugin/agent/", true},       {"plugin/include/", false},     {"plugin/abi/", true},
};
constexpr std::size_t kNoRoom = std::size(kRooms);

// Knows only shapes and lifetimes: no room of the device, although those come before.
constexpr std::string_view kDeviceless[] = {"compute/tensor/", "compute/graph/", "compute/cpu/"};

// A folder of a room, and the folders of that room that it may include besides itself and the room's own
// files. `folder` without a name: the room's own files; the folders that they include may not include them. A
// room's own files that are not here use its folders.
struct InnerFolder {
  std::string_view room, folder;
  std::array<std::string_view, 3> before;
};
constexpr InnerFolder kInnerFolders[] = {
    {"compute/graph/", "", {}},
    {"compute/graph/", "schedule/", {}},
    {"compute/graph/", "passes/", {"schedule/"}},
    {"compute/graph/", "regions/", {"schedule/"}},
    {"compute/graph/", "plan/", {"schedule/", "passes/", "regions/"}},
    {"compute/graph/", "gradients/", {"passes/"}},
    {"compute/model/", "", {"files/", "weights/", "onnx/"}},
    {"compute/model/", "files/", {}},
    {"compute/model/", "weights/", {"files/"}},
    {"compute/model/", "onnx/", {"files/"}},
    {"compute/model/onnx/", "", {"format/"}},
    {"compute/model/onnx/", "format/", {}},
    {"compute/model/onnx/", "ops/", {"format/"}},
    {"compute/nn/", "", {}},
    {"compute/nn/", "losses/", {}},
    {"compute/nn/", "optimisers/", {}},
    {"compute/nn/", "modules/", {}},
    {"compute/nn/", "learners/", {"losses/", "optimisers/", "modules/"}},
    {"compute/tensor/", "pages/", {}},
    {"compute/tensor/", "composites/", {"pages/"}},
    {"compute/tensor/", "ops/", {"pages/", "composites/"}},
    {"compute/vk/", "memory/", {}},
    {"compute/vk/", "capabilities/", {}},
    {"compute/vk/", "pipelines/", {"capabilities/"}},
    {"plugin/agent/learn/", "", {}},
    {"plugin/agent/learn/", "samples/", {}},
    {"plugin/agent/learn/", "learners/", {"samples/"}},
    {"plugin/agent/learn/", "training/", {"samples/"}},
};

// Samples that show the C++ library; the others show the plugin.
constexpr std::string_view kLibrarySamples[] = {"samples/01-train-network/", "samples/05-own-physics/",
                                                "samples/11-networks/"};

// A folder of the pet game, and the folders that it may include. Files outside these folders may include all
// of the game.
struct PetFolder {
  std::string_view path;
  std::array<std::string_view, 5> before;
  bool imprint, vulkan;  // may include their headers
};

constexpr std::string_view kBase = "samples/pet/base/", kYard = "samples/pet/yard/",
                           kModels = "samples/pet/view/models/", kRender = "samples/pet/view/render/",
                           kInput = "samples/pet/view/input/";
// Inner folders come before the outer one.
constexpr PetFolder kPetFolders[] = {
    {kBase, {}, false, false},
    {kYard, {kBase}, false, false},
    {"samples/pet/kept/", {kBase, kYard}, false, false},
    {"samples/pet/brain/", {kBase, kYard}, true, false},
    {kModels, {kBase, kYard}, false, false},
    {kRender, {kBase, kYard, kModels}, true, true},
    {kInput, {kBase, kYard, kRender}, false, true},
    {"samples/pet/view/overlay/", {kBase, kYard, kModels, kRender, kInput}, false, true},
    {"samples/pet/view/", {kBase, kYard}, false, true},
};

bool starts_with_any(std::string_view text, auto&& prefixes) {
  return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return text.starts_with(prefix); });
}

std::size_t room_of(std::string_view path) {
  for (std::size_t i = 0; i < kNoRoom; ++i)
    if (path.starts_with(kRooms[i].path)) return i;
  return kNoRoom;
}

bool is_vulkan_header(std::string_view include) {
  return include.starts_with("vulkan/") || include.starts_with("volk");
}

// Why `file` of the pet game may not include `include`; empty if its folder allows it.
std::string pet_fault(std::string_view file, std::string_view include) {
  const auto folder =
      std::ranges::find_if(kPetFolders, [&](const PetFolder& each) { return file.starts_with(each.path); });
  if (folder == std::end(kPetFolders)) return "";
  if (include.starts_with("imprint/"))
    return folder->imprint ? "" : "this folder of the pet knows no Imprint";
  if (is_vulkan_header(include)) return folder->vulkan ? "" : "this folder of the pet knows no Vulkan";
  if (!include.starts_with("samples/pet/") || include.starts_with(folder->path)) return "";
  const bool before = std::ranges::any_of(
      folder->before, [&](std::string_view path) { return !path.empty() && include.starts_with(path); });
  return before ? "" : "a folder of the pet includes only folders before it";
}

// `plan/` of `compute/graph/plan/fusion.h` in `compute/graph/`; empty for a file of the room itself.
std::string_view inner_folder(std::string_view path, std::string_view room) {
  path.remove_prefix(room.size());
  return path.substr(0, path.find('/') + 1);
}

// Whether the room's own files include the folder, so that it may not include them.
bool comes_before_own_files(std::string_view room, std::string_view folder) {
  return std::ranges::any_of(kInnerFolders, [&](const InnerFolder& each) {
    return each.room == room && each.folder.empty() &&
           std::ranges::find(each.before, folder) != each.before.end();
  });
}

// Why `file` may not include `include` of another folder of its room; empty if it may.
std::string inner_fault(std::string_view file, std::string_view include) {
  for (const InnerFolder& each : kInnerFolders) {
    if (!file.starts_with(each.room) || inner_folder(file, each.room) != each.folder) continue;
    if (!include.starts_with(each.room)) continue;
    const std::string_view target = inner_folder(include, each.room);
    const bool allowed = target == each.folder ||
                         (target.empty() && !comes_before_own_files(each.room, each.folder)) ||
                         (!target.empty() && std::ranges::find(each.before, target) != each.before.end());
    if (!allowed) return "this folder of the room comes before that one";
  }
  return "";
}

// Why `file` may not include `include`; empty if it may.
std::string include_fault(std::string_view file, std::string_view include) {
  constexpr std::string_view ours[] = {"compute/", "engine-bridge/", "plugin/",
                                       "samples/", "tests/",         "tools/"};
  if (file.starts_with("plugin/include/")) {
    const bool sibling = include.starts_with("imprint/") || include.find('/') == include.npos;
    return sibling ? ""
                   : "a public header of the plugin includes only the standard library and its neighbours";
  }
  if (file.starts_with("samples/")) {
    if (const std::string fault = pet_fault(file, include); !fault.empty()) return fault;
    if (!starts_with_any(include, ours)) return "";
    const std::string_view own = file.substr(0, file.find('/', sizeof("samples/") - 1) + 1);
    if (include.starts_with(own) || include.starts_with("samples/adapters/")) return "";
    const bool library = include.starts_with("compute/") || include.starts_with("engine-bridge/");
    if (library && starts_with_any(file, kLibrarySamples)) return "";
    return "a sample includes public headers, adapters and its own files only";
  }
  const std::size_t room = room_of(file);
  if (room == kNoRoom) return "";
  if (is_vulkan_header(include)) return kRooms[room].vulkan ? "" : "this room knows no Vulkan";
  if (!starts_with_any(include, ours)) return "";
  const std::size_t target = room_of(include);
  if (target == kNoRoom) return "rooms include rooms only";
  if (target > room) return "a room includes only rooms before it";
  if (file.starts_with("plugin/abi/") && include.starts_with("plugin/agent/") &&
      include != "plugin/agent/agent_system.h" && !include.starts_with("plugin/agent/spec/"))
    return "the C interface includes agent_system.h and specs only, not the folders behind them";
  if (kRooms[target].path == "compute/vk/" && starts_with_any(kRooms[room].path, kDeviceless))
    return "this room knows no device";
  return inner_fault(file, include);
}

// Imprint's sources below the given folders, as (path relative to root, with slashes).
std::vector<std::string> sources(const fs::path& root, std::initializer_list<std::string_view> folders,
                                 std::initializer_list<std::string_view> extensions) {
  std::vector<std::string> files;
  for (const std::string_view folder : folders) {
    std::error_code ignored;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder, ignored)) {
      if (!entry.is_regular_file() ||
          std::ranges::find(extensions, entry.path().extension().string()) == extensions.end())
        continue;
      files.push_back(fs::relative(entry.path(), root).generic_string());
    }
  }
  std::ranges::sort(files);
  return files;
}

void each_line(const fs::path& file,
               const std::function<void(std::size_t number, const std::string& line)>& use) {
  std::ifstream stream(file);
  std::string line;
  for (std::size_t number = 1; std::getline(stream, line); ++number) use(number, line);
}

std::string place(const std::string& file, std::size_t line) {
  return file + ":" + std::to_string(line) + ": ";
}

// Enough of a lexer for one-line patterns: drops // comments and the contents of string literals, so that
// their text is free.
std::string code_only(const std::string& line) {
  std::string code;
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quoted && line[i] == '\\') {
      ++i;
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      if (line.compare(i, 2, "//") == 0) break;
      code += line[i];
    }
  }
  return code;
}

}  // namespace

std::vector<std::string> all_sources(const fs::path& root,
                                     std::initializer_list<std::string_view> extensions) {
  return sources(root, {"compute", "engine-bridge", "plugin", "samples", "shaders", "tests", "tools"},
                 extensions);
}

std::vector<std::string> wrong_includes(const fs::path& root) {
  static const std::regex pattern(R"(^\s*#\s*include\s*[<"]([^>"]+)[>"])");
  std::vector<std::string> faults;
  for (const std::string& file :
       sources(root, {"compute", "engine-bridge", "plugin", "samples"}, {".h", ".hpp", ".cpp", ".c"})) {
    each_line(root / file, [&](std::size_t number, const std::string& line) {
      std::smatch match;
      if (!std::regex_search(line, match, pattern)) return;
      const std::string fault = include_fault(file, match[1].str());
      if (!fault.empty()) faults.push_back(place(file, number) + "includes " + match[1].str() + ": " + fault);
    });
  }
  return faults;
}

std::vector<std::string> forbidden_calls(const fs::path& root) {
  struct Rule {
    std::regex pattern;
    std::string reason;
    std::string_view except;  // files that begin with this may
  };
  constexpr std::string_view kStderrLog = "plugin/abi/stderr_log";  // while the host takes no messages
  static const Rule rules[] = {
      {std::regex(R"(vkDeviceWaitIdle|vkQueueWaitIdle)"),
       "never wait for a device or a queue to go idle",
       {}},
      {std::regex(R"(vkGetDeviceQueue)"), "queues are handed in by the host", "engine-bridge/own/own_device"},
      {std::regex(R"(\b(v?f?printf|f?puts|putchar|perror)\s*\(|std::(cout|cerr|clog)\b|<iostream>)"),
       "nothing is printed: log through the host's sink or return an Error", kStderrLog},
      {std::regex(R"(\b(abort|exit|_Exit|quick_exit|terminate)\s*\()"), "a guest never ends the process", {}},
      {std::regex(R"(\b(secure_)?getenv\s*\()"),
       "settings arrive in structs from the host, not from the environment", kStderrLog},
      {std::regex(R"(\b(strto[fd]|strtold|sto[fd]|stold|atof|sscanf)\s*\()"),
       "a host may have set a locale with another point: std::from_chars",
       {}},
  };
  static const std::regex written_by_locale(R"(%[-+#0-9.*]*L?[aefgAEFG])");
  std::vector<std::string> faults;
  for (const std::string& file :
       sources(root, {"compute", "engine-bridge", "plugin"}, {".h", ".hpp", ".cpp", ".c"})) {
    each_line(root / file, [&](std::size_t number, const std::string& line) {
      const std::string code = code_only(line);
      for (const Rule& rule : rules) {
        std::smatch match;
        if (!rule.except.empty() && file.starts_with(rule.except)) continue;
        if (std::regex_search(code, match, rule.pattern))
          faults.push_back(place(file, number) + match[0].str() + ": " + rule.reason);
      }
      if (std::smatch match;
          code.find("printf") != code.npos && std::regex_search(line, match, written_by_locale))
        faults.push_back(place(file, number) + match[0].str() +
                         ": a host may have set a locale with another point: std::to_chars");
    });
  }
  return faults;
}

}  // namespace imprint::house
