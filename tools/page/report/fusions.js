// What was fused, what was not, why, and what that was judged to cost.
import { data, commands, labelOf, kernelOf, byKernel } from './data.js';
import { by, make, clear, table, row, put } from './dom.js';
import { state, listen, choose, isChosen } from './state.js';
import { time, bytes, count, shortened, clean } from './format.js';

const kPage = 200;
let code = '', shown = kPage, built = false;
const told = data.edges.map((edge, i) => ({ ...edge, i })).filter(edge => edge.code !== undefined)
  .sort((a, b) => b.price_ns - a.price_ns);

export const edgeName = edge => `${labelOf(commands[edge.from])} → ${labelOf(commands[edge.to])}`;

function byCode(list) {
  const codes = new Map();
  for (const one of list) {
    const sum = codes.get(one.code) || { code: one.code, count: 0, ns: 0, reason: one.reason };
    sum.count += 1;
    sum.ns += one.price_ns || 0;
    codes.set(one.code, sum);
  }
  return [...codes.values()].sort((a, b) => b.ns - a.ns || b.count - a.count);
}

const columns = [
  { text: 'between', cell: e => shortened(edgeName(e), 70) },
  { text: 'price', number: true, cell: e => time(e.price_ns / 1e6) },
  { text: 'bytes', number: true, cell: e => bytes(e.bytes) },
  { text: 'code', word: true, cell: e => e.code },
  { text: 'why they are apart', cell: e => clean(data.reasons[e.reason]) },
];

function render() {
  const list = told.filter(e => (!code || e.code === code) && (!state.found || state.found.has(e.from) || state.found.has(e.to)));
  const body = clear(by('fusions-body'));
  for (const edge of list.slice(0, shown)) {
    const made = row(columns, edge, e => choose('edge', e.i));
    made.dataset.edge = edge.i;
    if (isChosen('edge', edge.i)) made.classList.add('chosen');
    put(body, made);
  }
  by('fusions-count').textContent = count(list.length, 'value');
  by('fusions-more').hidden = list.length <= shown;
  by('fusions-code').value = code;
}

function setCode(value) {
  code = value;
  shown = kPage;
  render();
}

function taken() {
  const kernels = [...byKernel.values()].map(list => ({ list, i: list[0], kernel: kernelOf(commands[list[0]]) }))
    .filter(one => one.kernel && commands[one.i].operators.includes(','))
    .map(one => ({ ...one, operators: commands[one.i].operators.split(', '), nodes: new Set(one.list.flatMap(i => commands[i].nodes)).size }))
    .sort((a, b) => b.operators.length - a.operators.length);
  return table('kernels of several operators', [
    { text: 'kernel', cell: one => shortened(one.kernel.label, 50) },
    { text: 'launches', number: true, cell: one => one.list.length.toLocaleString('en') },
    { text: 'nodes of the model', number: true, cell: one => one.nodes.toLocaleString('en') },
    { text: 'a launch, predicted', number: true, cell: one => (one.kernel.predicted_ns > 0 ? time(one.kernel.predicted_ns / 1e6) : '') },
    { text: 'operators', cell: one => one.operators.join(', ') },
  ], kernels.slice(0, kPage), one => choose('command', one.i));
}

function refused() {
  const list = byCode(data.refusals.map(refusal => ({ ...refusal, price_ns: 0 })));
  const made = make('div');
  for (const one of list) {
    const all = data.refusals.filter(refusal => refusal.code === one.code);
    const fold = make('details', { ontoggle: () => {
      if (fold.open && fold.children.length === 1) put(fold, table('refused patterns', [
        { text: 'producer', cell: r => shortened(r.producer, 60) }, { text: 'consumer', cell: r => shortened(r.consumer, 60) },
        { text: 'reason', cell: r => clean(r.reason) }], all.slice(0, 100)),
      all.length > 100 && make('p', { text: `and ${count(all.length - 100, 'more', 'more')}; heddle explain --all has them` }));
    } }, make('summary', { text: `${one.code}: ${count(one.count, 'pattern')}` }));
    put(made, fold);
  }
  if (data.refusals_left_out) made.append(make('p', { text: `${count(data.refusals_left_out, 'refusal')} left out here; heddle explain --all has them.` }));
  return made;
}

function build() {
  built = true;
  const total = told.reduce((sum, e) => sum + e.price_ns, 0);
  put(by('fusions'), 
    make('h2', { text: 'Values that go through memory, by price' }),
    make('p', { text: `${count(told.length, 'value')} between commands, judged to cost ${time(total / 1e6)} a run together. ` +
      'The price is that of writing the value, reading it again, and the call.' }),
    make('div', { class: 'bar' }, make('label', { for: 'fusions-code', text: 'code' }),
      make('select', { id: 'fusions-code', onchange: event => setCode(event.target.value) }, make('option', { value: '', text: 'all' }),
        byCode(told).map(one => make('option', { value: one.code, text: `${one.code}: ${one.count}, ${time(one.ns / 1e6)}` }))),
      make('span', { id: 'fusions-count' })),
    make('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'values that are not fused' }, make('table', {},
      make('caption', { class: 'hidden', text: 'values between commands' }),
      make('thead', {}, make('tr', {}, columns.map(column => make('th', { scope: 'col', class: column.number && 'number', text: column.text })))),
      make('tbody', { id: 'fusions-body' }))),
    make('button', { id: 'fusions-more', text: 'show more', onclick: () => { shown += 5 * kPage; render(); } }),
    make('h2', { text: 'Fusions that were taken' }),
    make('div', { class: 'scroll', id: 'fusions-taken', tabindex: 0, role: 'region', 'aria-label': 'fusions that were taken' }, taken()),
    make('h2', { text: 'Patterns that were refused on the way' }), refused());
  listen(() => { if (state.view === 'fusions') render(); });
}

export function showFusions() {
  if (!built) build();
  render();
}
