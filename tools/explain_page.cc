#include "explain_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "page_text.h"
#include "report.h"

namespace heddle::tools {

namespace {

constexpr int kBoxWidth = 196, kBoxHeight = 36, kGapX = 40, kGapY = 30, kMargin = 20;
constexpr int kSweeps = 8;

std::string shortened(const std::string& text, size_t most) {
  return text.size() <= most ? text : text.substr(0, most - 1) + "\u2026";
}

// The style's class of a kind.
std::string class_of(const std::string& kind) {
  for (const char* known : {"product", "reduction", "map", "copy"})
    if (kind == known) return kind;
  return "other";
}

std::string data_of(const Page& page) {
  nlohmann::ordered_json data;
  data["nodes"] = nlohmann::ordered_json::array();
  data["edges"] = nlohmann::ordered_json::array();
  for (const PageNode& node : page.nodes)
    data["nodes"].push_back({{"name", node.name},
                             {"title", node.title},
                             {"details", node.details},
                             {"operators", node.operators},
                             {"nodes", node.nodes},
                             {"predicted", node.predicted_ms},
                             {"measured", node.measured_ms}});
  for (size_t e = 0; e < page.edges.size(); ++e)
    data["edges"].push_back({{"id", e},
                             {"from", page.edges[e].from},
                             {"to", page.edges[e].to},
                             {"code", page.edges[e].code},
                             {"ms", page.edges[e].ms},
                             {"label", page.edges[e].label}});
  return script_text(data);
}

std::string svg_of(const Page& page) {
  const std::vector<NodePlace> places = layout_of(page);
  int columns = 1, layers = 1;
  for (const NodePlace& place : places) {
    columns = std::max(columns, place.column + 1);
    layers = std::max(layers, place.layer + 1);
  }
  auto x = [&](size_t n) { return kMargin + places[n].column * (kBoxWidth + kGapX); };
  auto y = [&](size_t n) { return kMargin + places[n].layer * (kBoxHeight + kGapY); };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\">\n",
      2 * kMargin + columns * (kBoxWidth + kGapX), 2 * kMargin + layers * (kBoxHeight + kGapY));
  std::map<int, int> passing;  // lines beside a column
  for (size_t e = 0; e < page.edges.size(); ++e) {
    const PageEdge& edge = page.edges[e];
    const int x0 = x(edge.from) + kBoxWidth / 2, y0 = y(edge.from) + kBoxHeight;
    const int x1 = x(edge.to) + kBoxWidth / 2, y1 = y(edge.to);
    std::string line;
    if (places[edge.to].layer - places[edge.from].layer > 1) {
      // Past the boxes between, in the gap beside them.
      const int column = std::max(places[edge.from].column, places[edge.to].column);
      const int beside = kMargin + column * (kBoxWidth + kGapX) + kBoxWidth + 6 +
                         4 * (passing[column]++ % ((kGapX - 8) / 4));
      line = fmt::format("M{0} {1} C{0} {2} {3} {4} {3} {5} L{3} {6} C{3} {7} {8} {9} {8} {10}", x0,
                         y0, y0 + kGapY / 2, beside, y0 + 4, y0 + kGapY, y1 - kGapY, y1 - 4, x1,
                         y1 - kGapY / 2, y1);
    } else {
      const int bend = std::max(kGapY / 2, (y1 - y0) / 2);
      line = fmt::format("M{0} {1} C{0} {2} {3} {4} {3} {5}", x0, y0, y0 + bend, x1, y1 - bend, y1);
    }
    svg += fmt::format("<path id=\"e{}\" d=\"{}\"><title>{}</title></path>\n", e, line,
                       escaped(edge.label));
  }
  double most = 1e-12;
  const bool measured = std::any_of(page.nodes.begin(), page.nodes.end(),
                                    [](const PageNode& node) { return node.measured_ms > 0; });
  const auto cost = [&](const PageNode& node) {
    return measured ? node.measured_ms : node.predicted_ms;
  };
  for (const PageNode& node : page.nodes) most = std::max(most, cost(node));
  for (size_t n = 0; n < page.nodes.size(); ++n) {
    const PageNode& node = page.nodes[n];
    std::string time = node.predicted_ms > 0 ? ms_text(node.predicted_ms) : "";
    if (node.measured_ms > 0) time += fmt::format(", measured {}", ms_text(node.measured_ms));
    if (node.phases > 1) time += fmt::format(", {} phases", node.phases);
    svg += fmt::format(
        "<g class=\"node\" id=\"n{0}\" data-number=\"{0}\" tabindex=\"0\" "
        "transform=\"translate({1} {2})\">"
        "<title>{3}</title><rect class=\"box {6}\" width=\"{4}\" height=\"{5}\"/>"
        "<rect class=\"share\" y=\"{7}\" width=\"{8}\" height=\"3\"/>"
        "<text x=\"6\" y=\"14\">{9}</text><text x=\"6\" y=\"28\" class=\"time\">{10}</text></g>\n",
        n, x(n), y(n), escaped(node.title), kBoxWidth, kBoxHeight, class_of(node.kind),
        kBoxHeight - 3, static_cast<int>(cost(node) / most * kBoxWidth),
        escaped(shortened(node.title, 30)), escaped(time));
  }
  return svg + "</svg>\n";
}

}  // namespace

