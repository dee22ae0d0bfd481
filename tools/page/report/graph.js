// The graph: commands and what they hand on. Only what is in sight is drawn; from afar as plain areas.
import { data, commands, kernelOf, edgesFrom, edgesTo, totalMs } from './data.js';
import { by, make, draw, clear, put } from './dom.js';
import { state, listen, choose, isChosen } from './state.js';
import { folded, opened, folding, foldAll, unfoldAll, unfoldTo, describe } from './fold.js';
import { layout, kWidth, kHeight } from './layout.js';
import { time, bytes, shortened, count } from './format.js';

const kMostDrawn = 600;
let graph = null; // {items, lines, at, layout}
let sight = null; // {x, y, scale}: pixels of the window are scale times those of the layout
let current = -1; // number of the item that keys move from

const box = () => by('graph-box');
const clamp = (x, least, most) => Math.min(most, Math.max(least, x));

function build() {
  graph = folded();
  graph.layout = layout(graph.items, graph.lines);
  current = -1;
  by('graph-count').textContent = count(graph.items.length, 'box', 'boxes') + ' for ' + count(commands.length, 'command');
}

function fit() {
  const { width, height, left } = graph.layout;
  const scale = clamp(Math.min(box().clientWidth / width, box().clientHeight / height), 0.004, 1.2);
  sight = { scale, x: left - (box().clientWidth / scale - width) / 2, y: -10 - Math.max(0, box().clientHeight / scale - height) / 2 };
  render();
}

// Readable, from the top.
function begin() {
  const { width, left, at } = graph.layout;
  const scale = clamp(box().clientWidth / width, 0.6, 1.1);
  const seen = box().clientWidth / scale;
  // What is wider than the window begins at the middle of its first boxes.
  const first = at.slice(0, 8), middle = first.reduce((sum, { x }) => sum + x, 0) / first.length + kWidth / 2;
  sight = { scale, x: seen >= width ? left - (seen - width) / 2 : middle - seen / 2, y: -14 };
  render();
}

function zoom(factor, px = box().clientWidth / 2, py = box().clientHeight / 2) {
  const scale = clamp(sight.scale * factor, 0.004, 4);
  sight.x += px / sight.scale - px / scale;
  sight.y += py / sight.scale - py / scale;
  sight.scale = scale;
  render();
}

function pan(dx, dy) {
  sight.x += dx / sight.scale;
  sight.y += dy / sight.scale;
  render();
}

// On narrow screens what is chosen lies over the lower part.
function heightInSight() {
  const details = by('details'), top = box().getBoundingClientRect().top;
  const covered = getComputedStyle(details).position === 'fixed' && !details.hidden;
  return covered ? clamp(details.getBoundingClientRect().top - top, 60, box().clientHeight) : box().clientHeight;
}

function center(item) {
  const at = graph.layout.at[item];
  sight.scale = Math.max(sight.scale, 0.7);
  sight.x = at.x + kWidth / 2 - box().clientWidth / 2 / sight.scale;
  sight.y = at.y + kHeight / 2 - heightInSight() / 2 / sight.scale;
  render();
}

function isItemChosen(item) {
  const { chosen } = state;
  if (!chosen) return false;
  if (chosen.kind === 'command') return item.list.includes(chosen.id);
  if (chosen.kind === 'edge') return item.list.includes(data.edges[chosen.id].from) || item.list.includes(data.edges[chosen.id].to);
  return item[chosen.kind] === chosen.id;
}

function isNear(item) {
  if (!state.chosen || state.chosen.kind !== 'command') return false;
  const id = state.chosen.id;
  return edgesFrom[id].some(e => item.list.includes(data.edges[e].to)) ||
    edgesTo[id].some(e => item.list.includes(data.edges[e].from));
}

const isFound = item => !state.found || item.list.some(i => state.found.has(i));

// What a click on an item does.
function pick(number) {
  const item = graph.items[number];
  current = number;
  if (item.kind === 'folded') return toggle(item);
  if (item.input !== undefined) return choose('input', item.input);
  if (item.output !== undefined) return choose('output', item.output);
  return choose('command', item.list[0]);
}

function toggle(item) {
  opened.add(item.key);
  if (item.stacked && data.repeats[item.repeat].period === 1)
    for (let t = 0; t < data.repeats[item.repeat].count; ++t) opened.add(`r${item.repeat}.${t}`);
  const before = graph.layout.at[graph.items.indexOf(item)];
  build();
  const now = graph.at[item.list[0]];
  sight.x += graph.layout.at[now].x - before.x;
  sight.y += graph.layout.at[now].y - before.y;
  current = now;
  choose('repeat', item.repeat);
}

let weights = false; // the second line of boxes tells weights instead of nodes

