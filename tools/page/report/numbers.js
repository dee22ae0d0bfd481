// What may have changed numbers.
import { data } from './data.js';
import { by, make, table, put } from './dom.js';
import { show } from './state.js';
import { clean, count, short, shortened } from './format.js';
import { showPasses, showDiff } from './passes.js';

let built = false;
export const optionOf = name => (` ${data.program.options} `.match(` ${name}=([^ ]*) `) || [])[1];
export const numerics = () => optionOf('numerics') || 'default';
// Passes that changed something and may change how results round.
export const rounding = data.passes.filter(pass => pass.rounds && pass.changes > 0);
// Notes of the form "rewrite: what it does", but those of these passes.
export const numberNotes = data.notes.filter(note => /^[a-z_]+: /.test(note) && !rounding.some(pass => note.startsWith(pass.pass + ':')));

async function toDiff(pass) {
  show('passes');
  showPasses();
  await showDiff(data.pass_changes.findIndex(change => change.pass === pass));
  by('passes-title').scrollIntoView();
}

function rulesOf(pass) {
  return Object.entries(data.rewrites).filter(([name]) => name.startsWith(pass + '.')).map(([name, times]) => `${name} (${times})`).join(', ');
}

function mixed() {
  const report = data.mixed_precision;
  if (!report) return [];
  const plain = Object.entries(report).filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value));
  const lists = Object.entries(report).filter(([, value]) => Array.isArray(value) && value.length && typeof value[0] === 'object');
  return [make('h2', { text: 'Mixed precision' }),
    make('dl', {}, plain.flatMap(([name, value]) => [make('dt', { text: name.replaceAll('_', ' ') }), make('dd', { text: clean(typeof value === 'number' ? short(value) : value) })])),
    ...lists.map(([name, list]) => make('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': name },
      table(name, Object.keys(list[0]).map(key => ({ text: key.replaceAll('_', ' '), cell: one => clean(typeof one[key] === 'object' ? JSON.stringify(one[key]) : one[key] ?? '') })), list.slice(0, 500))))];
}

const digits = x => (x === undefined ? '' : x === 0 ? '0' : Math.abs(x) < 1e-3 ? x.toExponential(2) : short(x));

// What heddle check found.
function checked() {
  const { check } = data;
  if (!check) return make('p', {}, 'Not compared: ', make('code', { text: 'heddle check MODEL --json F' }), ' and ', make('code', { text: '--check F' }), ' of the report add that.');
  return [make('p', { id: 'numbers-check', class: 'answer', text: `${check.pass ? 'Equal' : 'DIFFERENT'} within the tolerance, against ${clean(check.against === 'interp' ? 'the reference interpreter' : check.against)} (${clean(check.source)}).` }),
    make('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'outputs' }, table('outputs', [
      { text: 'output', cell: o => shortened(o.name, 80) }, { text: '', cell: o => (o.equal ? 'equal' : 'differs') },
      { text: 'largest error', number: true, cell: o => digits(o.max_error) }, { text: 'over the largest value', number: true, cell: o => digits(o.max_error_over_max) },
      { text: 'in last places', number: true, cell: o => digits(o.worst_ulp) }, { text: 'cosine', number: true, cell: o => (o.cosine === undefined ? '' : o.cosine.toFixed(7)) },
      { text: 'beyond the tolerance', number: true, cell: o => String(o.mismatches ?? '') }], check.outputs))];
}

function build() {
  built = true;
  put(by('numbers'), 
    make('p', { id: 'numbers-summary', class: 'answer', text: `Arithmetic in ${data.program.precision}, numerics ${numerics()}: ` +
      (rounding.length + numberNotes.length === 0 ? 'nothing that was done to this model may change its numbers by itself; only the order of sums inside of kernels may differ.'
        : `${count(rounding.length + numberNotes.length, 'thing')} may have changed how results round.`) +
      (data.mixed_precision ? ` Mixed precision computes ${count(data.mixed_precision.products, 'product')} and ${count(data.mixed_precision.values, 'value')} in ${data.mixed_precision.type}.` : '') }),
    make('h2', { text: 'Passes that may change rounding, and did something' }),
    rounding.length === 0 ? make('p', { text: 'None.' }) : make('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'passes that may change rounding' },
      table('passes that may change rounding', [
        { text: 'pass', cell: p => p.pass }, { text: 'changes', number: true, cell: p => String(p.changes) },
        { text: 'what it does', cell: p => p.summary }, { text: 'rules', cell: p => rulesOf(p.pass) }], rounding, p => toDiff(p.pass))),
    make('h2', { text: 'Notes' }),
    data.notes.length === 0 ? make('p', { text: 'None.' }) : make('ul', { id: 'numbers-notes' }, data.notes.map(note => make('li', { text: clean(note) }))),
    ...mixed(),
    make('h2', { text: 'Compared with the reference' }), checked(),
    make('h2', { text: 'To be sure' }),
    make('p', {}, 'With ', make('code', { text: '--numerics strict' }), ' none of this is done, and ', make('code', { text: 'heddle check' }),
      ' compares the results with the reference interpreter.'),
    data.rewrites && Object.keys(data.rewrites).length > 0 && make('details', {}, make('summary', { text: `All ${Object.keys(data.rewrites).length} rules that were used` }),
      table('rules', [{ text: 'rule', cell: ([name]) => name }, { text: 'times', number: true, cell: ([, times]) => String(times) }],
        Object.entries(data.rewrites).sort((a, b) => b[1] - a[1]))));
}

export function showNumbers() {
  if (!built) build();
}
