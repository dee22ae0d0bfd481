#include "explain_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "report.h"

namespace heddle::tools {
namespace {

constexpr int kBoxWidth = 196, kBoxHeight = 36, kGapX = 40, kGapY = 30, kMargin = 20;
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
html, body { height: 100%; }
body { margin: 0; font: 13px sans-serif; color: #222; display: flex; flex-direction: column; }
header { padding: 8px 16px; border-bottom: 1px solid #ccc; }
header h1 { font-size: 16px; margin: 0 0 4px; }
main { display: flex; flex: 1; min-height: 0; }
#graph { flex: 1; overflow: auto; background: #fcfcfc; }
#panel { width: 44%; overflow: auto; border-left: 1px solid #ccc; padding: 4px 14px; }
#panel pre { font: 12px monospace; overflow-x: auto; background: #f6f6f6; padding: 6px; }
#panel h2 { font-size: 15px; } #panel h3 { font-size: 13px; margin: 12px 0 4px; }
#panel table { border-collapse: collapse; } #panel td { padding: 1px 10px 1px 0; }
#panel td.number { text-align: right; white-space: nowrap; }
#panel tr[data-number] { cursor: pointer; } #panel tr[data-number]:hover { background: #eef; }
.node { cursor: pointer; }
.node rect.box { stroke: #555; rx: 4; }
.node.near rect.box { stroke: #c00; stroke-width: 1.5; }
.node.chosen rect.box { stroke: #c00; stroke-width: 3; }
.node rect.share { fill: #333; opacity: 0.55; }
.node text { font: 11px sans-serif; pointer-events: none; }
path { fill: none; stroke: #999; }
path.chosen { stroke: #c00; stroke-width: 2; }
.key { margin-top: 4px; }
.key span { display: inline-block; padding: 1px 8px; margin-right: 6px; border: 1px solid #555; }
)";

constexpr const char* kScript = R"(
const data = JSON.parse(document.getElementById('data').textContent);
const panel = document.getElementById('panel'), svg = document.querySelector('svg');
const time = ms => ms >= 1 ? ms.toFixed(2) + ' ms' : (ms * 1e3).toFixed(1) + ' us';
function add(parent, tag, text, name) {
  const made = parent.appendChild(document.createElement(tag));
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
}
function row(table, number, cells) {
  const made = add(table, 'tr');
  cells.forEach(c => add(made, 'td', c, typeof c === 'string' && /^[0-9.]+( [mu]s)?$/.test(c) ? 'number' : ''));
  if (number < 0) return;
  made.dataset.number = number;
  made.addEventListener('click', () => show(number, true));
}
function overview() {
  panel.textContent = '';
  add(panel, 'p', 'A box is a command of a run, a line a value between two; the bar below a box is its share of the time. Choose one.');
  const total = data.nodes.reduce((sum, n) => sum + n.predicted, 0) || 1;
  add(panel, 'h3', 'Where the time goes (predicted, measured)');
  let table = add(panel, 'table');
  data.nodes.map((n, i) => [n, i]).sort((a, b) => b[0].predicted - a[0].predicted).slice(0, 25).forEach(([n, i]) =>
    row(table, i, [time(n.predicted), n.measured > 0 ? time(n.measured) : '', (100 * n.predicted / total).toFixed(1), n.title]));
  add(panel, 'h3', 'Edges that were not fused');
  table = add(panel, 'table');
  const codes = {};
  for (const e of data.edges) {
    const code = codes[e.code] = codes[e.code] || { count: 0, ms: 0 };
    code.count += 1;
    code.ms += e.ms;
  }
  Object.entries(codes).sort((a, b) => b[1].ms - a[1].ms).forEach(([code, c]) => row(table, -1, [time(c.ms), String(c.count), code]));
}
function show(n, scroll) {
  document.querySelectorAll('.chosen, .near').forEach(e => e.classList.remove('chosen', 'near'));
  const chosen = document.getElementById('n' + n), node = data.nodes[n];
  chosen.classList.add('chosen');
  if (scroll) chosen.scrollIntoView({ block: 'center', inline: 'center' });
  history.replaceState(null, '', '#' + n);
  panel.textContent = '';
  add(panel, 'h2', node.name);
  add(panel, 'pre', node.details);
  add(panel, 'h3', 'Edges that were not fused: code, reason, what that was judged to cost');
  const table = add(panel, 'table');
  for (const e of data.edges) {
    if (e.from !== n && e.to !== n) continue;
    const other = e.from === n ? e.to : e.from;
    document.getElementById('e' + e.id).classList.add('chosen');
    document.getElementById('n' + other).classList.add('near');
    row(table, other, [(e.from === n ? 'to ' : 'from ') + data.nodes[other].name, e.label]);
  }
  if (node.operators) {
    add(panel, 'h3', 'Operators');
    add(panel, 'pre', node.operators);
  }
}
document.querySelectorAll('.node').forEach(e => {
  e.addEventListener('click', () => show(+e.dataset.number));
  e.addEventListener('keydown', k => { if (k.key === 'Enter') show(+e.dataset.number); });
});
let scale = 1;
const size = [+svg.getAttribute('width'), +svg.getAttribute('height')];
svg.setAttribute('viewBox', `0 0 ${size[0]} ${size[1]}`);
function zoom(factor) {
  scale = Math.min(3, Math.max(0.02, scale * factor));
  svg.setAttribute('width', size[0] * scale);
  svg.setAttribute('height', size[1] * scale);
}
document.getElementById('in').addEventListener('click', () => zoom(1.25));
document.getElementById('out').addEventListener('click', () => zoom(0.8));
document.getElementById('all').addEventListener('click', () => {
  const graph = document.getElementById('graph');
  zoom(Math.min(graph.clientWidth / size[0], graph.clientHeight / size[1]) / scale);
});
document.getElementById('overview').addEventListener('click', overview);
const first = parseInt(location.hash.slice(1));
if (first >= 0 && first < data.nodes.length) show(first, true); else overview();
)";

std::string data_of(const Page& page) {
  nlohmann::ordered_json data;
  data["nodes"] = nlohmann::ordered_json::array();
  data["edges"] = nlohmann::ordered_json::array();
  for (const PageNode& node : page.nodes)
    data["nodes"].push_back({{"name", node.name},
                             {"title", node.title},
                             {"details", node.details},
                             {"operators", node.operators},
                             {"predicted", node.predicted_ms},
                             {"measured", node.measured_ms}});
  for (size_t e = 0; e < page.edges.size(); ++e)
    data["edges"].push_back({{"id", e},
                             {"from", page.edges[e].from},
                             {"to", page.edges[e].to},
                             {"code", page.edges[e].code},
                             {"ms", page.edges[e].ms},
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
  for (const PageNode& node : page.nodes) most = std::max(most, node.predicted_ms);
  for (size_t n = 0; n < page.nodes.size(); ++n) {
    const PageNode& node = page.nodes[n];
    std::string time = node.predicted_ms > 0 ? ms_text(node.predicted_ms) : "";
    if (node.measured_ms > 0) time += fmt::format(", measured {}", ms_text(node.measured_ms));
    if (node.phases > 1) time += fmt::format(", {} phases", node.phases);
    svg += fmt::format(
        "<g class=\"node\" id=\"n{0}\" data-number=\"{0}\" tabindex=\"0\" "
        "transform=\"translate({1} {2})\">"
        "<title>{3}</title><rect class=\"box\" width=\"{4}\" height=\"{5}\" fill=\"{6}\"/>"
        "<rect class=\"share\" y=\"{7}\" width=\"{8}\" height=\"3\"/>"
        "<text x=\"6\" y=\"14\">{9}</text><text x=\"6\" y=\"28\" fill=\"#444\">{10}</text></g>\n",
        n, x(n), y(n), escaped(node.title), kBoxWidth, kBoxHeight, colour_of(node.kind),
        kBoxHeight - 3, static_cast<int>(node.predicted_ms / most * kBoxWidth),
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
      "<div class=\"key\">{3}<button id=\"out\">-</button> <button id=\"in\">+</button> "
      "<button id=\"all\">all</button> <button id=\"overview\">overview</button></div>"
      "<details id=\"memory\"><summary>{7}</summary>\n{8}</details></header>\n"
      "<main><div id=\"graph\">\n{4}</div><div id=\"panel\"></div></main>\n<script "
      "type=\"application/json\" id=\"data\">{5}</script>\n"
      "<script>{6}</script></body></html>\n",
      escaped(page.title), kStyle, escaped(page.summary), key, svg_of(page), data_of(page), kScript,
      escaped(page.memory_title), page.memory_svg);
}

}  // namespace heddle::tools
