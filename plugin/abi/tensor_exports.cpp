#include "plugin/abi/calls.h"
#include "plugin/abi/convert.h"
#include "plugin/abi/exports.h"

namespace imprint::abi {
namespace {

Error refuse(const char* call, const std::string& what) { return make_error(ErrorCode::invalid_argument, std::string(call) + ": " + what); }

Result<Variable> to_variable(const char* call, const imp_tensor_desc* desc) {
  IMPRINT_ASSIGN(const imp_tensor_desc given, read_struct(call, "desc", desc));
  IMPRINT_CHECK(check_enum(call, "desc.dtype", given.dtype, IMP_DTYPE_INT32));
  if (given.rank == 0 || given.rank > IMP_MAX_RANK)
    return refuse(call, "desc.rank is " + std::to_string(given.rank) + "; expected 1 to " + std::to_string(IMP_MAX_RANK));
  Shape shape;
  std::uint64_t elements = 1;
  for (std::uint32_t i = 0; i < given.rank; ++i) {
    const std::uint64_t extent = given.shape[i];
    if (extent == 0 || extent > INT32_MAX || elements > INT32_MAX / extent)
      return refuse(call, "desc.shape[" + std::to_string(i) + "] is " + std::to_string(extent) + "; expected 1 or more, and at most " +
                              std::to_string(INT32_MAX) + " elements in all");
    elements *= extent;
    shape.append(static_cast<std::int64_t>(extent));
  }
  Variable made = Variable::external(given.name ? given.name : "tensor", shape, given.dtype == IMP_DTYPE_INT32 ? DType::int32 : DType::float32);
  if (!made.ok()) return made.value().error();
  return made;
}

std::uint64_t bytes_of(const Variable& variable) {
  return static_cast<std::uint64_t>(variable.shape().element_count()) * dtype_size(variable.dtype());
}

Result<bridge::HostBuffer> to_buffer(const char* call, const char* name, const imp_vk_buffer* buffer, const Variable& variable) {
  IMPRINT_ASSIGN(const imp_vk_buffer given, read_struct(call, name, buffer));
  if (given.family_count > 0) IMPRINT_CHECK(check_pointer(call, (std::string(name) + ".families").c_str(), given.families));
  bridge::HostBuffer host;
  host.name = variable.name();
  std::memcpy(&host.buffer, &given.buffer, sizeof host.buffer);
  host.offset = given.offset;
  host.size = given.size == 0 ? bytes_of(variable) : given.size;
  host.usage = given.usage;
  host.sharing = static_cast<VkSharingMode>(given.sharing);
  if (given.family_count > 0) host.families.assign(given.families, given.families + given.family_count);
  host.memory_flags = given.memory_flags;
  host.device_address = given.device_address;
  host.stages = given.stages;
  host.access = given.access;
  return host;
}

Status publish_tensor(ContextEntry& entry, agent::SharedTensor made, imp_tensor* tensor) {
  IMPRINT_CHECK(entry.world->context().runtime().place_in(made.variable, made.buffer->range(made.buffer)));
  const std::lock_guard lock(registry_mutex());
  const auto [place, placed] = entry.tensors.insert(std::move(made));
  if (!placed) return make_error(ErrorCode::unsupported, "this context has " + std::to_string(kSlots) + " tensors, the most there can be");
  *tensor = {pack_handle({HandleKind::tensor, entry.slot, entry.generation, place.slot, place.generation})};
  return {};
}

}  // namespace

imp_result IMP_CALL tensor_import_vk(imp_context context, const imp_tensor_desc* desc, const imp_vk_buffer* buffer, imp_tensor* tensor) {
  return with_context(context, Tag::create, "tensor_import_vk", [&](ContextEntry& entry) -> Status {
    constexpr const char* call = "tensor_import_vk";
    IMPRINT_CHECK(check_pointer(call, "tensor", tensor));
    agent::SharedTensor made;
    IMPRINT_ASSIGN(made.variable, to_variable(call, desc));
    IMPRINT_ASSIGN(const bridge::HostBuffer host, to_buffer(call, "buffer", buffer, made.variable));
    IMPRINT_ASSIGN(made.buffer, entry.world->context().import_buffer(host));
    return publish_tensor(entry, std::move(made), tensor);
  });
}

imp_result IMP_CALL tensor_create_vk(imp_context context, const imp_tensor_desc* desc, const imp_vk_buffer* wish, imp_tensor* tensor) {
  return with_context(context, Tag::create, "tensor_create_vk", [&](ContextEntry& entry) -> Status {
    constexpr const char* call = "tensor_create_vk";
    IMPRINT_CHECK(check_pointer(call, "tensor", tensor));
    agent::SharedTensor made;
    IMPRINT_ASSIGN(made.variable, to_variable(call, desc));
    IMPRINT_ASSIGN(const bridge::HostBuffer host, to_buffer(call, "wish", wish, made.variable));
    if (host.buffer || host.offset || wish->size || host.memory_flags || host.device_address)
      return refuse(call, "wish.buffer, offset, size, memory_flags and device_address are for import; expected 0");
    IMPRINT_ASSIGN(made.buffer, entry.world->context().create_buffer({host.name, host.size, host.usage, host.sharing, host.families, host.stages, host.access}));
    const Variable variable = made.variable;
    IMPRINT_CHECK(publish_tensor(entry, std::move(made), tensor));
    return entry.world->context().runtime().write(variable, std::vector<std::byte>(bytes_of(variable)));
  });
}

imp_result IMP_CALL tensor_export_vk(imp_tensor tensor, imp_vk_buffer* buffer) {
  return with_tensor(tensor, Tag::create, "tensor_export_vk", [&](ContextEntry&, agent::SharedTensor& found) -> Status {
    IMPRINT_CHECK(check_filled_struct("tensor_export_vk", "buffer", buffer));
    const bridge::HostBuffer& host = found.buffer->description();
    const VkDeviceMemory memory = found.buffer->memory();
    fill_struct(buffer, [&](imp_vk_buffer& filled) {
      std::memcpy(&filled.buffer, &host.buffer, sizeof host.buffer);
      filled.offset = host.offset;
      filled.size = host.size;
      filled.usage = host.usage;
      filled.sharing = static_cast<std::uint32_t>(host.sharing);
      filled.memory_flags = host.memory_flags;
      filled.device_address = host.device_address;
      filled.stages = host.stages;
      filled.access = host.access;
      std::memcpy(&filled.memory, &memory, sizeof memory);
    });
    return {};
  });
}

imp_result IMP_CALL tensor_destroy(imp_tensor tensor) {
  return with_tensor(tensor, Tag::create, "tensor_destroy", [&](ContextEntry& entry, agent::SharedTensor& found) -> Status {
    std::string user;
    entry.brains.each([&](const std::shared_ptr<agent::Brain>& brain) {
      if (brain->uses(*found.buffer)) user = brain->spec().name;
    });
    if (!user.empty())
      return make_error(ErrorCode::wrong_state, "tensor_destroy: brain '" + user + "' uses '" + found.variable.name() + "'; destroy it first");
    const std::lock_guard lock(registry_mutex());
    entry.tensors.erase(unpack_handle(tensor.id).slot);
    return {};
  });
}

imp_result IMP_CALL tensor_acquire(imp_tensor tensor) {
  return with_tensor(tensor, Tag::frame_before, "tensor_acquire",
                     [&](ContextEntry& entry, agent::SharedTensor& found) { return entry.world->context().acquire(found.buffer); });
}

imp_result IMP_CALL tensor_release(imp_tensor tensor) {
  return with_tensor(tensor, Tag::frame_before, "tensor_release",
                     [&](ContextEntry& entry, agent::SharedTensor& found) { return entry.world->context().release(found.buffer); });
}

}  // namespace imprint::abi
