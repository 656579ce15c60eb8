#include "compute/base/utf8.h"
#include "plugin/abi/calls.h"
#include "plugin/abi/convert.h"
#include "plugin/abi/exports.h"

namespace imprint::abi {
namespace {

// Leaves buffer and parts empty.
Result<agent::SharedTensor> to_tensor(const char* call, const imp_tensor_desc* desc) {
  IMPRINT_ASSIGN(const imp_tensor_desc given, read_struct(call, "desc", desc));
  IMPRINT_CHECK(check_enum(call, "desc.dtype", given.dtype, IMP_DTYPE_INT32));
  if (given.rank == 0 || given.rank > IMP_MAX_RANK)
    return refuse(call, text("desc.rank: found ", given.rank, ", expected 1 to ", IMP_MAX_RANK));
  agent::SharedTensor tensor;
  std::uint64_t elements = 1;
  for (std::uint32_t i = 0; i < given.rank; ++i) {
    const std::uint64_t extent = given.shape[i];
    if (extent == 0 || extent > INT32_MAX || elements > INT32_MAX / extent)
      return refuse(call, text("desc.shape[", i, "]: found ", extent, ", expected 1 or more, and at most ",
                               INT32_MAX, " elements in all"));
    elements *= extent;
    tensor.shape.append(static_cast<std::int64_t>(extent));
  }
  tensor.name = given.name ? given.name : "tensor";
  if (!is_utf8(tensor.name)) return refuse(call, "desc.name: found bytes that are not UTF-8, expected UTF-8");
  if (given.dtype == IMP_DTYPE_INT32) tensor.dtype = DType::int32;
  return tensor;
}

std::uint64_t bytes_of(const agent::SharedTensor& tensor) {
  return tensor.element_count() * dtype_size(tensor.dtype);
}

Result<bridge::HostBuffer> to_buffer(const char* call, const char* name, const imp_vk_buffer* buffer,
                                     const agent::SharedTensor& tensor) {
  IMPRINT_ASSIGN(const imp_vk_buffer given, read_struct(call, name, buffer));
  constexpr std::uint32_t kMostFamilies = 256;
  IMPRINT_CHECK(check_array(call, (std::string(name) + ".families").c_str(), given.families,
                            given.family_count, kMostFamilies));
  bridge::HostBuffer host;
  host.name = tensor.name;
  std::memcpy(&host.buffer, &given.buffer, sizeof host.buffer);
  host.offset = given.offset;
  host.size = given.size == 0 ? bytes_of(tensor) : given.size;
  host.usage = given.usage;
  host.sharing = static_cast<VkSharingMode>(given.sharing);
  if (given.family_count > 0) host.families.assign(given.families, given.families + given.family_count);
  host.memory_flags = given.memory_flags;
  host.device_address = given.device_address;
  host.stages = given.stages;
  host.access = given.access;
  return host;
}

Result<> place_parts(bridge::Context& context, agent::SharedTensor& tensor) {
  const bridge::HostBuffer& host = tensor.buffer->description();
  if (host.size < bytes_of(tensor))
    return make_error(ErrorCode::invalid_argument,
                      text("buffer.size: found ", host.size, ", expected at least ", bytes_of(tensor),
                           " bytes for tensor '", tensor.name, "' ", tensor.shape.text()));
  const vk::Capabilities& device = context.device().capabilities();
  IMPRINT_ASSIGN(tensor.parts, agent::split(tensor.name, tensor.shape, tensor.dtype,
                                            device.max_storage_buffer_range, buffer_range_alignment(device)));
  std::uint64_t first = 0;
  for (const Variable& part : tensor.parts) {
    IMPRINT_CHECK(
        context.runtime().place_in(part, bridge::SharedBuffer::range(tensor.buffer, first, part.bytes())));
    first += part.bytes();
  }
  return {};
}

Result<> publish_tensor(ContextEntry& entry, agent::SharedTensor made, imp_tensor* tensor) {
  const std::lock_guard lock(registry_mutex());
  const auto [place, placed] = entry.tensors.insert(std::move(made));
  if (!placed)
    return make_error(ErrorCode::unsupported, "this context has " + std::to_string(kSlots) +
                                                  " tensors, the most possible. Destroy one first.");
  *tensor = {pack_handle({HandleKind::tensor, entry.slot, entry.generation, place.slot, place.generation})};
  return {};
}

}  // namespace

imp_result IMP_CALL tensor_import_vk(imp_context context, const imp_tensor_desc* desc,
                                     const imp_vk_buffer* buffer, imp_tensor* tensor) {
  return with_context(context, Tag::create, "tensor_import_vk", [&](ContextEntry& entry) -> Result<> {
    constexpr const char* call = "tensor_import_vk";
    IMPRINT_CHECK(check_pointer(call, "tensor", tensor));
    IMPRINT_ASSIGN(agent::SharedTensor made, to_tensor(call, desc));
    IMPRINT_ASSIGN(const bridge::HostBuffer host, to_buffer(call, "buffer", buffer, made));
    IMPRINT_ASSIGN(made.buffer, entry.world->import_buffer(host));
    IMPRINT_CHECK(place_parts(entry.world->context(), made));
    return publish_tensor(entry, std::move(made), tensor);
  });
}

imp_result IMP_CALL tensor_create_vk(imp_context context, const imp_tensor_desc* desc,
                                     const imp_vk_buffer* wish, imp_tensor* tensor) {
  return with_context(context, Tag::create, "tensor_create_vk", [&](ContextEntry& entry) -> Result<> {
    constexpr const char* call = "tensor_create_vk";
    IMPRINT_CHECK(check_pointer(call, "tensor", tensor));
    IMPRINT_ASSIGN(agent::SharedTensor made, to_tensor(call, desc));
    IMPRINT_ASSIGN(const bridge::HostBuffer host, to_buffer(call, "wish", wish, made));
    if (host.buffer || host.offset || wish->size || host.memory_flags || host.device_address || wish->memory)
      return refuse(
          call,
          "wish.buffer, offset, size, memory_flags, device_address, memory: found a value, expected 0. "
          "Use tensor_import_vk for a buffer that exists.");
    IMPRINT_ASSIGN(made.buffer, entry.world->create_buffer({host.name, host.size, host.usage, host.sharing,
                                                            host.families, host.stages, host.access}));
    IMPRINT_CHECK(place_parts(entry.world->context(), made));
    for (const Variable& part : made.parts) IMPRINT_CHECK(entry.world->context().runtime().write_zeros(part));
    return publish_tensor(entry, std::move(made), tensor);
  });
}

imp_result IMP_CALL tensor_export_vk(imp_tensor tensor, imp_vk_buffer* buffer) {
  return with_tensor(tensor, Tag::create, "tensor_export_vk",
                     [&](ContextEntry&, agent::SharedTensor& found) -> Result<> {
                       IMPRINT_CHECK(check_filled_struct("tensor_export_vk", "buffer", buffer));
                       const bridge::HostBuffer& host = found.buffer->description();
                       const bridge::HostSide* side = found.buffer->host_side();
                       const VkBuffer handle = side ? side->buffer() : host.buffer;
                       const VkDeviceMemory memory = side ? side->memory() : found.buffer->memory();
                       fill_struct(buffer, [&](imp_vk_buffer& filled) {
                         std::memcpy(&filled.buffer, &handle, sizeof handle);
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
  return with_tensor(
      tensor, Tag::create, "tensor_destroy",
      [&](ContextEntry& entry, agent::SharedTensor& found) -> Result<> {
        std::string user;
        entry.brains.each([&](const std::shared_ptr<agent::Brain>& brain) {
          if (brain->uses(*found.buffer)) user = "brain '" + brain->spec().name;
        });
        entry.models.each([&](const std::shared_ptr<agent::Model>& model) {
          if (model->uses(*found.buffer)) user = "model '" + model->name();
        });
        if (!user.empty())
          return make_error(ErrorCode::wrong_state,
                            "tensor_destroy: " + user + "' uses '" + found.name + "'; destroy it first");
        entry.world->context().forget(found.buffer);
        agent::SharedTensor last;  // freed after the lock: freeing may call the host's memory callbacks
        const std::lock_guard lock(registry_mutex());
        last = entry.tensors.take(unpack_handle(tensor.id).slot);
        return {};
      },
      AfterLoss::serves);
}

imp_result IMP_CALL tensor_acquire(imp_tensor tensor) {
  return with_tensor(tensor, Tag::frame_before, "tensor_acquire",
                     [&](ContextEntry& entry, agent::SharedTensor& found) {
                       return entry.world->context().acquire(found.buffer);
                     });
}

imp_result IMP_CALL tensor_release(imp_tensor tensor) {
  return with_tensor(tensor, Tag::frame_before, "tensor_release",
                     [&](ContextEntry& entry, agent::SharedTensor& found) {
                       return entry.world->context().release(found.buffer);
                     });
}

}  // namespace imprint::abi
