// The commands as the graph shows them: repeats are one box until they are opened, and then one box for each
// time, which opens in turn.
import { data, commands, msOf, labelOf, layerOf } from './data.js';
import { count, shortened } from './format.js';

const kLeastFolded = 6; // commands of a repeat that is worth a fold

// Numbers of repeats that fold, and "repeat.time" of single times, that are open.
export const opened = new Set();
export const folding = data.repeats.map((repeat, i) => i).filter(i => {
  const { period, count: times } = data.repeats[i];
  return times > 1 && period * times >= kLeastFolded;
});

const range = (first, length) => Array.from({ length }, (_, i) => first + i);
const sum = list => list.reduce((ms, i) => ms + msOf(commands[i]), 0);

// What the layers of a list have in common at their begin, up to a "/" or "."; "" for nothing.
export function commonLayer(list) {
  const layers = [...new Set(list.map(i => layerOf(commands[i])))];
  if (layers.length === 1) return layers[0];
  let length = 0;
  while (length < layers[0].length && layers.every(layer => layer[length] === layers[0][length])) ++length;
  return layers[0].slice(0, length).replace(/[^/.]*$/, '').replace(/[/.]$/, '');
}

// The layer that most commands of a list are of.
function mostLayer(list) {
  const counts = new Map();
  for (const i of list) counts.set(layerOf(commands[i]), (counts.get(layerOf(commands[i])) || 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0][0];
}

function commandItem(i) {
  return { key: 'c' + i, kind: commands[i].kind, list: [i], title: labelOf(commands[i]), ms: msOf(commands[i]),
    under: commands[i].nodes.length > 0 ? data.nodes[commands[i].nodes[0]] : commands[i].name };
}

function timeItem(r, t) {
  const { first, period, count: times } = data.repeats[r];
  const list = range(first + t * period, period);
  return { key: `r${r}.${t}`, kind: 'folded', list, repeat: r, time: t, ms: sum(list),
    title: mostLayer(list), under: `${t + 1} of ${times}, ${count(period, 'command')}` };
}

function repeatItem(r) {
  const { first, period, count: times } = data.repeats[r];
  const list = range(first, period * times);
  const name = commonLayer(list);
  return { key: 'r' + r, kind: 'folded', list, repeat: r, ms: sum(list), stacked: true,
    title: `${times} × ` + (period === 1 ? labelOf(commands[first]) : name || count(period, 'command')),
    under: `${count(period, 'command')} each` };
}

// All boxes in the order of the run; inputs first, outputs last.
function visibleItems() {
  const items = data.inputs.map((input, i) =>
    ({ key: 'i' + i, kind: 'input', list: [], input: i, title: input.name, under: input.shape, ms: 0 }));
  const begins = new Map(folding.map(r => [data.repeats[r].first, r]));
  for (let i = 0; i < commands.length;) {
    const r = begins.get(i);
    if (r === undefined) {
      items.push(commandItem(i++));
      continue;
    }
    const { period, count: times } = data.repeats[r];
    if (!opened.has('r' + r)) items.push(repeatItem(r));
    for (let t = 0; opened.has('r' + r) && t < times; ++t) {
      if (opened.has(`r${r}.${t}`)) range(i + t * period, period).forEach(c => items.push(commandItem(c)));
      else items.push(timeItem(r, t));
    }
    i += period * times;
  }
  data.outputs.forEach((output, i) =>
    items.push({ key: 'o' + i, kind: 'output', list: [], output: i, title: output.name, under: output.shape, ms: 0 }));
  return items;
}

// {items, lines: {from, to, edges: numbers of data.edges}, at: number of the item by command}.
export function folded() {
  const items = visibleItems();
  const at = new Array(commands.length);
  items.forEach((item, number) => item.list.forEach(i => { at[i] = number; }));
  const lines = new Map();
  const join = (from, to, edge) => {
    if (from === to) return;
    const key = from * items.length + to;
    if (!lines.has(key)) lines.set(key, { from, to, edges: [] });
    if (edge !== undefined) lines.get(key).edges.push(edge);
  };
  data.edges.forEach((edge, i) => join(at[edge.from], at[edge.to], i));
  items.forEach((item, number) => {
    if (item.input !== undefined) data.inputs[item.input].readers.forEach(reader => join(number, at[reader]));
    if (item.output !== undefined && data.outputs[item.output].maker >= 0)
      join(at[data.outputs[item.output].maker], number);
  });
  return { items, lines: [...lines.values()], at };
}

// The box of a command becomes visible.
export function unfoldTo(command) {
  for (const r of folding) {
    const { first, period, count: times } = data.repeats[r];
    if (command < first || command >= first + period * times) continue;
    opened.add('r' + r);
    opened.add(`r${r}.${Math.floor((command - first) / period)}`);
  }
}

export function foldAll() { opened.clear(); }
export function unfoldAll() {
  for (const r of folding) {
    opened.add('r' + r);
    for (let t = 0; t < data.repeats[r].count; ++t) opened.add(`r${r}.${t}`);
  }
}
export const describe = item => `${shortened(item.title, 60)}: ${shortened(item.under, 60)}`;
