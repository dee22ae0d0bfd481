// Beside the views: all of what is chosen.
import { data, commands, kernelOf, labelOf, layerOf, msOf, edgesFrom, edgesTo, inputsOf, outputsOf, roofOf, workOf, byKernel,
  totalMs, measured } from './data.js';
import { by, make, clear, table, put } from './dom.js';
import { state, listen, choose, show } from './state.js';
import { time, bytes, flops, percent, shortened, clean, count } from './format.js';
import { codeTabs } from './code.js';
import { commonLayer } from './fold.js';
import { edgeName } from './fusions.js';

const kCode = { hlo: 'operators', schedule: 'schedule', places: 'places', strategies: 'strategies', stages: 'stages', kernel: 'kernel',
  cuda: 'CUDA C++', llvm: 'LLVM IR', assembly: 'assembly' };
const kMostListed = 200;

function facts(pairs) {
  return make('dl', {}, pairs.filter(pair => pair && pair[1] !== '' && pair[1] !== undefined)
    .flatMap(([name, value]) => [make('dt', { text: name }), make('dd', {}, value)]));
}

function names(title, list) {
  if (!list.length) return null;
  const shown = list.slice(0, kMostListed);
  return [make('h3', { text: title }), make('ul', { class: 'names', tabindex: 0, 'aria-label': title }, shown.map(name => make('li', { text: clean(name) })),
    list.length > shown.length && make('li', { text: `and ${list.length - shown.length} more` }))];
}

const link = (text, kind, id) => make('button', { class: 'plain', text, onclick: () => choose(kind, id) });
const commandLink = i => link(`${i}: ${shortened(labelOf(commands[i]), 50)}`, 'command', i);

// Why the value is not handed on inside of one kernel.
function why(edge) {
  if (edge.code === undefined) return 'through memory; nothing was said of fusing it';
  return `${edge.code}: ${clean(data.reasons[edge.reason])}; ${time(edge.price_ns / 1e6)}`;
}

function edgeTable(title, list, end) {
  if (!list.length) return null;
  return [make('h3', { text: title }), make('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': title }, table(title, [
    { text: 'command', cell: e => `${data.edges[e][end]}: ${shortened(labelOf(commands[data.edges[e][end]]), 40)}` },
    { text: 'value', cell: e => `${shortened(data.edges[e].value, 30)} ${data.edges[e].shape}` },
    { text: 'why they are apart', cell: e => why(data.edges[e]) },
  ], list.slice(0, kMostListed), e => choose('edge', e)))];
}

function ofCommand(i) {
  const command = commands[i], kernel = kernelOf(command), work = workOf([i]), roof = roofOf(work);
  const same = byKernel.get(command.kernel ?? command.kind) || [];
  const code = { ...(command.hlo >= 0 ? { hlo: command.hlo } : {}), ...(kernel?.code || {}) };
  return [
    facts([
      ['layer', clean(layerOf(command))],
      ['command', `${i}, ${clean(command.name)}`],
      measured && ['measured', `${time(msOf(command))}, ${percent(msOf(command) / totalMs)} of all${command.launches > 1 ? `, ${command.launches} launches` : ''}`],
      command.predicted_ns && ['predicted', time(command.predicted_ns / 1e6) + (command.launches > 1 ? ' a launch' : '')],
      roof && ['of the roof', `${percent(roof.share)}, bound by ${roof.bound}`],
      ['work', `${flops(command.flops)}, least traffic ${bytes(command.bytes)}`],
      kernel && ['kernel', `${kernel.name}, ${count(kernel.phases, 'phase')}, ${count(kernel.tasks, 'task')}, scratch ${bytes(kernel.scratch_bytes)}`],
      kernel && same.length > 1 && ['launched by', make('span', {}, `${same.length} commands: `, same.slice(0, 12).map(other => (other === i ? `${i} ` : [link(String(other), 'command', other), ' '])),
        same.length > 12 && `and ${same.length - 12} more`)],
      ['operators', clean(command.operators)],
      ['makes', clean(command.makes.join(', '))],
    ]),
    make('div', { class: 'bar' }, ['graph', 'timeline', 'memory', 'commands'].filter(view => view !== state.view)
      .map(view => make('button', { class: 'small', text: `in the ${view === 'commands' ? 'table' : view}`, onclick: () => show(view) }))),
    Object.keys(code).length > 0 && [make('h3', { text: 'Code' }),
      codeTabs(Object.entries(kCode).filter(([key]) => code[key] !== undefined).map(([key, text]) => ({ text, number: code[key] })), labelOf(command))],
    edgeTable('Values from other commands', edgesTo[i], 'from'), edgeTable('Values to other commands', edgesFrom[i], 'to'),
    inputsOf[i].length > 0 && [make('h3', { text: 'Inputs of the model' }), make('ul', { class: 'names', tabindex: 0 }, inputsOf[i].map(n => make('li', {}, link(shortened(data.inputs[n].name, 80), 'input', n), ' ' + data.inputs[n].shape)))],
    outputsOf[i].length > 0 && [make('h3', { text: 'Outputs of the model' }), make('ul', { class: 'names', tabindex: 0 }, outputsOf[i].map(n => make('li', {}, link(shortened(data.outputs[n].name, 80), 'output', n), ' ' + data.outputs[n].shape)))],
    names(`Weights and constants (${command.weights.length})`, command.weights.map(w => data.weights[w]).map(w => `${w.name} ${w.shape}, ${bytes(w.bytes)}${w.prepared ? ', prepared once' : ''}`)),
    names(`Nodes of the model (${command.nodes.length})`, command.nodes.map(node => data.nodes[node])),
  ];
}

