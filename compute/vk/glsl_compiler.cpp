#include "compute/vk/glsl_compiler.h"

#include <glslang/Public/ResourceLimits.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/SPIRV/GlslangToSpv.h>
#include <glslang/build_info.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <exception>
#include <mutex>
#include <optional>

#include "compute/base/process_mutex.h"

namespace imprint::vk {
namespace {

constexpr int kGlslVersion = 450;
constexpr auto kMessages = static_cast<EShMessages>(EShMsgSpvRules | EShMsgVulkanRules);

// glslang's set-up is process-wide and not thread-safe. Neither variable runs a constructor or destructor.
constinit ProcessMutex process_mutex;
constinit int process_users = 0;

// The number in the first "ERROR: 0:17: ..." of a log.
std::optional<std::size_t> first_line_number(std::string_view log) {
  constexpr std::string_view kMark = "ERROR: 0:";
  const auto at = log.find(kMark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view digits = log.substr(at + kMark.size());
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || number == 0) return std::nullopt;
  return number;
}

std::string_view line_of(std::string_view text, std::size_t number) {
  for (std::size_t i = 1; i < number; ++i) {
    const auto newline = text.find('\n');
    if (newline == std::string_view::npos) return {};
    text.remove_prefix(newline + 1);
  }
  return text.substr(0, text.find('\n'));
}

Error compile_error(std::string_view name, std::string_view glsl, std::string_view log) {
  while (!log.empty() && (log.back() == '\n' || log.back() == ' ')) log.remove_suffix(1);
  std::string message("kernel ");
  message.append(name).append(" does not compile: ").append(log);
  if (const auto number = first_line_number(log)) {
    message.append("\n").append(std::to_string(*number)).append(" | ").append(line_of(glsl, *number));
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
  static constinit Asked asked[] = {{"GL_KHR_cooperative_matrix"}, {"GL_NV_cooperative_matrix2"}};
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
