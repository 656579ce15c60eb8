#pragma once
// The end of a kernel of several tasks: each workgroup calls the function of its own.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "compute/base/text.h"

namespace imprint::kernels {

struct TaskCall {
  std::string glsl;        // a statement
  std::int64_t first = 0;  // workgroup of the dispatch
  double work = 0;         // of one workgroup
};

// calls: at least one, in the order of their workgroups. A workgroup waits for code that it jumps to, if none
// ran there before. So few jumps lead to a task, and none to that with the longest workgroups.
inline std::string calls_by_group(std::span<const TaskCall> calls, const std::string& indent) {
  if (calls.size() == 1) return indent + calls[0].glsl;
  const std::span<const TaskCall> left = calls.first(calls.size() / 2), right = calls.subspan(left.size());
  const auto longest = [](std::span<const TaskCall> some) {
    return std::ranges::max_element(some, {}, &TaskCall::work)->work;
  };
  const bool right_first = longest(right) > longest(left);
  return text(indent, "if (group ", right_first ? ">= " : "< ", right[0].first, ") {\n",
              calls_by_group(right_first ? right : left, indent + "  "), indent, "} else {\n",
              calls_by_group(right_first ? left : right, indent + "  "), indent, "}\n");
}

}  // namespace imprint::kernels
