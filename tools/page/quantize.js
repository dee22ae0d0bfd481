'use strict';
// The page of heddle quantize --html. It reads #data: the report as --json has it. Text of the model
// is only ever set as text.

const data = JSON.parse(document.getElementById('data').textContent);
const by = id => document.getElementById(id);

function add(parent, tag, text, name) {
  const made = parent.appendChild(document.createElement(tag));
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
}

function bytes(count) {
  const units = ['bytes', 'KiB', 'MiB', 'GiB'];
  let unit = 0;
  for (; count >= 1024 && unit < 3; ++unit) count /= 1024;
  return (unit === 0 ? count : count.toFixed(1)) + ' ' + units[unit];
}

const short = x => (x === 0 ? '0' : String(+x.toPrecision(4)));
// JSON has no infinity: null is what loses nothing.
const decibels = x => (x === undefined ? '' : x === null ? 'exact' : x.toFixed(1) + ' dB');
// Of times there are always both; a layer of no kernel takes none.
const time = ms => (ms === 0 ? '' : ms < 0.1 ? short(1000 * ms) + ' µs' : short(ms) + ' ms');
const gain = both => (both.ms > 0 && both.f32_ms > 0 ? both.f32_ms / both.ms : 0);
const gainText = both => (gain(both) > 0 ? gain(both).toFixed(2) : '');
const known = x => (x === undefined || x === null ? Infinity : x);
const worth = layer => Math.min(known(layer.weights_sqnr_db), known(layer.input_sqnr_db));

function summarize() {
  const agreement = data.agreement;
  const verdict = by('verdict');
  verdict.textContent = data.pass ? 'pass' : 'FAIL: the outputs are farther off than --cosine allows';
  verdict.className = data.pass ? 'pass' : 'fail';
  const kinds = new Map();
  for (const layer of data.layers) kinds.set(layer.type, (kinds.get(layer.type) || 0) + 1);
  const rows = [
    ['written', data.output],
    ['size', `${bytes(data.bytes)}, ${(data.bytes / data.float_bytes).toFixed(3)} of the ${bytes(data.float_bytes)} of weights before`],
    ['cosine of the outputs', agreement.cosine === null ? 'none' : agreement.cosine.toFixed(6)],
    ['signal to noise of the outputs', decibels(agreement.sqnr_db)],
    ['the same class', agreement.top1_agreement === undefined ? 'no classes' : (100 * agreement.top1_agreement).toFixed(1) + ' %'],
    ['calibration', `${data.samples} ${data.random ? 'random ' : ''}samples, ${data.held_out} of them held out`],
    ['settings', data.weights + (data.weights === 'int8' ? `, ranges by ${data.method}, ${data.symmetric ? 'symmetric' : 'asymmetric'}` : '')],
    ['layers', [...kinds].map(([kind, count]) => `${count} ${kind}`).join(', ')],
    ['adjusted', `${data.equalised_pairs} pairs equalised, ${data.corrected_biases} biases corrected, ` +
      `${data.smoothed_layers} layers smoothed (${data.unfoldable_layers} have nothing that takes the factors), ${data.gptq_layers} by GPTQ`],
    ['a run', `${time(data.time.ms)}, ${time(data.time.f32_ms)} before (${gainText(data.time)}); ` +
      `of no layer ${time(data.time_of_others.ms)}, ${time(data.time_of_others.f32_ms)} before`],
    ['time', data.seconds.toFixed(1) + ' s'],
  ];
  for (const [what, value] of rows) {
    add(by('summary'), 'dt', what);
    add(by('summary'), 'dd', value);
  }
  for (const note of data.notes) add(by('notes'), 'li', note);
}

function choose(number, scroll) {
  document.querySelectorAll('.chosen:not(span)').forEach(e => e.classList.remove('chosen'));
  by('bar' + number).classList.add('chosen');
  const row = by('row' + number);
  row.classList.add('chosen');
  if (scroll) row.scrollIntoView({ block: 'center' });
}

function drawBars() {
  const most = Math.max(1, ...data.layers.map(worth).filter(Number.isFinite));
  by('most').textContent = decibels(most);
  data.layers.forEach((layer, i) => {
    const bar = add(by('bars'), 'button', '', layer.type);
    const here = worth(layer);
    bar.id = 'bar' + i;
    bar.title = layer.name + (Number.isFinite(here) ? ', ' + decibels(here) : ', ' + layer.type);
    bar.style.height = 100 * Math.max(0.02, Math.min(1, here / most)) + '%';
    bar.addEventListener('click', () => choose(i, true));
  });
}

