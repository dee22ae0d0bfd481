// What ran where and how fast, where the time goes, and how to run it again.
import { data, commands, msOf, labelOf, byLayer, byKernel, workOf, roofOf, totalMs, measured } from './data.js';
import { by, make, copier, put } from './dom.js';
import { choose, show } from './state.js';
import { time, bytes, flops, percent, short, shortened, clean, count, quoted } from './format.js';
import { numerics, rounding, numberNotes } from './numbers.js';
import { groupTable, showCommands } from './table.js';

const kRows = 8;
const kMuchVariation = 0.1;
const kKinds = ['product', 'reduction', 'map', 'copy', 'concatenate', 'update', 'host', 'library', 'loop', 'branch'];
export const kindsHere = () => kKinds.filter(kind => commands.some(command => command.kind === kind));

function cards() {
  const run = data.measured?.run_ms, p = data.program;
  const all = [
    [run ? 'a run, median' : measured ? 'in kernels, measured' : 'a run, predicted', time(run ? run.median : totalMs),
      run ? `${time(run.min)} to ${time(run.max)} in ${count(data.measured.runs, 'run')}; ${time(totalMs)} in commands` : ''],
    ...(data.versus || []).map(versus => [`${versus.ratio.median.toFixed(2)} × as fast as`, shortened(versus.name, 30),
      `${time(versus.latency_ms.median)}; ${versus.ratio.min.toFixed(2)} to ${versus.ratio.max.toFixed(2)} in ${versus.rounds} rounds`]),
    ['commands of a run', commands.length.toLocaleString('en'), `${count(p.kernels, 'kernel')}`],
    ['temporaries', bytes(data.memory.bytes), `${bytes(data.memory.constant_bytes)} of constants`],
    ['work', flops(p.flops), totalMs > 0 ? `${short(p.flops / totalMs / 1e6)} GFLOP/s` : ''],
    (() => {
      const roof = roofOf(workOf(commands.map((_, i) => i)));
      return roof && ['of the roof', percent(roof.share), `bound by ${roof.bound}`];
    })(),
    ['compiled in', time(p.compile_ms), `${bytes(p.code_bytes)} of code`],
  ];
  return make('div', { class: 'cards' }, all.filter(Boolean).map(([what, value, more]) =>
    make('div', { class: 'card' }, make('span', { text: what }), make('strong', { text: value }), more && make('small', { text: more }))));
}

function bars(groups, name, id) {
  const rows = [...groups.values()].map(list => ({ list, work: workOf(list) })).sort((a, b) => b.work.ms - a.work.ms);
  return make('div', { class: 'bars', id }, rows.slice(0, kRows).map(({ list, work }) => {
    const longest = list.reduce((best, i) => (msOf(commands[i]) > msOf(commands[best]) ? i : best), list[0]);
    return make('div', { class: 'share-row' },
      make('button', { class: 'plain', data: { command: longest }, onclick: () => choose('command', longest) }, shortened(name(list[0]), 60)),
      make('span', { class: 'number', text: `${time(work.ms)}, ${percent(work.ms / totalMs)}` }),
      make('meter', { min: 0, max: rows[0].work.ms || 1, value: work.ms, 'aria-label': percent(work.ms / totalMs) }));
  }), rows.length > kRows && make('button', { class: 'small', text: `all ${rows.length}`, onclick: () => {
    show('commands');
    showCommands();
    groupTable(id === 'slowest-layers' ? 'layer' : 'kernel');
  } }));
}

// A layer that is one node without a telling name is better known by what it computes.
function layerName(i) {
  const layer = data.layers[commands[i].layer];
  return byLayer.get(commands[i].layer).length === 1 && !layer.includes('/') ? `${shortened(layer, 30)} (${labelOf(commands[i])})` : layer;
}

function byKindBar() {
  const sums = kindsHere().map(kind => [kind, commands.reduce((sum, c) => sum + (c.kind === kind ? msOf(c) : 0), 0)]).filter(([, ms]) => ms > 0);
  return make('div', {}, make('div', { class: 'stack', role: 'img', 'aria-label': sums.map(([kind, ms]) => `${kind} ${percent(ms / totalMs)}`).join(', ') },
    sums.map(([kind, ms]) => {
      const part = make('span', { class: 'fill ' + kind });
      part.style.flexGrow = ms / totalMs;
      return part;
    })), make('p', { class: 'key' }, sums.map(([kind, ms]) => make('span', { class: 'badge ' + kind, text: `${kind} ${percent(ms / totalMs)}` }))));
}

