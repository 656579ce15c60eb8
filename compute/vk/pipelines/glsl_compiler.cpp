#include "compute/vk/pipelines/glsl_compiler.h"

#include <glslang/Public/ResourceLimits.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/SPIRV/GlslangToSpv.h>
#include <glslang/build_info.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <exception>
#include <mutex>
#include <span>
#include <vector>

#include "compute/base/process_mutex.h"
#include "compute/base/text.h"

namespace imprint::vk {
namespace {

constexpr int kGlslVersion = 450;
constexpr auto kMessages = static_cast<EShMessages>(EShMsgSpvRules | EShMsgVulkanRules);

// glslang's set-up is process-wide and not thread-safe. Neither variable runs a constructor or destructor.
constinit ProcessMutex process_mutex;
constinit int process_users = 0;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  lines.push_back(text);
  return lines;
}

// Where line `number` (from 1) of a kernel comes from: "page 'rope', line 3" for text of the caller's, else
// "0:17", which is how glslang counts.
std::string origin_of(std::span<const std::string_view> lines, std::size_t number) {
  for (std::size_t i = std::min(number, lines.size()); i-- > 1;) {
    const std::string_view line = lines[i - 1];
    if (line == kCallersTextEnd) break;
    if (line.starts_with(kCallersText)) return text(line.substr(kCallersText.size()), ", line ", number - i);
  }
  return text("0:", number);
}

// glslang's log, where each "ERROR: 0:17: ..." says where its line comes from and shows it.
Error compile_error(std::string_view name, std::string_view glsl, std::string_view log) {
  constexpr std::string_view kMark = "ERROR: 0:";
  while (!log.empty() && (log.back() == '\n' || log.back() == ' ')) log.remove_suffix(1);
  const std::vector<std::string_view> lines = lines_of(glsl);
  std::string message = text("kernel ", name, " does not compile:");
  for (const std::string_view entry : lines_of(log)) {
    std::size_t number = 0;
    const char* end = nullptr;
    if (entry.starts_with(kMark))
      end = std::from_chars(entry.data() + kMark.size(), entry.data() + entry.size(), number).ptr;
    if (number == 0 || number > lines.size()) {
      message += text("\n", entry);
      continue;
    }
    message += text("\n", origin_of(lines, number),
                    entry.substr(static_cast<std::size_t>(end - entry.data())), "\n  | ", lines[number - 1]);
  }
  return make_error(ErrorCode::compile_failed, std::move(message));
}

// glslang supports this extension only for the newest SPIR-V.
bool wants_newest_spirv(std::string_view glsl) {
  return glsl.find("#extension GL_NV_cooperative_matrix2 ") != std::string_view::npos;
}

Result<Spirv> translate(std::string_view name, std::string_view glsl) {
  const char* text = glsl.data();
  const int length = static_cast<int>(glsl.size());
  glslang::TShader shader(EShLangCompute);
  shader.setStringsWithLengths(&text, &length, 1);
  shader.setEnvInput(glslang::EShSourceGlsl, EShLangCompute, glslang::EShClientVulkan, 100);
  const bool newest = wants_newest_spirv(glsl);
  shader.setEnvClient(glslang::EShClientVulkan,
                      newest ? glslang::EShTargetVulkan_1_3 : glslang::EShTargetVulkan_1_1);
  shader.setEnvTarget(glslang::EShTargetSpv, newest ? glslang::EShTargetSpv_1_6 : glslang::EShTargetSpv_1_3);
  if (!shader.parse(GetDefaultResources(), kGlslVersion, false, kMessages))
    return compile_error(name, glsl, shader.getInfoLog());

  glslang::TProgram program;
  program.addShader(&shader);
  if (!program.link(kMessages)) return compile_error(name, glsl, program.getInfoLog());

  spv::SpvBuildLogger logger;
  glslang::SpvOptions options;
  options.disableOptimizer = true;  // drivers optimise what they load; optimising here only takes time
  Spirv spirv;
  glslang::GlslangToSpv(*program.getIntermediate(EShLangCompute), spirv, &logger, &options);
  if (spirv.empty()) return compile_error(name, glsl, logger.getAllMessages());
  return spirv;
}

}  // namespace

GlslCompiler::GlslCompiler() {
  const std::lock_guard lock(process_mutex);
  if (process_users++ == 0) glslang::InitializeProcess();
}

GlslCompiler::~GlslCompiler() {
  const std::lock_guard lock(process_mutex);
  if (--process_users == 0) glslang::FinalizeProcess();
}

bool GlslCompiler::present() { return true; }

std::string GlslCompiler::identity() {
  return "glslang " + std::to_string(GLSLANG_VERSION_MAJOR) + "." + std::to_string(GLSLANG_VERSION_MINOR) +
         "." + std::to_string(GLSLANG_VERSION_PATCH) + ", vulkan 1.1, spir-v 1.3, not optimised";
}

bool GlslCompiler::knows(std::string_view extension) {
  struct Asked {
    std::string_view extension;
    std::atomic<signed char> answer{-1};
  };
  static constinit Asked asked[] = {
      {"GL_KHR_cooperative_matrix"}, {"GL_NV_cooperative_matrix2"}, {"GL_EXT_spirv_intrinsics"}};
  const auto ask = [&] {
    const std::string text = "#version 450\n#extension " + std::string(extension) +
                             " : require\nlayout(local_size_x = 1) in;\nvoid main() {}\n";
    return GlslCompiler().compile(extension, text).ok();
  };
  const auto known = std::ranges::find(asked, extension, &Asked::extension);
  if (known == std::end(asked)) return ask();
  if (known->answer < 0) known->answer = ask();  // two threads may both ask, which is harmless
  return known->answer > 0;
}

Result<Spirv> GlslCompiler::compile(std::string_view name, std::string_view glsl) const {
  try {
    return translate(name, glsl);
  } catch (const std::exception& exception) {
    return make_error(
        ErrorCode::out_of_host_memory,
        std::string("kernel ").append(name).append(" does not compile: ").append(exception.what()));
  }
}

}  // namespace imprint::vk
