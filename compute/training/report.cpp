#include "compute/training/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "compute/base/text.h"
#include "compute/model/files/file.h"
#include "compute/training/checkpoint.h"

namespace imprint::training {
namespace {

constexpr std::array<const char*, 4> kColours = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd"};

std::string short_figure(double value) { return figures(value, 4); }

std::string escaped(const std::string& words) {
  std::string out;
  for (const char c : words) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

struct Extent {
  double low = INFINITY, high = -INFINITY;
  void add(double value) { low = std::fmin(low, value), high = std::fmax(high, value); }
  // A usable extent, whatever was added.
  Extent widened() const {
    if (!(low <= high)) return {0, 1};
    return low < high ? *this : Extent{low - 0.5, high + 0.5};
  }
};

bool is_drawn(const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second);
}

std::string words_at(double x, double y, const char* anchor, const std::string& words,
                     const std::string& colour = "#444") {
  return text("<text x=\"", short_figure(x), "\" y=\"", short_figure(y), "\" text-anchor=\"", anchor,
              "\" fill=\"", colour, "\">", escaped(words), "</text>\n");
}

// The lowest and the highest value of a split; metric -1: the loss.
Extent extent_of(const Curves& curves, const std::string& split, int metric) {
  Extent extent;
  for (const CurveRow& row : curves.rows)
    if (row.split == split) extent.add(metric < 0 ? row.loss : row.metrics[static_cast<std::size_t>(metric)]);
  return extent;
}

const CurveRow* last_of(const Curves& curves, const std::string& split) {
  const CurveRow* last = nullptr;
  for (const CurveRow& row : curves.rows)
    if (row.split == split) last = &row;
  return last;
}

std::string table_row(const std::string& measure, const std::string& split, double last, const Extent& all) {
  return text("<tr><td>", escaped(measure), "</td><td>", split, "</td><td>", short_figure(last), "</td><td>",
              short_figure(all.low), "</td><td>", short_figure(all.high), "</td></tr>\n");
}

}  // namespace

std::string chart_svg(const std::string& title, const std::vector<ChartLine>& lines, int width, int height) {
  Extent xs, ys;
  for (const ChartLine& line : lines)
    for (const auto& point : line.points)
      if (is_drawn(point)) xs.add(point.first), ys.add(point.second);
  xs = xs.widened();
  ys = ys.widened();
  const double left = 58, right = width - 12.0, top = 30, bottom = height - 34.0;
  const auto across = [&](double x) { return left + (right - left) * (x - xs.low) / (xs.high - xs.low); };
  const auto down = [&](double y) { return bottom - (bottom - top) * (y - ys.low) / (ys.high - ys.low); };
  std::string svg = text("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", width, "\" height=\"", height,
                         "\" viewBox=\"0 0 ", width, " ", height,
                         "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"", width,
                         "\" height=\"", height, "\" fill=\"#fff\"/>\n");
  svg += words_at(left, 18, "start", title, "#000");
  for (int i = 0; i <= 4; ++i) {
    const double y = ys.low + (ys.high - ys.low) * i / 4, x = xs.low + (xs.high - xs.low) * i / 4;
    svg += text("<path d=\"M", short_figure(left), " ", short_figure(down(y)), "H", short_figure(right),
                "\" stroke=\"#ddd\"/>\n");
    svg += words_at(left - 6, down(y) + 4, "end", short_figure(y));
    svg += words_at(across(x), bottom + 16, i == 4 ? "end" : "middle", short_figure(x));
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string colour = kColours[i % kColours.size()];
    std::string path;
    for (const auto& point : lines[i].points)
      if (is_drawn(point))
        path += text(path.empty() ? "M" : "L", short_figure(across(point.first)), " ",
                     short_figure(down(point.second)));
    svg += text("<path d=\"", path, "\" fill=\"none\" stroke=\"", colour, "\" stroke-width=\"2\"/>\n");
    svg +=
        words_at(right - 90.0 * static_cast<double>(lines.size() - 1 - i), 18, "end", lines[i].name, colour);
  }
  return svg + "</svg>\n";
}

std::vector<ChartLine> curve_lines(const Curves& curves, const std::string& metric) {
  const auto at = std::find(curves.metric_names.begin(), curves.metric_names.end(), metric);
  std::vector<ChartLine> lines;
  for (const char* split : {"training", "validation"}) {
    ChartLine line{split, {}};
    for (const CurveRow& row : curves.rows) {
      if (row.split != split) continue;
      const auto index = static_cast<std::size_t>(at - curves.metric_names.begin());
      const double y = metric.empty() ? row.loss : index < row.metrics.size() ? row.metrics[index] : NAN;
      line.points.emplace_back(static_cast<double>(row.step), y);
    }
    if (!line.points.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

std::string report_html(const std::string& title, const Curves& curves,
                        const std::vector<std::string>& notes) {
  std::string html =
      text("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", escaped(title),
           "</title>\n<style>body{font:15px sans-serif;margin:2em;max-width:70em}"
           "td,th{padding:.2em 1em;text-align:left}svg{margin:.5em}pre{white-space:pre-wrap}"
           "</style></head>\n<body><h1>",
           escaped(title), "</h1>\n");
  for (const std::string& note : notes) html += text("<pre>", escaped(note), "</pre>\n");
  html += "<table><tr><th>measure</th><th>split</th><th>last</th><th>lowest</th><th>highest</th></tr>\n";
  for (const char* split : {"training", "validation"}) {
    const CurveRow* last = last_of(curves, split);
    if (last == nullptr) continue;
    html += table_row("loss", split, last->loss, extent_of(curves, split, -1));
    for (std::size_t i = 0; i < std::min(curves.metric_names.size(), last->metrics.size()); ++i)
      html += table_row(curves.metric_names[i], split, last->metrics[i],
                        extent_of(curves, split, static_cast<int>(i)));
  }
  html += "</table>\n" + chart_svg("loss by step", curve_lines(curves));
  for (const std::string& name : curves.metric_names)
    html += chart_svg(name + " by step", curve_lines(curves, name));
  return html + "</body></html>\n";
}

Result<> write_report(const std::string& path, const std::string& title, const Curves& curves,
                      const std::vector<std::string>& notes) {
  const std::string html = report_html(title, curves, notes);
  return write_file_atomic(path, std::as_bytes(std::span(html)));
}

}  // namespace imprint::training