const views = {
  command: i => ({ title: labelOf(commands[i]), parts: ofCommand(i), kind: commands[i].kind }),
  edge: e => {
    const edge = data.edges[e];
    return { title: edgeName(edge), kind: 'value between two commands', parts: [
      make('h3', { text: 'Why are these two apart?' }),
      make('p', { class: 'answer', text: why(edge) }),
      facts([['from', commandLink(edge.from)], ['to', commandLink(edge.to)], ['value', `${clean(edge.value)} ${edge.shape}`],
        ['bytes read', bytes(edge.bytes)], edge.price_ns !== undefined && ['price', `${time(edge.price_ns / 1e6)}: writing it, reading it again, and the call`]])] };
  },
  buffer: b => {
    const buffer = data.memory.buffers[b];
    return { title: buffer.name, kind: 'temporary', parts: [facts([['bytes', `${buffer.bytes.toLocaleString('en')} (${bytes(buffer.bytes)})`],
      ['address', buffer.offset.toLocaleString('en')], commands[buffer.first] && ['made by', commandLink(buffer.first)],
      commands[buffer.last] && ['last read by', commandLink(buffer.last)],
      ['at the peak', buffer.first <= data.memory.peak_command && data.memory.peak_command <= buffer.last ? 'alive' : 'not alive']])] };
  },
  input: n => ({ title: data.inputs[n].name, kind: 'input of the model', parts: [facts([['shape', data.inputs[n].shape], ['bytes', bytes(data.inputs[n].bytes)]]),
    make('h3', { text: 'Read by' }), make('ul', { class: 'names', tabindex: 0 }, data.inputs[n].readers.slice(0, kMostListed).map(i => make('li', {}, commandLink(i))))] }),
  output: n => ({ title: data.outputs[n].name, kind: 'output of the model', parts: [facts([['shape', data.outputs[n].shape], ['bytes', bytes(data.outputs[n].bytes)],
    ['made by', data.outputs[n].maker >= 0 ? commandLink(data.outputs[n].maker) : 'no command: it is an input or a constant']])] }),
  repeat: r => {
    const { first, period, count: times } = data.repeats[r];
    const list = Array.from({ length: period * times }, (_, i) => first + i);
    return { title: `${times} × ${commonLayer(list) || labelOf(commands[first])}`, kind: 'repeat', parts: [
      facts([['commands', `${first} to ${first + period * times - 1}: ${times} times ${period}`], ['time', `${time(workOf(list).ms)}, ${percent(workOf(list).ms / totalMs)} of all`]]),
      make('h3', { text: 'Each time' }), make('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'each time' }, table('each time', [
        { text: '#', cell: t => String(t + 1) }, { text: 'layer', cell: t => shortened(layerOf(commands[first + t * period]), 60) },
        { text: 'time', number: true, cell: t => time(workOf(list.slice(t * period, (t + 1) * period)).ms) }],
      Array.from({ length: Math.min(times, kMostListed) }, (_, t) => t), t => choose('command', first + t * period)))] };
  },
};

function render() {
  const place = clear(by('details'));
  place.hidden = !state.chosen;
  document.body.classList.toggle('with-details', Boolean(state.chosen));
  if (!state.chosen) return;
  const { title, kind, parts } = views[state.chosen.kind](state.chosen.id);
  put(place, make('div', { class: 'bar' }, make('span', { class: 'badge ' + kind.split(' ')[0], text: kind }),
    make('button', { id: 'details-close', class: 'small', text: 'close', title: 'close (Esc)', onclick: () => choose(null) })),
  make('h2', { id: 'details-title', text: shortened(title, 200) }), ...parts.flat(3).filter(Boolean));
  place.scrollTop = 0;
}

export function startDetails() {
  listen(what => { if (what === 'chosen') render(); });
}
