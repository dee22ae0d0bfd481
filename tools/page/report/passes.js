// What each pass changed, and what the compilation took.
import { data, textOf } from './data.js';
import { by, make, clear, table, row, put } from './dom.js';
import { time, count } from './format.js';
import { diffBlock } from './code.js';

let built = false;

const columns = [
  { text: 'pass', cell: c => c.pass },
  { text: 'stage', word: true, cell: c => c.stage },
  { text: 'instructions', number: true, cell: c => `${c.instructions[0].toLocaleString('en')} → ${c.instructions[1].toLocaleString('en')}` },
  { text: 'lines', number: true, cell: c => `−${c.gone} +${c.come}` },
  { text: 'what it does', cell: c => c.summary + (c.rounds ? ' (may change rounding)' : '') },
];

export async function showDiff(number) {
  const change = data.pass_changes[number], place = clear(by('passes-diff'));
  document.querySelectorAll('#passes-body tr').forEach((tr, i) => tr.classList.toggle('chosen', i === number));
  by('passes-title').textContent = `What change ${number + 1}, ${change.pass}, did`;
  if (change.diff < 0) place.append(make('p', { text: 'Nothing that the text shows.' }));
  else place.append(diffBlock(await textOf(change.diff)));
}

function steps() {
  const all = Object.entries(data.steps_ms), sum = all.reduce((ms, [, step]) => ms + step, 0) || 1;
  return make('div', { class: 'bars' }, all.map(([name, ms]) => make('div', { class: 'share-row' }, make('span', { text: name }),
    make('span', { class: 'number', text: time(ms) }), make('meter', { min: 0, max: sum, value: ms, 'aria-label': `${name}: ${time(ms)}` }))));
}

function build() {
  built = true;
  const body = make('tbody', { id: 'passes-body' });
  data.pass_changes.forEach((change, i) => {
    const made = row(columns, change, () => showDiff(i));
    made.dataset.change = i;
    put(body, made);
  });
  const quiet = data.passes.filter(pass => pass.changes === 0);
  put(by('passes'), 
    make('h2', { text: 'Steps of the compilation' }), steps(),
    make('h2', { text: `Changes of the module (${data.pass_changes.length})` }),
    data.pass_changes.length === 0 && make('p', { text: 'Not known: the program was compiled before, or by another command.' }),
    make('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'changes' }, make('table', {}, make('caption', { class: 'hidden', text: 'changes by passes' }),
      make('thead', {}, make('tr', {}, columns.map(column => make('th', { scope: 'col', class: column.number && 'number', text: column.text })))), body)),
    make('h2', { id: 'passes-title', text: 'Choose a change to see it' }), make('div', { id: 'passes-diff' }),
    make('h2', { text: 'Time of passes' }),
    make('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'time of passes' }, table('time of passes', [
      { text: 'pass', cell: p => p.pass }, { text: 'time', number: true, cell: p => time(p.ms) },
      { text: 'runs', number: true, cell: p => String(p.runs) }, { text: 'changes', number: true, cell: p => String(p.changes) },
      { text: 'what it does', cell: p => p.summary }], [...data.passes].sort((a, b) => b.ms - a.ms))),
    make('p', { text: `${count(quiet.length, 'pass', 'passes')} changed nothing.` }));
}

export function showPasses() {
  if (!built) build();
}
