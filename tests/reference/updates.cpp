#include "tests/reference/updates.h"

#include "compute/base/at.h"

namespace imprint::reference {

std::vector<double> content(const Variable& variable, const Bindings& state) {
  const auto known = state.find(variable.name());
  return known == state.end() ? initial_values(variable) : known->second;
}

void run_updates(std::span<const Update> updates, Bindings& state) {
  std::vector<Tensor> wanted;
  for (const Update& update : updates) {
    wanted.push_back(update.value);
    wanted.push_back(update.by_rows ? update.rows : update.value);
  }
  const std::vector<std::vector<double>> found = evaluate_all(wanted, state);
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const Update& update = updates[i];
    const std::vector<double>& value = found[2 * i];
    std::vector<double> next = content(update.target, state);
    if (!update.by_rows) {
      next = value;
    } else {
      const std::vector<double>& rows = found[2 * i + 1];
      const std::size_t width = rows.empty() ? 0 : value.size() / rows.size();
      for (std::size_t row = 0; row < rows.size(); ++row) {
        if (rows[row] < 0 || rows[row] >= static_cast<double>(update.target.shape()[0])) continue;
        for (std::size_t k = 0; k < width; ++k) next[at(rows[row]) * width + k] = value[row * width + k];
      }
    }
    state[update.target.name()] = std::move(next);
  }
}

}  // namespace imprint::reference