function underOf(item) {
  if (!weights || !item.list.length) return item.under;
  const all = [...new Set(item.list.flatMap(i => commands[i].weights))].map(w => data.weights[w]).sort((a, b) => b.bytes - a.bytes);
  if (!all.length) return 'no weights';
  return `${bytes(all.reduce((sum, weight) => sum + weight.bytes, 0))}: ${all[0].name}` + (all.length > 1 ? ` and ${all.length - 1} more` : '');
}

function showWeights() {
  weights = !weights;
  by('graph-weights').setAttribute('aria-pressed', String(weights));
  render();
}

function node(number) {
  const item = graph.items[number], at = graph.layout.at[number];
  const share = totalMs > 0 ? item.ms / totalMs : 0;
  const classes = ['node', item.kind, isItemChosen(item) && 'chosen', isNear(item) && 'near', !isFound(item) && 'faded',
    number === current && 'current'];
  const phases = item.list.length === 1 && kernelOf(commands[item.list[0]])?.phases;
  return draw('g', { class: classes.filter(Boolean).join(' '), transform: `translate(${at.x} ${at.y})`, role: 'button',
    tabindex: -1, 'aria-label': describe(item) + (item.ms > 0 ? ', ' + time(item.ms) : ''), data: { number, key: item.key },
    onclick: event => { if (!moved) pick(+event.currentTarget.dataset.number); } },
  item.stacked && draw('rect', { class: 'box behind', x: 5, y: 5, width: kWidth, height: kHeight, rx: 4 }),
  draw('rect', { class: 'box', width: kWidth, height: kHeight, rx: 4 }),
  share > 0 && draw('rect', { class: 'share', y: kHeight - 4, width: Math.max(1, share * kWidth), height: 4 }),
  draw('text', { x: 7, y: 15, text: (item.kind === 'folded' ? '▸ ' : '') + shortened(item.title, item.ms > 0 ? 20 : 27) }),
  item.ms > 0 && draw('text', { x: kWidth - 7, y: 15, class: 'time', 'text-anchor': 'end', text: time(item.ms) }),
  draw('text', { x: 7, y: 29, class: 'under', text: shortened(underOf(item), phases > 1 ? 26 : 32) }),
  phases > 1 && draw('text', { x: kWidth - 7, y: 29, class: 'under', 'text-anchor': 'end', text: phases + ' phases' }));
}

// From afar: one path for the boxes of a kind.
function areas(numbers) {
  const paths = new Map();
  for (const number of numbers) {
    const item = graph.items[number], { x, y } = graph.layout.at[number];
    const kind = isItemChosen(item) ? item.kind + ' chosen' : isFound(item) ? item.kind : item.kind + ' faded';
    paths.set(kind, (paths.get(kind) || '') + `M${x.toFixed(0)} ${y}h${kWidth}v${kHeight}h-${kWidth}z`);
  }
  return [...paths].map(([kind, d]) => draw('g', { class: 'node ' + kind }, draw('path', { class: 'box', d })));
}

function lineElement(line, i) {
  const chosen = state.chosen?.kind === 'edge' ? line.edges.includes(state.chosen.id)
    : state.chosen?.kind === 'command' && line.edges.some(e => data.edges[e].from === state.chosen.id || data.edges[e].to === state.chosen.id);
  const made = draw('path', { class: 'line' + (chosen ? ' chosen' : ''), d: graph.layout.paths[i] });
  if (!line.edges.length) return made;
  // A wider line that is not seen is easier to hit.
  const hit = draw('path', { class: 'hit', d: graph.layout.paths[i], data: { edge: line.edges[0] },
    onclick: () => { if (!moved) choose('edge', line.edges[0]); } },
  draw('title', { text: line.edges.length === 1 && data.edges[line.edges[0]].code
    ? `not fused: ${data.edges[line.edges[0]].code}` : count(line.edges.length, 'value') }));
  return draw('g', {}, made, hit);
}

function render() {
  if (!graph || !box().clientWidth) return;
  const width = box().clientWidth / sight.scale, height = box().clientHeight / sight.scale;
  const { x, y } = sight;
  const inSight = graph.layout.at.map((at, i) => [at, i])
    .filter(([at]) => at.x < x + 1.3 * width && at.x + kWidth > x - 0.3 * width && at.y < y + 1.3 * height && at.y + kHeight > y - 0.3 * height)
    .map(([, i]) => i);
  const seen = new Set(inSight);
  const lines = graph.lines.map((line, i) => [line, i]).filter(([line]) => seen.has(line.from) || seen.has(line.to));
  const far = inSight.length > kMostDrawn || sight.scale < 0.12;
  const svg = clear(by('graph-drawing'));
  svg.setAttribute('viewBox', `${x} ${y} ${width} ${height}`);
  svg.dataset.scale = sight.scale.toPrecision(4);
  svg.dataset.boxes = graph.items.length;
  if (far) svg.append(draw('path', { class: 'line', d: lines.map(([, i]) => graph.layout.paths[i]).join('') }), ...areas(inSight));
  else svg.append(...lines.map(([line, i]) => lineElement(line, i)), ...inSight.map(node));
}

