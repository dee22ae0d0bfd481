'use strict';
// The page's behaviour. It reads #data (JSON, made by explain_page.cc) and the graph's own drawing.

const data = JSON.parse(document.getElementById('data').textContent);
const panel = document.getElementById('panel');
const graph = document.getElementById('graph');
const drawing = graph.querySelector('svg');
const measured = data.nodes.some(node => node.measured > 0);
const cost = node => (measured ? node.measured : node.predicted);

function time(ms) {
  return ms >= 1 ? ms.toFixed(2) + ' ms' : (ms * 1e3).toFixed(1) + ' \u00b5s';
}

function add(parent, tag, text, name) {
  const made = parent.appendChild(document.createElement(tag));
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
}

// A table with a heading; `numbers`: which columns are numbers. Returns a function that adds a row;
// with the number of a command a row can be chosen.
function table(heads, numbers) {
  const made = add(panel, 'table');
  const head = add(add(made, 'thead'), 'tr');
  heads.forEach((text, i) => add(head, 'th', text, numbers.includes(i) ? 'number' : ''));
  const body = add(made, 'tbody');
  return (cells, number) => {
    const row = add(body, 'tr');
    cells.forEach((text, i) => add(row, 'td', text, numbers.includes(i) ? 'number' : ''));
    if (number === undefined) return;
    row.dataset.number = number;
    row.tabIndex = 0;
    row.addEventListener('click', () => show(number, true));
    row.addEventListener('keydown', key => { if (key.key === 'Enter') show(number, true); });
  };
}

function unmark() {
  document.querySelectorAll('.chosen, .near').forEach(e => e.classList.remove('chosen', 'near'));
}

function overview() {
  unmark();
  history.replaceState(null, '', '#');
  panel.textContent = '';
  add(panel, 'p', 'A box is a command of a run, a line a value that one hands to another. The bar below a ' +
    'box is its share of the time. Choose a box or a row.');
  const total = data.nodes.reduce((sum, node) => sum + cost(node), 0) || 1;
  add(panel, 'h3', 'Where the time goes');
  const row = table(['predicted', 'measured', 'share', 'command'], [0, 1, 2]);
  data.nodes.map((node, i) => [node, i]).sort((a, b) => cost(b[0]) - cost(a[0])).slice(0, 25)
    .forEach(([node, i]) => row([time(node.predicted), node.measured > 0 ? time(node.measured) : '',
      (100 * cost(node) / total).toFixed(1) + ' %', node.title], i));
  add(panel, 'h3', 'Values between commands, by the reason why they were not fused');
  const codes = new Map();
  for (const edge of data.edges) {
    const code = codes.get(edge.code) || { count: 0, ms: 0 };
    code.count += 1;
    code.ms += edge.ms;
    codes.set(edge.code, code);
  }
  const reason = table(['cost', 'values', 'code'], [0, 1]);
  [...codes].sort((a, b) => b[1].ms - a[1].ms)
    .forEach(([code, sum]) => reason([time(sum.ms), String(sum.count), code]));
}

function show(number, scroll) {
  unmark();
  const chosen = document.getElementById('n' + number);
  const node = data.nodes[number];
  chosen.classList.add('chosen');
  if (scroll) chosen.scrollIntoView({ block: 'center', inline: 'center' });
  history.replaceState(null, '', '#' + number);
  panel.textContent = '';
  add(panel, 'h2', node.name);
  add(panel, 'pre', node.details);
  if (node.nodes.length > 0) {
    add(panel, 'h3', `Nodes of the model (${node.nodes.length})`);
    const list = add(panel, 'ul', '', 'names');
    for (const name of node.nodes) add(list, 'li', name);
  }
  const edges = data.edges.filter(edge => edge.from === number || edge.to === number);
  if (edges.length > 0) {
    add(panel, 'h3', 'Values to and from other commands, and why these were not fused');
    const row = table(['command', 'reason'], []);
    for (const edge of edges) {
      const other = edge.from === number ? edge.to : edge.from;
      document.getElementById('e' + edge.id).classList.add('chosen');
      document.getElementById('n' + other).classList.add('near');
      row([(edge.from === number ? 'to ' : 'from ') + data.nodes[other].name, edge.label], other);
    }
  }
  if (node.operators) {
    add(panel, 'h3', 'Operators');
    add(panel, 'pre', node.operators);
  }
}

// Boxes without the text are faded; the first one with it is chosen by Enter.
function search(text) {
  const wanted = text.trim().toLowerCase();
  let first = -1;
  data.nodes.forEach((node, i) => {
    const found = [node.name, node.title, node.details, node.operators, ...node.nodes].join('\n')
      .toLowerCase().includes(wanted);
    document.getElementById('n' + i).classList.toggle('faded', !found);
    if (found && first < 0) first = i;
  });
  return wanted ? first : -1;
}

let scale = 1;
const size = [+drawing.getAttribute('width'), +drawing.getAttribute('height')];
drawing.setAttribute('viewBox', `0 0 ${size[0]} ${size[1]}`);

function zoom(factor) {
  scale = Math.min(3, Math.max(0.02, scale * factor));
  drawing.setAttribute('width', size[0] * scale);
  drawing.setAttribute('height', size[1] * scale);
}

function zoomToAll() {
  zoom(Math.min(graph.clientWidth / size[0], graph.clientHeight / size[1]) / scale);
}

graph.querySelectorAll('.node').forEach(box => {
  const number = +box.dataset.number;
  box.addEventListener('click', () => show(number));
  box.addEventListener('keydown', key => { if (key.key === 'Enter') show(number); });
});
document.getElementById('in').addEventListener('click', () => zoom(1.25));
document.getElementById('out').addEventListener('click', () => zoom(0.8));
document.getElementById('all').addEventListener('click', zoomToAll);
document.getElementById('overview').addEventListener('click', overview);
const box = document.getElementById('search');
box.addEventListener('input', () => search(box.value));
box.addEventListener('keydown', key => {
  const first = key.key === 'Enter' ? search(box.value) : -1;
  if (first >= 0) show(first, true);
});
document.addEventListener('keydown', key => {
  if (key.target === box) return;
  if (key.key === '+') zoom(1.25);
  if (key.key === '-') zoom(0.8);
  if (key.key === '0') zoomToAll();
  if (key.key === 'Escape') overview();
  if (key.key === '/') {
    key.preventDefault();
    box.focus();
  }
});

const first = parseInt(location.hash.slice(1), 10);
if (first >= 0 && first < data.nodes.length) show(first, true);
else overview();
