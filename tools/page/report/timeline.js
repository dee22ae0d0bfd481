// When what ran: the commands one behind the other, and, of a run that was recorded, what each thread did.
import { data, commands, msOf, labelOf, totalMs, measured } from './data.js';
import { by, sized, make, draw, clear, put } from './dom.js';
import { state, listen, choose } from './state.js';
import { time, shortened, bytes } from './format.js';

const kRow = 34, kLeft = 8, kAxis = 22, kCurve = 70;
let rows = null; // {title, end, spans: [begin, length, command] in ms}
let range = null; // {from, to} in ms
let chart = null;

function commandRow() {
  let at = 0;
  const spans = commands.map((command, i) => {
    const span = [at, msOf(command), i];
    at += msOf(command);
    return span;
  });
  return { title: measured ? 'commands, by the median of each' : 'commands, as predicted', spans, end: at };
}

function threadRows() {
  const spans = data.measured?.spans || [];
  return (data.measured?.threads || []).map((title, thread) => {
    const own = spans.filter(span => span[0] === thread).map(([, command, begin, us]) => [begin / 1e3, us / 1e3, command]);
    return { title: `${title}, one run that was recorded (recording takes time, too)`, spans: own,
      end: own.reduce((end, [begin, length]) => Math.max(end, begin + length), 0) };
  });
}

// Temporaries that are alive, by command.
let alive = null;
export function aliveBytes() {
  if (alive) return alive;
  const change = new Array(commands.length + 1).fill(0);
  for (const buffer of data.memory.buffers) {
    change[buffer.first] += buffer.bytes;
    change[Math.min(buffer.last + 1, commands.length)] -= buffer.bytes;
  }
  let sum = 0;
  alive = change.slice(0, commands.length).map(step => (sum += step));
  return alive;
}

const width = () => Math.max(200, chart.clientWidth - 2 * kLeft);
const place = ms => kLeft + (ms - range.from) / (range.to - range.from) * width();

// Spans in sight; those too narrow to see are joined with their neighbours of one kind.
function rectangles(row, y) {
  const made = [];
  let block = null;
  const flush = () => {
    if (block) made.push(draw('rect', { class: 'span ' + block.kind, x: block.x, y, width: Math.max(0.5, block.end - block.x), height: kRow - 8 }));
    block = null;
  };
  for (const [begin, length, i] of row.spans) {
    if (begin + length < range.from || begin > range.to || length <= 0) continue;
    const x = place(begin), wide = place(begin + length) - x, command = commands[i];
    const chosen = state.chosen?.kind === 'command' && state.chosen.id === i;
    if (wide < 1.5 && !chosen) {
      if (block && (block.kind !== command.kind || x - block.end > 1)) flush();
      block ??= { kind: command.kind, x, end: x };
      block.end = x + wide;
      continue;
    }
    flush();
    const faded = state.found && !state.found.has(i);
    made.push(draw('g', { class: 'node ' + command.kind + (chosen ? ' chosen' : '') + (faded ? ' faded' : ''), data: { command: i },
      onclick: () => choose('command', i) },
    draw('rect', { class: 'box', x, y, width: Math.max(1, wide - 0.5), height: kRow - 8 }),
    draw('title', { text: `${shortened(labelOf(command), 60)}, ${time(length)}` }),
    wide > 40 && draw('text', { x: x + 4, y: y + 17, text: shortened(labelOf(command), Math.floor((wide - 8) / 6.5)) })));
  }
  flush();
  return made;
}

function axis() {
  const step = 10 ** Math.floor(Math.log10((range.to - range.from) / 4));
  const every = [1, 2, 5, 10].map(f => f * step).find(s => (range.to - range.from) / s <= Math.max(3, width() / 90)) || 10 * step;
  const ticks = [];
  for (let ms = Math.ceil(range.from / every) * every; ms <= range.to; ms += every)
    ticks.push(draw('line', { class: 'tick', x1: place(ms), x2: place(ms), y1: kAxis - 4, y2: 2000 }),
      draw('text', { class: 'tick', x: place(ms) + 3, y: 13, text: ms === 0 ? '0' : time(ms) }));
  return ticks;
}

