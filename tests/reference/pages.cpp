#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "compute/base/text.h"
#include "compute/tensor/pages/library_page.h"
#include "tests/reference/interpreter.h"
#include "tests/reference/layer_pages.h"

namespace imprint::reference {

using namespace tensor;

namespace {

using Values = std::vector<std::vector<double>>;  // per output

// Plain loops in double precision, by the page's name.
using Oracle = Values (*)(const Page& page, std::span<const Operand> operands);

std::int64_t constant(const Page& page, const std::string& name) {
  return std::ranges::find(page.constants, name, &std::pair<std::string, std::int64_t>::first)->second;
}

std::int64_t inner_of(const Shape& shape, std::int64_t axis) {
  std::int64_t inner = 1;
  for (int k = static_cast<int>(axis) + 1; k < shape.rank(); ++k) inner *= shape[k];
  return inner;
}

// The last of equals; NaN wins.
Values cumulative_extreme(const Page& page, std::span<const Operand> operands) {
  const bool largest = page.name == "cummax";
  const std::vector<double>& x = operands[0].values;
  const Shape& shape = operands[0].node.shape;
  const std::int64_t axis = constant(page, "AXIS"), inner = inner_of(shape, axis),
                     length = shape[static_cast<int>(axis)];
  Values out{x, x};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::int64_t step = static_cast<std::int64_t>(i) / inner % length;
    double best = x[i];
    std::int64_t at = step;
    for (std::int64_t k = step - 1; k >= 0; --k) {
      const double other = x[i - static_cast<std::size_t>((step - k) * inner)];
      const bool wins = std::isnan(other) ? !std::isnan(best) : largest ? other > best : other < best;
      if (wins) best = other, at = k;
    }
    out[0][i] = best;
    out[1][i] = static_cast<double>(at);
  }
  return out;
}

// The rank of each element of a line by counting those that come before it.
Values order(const Page& page, std::span<const Operand> operands) {
  const bool descending = constant(page, "DESCENDING") != 0;
  const std::vector<double>& x = operands[0].values;
  const Shape& shape = operands[0].node.shape;
  const auto length = static_cast<std::size_t>(shape[1]),
             count = static_cast<std::size_t>(page.outputs[0].shape[1]);
  Values out(1);
  for (std::size_t line = 0; line < static_cast<std::size_t>(shape[0]); ++line) {
    std::vector<std::pair<std::pair<bool, double>, std::size_t>> keys;
    for (std::size_t k = 0; k < length; ++k) {
      const double value = x[line * length + k];
      const bool is_nan = std::isnan(value);
      keys.push_back({{is_nan, is_nan ? 0 : descending ? -value : value}, k});
    }
    std::ranges::sort(keys);
    for (std::size_t k = 0; k < count; ++k) out[0].push_back(static_cast<double>(keys[k].second));
  }
  return out;
}

Values first_operands(const Page& page, std::span<const Operand> operands) {
  Values out;
  for (std::size_t k = 0; k < page.outputs.size(); ++k) out.push_back(operands[k].values);
  return out;
}

Values scatter(const Page& page, std::span<const Operand> operands) {
  const Shape &shape = operands[0].node.shape, &updates = operands[2].node.shape;
  const std::int64_t axis = constant(page, "AXIS"), inner = inner_of(shape, axis),
                     extent = shape[static_cast<int>(axis)], length = updates[static_cast<int>(axis)];
  Values out{operands[0].values};
  for (std::size_t i = 0; i < operands[2].values.size(); ++i) {
    const auto index = static_cast<std::int64_t>(operands[1].values[i]), at = static_cast<std::int64_t>(i);
    if (index < 0 || index >= extent) continue;
    double& target =
        out[0][static_cast<std::size_t>((at / (inner * length) * extent + index) * inner + at % inner)];
    const double update = operands[2].values[i];
    if (page.name == "scatter_assign")
      target = update;
    else if (page.name == "scatter_mul")
      target *= update;
    else if (!std::isnan(target))
      target = std::isnan(update) || (page.name == "scatter_max" ? update > target : update < target)
                   ? update
                   : target;
  }
  return out;
}

// A matrix of the batch in an operand, row by row.
std::span<const double> matrix_of(const Operand& operand, std::int64_t matrix) {
  const Shape& shape = operand.node.shape;
  const auto size = static_cast<std::size_t>(shape[1] * shape[2]);
  return std::span(operand.values).subspan(static_cast<std::size_t>(matrix) * size, size);
}

// Row by row: L of L L^T = a.
std::vector<double> lower_factor(std::span<const double> a, std::size_t n) {
  std::vector<double> l(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = a[i * n + j];
      for (std::size_t k = 0; k < j; ++k) sum -= l[i * n + k] * l[j * n + k];
      l[i * n + j] = i == j ? std::sqrt(sum) : sum / l[j * n + j];
    }
  return l;
}

Values cholesky(const Page&, std::span<const Operand> operands) {
  const Shape& shape = operands[0].node.shape;
  Values out(1);
  for (std::int64_t m = 0; m < shape[0]; ++m) {
    const auto l = lower_factor(matrix_of(operands[0], m), static_cast<std::size_t>(shape[1]));
    out[0].insert(out[0].end(), l.begin(), l.end());
  }
  return out;
}

// By elimination: columns of the triangle are subtracted from the right-hand side.
Values solve_triangular(const Page& page, std::span<const Operand> operands) {
  const bool upper = constant(page, "UPPER") != 0, unit = constant(page, "UNIT") != 0;
  const auto n = static_cast<std::size_t>(constant(page, "N")),
             columns = static_cast<std::size_t>(constant(page, "K"));
  Values out(1);
  for (std::int64_t m = 0; m < operands[0].node.shape[0]; ++m) {
    const auto t = matrix_of(operands[0], m), b = matrix_of(operands[1], m);
    std::vector<double> x(b.begin(), b.end());
    for (std::size_t step = 0; step < n; ++step) {
      const std::size_t j = upper ? n - 1 - step : step;
      for (std::size_t c = 0; c < columns; ++c) {
        if (!unit) x[j * columns + c] /= t[j * n + j];
        for (std::size_t rest = step + 1; rest < n; ++rest) {
          const std::size_t i = upper ? n - 1 - rest : rest;
          x[i * columns + c] -= t[i * n + j] * x[j * columns + c];
        }
      }
    }
    out[0].insert(out[0].end(), x.begin(), x.end());
  }
  return out;
}

// Doolittle's method on rows in the order that pivoting gives.
Values lu(const Page&, std::span<const Operand> operands) {
  const auto n = static_cast<std::size_t>(operands[0].node.shape[1]);
  Values out(3);
  for (std::int64_t m = 0; m < operands[0].node.shape[0]; ++m) {
    const auto given = matrix_of(operands[0], m);
    std::vector<std::vector<double>> rows;
    std::vector<double> order;
    for (std::size_t i = 0; i < n; ++i) {
      rows.emplace_back(given.begin() + static_cast<std::ptrdiff_t>(i * n),
                        given.begin() + static_cast<std::ptrdiff_t>(i * n + n));
      order.push_back(static_cast<double>(i));
    }
    double sign = 1;
    for (std::size_t k = 0; k < n; ++k) {
      for (std::size_t i = k; i < n; ++i)
        for (std::size_t p = 0; p < k; ++p) rows[i][k] -= rows[i][p] * rows[p][k];
      std::size_t best = k;
      for (std::size_t i = k; i < n; ++i)
        if (std::fabs(rows[i][k]) > std::fabs(rows[best][k])) best = i;
      if (best != k) {
        sign = -sign;
        std::swap(rows[k], rows[best]);
        std::swap(order[k], order[best]);
      }
      for (std::size_t i = k + 1; i < n; ++i) rows[i][k] /= rows[k][k];
      for (std::size_t j = k + 1; j < n; ++j)
        for (std::size_t p = 0; p < k; ++p) rows[k][j] -= rows[k][p] * rows[p][j];
    }
    for (const auto& row : rows) out[0].insert(out[0].end(), row.begin(), row.end());
    out[1].insert(out[1].end(), order.begin(), order.end());
    out[2].push_back(sign);
  }
  return out;
}

// R is the transposed factor of a^T a, and Q = a R^-1.
Values qr(const Page& page, std::span<const Operand> operands) {
  const auto rows = static_cast<std::size_t>(constant(page, "M")),
             n = static_cast<std::size_t>(constant(page, "N"));
  Values out(2);
  for (std::int64_t m = 0; m < operands[0].node.shape[0]; ++m) {
    const auto a = matrix_of(operands[0], m);
    std::vector<double> squares(n * n), q(a.begin(), a.end());
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        for (std::size_t k = 0; k < rows; ++k) squares[i * n + j] += a[k * n + i] * a[k * n + j];
    const std::vector<double> l = lower_factor(squares, n);
    for (std::size_t k = 0; k < rows; ++k)
      for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t p = 0; p < j; ++p) q[k * n + j] -= q[k * n + p] * l[j * n + p];
        q[k * n + j] /= l[j * n + j];
      }
    out[0].insert(out[0].end(), q.begin(), q.end());
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) out[1].push_back(l[j * n + i]);
  }
  return out;
}

