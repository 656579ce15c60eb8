#include <cmath>
#include <limits>
#include <stdexcept>

#include "tests/reference/index.h"
#include "tests/reference/interpreter.h"

namespace imprint::reference {

using namespace tensor;

namespace {

double wrapped(const Node& node, double value) {
  if (node.dtype != DType::int32) return value;
  // Sums and products of two int32 numbers stay below 2^63, where an int64 is exact.
  return static_cast<std::int32_t>(
      static_cast<std::uint32_t>(static_cast<std::uint64_t>(static_cast<std::int64_t>(value))));
}

double start_of(const Node& node) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool is_int = node.dtype == DType::int32;
  switch (node.op) {
    case Op::reduce_prod:
      return 1;
    case Op::reduce_max:
      return is_int ? std::numeric_limits<std::int32_t>::min() : -kInfinity;
    case Op::reduce_min:
      return is_int ? std::numeric_limits<std::int32_t>::max() : kInfinity;
    default:
      return 0;
  }
}

double folded(const Node& node, double so_far, double x) {
  switch (node.op) {
    case Op::reduce_sum:
      return wrapped(node, so_far + x);
    case Op::reduce_prod:
      if (node.dtype == DType::int32)
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(
            static_cast<std::uint64_t>(static_cast<std::int64_t>(so_far) * static_cast<std::int64_t>(x))));
      return so_far * x;
    case Op::reduce_max:
      return std::isnan(x) || x > so_far ? x : so_far;
    case Op::reduce_min:
      return std::isnan(x) || x < so_far ? x : so_far;
    default:
      throw std::runtime_error("no reduction " + std::string(op_info(node.op).name));
  }
}

std::vector<double> reduce(const Node& node, const Operand& x) {
  std::vector<double> out(at(node.shape.element_count()), start_of(node));
  for_each(x.node.shape, [&](Index index, std::size_t i) {
    for (std::int64_t axis : node.ints) index[at(axis)] = 0;
    double& target = out[position_of(index, node.shape)];
    target = folded(node, target, x.values[i]);
  });
  return out;
}

std::vector<double> arg_reduce(const Node& node, const Operand& x) {
  std::vector<double> out(at(node.shape.element_count()), 0);
  const std::size_t axis = at(node.ints[0]);
  for_each(node.shape, [&](Index index, std::size_t i) {
    double best = 0;
    for (index[axis] = 0; index[axis] < x.node.shape[static_cast<int>(axis)]; ++index[axis]) {
      const double value = x.values[position_of(index, x.node.shape)];
      const bool better = index[axis] == 0 || (node.op == Op::argmax ? value > best : value < best) ||
                          (std::isnan(value) && !std::isnan(best));
      if (!better) continue;
      best = value;
      out[i] = static_cast<double>(index[axis]);
    }
  });
  return out;
}

std::vector<double> matmul(const Node& node, const Operand& a, const Operand& b) {
  const int last = node.shape.rank() - 1;
  const std::int64_t rows = node.shape[last - 1], columns = node.shape[last], depth = a.node.shape[last];
  std::vector<double> out(at(node.shape.element_count()), 0);
  const std::int64_t matrices = rows * columns == 0 ? 0 : node.shape.element_count() / (rows * columns);
  for (std::int64_t matrix = 0; matrix < matrices; ++matrix)
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t k = 0; k < depth; ++k)
        for (std::int64_t column = 0; column < columns; ++column)
          out[at((matrix * rows + row) * columns + column)] +=
              a.values[at((matrix * rows + row) * depth + k)] *
              b.values[at((matrix * depth + k) * columns + column)];
  return out;
}

std::vector<double> cumsum(const Node& node, const Operand& x) {
  std::vector<double> out(x.values.size());
  const std::size_t axis = at(node.ints[0]);
  const bool exclusive = node.ints[1] != 0, reverse = node.ints[2] != 0;
  const std::int64_t extent = node.shape[static_cast<int>(axis)];
  Shape lines = node.shape;
  lines[static_cast<int>(axis)] = 1;
  for_each(extent == 0 ? node.shape : lines, [&](Index index, std::size_t) {
    double sum = 0;
    for (std::int64_t step = 0; step < extent; ++step) {
      index[axis] = reverse ? extent - 1 - step : step;
      const std::size_t i = position_of(index, node.shape);
      const double before = sum;
      sum = wrapped(node, sum + x.values[i]);
      out[i] = exclusive ? before : sum;
    }
  });
  return out;
}

std::vector<double> linear_recurrence(const Node& node, const Operand& terms, const Operand& factors) {
  std::vector<double> out(terms.values.size());
  const std::size_t axis = at(node.ints[0]);
  const std::int64_t extent = node.shape[static_cast<int>(axis)];
  Shape lines = node.shape;
  lines[static_cast<int>(axis)] = 1;
  for_each(extent == 0 ? node.shape : lines, [&](Index index, std::size_t) {
    double last = 0;
    for (std::int64_t step = 0; step < extent; ++step) {
      index[axis] = node.ints[2] != 0 ? extent - 1 - step : step;
      const std::size_t i = position_of(index, node.shape);
      out[i] = last = factors.values[i] * last + terms.values[i];
    }
  });
  return out;
}

std::vector<double> scatter_add(const Node& node, const Operand& base, const Operand& indices,
                                const Operand& updates) {
  std::vector<double> out = base.values;
  const std::size_t axis = at(node.ints[0]);
  for_each(indices.node.shape, [&](Index index, std::size_t i) {
    index[axis] = static_cast<std::int64_t>(indices.values[i]);
    if (index[axis] < 0 || index[axis] >= node.shape[static_cast<int>(axis)]) return;
    double& target = out[position_of(index, node.shape)];
    target = wrapped(node, target + updates.values[i]);
  });
  return out;
}

std::vector<double> unwindow(const Node& node, const Operand& windows) {
  std::vector<double> out(at(node.shape.element_count()), 0);
  const std::size_t axis = at(node.ints[0]), last = at(windows.node.shape.rank() - 1);
  for_each(windows.node.shape, [&](Index index, std::size_t i) {
    index[axis] = index[axis] * node.ints[2] + index[last] * node.ints[3];
    double& target = out[position_of(index, node.shape)];
    target = wrapped(node, target + windows.values[i]);
  });
  return out;
}

}  // namespace

std::vector<double> fold(const Node& node, std::span<const Operand> operands) {
  if (is_plain_fold(node.op)) return reduce(node, operands[0]);
  switch (node.op) {
    case Op::argmax:
    case Op::argmin:
      return arg_reduce(node, operands[0]);
    case Op::matmul:
      return matmul(node, operands[0], operands[1]);
    case Op::cumsum:
      return cumsum(node, operands[0]);
    case Op::linear_recurrence:
      return linear_recurrence(node, operands[0], operands[1]);
    case Op::scatter_add:
      return scatter_add(node, operands[0], operands[1], operands[2]);
    case Op::unwindow:
      return unwindow(node, operands[0]);
    default:
      throw std::runtime_error("no folding " + std::string(op_info(node.op).name));
  }
}

}  // namespace imprint::reference
