#include <algorithm>
#include <cmath>
#include <string>

#include "tests/reference/layer_pages.h"

namespace imprint::reference {
namespace {

using Numbers = std::vector<double>;

struct Layout {
  std::size_t heads, shared, queries, keys, extent;
  bool causal;

  explicit Layout(const Page& page)
      : heads(constant(page, "HEADS")),
        shared(constant(page, "SHARED")),
        queries(constant(page, "QUERIES")),
        keys(constant(page, "KEYS")),
        extent(constant(page, "EXTENT")),
        causal(constant(page, "CAUSAL") != 0) {}

  static std::size_t constant(const Page& page, const std::string& name) {
    const auto found = std::ranges::find(page.constants, name, &std::pair<std::string, std::int64_t>::first);
    return static_cast<std::size_t>(found->second);
  }
  std::size_t query_row(std::size_t head, std::size_t query) const { return head * queries + query; }
  std::size_t key_row(std::size_t head, std::size_t key) const { return head / shared * keys + key; }
  std::size_t seen(std::size_t query) const { return causal ? query + keys - queries + 1 : keys; }
  double product(const Numbers& a, std::size_t row, const Numbers& b, std::size_t other) const {
    double sum = 0;
    for (std::size_t k = 0; k < extent; ++k) sum += a[row * extent + k] * b[other * extent + k];
    return sum;
  }
  double scale() const { return 1 / std::sqrt(static_cast<double>(extent)); }
};

}  // namespace

std::vector<Numbers> attention(const Page& page, std::span<const Operand> operands) {
  const Layout at(page);
  const Numbers &query = operands[0].values, &key = operands[1].values, &value = operands[2].values;
  Numbers result(query.size()), logarithms(at.heads * at.queries), weights(at.heads * at.queries * at.keys);
  for (std::size_t head = 0; head < at.heads; ++head)
    for (std::size_t q = 0; q < at.queries; ++q) {
      const std::size_t row = at.query_row(head, q);
      Numbers scores;
      for (std::size_t k = 0; k < at.seen(q); ++k)
        scores.push_back(at.product(query, row, key, at.key_row(head, k)) * at.scale());
      const double most = *std::ranges::max_element(scores);
      double total = 0;
      for (double& score : scores) total += score = std::exp(score - most);
      for (std::size_t k = 0; k < scores.size(); ++k) weights[row * at.keys + k] = scores[k] / total;
      for (std::size_t k = 0; k < scores.size(); ++k)
        for (std::size_t d = 0; d < at.extent; ++d)
          result[row * at.extent + d] += scores[k] / total * value[at.key_row(head, k) * at.extent + d];
      logarithms[row] = most + std::log(total);
    }
  if (page.outputs.size() < 3) return {result, logarithms};
  return {result, logarithms, weights};
}

std::vector<Numbers> attention_gradient(const Page& page, std::span<const Operand> operands) {
  const Layout at(page);
  const Numbers &query = operands[0].values, &key = operands[1].values, &value = operands[2].values,
                &arrived = operands[3].values, &logarithms = operands[4].values,
                &products = operands[5].values;
  Numbers of_query(query.size()), of_key(key.size()), of_value(value.size());
  for (std::size_t head = 0; head < at.heads; ++head)
    for (std::size_t q = 0; q < at.queries; ++q)
      for (std::size_t k = 0; k < at.seen(q); ++k) {
        const std::size_t row = at.query_row(head, q), other = at.key_row(head, k);
        const double weight = std::exp(at.product(query, row, key, other) * at.scale() - logarithms[row]);
        const double slope = weight * (at.product(arrived, row, value, other) - products[row]) * at.scale();
        for (std::size_t d = 0; d < at.extent; ++d) {
          of_query[row * at.extent + d] += slope * key[other * at.extent + d];
          of_key[other * at.extent + d] += slope * query[row * at.extent + d];
          of_value[other * at.extent + d] += weight * arrived[row * at.extent + d];
        }
      }
  return {of_query, of_key, of_value};
}

}  // namespace imprint::reference
