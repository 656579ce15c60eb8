#include "compute/model/files/checked_shape.h"

#include "compute/base/text.h"

namespace imprint {

Result<Shape> checked_shape(std::span<const std::int64_t> extents) {
  if (extents.size() > static_cast<std::size_t>(Shape::kMaxRank))
    return make_error(ErrorCode::unsupported,
                      text("rank: found ", extents.size(), ", expected at most ", Shape::kMaxRank));
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) {
    if (extent < 0)
      return make_error(ErrorCode::invalid_argument, text("extent: found ", extent, ", expected at least 0"));
    // Counted as if no extent were zero, so that the others stay harmless too.
    const std::int64_t factor = extent == 0 ? 1 : extent;
    if (factor > kMaxElements / count)
      return make_error(ErrorCode::unsupported,
                        text("found a tensor of more than ", kMaxElements, " elements"));
    count *= factor;
  }
  return Shape(extents);
}

}  // namespace imprint
