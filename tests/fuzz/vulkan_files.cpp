// Kernel archives, pipeline caches and tuning tables.

#include <cstring>
#include <string_view>
#include <vector>

#include "compute/base/hash.h"
#include "compute/tuning/tuning_table.h"
#include "compute/vk/pipelines/kernel_archive.h"
#include "compute/vk/pipelines/pipeline_blob.h"
#include "tests/fuzz/harness.h"

namespace imprint::fuzz {
namespace {

void take_archive(Bytes bytes) {
  const auto archive = vk::KernelArchive::parse(bytes);
  check_error(archive);
  if (!archive) return;
  (*archive)->profile_for({});
  for (const vk::ArchivedKernel& kernel : (*archive)->kernels())
    require((*archive)->find(kernel.key) == kernel.spirv, "a kernel is found by its key");
  require(vk::write_kernel_archive((*archive)->profiles(), (*archive)->compiler(),
                                   {(*archive)->kernels().begin(), (*archive)->kernels().end()})
                  .size() > 0,
          "an archive can be written");
}

const vk::Capabilities& device() {
  static const vk::Capabilities capabilities = [] {
    vk::Capabilities own;
    own.device_name = "own";
    own.driver_name = "driver";
    own.vendor_id = 0x10de;
    own.device_id = 1;
    own.driver_version = 7;
    own.pipeline_cache_uuid[5] = 0xab;
    return own;
  }();
  return capabilities;
}

}  // namespace

void kernel_archive(Bytes bytes) {
  take_archive(bytes);
  // The same with the right hash: it covers bytes 12 .. 16 as a number, then those from 32 on.
  constexpr std::size_t kLength = 12, kHash = 16, kContent = 32;
  if (bytes.size() < kContent) return;
  std::vector<std::byte> valid(bytes.begin(), bytes.end());
  std::uint32_t length;
  std::memcpy(&length, valid.data() + kLength, sizeof length);
  const Hash128 hash = Hasher().number(length).bytes(std::span(valid).subspan(kContent)).digest();
  std::memcpy(valid.data() + kHash, &hash.low, sizeof hash.low);
  std::memcpy(valid.data() + kHash + 8, &hash.high, sizeof hash.high);
  take_archive(valid);
}

void pipeline_cache(Bytes bytes) {
  check_error(vk::unwrap_pipeline_cache(bytes, device()));
  const std::vector<std::byte> wrapped = vk::wrap_pipeline_cache(bytes);
  const auto data = vk::unwrap_pipeline_cache(wrapped, device());
  check_error(data);
  require(!data || data->size() == bytes.size(), "what is wrapped comes back");
}

void tuning_table(Bytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto all = read_tuning_tables(text);
  check_error(all);
  check_error(read_tuning_tables(text, device()));
  if (!all) return;
  const auto written = write_tuning_tables({{"kernel", "variant"}}, device(), text);
  require(written.ok(), "what is read can be written beside another table");
  require(read_tuning_tables(*written, device()).ok(), "what is written can be read");
}

}  // namespace imprint::fuzz