function remark(layer) {
  const parts = [];
  if (layer.why) parts.push(layer.why);
  if (layer.smoothed) parts.push(`smoothed by ${layer.smoothed}, ${decibels(layer.smoothing_gain_db)} predicted`);
  if (layer.gptq_error_ratio !== undefined) parts.push(`GPTQ: ${layer.gptq_error_ratio.toFixed(2)} of the error`);
  return parts.join('; ');
}

// Heading, key to sort by, text, whether it is a number.
const columns = [
  ['#', (layer, i) => i, (layer, i) => String(i + 1), true],
  ['layer', layer => layer.name, layer => layer.name, false],
  ['operator', layer => layer.op, layer => layer.op, false],
  ['type', layer => layer.type, layer => layer.type, false],
  ['before', layer => layer.float_bytes, layer => bytes(layer.float_bytes), true],
  ['bytes', layer => layer.bytes ?? layer.float_bytes, layer => bytes(layer.bytes ?? layer.float_bytes), true],
  ['weights', layer => known(layer.weights_sqnr_db), layer => decibels(layer.weights_sqnr_db), true],
  ['input', layer => known(layer.input_sqnr_db), layer => decibels(layer.input_sqnr_db), true],
  ['least', worth, layer => (Number.isFinite(worth(layer)) ? decibels(worth(layer)) : ''), true],
  ['f32', layer => layer.time.f32_ms, layer => time(layer.time.f32_ms), true],
  ['time', layer => layer.time.ms, layer => time(layer.time.ms), true],
  ['faster', layer => gain(layer.time), layer => gainText(layer.time), true],
  ['', remark, remark, false],
];
let sorted = { column: 0, down: false };

function fillLayers() {
  const keyed = data.layers.map((layer, i) => [columns[sorted.column][1](layer, i), i]);
  keyed.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] - b[1]));
  if (sorted.down) keyed.reverse();
  const body = by('layers').tBodies[0];
  body.textContent = '';
  const wanted = by('search').value.trim().toLowerCase();
  for (const [, i] of keyed) {
    const layer = data.layers[i];
    const row = add(body, 'tr');
    row.id = 'row' + i;
    for (const [, , text, number] of columns) add(row, 'td', text(layer, i), number ? 'number' : '');
    row.addEventListener('click', () => choose(i, false));
    row.hidden = !row.textContent.toLowerCase().includes(wanted);
  }
  by('layers').querySelectorAll('th').forEach((head, i) => head.setAttribute('aria-sort',
    i !== sorted.column ? 'none' : sorted.down ? 'descending' : 'ascending'));
}

function headLayers() {
  const head = add(by('layers').tHead, 'tr');
  columns.forEach(([text, , , number], i) => {
    const cell = add(head, 'th', undefined, number ? 'number' : '');
    add(cell, 'button', text).addEventListener('click', () => {
      sorted = { column: i, down: sorted.column === i && !sorted.down };
      fillLayers();
    });
  });
}

function drawRanges() {
  const seen = new Map(); // several layers read one value
  for (const layer of data.layers) if (layer.input_range) seen.set(layer.input, layer);
  by('activations').hidden = seen.size === 0;
  const head = add(by('ranges').tHead, 'tr');
  for (const text of ['value', 'seen', 'chosen', 'signal to noise', '']) add(head, 'th', text);
  for (const [name, layer] of seen) {
    const row = add(by('ranges').tBodies[0], 'tr');
    add(row, 'td', name);
    for (const range of [layer.input_seen, layer.input_range]) add(row, 'td', range.map(short).join(' to '));
    add(row, 'td', decibels(layer.input_sqnr_db));
    const picture = add(add(row, 'td'), 'div', undefined, 'range');
    const low = Math.min(layer.input_seen[0], layer.input_range[0]);
    const width = Math.max(layer.input_seen[1], layer.input_range[1]) - low || 1;
    const place = x => 100 * (x - low) / width + '%';
    for (const [kind, range] of [['seen', layer.input_seen], ['chosen', layer.input_range], ['zero', [0, 0]]]) {
      const mark = add(picture, 'span', undefined, kind);
      mark.style.left = place(range[0]);
      if (kind !== 'zero') mark.style.width = 100 * (range[1] - range[0]) / width + '%';
    }
  }
}

summarize();
drawBars();
headLayers();
fillLayers();
drawRanges();
by('search').addEventListener('input', fillLayers);
document.addEventListener('keydown', key => {
  if (key.key !== '/' || key.target === by('search')) return;
  key.preventDefault();
  by('search').focus();
});