function where() {
  const { model, machine, program: p, target } = data;
  const bound = Object.entries(model.unbound).map(([name, extent]) => `${name}=${extent}`).join(', ');
  return make('dl', { id: 'where' }, [
    ['model', `${model.path}${model.name && model.name !== model.path ? ` (${model.name})` : ''}`],
    ['format', [model.format, model.producer && `written by ${model.producer}`, model.bytes && bytes(model.bytes)].filter(Boolean).join(', ')],
    ['inputs', data.inputs.map(input => `${shortened(input.name, 80)} ${input.shape}`).join(', ')],
    ['outputs', data.outputs.map(output => `${shortened(output.name, 80)} ${output.shape}`).join(', ')],
    bound && ['not given, so bound', bound],
    ['machine', `${machine.processor}, ${count(machine.cores, 'core')}, ${bytes(machine.memory_bytes)}`],
    ['device', `${p.device}, ${p.isa}, ${count(p.threads, 'thread')}`],
    ['compiled for', `${p.target}${target?.caches ? `: caches ${target.caches.map(cache => bytes(cache.bytes)).join(', ')}, ${short(target.clock_ghz)} GHz` : ''}`],
    ['options', p.options],
    ['numbers', `${p.precision}, numerics ${numerics()}: ${rounding.length + numberNotes.length === 0 ? 'nothing changed them' : count(rounding.length + numberNotes.length, 'thing') + ' may have changed rounding'}`],
    ['times', data.measured ? `${data.measured.source}${data.measured.inputs ? `; inputs ${data.measured.inputs}` : ''}` : 'predicted by the cost model; --profile measures them'],
    data.measured?.run_ms?.cv > kMuchVariation && ['doubtful', `times of runs vary by ${percent(data.measured.run_ms.cv)} (standard deviation over mean): other work disturbed them`],
    ['heddle', `${data.heddle.version}, build ${data.heddle.build}`],
  ].filter(Boolean).flatMap(([name, value]) => [make('dt', { text: name }), make('dd', { text: clean(value) })]));
}

// "report" runs as it was called; the others with the same model and options.
function commandsAgain() {
  const model = quoted(data.model.path), options = data.same_options.map(quoted).join(' ');
  const other = (name, more = '') => `heddle ${name} ${[model, options, more].filter(Boolean).join(' ')}`;
  return [['this report', data.command.map(quoted).join(' ')], ['once', other('run')], ['speed', other('bench')],
    ['kernels', other('profile')], ['right?', other('check')], ['strictly', other('run', '--numerics strict')]];
}

export function startOverview() {
  const { model } = data;
  by('title').textContent = shortened(model.path.split('/').slice(-2).join('/'), 80);
  const p = data.program;
  by('summary').textContent = `${p.device} ${p.isa}, ${count(p.threads, 'thread')}, ${p.level}, ${p.precision}: ` +
    `${count(commands.length, 'command')}, ${data.measured?.run_ms ? time(data.measured.run_ms.median) + ' a run' : `${time(totalMs)} ${measured ? 'measured' : 'predicted'}`}`;
  const unit = measured ? 'measured' : 'predicted';
  put(by('overview'), cards(), make('div', { class: 'columns' },
    make('div', {}, make('h2', { text: `Slowest layers, ${unit}` }), bars(byLayer, layerName, 'slowest-layers')),
    make('div', {}, make('h2', { text: `Slowest kernels, ${unit}` }), bars(byKernel, i => labelOf(commands[i]), 'slowest-kernels')),
    make('div', {}, make('h2', { text: 'Time by kind' }), byKindBar(),
      make('h2', { text: 'Notes' }), data.notes.length ? make('ul', { id: 'notes' }, data.notes.map(note => make('li', { text: clean(note) }))) : make('p', { text: 'None.' })),
    make('div', {}, make('h2', { text: 'What ran where' }), where())),
  make('div', { id: 'again' }, make('h2', { text: 'Run it again' }), commandsAgain().map(([what, text]) =>
      make('div', { class: 'again' }, make('span', { text: what }), make('code', { text: clean(text) }), copier(() => text)))));
}