// The item that an arrow key leads to.
function neighbour(key) {
  if (current < 0) return 0;
  const at = graph.layout.at;
  const near = key === 'ArrowDown' ? graph.lines.filter(line => line.from === current).map(line => line.to)
    : key === 'ArrowUp' ? graph.lines.filter(line => line.to === current).map(line => line.from)
      : graph.items.map((_, i) => i).filter(i => at[i].y === at[current].y &&
        (key === 'ArrowRight' ? at[i].x > at[current].x : at[i].x < at[current].x));
  const distance = i => Math.abs(at[i].x - at[current].x) + Math.abs(at[i].y - at[current].y);
  return near.sort((a, b) => distance(a) - distance(b))[0] ?? current;
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key.startsWith('Arrow')) {
    current = neighbour(event.key);
    center(current);
    by('said').textContent = describe(graph.items[current]);
  } else if (event.key === 'Enter' && current >= 0) pick(current);
  else if (event.key === '+' || event.key === '=') zoom(1.25);
  else if (event.key === '-') zoom(0.8);
  else if (event.key === '0') fit();
  else return;
  event.preventDefault();
  event.stopPropagation();
}

let moved = false; // since the pointer went down
function drag(event) {
  if (event.button !== 0) return;
  let { clientX: x, clientY: y } = event, far = 0;
  moved = false;
  const move = now => {
    far += Math.abs(now.clientX - x) + Math.abs(now.clientY - y);
    if (far > 4 && !moved) {
      moved = true;
      box().setPointerCapture(now.pointerId);
    }
    if (moved) pan(x - now.clientX, y - now.clientY);
    [x, y] = [now.clientX, now.clientY];
  };
  const end = () => {
    box().removeEventListener('pointermove', move);
    setTimeout(() => { moved = false; });
  };
  box().addEventListener('pointermove', move);
  box().addEventListener('pointerup', end, { once: true });
  box().addEventListener('pointercancel', end, { once: true });
}

function refold(change) {
  change();
  build();
  begin();
}

export function startGraph() {
  const button = (id, text, label, action) => make('button', { id, 'aria-label': label, title: label, text, onclick: action });
  put(by('graph-tools'), [
    button('graph-out', '−', 'smaller (-)', () => zoom(0.8)), button('graph-in', '+', 'larger (+)', () => zoom(1.25)),
    button('graph-fit', 'fit', 'all of it (0)', fit),
    button('graph-fold', 'fold', 'fold all repeats', () => refold(foldAll)),
    button('graph-unfold', 'unfold', 'open all repeats', () => refold(unfoldAll)),
    button('graph-weights', 'weights', 'weights of each box instead of its first node', showWeights)]);
  by('graph-weights').setAttribute('aria-pressed', 'false');
  for (const id of ['graph-fold', 'graph-unfold']) by(id).hidden = folding.length === 0;
  box().addEventListener('wheel', event => {
    event.preventDefault();
    const at = box().getBoundingClientRect();
    if (event.ctrlKey || event.metaKey) zoom(Math.exp(-event.deltaY / 300), event.clientX - at.left, event.clientY - at.top);
    else pan(event.deltaX, event.deltaY);
  }, { passive: false });
  box().addEventListener('pointerdown', drag);
  box().addEventListener('keydown', keys);
  listen(what => {
    if (!graph || state.view !== 'graph') return;
    if (what === 'chosen') follow();
    render();
  });
}

function reveal(item) {
  const at = graph.layout.at[item];
  const px = (at.x - sight.x) * sight.scale, py = (at.y - sight.y) * sight.scale;
  const { scale } = sight;
  if (px < 0 || py < 0 || px > box().clientWidth - kWidth * scale || py > heightInSight() - kHeight * scale) center(item);
}

// What is chosen comes into sight.
function follow() {
  const { chosen } = state;
  if (chosen?.kind === 'repeat' && current < 0) current = graph.at[data.repeats[chosen.id].first];
  const wanted = chosen?.kind === 'command' ? chosen.id : chosen?.kind === 'edge' ? data.edges[chosen.id].from : -1;
  if (wanted >= 0) {
    if (!graph.items.some(item => item.list.length === 1 && item.list[0] === wanted)) {
      unfoldTo(wanted);
      build();
    }
    current = graph.at[wanted];
  }
  if (chosen && current >= 0) reveal(current);
}

// All of it, for paper.
export function showAllOfGraph() {
  showGraph();
  fit();
}

export function showGraph() {
  const isNew = !graph;
  if (isNew) build();
  if (!sight) begin();
  if (isNew || isChosen(state.chosen?.kind, state.chosen?.id)) follow();
  render();
}
