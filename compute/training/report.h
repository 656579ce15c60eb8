#pragma once
// Curves as pictures: SVG, and a page of HTML that needs no other file.

#include <string>
#include <utility>
#include <vector>

#include "compute/base/result.h"
#include "compute/training/curves.h"

namespace imprint::training {

struct ChartLine {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x, y; those that are not finite are left out
};
// Lines over a common axis, with a legend. width, height: pixels.
std::string chart_svg(const std::string& title, const std::vector<ChartLine>& lines, int width = 520,
                      int height = 300);

// Training and validation over the steps: of the loss (empty name) or of a metric.
std::vector<ChartLine> curve_lines(const Curves& curves, const std::string& metric = {});

// A chart per measure, the last, lowest and highest figures in a table, and notes as paragraphs.
std::string report_html(const std::string& title, const Curves& curves,
                        const std::vector<std::string>& notes = {});
// The same as a file. Errors: those of write_file_atomic.
Result<> write_report(const std::string& path, const std::string& title, const Curves& curves,
                      const std::vector<std::string>& notes = {});

}  // namespace imprint::training
