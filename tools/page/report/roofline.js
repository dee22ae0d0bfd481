// How near kernels come to what arithmetic and memory allow.
import { data, commands, byKernel, workOf, roofOf, labelOf, totalMs, measured } from './data.js';
import { by, sized, make, draw, clear, table, put } from './dom.js';
import { state, listen, choose } from './state.js';
import { time, percent, short, shortened, count } from './format.js';

const kHeight = 380, kLeft = 52, kBottom = 40, kTop = 12;
const kNear = 0.7; // of the roof: what counts as being at it
let chart = null, each = 'kernel';

function points() {
  const lists = each === 'kernel' ? [...byKernel.values()] : commands.map((_, i) => [i]);
  return lists.map(list => {
    const work = workOf(list);
    return { list, work, command: list[0], roof: roofOf(work), intensity: work.bytes > 0 ? work.flops / work.bytes : 0,
      rate: work.ms > 0 ? work.flops / work.ms / 1e6 : 0, traffic: work.ms > 0 ? work.bytes / work.ms / 1e6 : 0 };
  }).filter(point => point.work.ms > 0).sort((a, b) => b.work.ms - a.work.ms);
}

// The caches' rates, all cores together, where the target says them.
function roofs() {
  const { gflops_per_s: flops, gbytes_per_s: memory, raised, target_gbytes_per_s: told } = data.roofs;
  const caches = (data.target?.caches || []).map((cache, i) => ({ name: 'L' + (i + 1), rate: (cache.bandwidth_bytes_per_ns || 0) * data.program.threads }))
    .filter(cache => cache.rate > memory);
  return { flops, all: [{ name: raised && memory > told ? 'highest seen' : 'memory', rate: memory }, ...caches] };
}

function scales(all, width) {
  const seen = all.filter(p => p.rate > 0 && p.intensity > 0);
  const log = (list, least, most) => [Math.floor(Math.log10(Math.min(least, ...list))), Math.ceil(Math.log10(Math.max(most, ...list)))];
  const { flops } = roofs();
  const [x0, x1] = log(seen.map(p => p.intensity), 0.1, 100), [y0, y1] = log(seen.map(p => p.rate), flops / 1000, flops);
  return { x0, x1, y0, y1,
    x: v => kLeft + (Math.log10(v) - x0) / (x1 - x0) * (width - kLeft - 12),
    y: v => kTop + (1 - (Math.log10(v) - y0) / (y1 - y0)) * (kHeight - kTop - kBottom) };
}

function grid(s, width) {
  const lines = [];
  for (let e = s.x0; e <= s.x1; ++e)
    lines.push(draw('line', { class: 'tick', x1: s.x(10 ** e), x2: s.x(10 ** e), y1: kTop, y2: kHeight - kBottom }),
      draw('text', { class: 'tick', x: s.x(10 ** e), y: kHeight - kBottom + 14, 'text-anchor': 'middle', text: short(10 ** e) }));
  for (let e = s.y0; e <= s.y1; ++e)
    lines.push(draw('line', { class: 'tick', x1: kLeft, x2: width - 12, y1: s.y(10 ** e), y2: s.y(10 ** e) }),
      draw('text', { class: 'tick', x: kLeft - 5, y: s.y(10 ** e) + 4, 'text-anchor': 'end', text: short(10 ** e) }));
  lines.push(draw('text', { class: 'title', x: width / 2, y: kHeight - 6, 'text-anchor': 'middle', text: 'flops to a byte of least traffic' }),
    draw('text', { class: 'title', x: kLeft + 4, y: kTop + 10, text: 'GFLOP/s' }));
  return lines;
}

function roofLines(s) {
  const { flops, all } = roofs();
  return all.flatMap(({ name, rate }, i) => {
    const from = 10 ** s.x0, knee = flops / rate, to = 10 ** s.x1, bottom = 10 ** s.y0;
    const start = Math.max(from, bottom / rate);
    return [draw('path', { class: i === 0 ? 'roof' : 'roof cache', d: `M${s.x(start)} ${s.y(start * rate)}L${s.x(knee)} ${s.y(flops)}` + (i === 0 ? `L${s.x(to)} ${s.y(flops)}` : '') }),
      draw('text', { class: 'title', x: s.x(start * 1.4) + 6, y: s.y(start * 1.4 * rate) + 16 - (i > 0 ? 26 : 0), text: `${name}: ${short(rate)} GB/s` })];
  });
}

