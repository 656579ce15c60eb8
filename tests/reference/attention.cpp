#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "tests/reference/layer_pages.h"

namespace imprint::reference {
namespace {

using Numbers = std::vector<double>;

// A mask by its slot and strides; without a slot there is none.
struct Mask {
  std::optional<std::size_t> slot;
  std::size_t batch = 0, head = 0, query = 0, key = 0, heads = 1;

  Mask(const Page& page, const std::string& name) {
    const auto find = [&](const std::string& constant) -> std::optional<std::size_t> {
      const auto found =
          std::ranges::find(page.constants, constant, &std::pair<std::string, std::int64_t>::first);
      if (found == page.constants.end()) return std::nullopt;
      return static_cast<std::size_t>(found->second);
    };
    slot = find(name);
    if (!slot) return;
    batch = *find(name + "_BATCH"), head = *find(name + "_HEAD"), query = *find(name + "_QUERY");
    key = *find(name + "_KEY"), heads = *find("HEADS_OF_ONE");
  }
  double at(std::span<const Operand> operands, std::size_t h, std::size_t q, std::size_t k,
            double otherwise) const {
    if (!slot) return otherwise;
    return operands[*slot].values[h / heads * batch + h % heads * head + q * query + k * key];
  }
};

struct Layout {
  std::size_t heads, shared, queries, keys, extent;
  bool causal;
  Mask bias, hidden, factors;

  explicit Layout(const Page& page)
      : heads(constant(page, "HEADS")),
        shared(constant(page, "SHARED")),
        queries(constant(page, "QUERIES")),
        keys(constant(page, "KEYS")),
        extent(constant(page, "EXTENT")),
        causal(constant(page, "CAUSAL") != 0),
        bias(page, "BIAS"),
        hidden(page, "HIDDEN"),
        factors(page, "FACTORS") {}

  bool is_masked() const { return bias.slot || hidden.slot || factors.slot; }

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
  bool hides(std::span<const Operand> operands, std::size_t head, std::size_t q, std::size_t k) const {
    return hidden.at(operands, head, q, k, 0) != 0;
  }
  double score(std::span<const Operand> operands, std::size_t head, std::size_t q, std::size_t k) const {
    if (hides(operands, head, q, k)) return -1e30;
    return product(operands[0].values, query_row(head, q), operands[1].values, key_row(head, k)) * scale() +
           bias.at(operands, head, q, k, 0);
  }
};

}  // namespace

std::vector<Numbers> attention(const Page& page, std::span<const Operand> operands) {
  const Layout at(page);
  const Numbers& value = operands[2].values;
  Numbers result(operands[0].values.size()), logarithms(at.heads * at.queries), largest(logarithms),
      weights(at.heads * at.queries * at.keys);
  for (std::size_t head = 0; head < at.heads; ++head)
    for (std::size_t q = 0; q < at.queries; ++q) {
      const std::size_t row = at.query_row(head, q);
      Numbers scores;
      for (std::size_t k = 0; k < at.seen(q); ++k) scores.push_back(at.score(operands, head, q, k));
      const double most = *std::ranges::max_element(scores);
      double total = 0;
      for (double& score : scores) total += score = std::exp(score - most);
      for (std::size_t k = 0; k < scores.size(); ++k) weights[row * at.keys + k] = scores[k] / total;
      for (std::size_t k = 0; k < scores.size(); ++k)
        for (std::size_t d = 0; d < at.extent; ++d)
          result[row * at.extent + d] += scores[k] / total * at.factors.at(operands, head, q, k, 1) *
                                         value[at.key_row(head, k) * at.extent + d];
      logarithms[row] = std::log(total) + (at.is_masked() ? 0 : most);
      largest[row] = most;
    }
  std::vector<Numbers> found{result, logarithms};
  if (at.is_masked()) found.push_back(largest);
  if (found.size() < page.outputs.size()) found.push_back(weights);
  return found;
}

std::vector<Numbers> attention_gradient(const Page& page, std::span<const Operand> operands) {
  const Layout at(page);
  const Numbers &query = operands[0].values, &key = operands[1].values, &value = operands[2].values,
                &arrived = operands[3].values, &logarithms = operands[4].values, &result = operands[5].values;
  Numbers of_query(query.size()), of_key(key.size()), of_value(value.size());
  for (std::size_t head = 0; head < at.heads; ++head)
    for (std::size_t q = 0; q < at.queries; ++q) {
      const std::size_t row = at.query_row(head, q);
      const double product = at.product(arrived, row, result, row);
      for (std::size_t k = 0; k < at.seen(q); ++k) {
        const std::size_t other = at.key_row(head, k);
        const double most = at.is_masked() ? operands[6].values[row] : 0;
        const double weight = std::exp(at.score(operands, head, q, k) - most - logarithms[row]);
        const double factor = at.factors.at(operands, head, q, k, 1);
        const double slope =
            at.hides(operands, head, q, k)
                ? 0
                : weight * (at.product(arrived, row, value, other) * factor - product) * at.scale();
        for (std::size_t d = 0; d < at.extent; ++d) {
          of_query[row * at.extent + d] += slope * key[other * at.extent + d];
          of_key[other * at.extent + d] += slope * query[row * at.extent + d];
          of_value[other * at.extent + d] += weight * factor * arrived[row * at.extent + d];
        }
      }
    }
  return {of_query, of_key, of_value};
}

}  // namespace imprint::reference