// Bytes of temporaries over the row of commands.
function curve(y) {
  const all = aliveBytes(), most = Math.max(1, ...all);
  let path = '', last = null;
  rows[0].spans.forEach(([begin, length], i) => {
    if (begin + length < range.from || begin > range.to) return;
    const height = (all[i] / most * (kCurve - 20)).toFixed(1);
    if (height !== last) path += `${path ? 'V' : `M${place(Math.max(begin, range.from)).toFixed(1)} ${y + kCurve}V`}${y + kCurve - height}`;
    path += `H${place(Math.min(begin + length, range.to)).toFixed(1)}`;
    last = height;
  });
  return [draw('text', { class: 'title', x: kLeft, y: y + 11, text: `bytes of temporaries alive, at most ${bytes(most)}` }),
    draw('path', { class: 'curve', d: path ? path + `V${y + kCurve}Z` : '' })];
}

function render() {
  if (!chart || !chart.clientWidth) return;
  const svg = clear(by('timeline-drawing'));
  const height = kAxis + rows.length * (kRow + 18) + kCurve + 10;
  sized(svg, chart.clientWidth, height);
  svg.dataset.from = range.from;
  svg.dataset.to = range.to;
  svg.append(...axis());
  rows.forEach((row, i) => {
    const y = kAxis + i * (kRow + 18);
    svg.append(draw('text', { class: 'title', x: kLeft, y: y + 12, text: row.title }), ...rectangles(row, y + 18));
  });
  svg.append(...curve(kAxis + rows.length * (kRow + 18)));
}

const end = () => Math.max(1e-9, ...rows.map(row => row.end));

function look(from, to) {
  const length = Math.min(Math.max(to - from, end() / 1e6), end());
  const begin = Math.min(Math.max(0, from), end() - length);
  range = { from: begin, to: begin + length };
  render();
}

function zoom(factor, at = (range.from + range.to) / 2) {
  look(at - (at - range.from) / factor, at + (range.to - at) / factor);
}

function keys(event) {
  const step = (range.to - range.from) / 5;
  const acts = { ArrowRight: () => look(range.from + step, range.to + step), ArrowLeft: () => look(range.from - step, range.to - step),
    '+': () => zoom(1.5), '=': () => zoom(1.5), '-': () => zoom(1 / 1.5), 0: () => look(0, end()) };
  if (!acts[event.key] || event.ctrlKey || event.metaKey) return;
  acts[event.key]();
  event.preventDefault();
}

function drag(event) {
  let x = event.clientX;
  const move = now => {
    const ms = (x - now.clientX) / width() * (range.to - range.from);
    x = now.clientX;
    look(range.from + ms, range.to + ms);
  };
  chart.addEventListener('pointermove', move);
  for (const over of ['pointerup', 'pointerleave', 'pointercancel'])
    chart.addEventListener(over, () => chart.removeEventListener('pointermove', move), { once: true });
}

function build() {
  rows = [commandRow(), ...threadRows()];
  const button = (id, text, label, action) => make('button', { id, text, title: label, 'aria-label': label, onclick: action });
  chart = make('div', { id: 'timeline-box', class: 'chart', tabindex: 0, role: 'group',
    'aria-label': 'timeline; arrow keys move, + and - zoom, 0 shows all' }, draw('svg', { id: 'timeline-drawing', role: 'img', 'aria-label': 'what ran when' }));
  put(by('timeline'), make('div', { class: 'bar' },
    button('timeline-out', '−', 'shorter (-)', () => zoom(1 / 1.5)), button('timeline-in', '+', 'longer (+)', () => zoom(1.5)),
    button('timeline-fit', 'all', 'all of it (0)', () => look(0, end())),
    make('span', { text: `${time(totalMs)} in commands${measured ? '' : ', predicted'}` })), chart);
  range = { from: 0, to: end() };
  chart.addEventListener('wheel', event => {
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
    event.preventDefault();
    const x = event.clientX - chart.getBoundingClientRect().left - kLeft;
    zoom(Math.exp(-(event.deltaY || event.deltaX) / 300), range.from + x / width() * (range.to - range.from));
  }, { passive: false });
  chart.addEventListener('pointerdown', drag);
  chart.addEventListener('keydown', keys);
  listen(() => { if (state.view === 'timeline') render(); });
}

export function showTimeline() {
  if (!rows) build();
  render();
}
