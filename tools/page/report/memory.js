// Temporaries by address and time, and what is alive at a moment: at first at the peak.
import { data, commands, labelOf } from './data.js';
import { by, sized, make, draw, clear, table, put } from './dom.js';
import { state, listen, choose, isChosen } from './state.js';
import { bytes, count, shortened, clean } from './format.js';

const kHeight = 340, kLeft = 8;
let moment = data.memory.peak_command;
let chart = null;
const colours = 8;

const aliveAt = at => data.memory.buffers.map((buffer, i) => ({ ...buffer, i })).filter(b => b.first <= at && at <= b.last)
  .sort((a, b) => b.bytes - a.bytes);

function rectangles(width) {
  const { buffers, bytes: all } = data.memory;
  const step = (width - 2 * kLeft) / Math.max(1, commands.length);
  const x = command => kLeft + command * step, y = address => kHeight * (1 - address / Math.max(1, all));
  return buffers.map((buffer, i) => draw('rect', {
    class: `buffer hue${i % colours}` + (step < 3 ? ' thin' : '') + (isChosen('buffer', i) ? ' chosen' : '') + (buffer.first <= moment && moment <= buffer.last ? ' alive' : ''),
    x: x(buffer.first).toFixed(2), y: y(buffer.offset + buffer.bytes).toFixed(2), width: Math.max(0.6, (buffer.last - buffer.first + 1) * step).toFixed(2),
    height: Math.max(0.6, kHeight * buffer.bytes / Math.max(1, all)).toFixed(2), data: { buffer: i }, onclick: () => choose('buffer', i) },
  draw('title', { text: `${shortened(buffer.name, 80)}: ${bytes(buffer.bytes)} at ${buffer.offset}, commands ${buffer.first} to ${buffer.last}` })));
}

function line(width, command, name) {
  const x = kLeft + (command + 0.5) * (width - 2 * kLeft) / Math.max(1, commands.length);
  return draw('line', { class: name, x1: x, x2: x, y1: 0, y2: kHeight });
}

function render() {
  if (!chart || !chart.clientWidth) return;
  const svg = clear(by('memory-drawing')), width = chart.clientWidth;
  sized(svg, width, kHeight + 20);
  svg.append(...rectangles(width), line(width, data.memory.peak_command, 'peak'), line(width, moment, 'moment'),
    draw('text', { class: 'tick', x: kLeft, y: kHeight + 15, text: 'command 0' }),
    draw('text', { class: 'tick', x: width - kLeft, y: kHeight + 15, 'text-anchor': 'end', text: String(Math.max(0, commands.length - 1)) }));
  list();
}

function list() {
  const alive = aliveAt(moment);
  const command = commands[moment];
  by('memory-moment').value = moment;
  by('memory-title').textContent = `${moment === data.memory.peak_command ? 'Alive at the peak, ' : 'Alive at '}command ${moment}` +
    (command ? ` (${shortened(labelOf(command), 40)}): ` : ': ') + `${count(alive.length, 'value')}, ${bytes(alive.reduce((sum, b) => sum + b.bytes, 0))}`;
  put(clear(by('memory-list')), table('values that are alive', [
    { text: 'value', cell: b => clean(shortened(b.name, 120)) },
    { text: 'bytes', number: true, cell: b => bytes(b.bytes) },
    { text: 'address', number: true, cell: b => b.offset.toLocaleString('en') },
    { text: 'made by', cell: b => `${b.first}: ${commands[b.first] ? shortened(labelOf(commands[b.first]), 30) : ''}` },
    { text: 'last read by', cell: b => `${b.last}: ${commands[b.last] ? shortened(labelOf(commands[b.last]), 30) : ''}` },
  ], alive, b => choose('buffer', b.i)));
}

function setMoment(command) {
  moment = Math.min(Math.max(0, command), Math.max(0, commands.length - 1));
  render();
}

function build() {
  const m = data.memory;
  chart = make('div', { id: 'memory-box', class: 'chart' }, draw('svg', { id: 'memory-drawing', role: 'img',
    'aria-label': 'temporaries: commands to the right, addresses upwards; the list below has the same' }));
  put(by('memory'), 
    make('p', { id: 'memory-summary', class: 'answer', text: m.buffers.length === 0 ? 'A run has no temporaries.'
      : `Temporaries take ${bytes(m.bytes)}, ${bytes(m.peak_bytes)} of it at the peak; no plan of this order takes less than ` +
        `${bytes(m.lower_bound_bytes)}${m.optimal ? ' (this one is the best there is)' : ''}; without sharing ${bytes(m.unshared_bytes)}.` }),
    make('p', { text: `Besides: constants ${bytes(m.constant_bytes)}, inputs ${bytes(m.input_bytes)}, outputs ${bytes(m.output_bytes)}.` }),
    chart,
    make('div', { class: 'bar' }, make('label', { for: 'memory-moment', text: 'at command' }),
      make('input', { id: 'memory-moment', type: 'range', min: 0, max: Math.max(0, commands.length - 1), value: moment, oninput: event => setMoment(+event.target.value) }),
      make('button', { id: 'memory-peak', text: 'peak', onclick: () => setMoment(m.peak_command) })),
    make('h2', { id: 'memory-title' }), make('div', { id: 'memory-list', class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'values that are alive' }));
  listen(what => {
    if (state.view !== 'memory') return;
    if (what === 'chosen' && state.chosen?.kind === 'command') moment = state.chosen.id;
    render();
  });
}

export function showMemory() {
  if (!chart) build();
  if (state.chosen?.kind === 'command') moment = state.chosen.id;
  render();
}
