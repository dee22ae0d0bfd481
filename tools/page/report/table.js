// All commands, or sums over kernels, layers or operators, to sort.
import { data, commands, grouped, workOf, roofOf, labelOf, totalMs, measured } from './data.js';
import { by, make, clear, row, put } from './dom.js';
import { state, listen, choose } from './state.js';
import { time, percent, short, shortened, count, bytes } from './format.js';

const kPage = 200;
const groupings = {
  command: { text: 'each command', key: null },
  layer: { text: 'layers of the model', key: command => command.layer, name: i => data.layers[commands[i].layer] },
  kernel: { text: 'kernels', key: command => command.kernel ?? command.kind, name: i => labelOf(commands[i]) },
  operators: { text: 'operators', key: command => command.operators, name: i => commands[i].operators || commands[i].kind },
};
let grouping = 'layer', sorted = { column: 2, down: true }, shown = kPage, items = null, built = false;

function make_items() {
  const { key, name } = groupings[grouping];
  const lists = key ? [...grouped(key).values()] : commands.map((_, i) => [i]);
  return lists.map(list => {
    const work = workOf(list), i = list[0];
    return { list, work, name: name ? name(i) : labelOf(commands[i]), roof: roofOf(work), i,
      node: commands[i].nodes.length ? data.nodes[commands[i].nodes[0]] : commands[i].name };
  });
}

const rate = (amount, work) => (work.ms > 0 ? amount / work.ms / 1e6 : 0);
const columns = () => [
  { text: '#', number: true, key: t => t.i, cell: t => String(t.i) },
  { text: grouping, key: t => t.name, cell: t => shortened(t.name, 60) },
  { text: measured ? 'time' : 'predicted', number: true, key: t => t.work.ms, cell: t => time(t.work.ms) },
  { text: 'of all', number: true, key: t => t.work.ms, cell: t => percent(t.work.ms / totalMs) },
  measured && { text: 'predicted', number: true, key: t => t.work.predicted, cell: t => (t.work.predicted > 0 ? time(t.work.predicted) : '') },
  { text: 'launches', number: true, key: t => t.work.launches, cell: t => t.work.launches.toLocaleString('en') },
  { text: 'of the roof', number: true, key: t => t.roof?.share ?? -1, cell: t => (t.roof ? percent(t.roof.share) : '') },
  { text: 'bound by', key: t => t.roof?.bound ?? '', cell: t => t.roof?.bound ?? '' },
  { text: 'GFLOP/s', number: true, key: t => rate(t.work.flops, t.work), cell: t => short(rate(t.work.flops, t.work)) },
  { text: 'GB/s', number: true, key: t => rate(t.work.bytes, t.work), cell: t => short(rate(t.work.bytes, t.work)) },
  { text: 'least traffic', number: true, key: t => t.work.bytes, cell: t => bytes(t.work.bytes) },
  { text: 'first node of the model', key: t => t.node, cell: t => shortened(t.node, 70) },
].filter(Boolean);

function sortedItems(all) {
  const { key } = all[sorted.column];
  const list = items.filter(t => !state.found || t.list.some(i => state.found.has(i)));
  const keyed = list.map(t => [key(t), t]).sort(([a, ta], [b, tb]) => (a < b ? -1 : a > b ? 1 : ta.i - tb.i));
  const result = keyed.map(([, t]) => t);
  return sorted.down ? result.reverse() : result;
}

const chosen = t => (state.chosen?.kind === 'command' && t.list.includes(state.chosen.id));

export function renderTable(all = false) {
  items ??= make_items();
  const cells = columns(), list = sortedItems(cells);
  const head = clear(by('table-head'));
  cells.forEach((column, i) => head.append(make('th', { scope: 'col', class: column.number && 'number',
    'aria-sort': i !== sorted.column ? 'none' : sorted.down ? 'descending' : 'ascending' },
  make('button', { class: 'plain', text: column.text, onclick: () => {
    sorted = { column: i, down: sorted.column === i ? !sorted.down : Boolean(column.number) };
    renderTable();
  } }))));
  const body = clear(by('table-body'));
  for (const t of list.slice(0, all ? list.length : shown)) {
    const made = row(cells, t, () => choose('command', t.i));
    made.dataset.command = t.i;
    if (chosen(t)) made.classList.add('chosen');
    put(body, made);
  }
  by('table-count').textContent = count(list.length, 'row');
  by('table-more').hidden = all || list.length <= shown;
  by('table-more').textContent = `show ${Math.min(5 * kPage, list.length - shown)} more of ${list.length - shown}`;
}

export function groupTable(by_what) {
  grouping = by_what;
  by('table-grouping').value = by_what;
  items = null;
  shown = kPage;
  renderTable();
}

function build() {
  built = true;
  put(by('commands'), 
    make('div', { class: 'bar' }, make('label', { for: 'table-grouping', text: 'a row for' }),
      make('select', { id: 'table-grouping', onchange: event => groupTable(event.target.value) },
        Object.entries(groupings).map(([value, { text }]) => make('option', { value, text, selected: value === grouping }))),
      make('span', { id: 'table-count' })),
    make('div', { class: 'scroll', id: 'table-box', tabindex: 0, role: 'region', 'aria-label': 'commands' }, make('table', {},
      make('caption', { class: 'hidden', text: 'commands' }), make('thead', {}, make('tr', { id: 'table-head' })), make('tbody', { id: 'table-body' }))),
    make('button', { id: 'table-more', onclick: () => { shown += 5 * kPage; renderTable(); } }));
  listen(what => {
    if (state.view !== 'commands') return;
    if (what === 'query') shown = kPage;
    renderTable();
  });
}

export function showCommands() {
  if (!built) build();
  renderTable();
}