// A row of x and one of weights at a time.
Values few_bits_product(const Page& page, std::span<const Operand> operands) {
  const bool four = constant(page, "BITS") == 4;
  const std::vector<double>&x = operands[0].values, &values = operands[1].values,
        &scales = operands[2].values;
  const auto depth = static_cast<std::size_t>(operands[0].node.shape[1]), rows = x.size() / depth,
             columns = static_cast<std::size_t>(operands[1].node.shape[0]),
             block = depth / static_cast<std::size_t>(operands[2].node.shape[1]);
  Values out(1);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t column = 0; column < columns; ++column) {
      double sum = 0;
      for (std::size_t k = 0; k < depth; ++k) {
        const std::size_t weight = column * depth + k;
        const auto byte = static_cast<int>(values[four ? weight / 2 : weight]);
        const int step = !four ? byte : (k % 2 == 0 ? byte % 16 : byte / 16) - 8;
        sum += x[row * depth + k] * step * scales[weight / block];
      }
      out[0].push_back(sum);
    }
  return out;
}

const std::map<std::string, Oracle>& oracles() {
  static const std::map<std::string, Oracle> map{{"cummax", cumulative_extreme},
                                                 {"cummin", cumulative_extreme},
                                                 {"argsort", order},
                                                 {"topk", order},
                                                 {"with_gradient", first_operands},
                                                 {"cholesky", cholesky},
                                                 {"solve_triangular", solve_triangular},
                                                 {"lu", lu},
                                                 {"few_bits_product", few_bits_product},
                                                 {"qr", qr},
                                                 {"attention", attention},
                                                 {"attention_gradient", attention_gradient},
                                                 {"recurrent", recurrent},
                                                 {"recurrent_gradient", recurrent_gradient},
                                                 {"scatter_assign", scatter},
                                                 {"scatter_mul", scatter},
                                                 {"scatter_min", scatter},
                                                 {"scatter_max", scatter}};
  return map;
}

