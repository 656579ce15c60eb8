#pragma once
// Measured kernel variants as text, to store next to a pipeline cache or to ship with a game. JSON with one
// table per device and driver:
//
//   { "imprint_tuning": 1,
//     "tables": [ { "device": { "name": ..., "driver": ..., "vendor": ..., "device": ...,
//                               "driver_version": ..., "pipeline_cache_uuid": ... },
//                   "kernels": { "product 1 x 512 x 512 of 512 5d0c...": "64 x 64 x 16 by 4 x 8", ... } } ] }
//
// Reading is safe for any text. Bounds for n bytes: n <= 16 MiB; time O(n log n); memory 48 n + 64 KiB
// (compute/base/json.h).

#include <string>
#include <string_view>
#include <vector>

#include "compute/base/result.h"
#include "compute/graph/schedule/variants.h"
#include "compute/vk/capabilities/capabilities.h"

namespace imprint {

// Reads the table of this device and driver build. Errors: corrupt_file (not a tuning table, or damaged),
// unsupported (another version of the format; no table for this device and driver).
Result<VariantTable> read_tuning_tables(std::string_view text, const vk::Capabilities& device);

// Reads the tables of all devices and drivers, for tools that write kernels for them elsewhere (bake.h).
// Errors: as for one table, except a missing table.
Result<std::vector<VariantTable>> read_tuning_tables(std::string_view text);

// beside: earlier text, whose tables of other devices and drivers stay; may be empty. Errors: as for reading
// it, except a missing table.
Result<std::string> write_tuning_tables(const VariantTable& table, const vk::Capabilities& device,
                                        std::string_view beside = {});

}  // namespace imprint
