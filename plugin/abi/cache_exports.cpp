// Results of earlier runs that speed up the next start: the driver's pipelines and the fastest kernel
// variants.

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "plugin/abi/calls.h"
#include "plugin/abi/convert.h"
#include "plugin/abi/exports.h"

namespace imprint::abi {
namespace {

Result<> check_vulkan(const char* call, ContextEntry& entry) {
  if (entry.world->context().vulkan()) return {};
  return make_error(ErrorCode::unsupported,
                    text(call, ": found a context on the CPU, which has no pipelines. Skip this call."));
}

// data null: gives the size. Else copies.
Result<> hand_out(const char* call, std::span<const std::byte> found, void* data, size_t* size) {
  if (data && *size < found.size())
    return refuse(call, text("size: found ", *size, ", expected at least ", found.size(), " bytes"));
  *size = found.size();
  if (data) std::memcpy(data, found.data(), found.size());
  return {};
}

}  // namespace

imp_result IMP_CALL pipeline_cache_get(imp_context context, void* data, size_t* size) {
  return with_context(context, Tag::create, "pipeline_cache_get", [&](ContextEntry& entry) -> Result<> {
    IMPRINT_CHECK(check_pointer("pipeline_cache_get", "size", size));
    IMPRINT_CHECK(check_vulkan("pipeline_cache_get", entry));
    IMPRINT_ASSIGN(std::vector<std::byte> blob, entry.world->context().device().pipelines().export_cache());
    IMPRINT_ASSIGN(const std::string measured, entry.world->tuning().measured_text());
    if (!measured.empty()) blob = agent::join_tuning(std::move(blob), measured);
    return hand_out("pipeline_cache_get", blob, data, size);
  });
}

imp_result IMP_CALL pipeline_cache_set(imp_context context, const void* data, size_t size) {
  return with_context(context, Tag::create, "pipeline_cache_set", [&](ContextEntry& entry) -> Result<> {
    IMPRINT_CHECK(check_pointer("pipeline_cache_set", "data", data));
    IMPRINT_CHECK(check_vulkan("pipeline_cache_set", entry));
    const agent::CacheAndTuning parts = agent::split_tuning({static_cast<const std::byte*>(data), size});
    IMPRINT_CHECK(entry.world->context().device().pipelines().import_cache(parts.cache));
    entry.world->tuning().remember(parts.text);
    return {};
  });
}

imp_result IMP_CALL tuning_get(imp_context context, char* text, size_t* size) {
  return with_context(context, Tag::create, "tuning_get", [&](ContextEntry& entry) -> Result<> {
    IMPRINT_CHECK(check_pointer("tuning_get", "size", size));
    IMPRINT_CHECK(check_vulkan("tuning_get", entry));
    IMPRINT_ASSIGN(const std::string found, entry.world->tuning().text());
    return hand_out("tuning_get", std::as_bytes(std::span(found)), text, size);
  });
}

imp_result IMP_CALL tuning_set(imp_context context, const char* text, size_t size) {
  return with_context(context, Tag::create, "tuning_set", [&](ContextEntry& entry) -> Result<> {
    IMPRINT_CHECK(check_pointer("tuning_set", "text", text));
    IMPRINT_CHECK(check_vulkan("tuning_set", entry));
    return entry.world->tuning().ship({text, size});
  });
}

imp_result IMP_CALL tuning_stop(imp_context context) {
  return with_context_any(context, "tuning_stop", [&](ContextEntry& entry) -> Result<> {
    entry.world->tuning().stop();
    return {};
  });
}

}  // namespace imprint::abi