std::vector<NodePlace> layout_of(const Page& page) {
  const size_t count = page.nodes.size();
  std::vector<std::vector<size_t>> before(count), after(count);
  for (const PageEdge& edge : page.edges) {
    before[edge.to].push_back(edge.from);
    after[edge.from].push_back(edge.to);
  }
  std::vector<NodePlace> places(count);
  int layers = 0;
  for (size_t n = 0; n < count; ++n) {
    for (size_t from : before[n])
      if (from < n) places[n].layer = std::max(places[n].layer, places[from].layer + 1);
    layers = std::max(layers, places[n].layer + 1);
  }
  std::vector<std::vector<size_t>> rows(static_cast<size_t>(layers));
  for (size_t n = 0; n < count; ++n) {
    places[n].column = static_cast<int>(rows[static_cast<size_t>(places[n].layer)].size());
    rows[static_cast<size_t>(places[n].layer)].push_back(n);
  }
  // Each layer in the order of its neighbours' middle, downwards and upwards by turns.
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (size_t step = 0; step < rows.size(); ++step) {
      std::vector<size_t>& row = rows[sweep % 2 == 0 ? step : rows.size() - 1 - step];
      auto middle = [&](size_t n) {
        const std::vector<size_t>& near = sweep % 2 == 0 ? before[n] : after[n];
        if (near.empty()) return static_cast<double>(places[n].column);
        double sum = 0;
        for (size_t other : near) sum += places[other].column;
        return sum / static_cast<double>(near.size());
      };
      std::vector<std::pair<double, size_t>> keyed;
      for (size_t n : row) keyed.emplace_back(middle(n), n);
      std::stable_sort(keyed.begin(), keyed.end());
      for (size_t i = 0; i < keyed.size(); ++i) {
        row[i] = keyed[i].second;
        places[row[i]].column = static_cast<int>(i);
      }
    }
  }
  return places;
}

std::string html_of(const Page& page) {
  std::string key;
  for (const char* kind : {"product", "reduction", "map", "copy", "other"})
    key += fmt::format("<span class=\"{0}\">{0}</span>", kind);
  return filled(kPageHtml, {{"{title}", escaped(page.title)},
                            {"{style}", kPageStyle},
                            {"{summary}", escaped(page.summary)},
                            {"{key}", key},
                            {"{memory_title}", escaped(page.memory_title)},
                            {"{memory}", page.memory_svg},
                            {"{graph}", svg_of(page)},
                            {"{data}", data_of(page)},
                            {"{script}", kPageScript}});
}

}  // namespace heddle::tools