function render() {
  if (!chart || !chart.clientWidth) return;
  const all = points(), width = chart.clientWidth;
  const svg = clear(by('roofline-drawing'));
  sized(svg, width, kHeight);
  if (data.roofs.gflops_per_s > 0) {
    const s = scales(all, width);
    svg.append(...grid(s, width), ...roofLines(s), ...all.filter(p => p.rate > 0 && p.intensity > 0).reverse().map(point => draw('circle', {
      class: 'point ' + commands[point.command].kind + (state.chosen?.kind === 'command' && point.list.includes(state.chosen.id) ? ' chosen' : '') +
        (state.found && !point.list.some(i => state.found.has(i)) ? ' faded' : ''),
      cx: s.x(point.intensity), cy: s.y(point.rate), r: 4 + 18 * Math.sqrt(point.work.ms / totalMs), data: { command: point.command },
      onclick: () => choose('command', point.command) },
    draw('title', { text: `${shortened(labelOf(commands[point.command]), 60)}: ${time(point.work.ms)}, ${short(point.rate)} GFLOP/s` }))));
  }
  summarize(all);
  put(clear(by('roofline-list')), table('kernels, by time', [
    { text: each, cell: p => shortened(labelOf(commands[p.command]), 50) },
    { text: 'time', number: true, cell: p => time(p.work.ms) },
    { text: 'of all', number: true, cell: p => percent(p.work.ms / totalMs) },
    { text: 'of the roof', number: true, cell: p => (p.roof ? percent(p.roof.share) : '') },
    { text: 'bound by', cell: p => p.roof?.bound || '' },
    { text: 'GFLOP/s', number: true, cell: p => short(p.rate) },
    { text: 'GB/s', number: true, cell: p => short(p.traffic) },
    { text: 'flops/byte', number: true, cell: p => short(p.intensity) },
  ], all.slice(0, 200), p => choose('command', p.command)));
}

function summarize(all) {
  const near = all.filter(p => p.roof && p.roof.share >= kNear).reduce((sum, p) => sum + p.work.ms, 0);
  const at = roofOf(workOf(commands.map((_, i) => i)));
  by('roofline-summary').textContent = !at ? 'The target states no peaks, or there are no times: nothing can be said of roofs.'
    : `${percent(near / totalMs)} of the ${measured ? 'measured' : 'predicted'} time is spent in kernels at ${percent(kNear)} of their roof or more; ` +
      `the whole run is at ${percent(at.share)}, bound by ${at.bound}.`;
}

function build() {
  const { raised, target_gflops_per_s: flops, target_gbytes_per_s: bytes } = data.roofs;
  const bare = commands.filter(command => command.flops === 0).length;
  chart = make('div', { id: 'roofline-box', class: 'chart' }, draw('svg', { id: 'roofline-drawing', role: 'img', 'aria-label': 'roofline; the table below has the same numbers' }));
  const select = make('select', { id: 'roofline-each', onchange: event => { each = event.target.value; render(); } },
    make('option', { value: 'kernel', text: 'a point for each kernel' }), make('option', { value: 'command', text: 'a point for each command' }));
  put(by('roofline'), make('p', { id: 'roofline-summary', class: 'answer' }),
    make('p', { text: `The target ${data.program.target} states ${short(flops)} GFLOP/s and ${short(bytes)} GB/s for ${count(data.program.threads, 'thread')}.` +
      (raised ? ' Kernels here were faster: the roof is the highest rate seen (heddle calibrate measures this machine’s).' : '') +
      (bare ? ` ${count(bare, 'command')} without arithmetic ${bare === 1 ? 'is' : 'are'} in the table only.` : '') }),
    make('div', { class: 'bar' }, make('label', { for: 'roofline-each', text: 'show' }), select), chart,
    make('div', { id: 'roofline-list', class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'rates' }));
  listen(() => { if (state.view === 'roofline') render(); });
}

export function showRoofline() {
  if (!chart) build();
  render();
}
