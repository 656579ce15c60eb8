#include <stdexcept>

#include "tests/reference/index.h"
#include "tests/reference/interpreter.h"

namespace imprint::reference {

using namespace tensor;

namespace {

double read(const Operand& operand, const Index& index) {
  return operand.values[position_of(index, operand.node.shape)];
}

double padded(const Node& node, const Operand& x, const Index& index) {
  Index from{};
  for (int axis = 0; axis < node.shape.rank(); ++axis) {
    from[at(axis)] = index[at(axis)] - node.ints[2 * at(axis)];
    if (from[at(axis)] < 0 || from[at(axis)] >= x.node.shape[axis]) return node.floats[0];
  }
  return read(x, from);
}

double concatenated(const Node& node, std::span<const Operand> operands, Index index) {
  const std::size_t axis = at(node.ints[0]);
  for (const Operand& operand : operands) {
    const std::int64_t extent = operand.node.shape[static_cast<int>(axis)];
    if (index[axis] < extent) return read(operand, index);
    index[axis] -= extent;
  }
  throw std::runtime_error("concat read past its operands");
}

double gathered(const Node& node, const Operand& data, const Operand& indices, Index index) {
  const std::size_t axis = at(node.ints[0]);
  index[axis] = static_cast<std::int64_t>(read(indices, index));
  if (index[axis] < 0 || index[axis] >= data.node.shape[static_cast<int>(axis)]) return 0;
  return read(data, index);
}

double taken(const Node& node, const Operand& data, const Operand& indices, const Index& index) {
  const std::size_t axis = at(node.ints[0]);
  const std::size_t index_rank = at(indices.node.shape.rank());
  Index which{}, from{};
  for (std::size_t k = 0; k < index_rank; ++k) which[k] = index[axis + k];
  for (std::size_t k = 0; k < axis; ++k) from[k] = index[k];
  for (std::size_t k = axis + 1; k < at(data.node.shape.rank()); ++k) from[k] = index[k + index_rank - 1];
  from[axis] = static_cast<std::int64_t>(read(indices, which));
  if (from[axis] < 0 || from[axis] >= data.node.shape[static_cast<int>(axis)]) return 0;
  return read(data, from);
}

double element(const Node& node, std::span<const Operand> operands, const Index& index) {
  const Operand& x = operands[0];
  const Shape& source = x.node.shape;
  Index from{};
  switch (node.op) {
    case Op::permute:
      for (std::size_t axis = 0; axis < node.ints.size(); ++axis) from[at(node.ints[axis])] = index[axis];
      return read(x, from);
    case Op::expand:
      for (int axis = 0; axis < source.rank(); ++axis)
        from[at(axis)] = source[axis] == 1 ? 0 : index[at(axis)];
      return read(x, from);
    case Op::slice:
      for (int axis = 0; axis < source.rank(); ++axis)
        from[at(axis)] = node.ints[2 * at(axis)] + index[at(axis)] * node.ints[2 * at(axis) + 1];
      return read(x, from);
    case Op::window:
      from = index;
      from[at(node.ints[0])] =
          index[at(node.ints[0])] * node.ints[2] + index[at(source.rank())] * node.ints[3];
      return read(x, from);
    case Op::pad:
      return padded(node, x, index);
    case Op::concat:
      return concatenated(node, operands, index);
    case Op::gather:
      return gathered(node, x, operands[1], index);
    case Op::take:
      return taken(node, x, operands[1], index);
    default:
      throw std::runtime_error("no view or select " + std::string(op_info(node.op).name));
  }
}

}  // namespace

std::vector<double> arrange(const Node& node, std::span<const Operand> operands) {
  if (node.op == Op::reshape) return operands[0].values;
  std::vector<double> out(static_cast<std::size_t>(node.shape.element_count()));
  for_each(node.shape, [&](const Index& index, std::size_t i) { out[i] = element(node, operands, index); });
  return out;
}

}  // namespace imprint::reference
