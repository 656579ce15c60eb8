#pragma once
// Rows of words as a table of plain text.

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace imprint {

// Columns are parted by two spaces; the last one is flush right. Rows have equal numbers of cells.
inline std::string columns(const std::vector<std::vector<std::string>>& rows) {
  if (rows.empty()) return {};
  const std::size_t last = rows[0].size() - 1;
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows)
    for (std::size_t k = 0; k < row.size(); ++k) widths[k] = std::max(widths[k], row[k].size());
  std::string table;
  for (const auto& row : rows) {
    for (std::size_t k = 0; k < last; ++k) table += row[k] + std::string(widths[k] - row[k].size() + 2, ' ');
    table += std::string(widths[last] - row[last].size(), ' ') + row[last] + "\n";
  }
  return table;
}

}  // namespace imprint
