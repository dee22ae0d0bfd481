#include "explain_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

namespace heddle::tools {
namespace {

constexpr int kBoxWidth = 190, kBoxHeight = 34, kGapX = 24, kGapY = 40, kMargin = 20;
constexpr int kSweeps = 8;

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '&')
      result += "&amp;";
    else if (c == '"')
      result += "&quot;";
    else if (static_cast<unsigned char>(c) >= 32 || c == '\n')
      result += c;
  }
  return result;
}

std::string shortened(const std::string& text, size_t most) {
  return text.size() <= most ? text : text.substr(0, most - 1) + "\u2026";
}

const char* colour_of(const std::string& kind) {
  if (kind == "product") return "#f4c98b";
  if (kind == "reduction") return "#a9d3f0";
  if (kind == "map") return "#bfe3b8";
  if (kind == "copy") return "#e3cdea";
  return "#dddddd";
}

constexpr const char* kStyle = R"(
body { margin: 0; font: 13px sans-serif; color: #222; }
header { padding: 10px 16px; border-bottom: 1px solid #ccc; }
header h1 { font-size: 16px; margin: 0 0 4px; }
main { display: flex; height: calc(100vh - 74px); }
#graph { flex: 1; overflow: auto; }
#panel { width: 38%; overflow: auto; border-left: 1px solid #ccc; padding: 10px 14px; }
#panel pre { white-space: pre-wrap; font: 12px monospace; }
.node { cursor: pointer; }
.node rect { stroke: #555; rx: 4; }
.node.chosen rect { stroke: #c00; stroke-width: 3; }
.node text { font: 11px sans-serif; pointer-events: none; }
path { fill: none; stroke: #888; }
path.chosen { stroke: #c00; stroke-width: 2; }
.key span { display: inline-block; padding: 1px 8px; margin-right: 6px; border: 1px solid #555; }
)";

constexpr const char* kScript = R"(
const data = JSON.parse(document.getElementById('data').textContent);
const panel = document.getElementById('panel');
function show(n) {
  document.querySelectorAll('.chosen').forEach(e => e.classList.remove('chosen'));
  document.getElementById('n' + n).classList.add('chosen');
  const lines = [];
  for (const e of data.edges) {
    if (e.from !== n && e.to !== n) continue;
    document.getElementById('e' + e.id).classList.add('chosen');
    lines.push((e.from === n ? 'to ' + data.nodes[e.to].name : 'from ' + data.nodes[e.from].name) + ': ' + e.label);
  }
  panel.innerHTML = '<h2></h2><pre></pre><h3>Edges that were not fused</h3><pre></pre>';
  panel.querySelector('h2').textContent = data.nodes[n].name;
  const parts = panel.querySelectorAll('pre');
  parts[0].textContent = data.nodes[n].details;
  parts[1].textContent = lines.join('\n');
}
document.querySelectorAll('.node').forEach(e => {
  e.addEventListener('click', () => show(+e.dataset.number));
  e.addEventListener('keydown', k => { if (k.key === 'Enter') show(+e.dataset.number); });
});
)";

std::string data_of(const Page& page) {
  nlohmann::ordered_json data;
  data["nodes"] = nlohmann::ordered_json::array();
  data["edges"] = nlohmann::ordered_json::array();
  for (const PageNode& node : page.nodes)
    data["nodes"].push_back({{"name", node.name}, {"details", node.details}});
  for (size_t e = 0; e < page.edges.size(); ++e)
    data["edges"].push_back({{"id", e},
                             {"from", page.edges[e].from},
                             {"to", page.edges[e].to},
                             {"label", page.edges[e].label}});
  std::string text = data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  // The text of a script ends at the first "</script", wherever it stands.
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos;)
    text.replace(at, 1, "\\u003c");
  return text;
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
  for (size_t e = 0; e < page.edges.size(); ++e) {
    const PageEdge& edge = page.edges[e];
    const int x0 = x(edge.from) + kBoxWidth / 2, y0 = y(edge.from) + kBoxHeight;
    const int x1 = x(edge.to) + kBoxWidth / 2, y1 = y(edge.to);
    const int bend = std::max(kGapY / 2, (y1 - y0) / 2);
    svg +=
        fmt::format("<path id=\"e{}\" d=\"M{} {} C{} {} {} {} {} {}\"><title>{}</title></path>\n",
                    e, x0, y0, x0, y0 + bend, x1, y1 - bend, x1, y1, escaped(edge.label));
  }
  for (size_t n = 0; n < page.nodes.size(); ++n) {
    const PageNode& node = page.nodes[n];
    std::string time = fmt::format("{:.3g} us", node.predicted_ms * 1e3);
    if (node.measured_ms > 0) time += fmt::format(", measured {:.3g}", node.measured_ms * 1e3);
    svg += fmt::format(
        "<g class=\"node\" id=\"n{0}\" data-number=\"{0}\" tabindex=\"0\" "
        "transform=\"translate({1} {2})\">"
        "<title>{3}</title><rect width=\"{4}\" height=\"{5}\" fill=\"{6}\"/>"
        "<text x=\"6\" y=\"14\">{7}</text><text x=\"6\" y=\"28\" fill=\"#555\">{8}</text></g>\n",
        n, x(n), y(n), escaped(node.title), kBoxWidth, kBoxHeight, colour_of(node.kind),
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
    key += fmt::format("<span style=\"background:{}\">{}</span>", colour_of(kind), kind);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>"
      "<style>{1}</style></head>\n<body><header><h1>{0}</h1><div>{2}</div>"
      "<div class=\"key\">{3}</div></header>\n<main><div id=\"graph\">\n{4}</div>"
      "<div id=\"panel\">A box is a command of a run, a line a value between two. "
      "Choose a box.</div></main>\n<script type=\"application/json\" id=\"data\">{5}</script>\n"
      "<script>{6}</script></body></html>\n",
      escaped(page.title), kStyle, escaped(page.summary), key, svg_of(page), data_of(page),
      kScript);
}

}  // namespace heddle::tools
