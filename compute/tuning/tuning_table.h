#pragma once
// Measured variants of kernels as text, to keep beside a pipeline cache or to ship with a game: JSON, a table
// for each device and driver.
//
//   { "imprint_tuning": 1,
//     "tables": [ { "device": { "name": ..., "driver": ..., "vendor": ..., "device": ..., "driver_version":
//     ..., "pipeline_cache_uuid": ... },
//                   "kernels": { "product 1 x 512 x 512 of 512 5d0c...": "64 x 64 x 16 by 4 x 8", ... } } ] }
//
// Reading is safe for any text. Bounds for n bytes: n <= 16 MiB; time O(n log n); memory 48 n + 64 KiB
// (compute/base/json.h).

#include <string>
#include <string_view>
#include <vector>

#include "compute/base/result.h"
#include "compute/graph/variants.h"
#include "compute/vk/capabilities.h"

namespace imprint {

// The table of this device and this version of its driver. Errors: corrupt_file (no such text, or damaged),
// unsupported (another version of the format; nothing for this device and driver).
Result<VariantTable> read_tuning_tables(std::string_view text, const vk::Capabilities& device);

// The tables of all devices and drivers, for who writes kernels for them elsewhere (bake.h). Errors: those of
// reading one, but for a missing table.
Result<std::vector<VariantTable>> read_tuning_tables(std::string_view text);

// beside: text whose tables of other devices and drivers stay; empty for none. Errors: those of reading it,
// but for a missing table.
Result<std::string> write_tuning_tables(const VariantTable& table, const vk::Capabilities& device,
                                        std::string_view beside = {});

}  // namespace imprint