// A page as elements of four bytes.
struct Words {
  std::vector<float> floats;
  std::vector<std::int32_t> ints;

  Words(DType dtype, const Shape& shape, const std::vector<double>& values) {
    const auto count = static_cast<std::size_t>(shape.element_count());
    if (dtype == DType::float32)
      floats.assign(values.begin(), values.end()), floats.resize(count);
    else
      ints.assign(values.begin(), values.end()), ints.resize(count);
  }
  PageArray array(DType dtype, const Shape& shape) {
    return {dtype, shape,
            dtype == DType::float32 ? static_cast<void*>(floats.data()) : static_cast<void*>(ints.data())};
  }
  std::vector<double> values(DType dtype) const {
    return dtype == DType::float32 ? std::vector<double>(floats.begin(), floats.end())
                                   : std::vector<double>(ints.begin(), ints.end());
  }
};

Values by_cpu_function(const Page& page, std::span<const Operand> operands) {
  if (!page.cpu) throw std::runtime_error("page " + page.name + " has neither an oracle nor a CPU function");
  std::vector<Words> inputs, outputs;
  std::vector<PageArray> input_arrays, output_arrays;
  for (const Operand& operand : operands)
    inputs.emplace_back(operand.node.dtype, operand.node.shape, operand.values);
  for (const PageOutput& output : page.outputs)
    outputs.emplace_back(output.dtype, output.shape, std::vector<double>());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    input_arrays.push_back(inputs[i].array(operands[i].node.dtype, operands[i].node.shape));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    output_arrays.push_back(outputs[i].array(page.outputs[i].dtype, page.outputs[i].shape));
  page.cpu(input_arrays, output_arrays);
  Values values;
  for (std::size_t i = 0; i < outputs.size(); ++i) values.push_back(outputs[i].values(page.outputs[i].dtype));
  return values;
}

Values by_composition(const LibraryPage& page, std::span<const Operand> operands) {
  std::vector<Tensor> inputs;
  Bindings bindings;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::string name = text("operand ", i);
    inputs.push_back(input(name, operands[i].node.shape, operands[i].node.dtype));
    bindings[name] = operands[i].values;
  }
  return evaluate_all(page.compose(inputs), bindings);
}

}  // namespace

std::vector<double> page(const Node& node, std::span<const Operand> operands) {
  const bool is_first = node.op == Op::page;
  const LibraryPage& page = is_first ? *node.page : *node.inputs[0]->page;
  const auto oracle = oracles().find(page.name);
  const Values values = oracle != oracles().end()   ? oracle->second(page, operands)
                        : page.compose && !page.cpu ? by_composition(page, operands)
                                                    : by_cpu_function(page, operands);
  return values[is_first ? 0 : static_cast<std::size_t>(node.ints[0])];
}

}  // namespace imprint::reference
