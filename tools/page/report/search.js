// One search for everything: what it finds is listed, and stands out in every view.
import { commands, labelOf, layerOf } from './data.js';
import { by, make, clear, put } from './dom.js';
import { state, search, choose } from './state.js';
import { shortened } from './format.js';

const kListed = 12;
let marked = -1; // the entry that Enter takes

const entries = () => [...by('found').children].filter(entry => entry.dataset.command !== undefined);

function mark(number) {
  const all = entries();
  marked = all.length ? (number + all.length) % all.length : -1;
  all.forEach((entry, i) => entry.setAttribute('aria-selected', String(i === marked)));
  if (marked >= 0) by('search').setAttribute('aria-activedescendant', all[marked].id);
  else by('search').removeAttribute('aria-activedescendant');
}

function list() {
  const found = clear(by('found')), all = state.found ? [...state.found] : [];
  for (const i of all.slice(0, kListed))
    put(found, make('li', { role: 'option', id: 'found-' + i, 'aria-selected': 'false', data: { command: i }, onpointerdown: event => {
      event.preventDefault();
      take(i);
    } }, make('strong', { text: shortened(labelOf(commands[i]), 40) }), ' ' + shortened(layerOf(commands[i]), 60)));
  if (state.found) found.append(make('li', { class: 'count', role: 'option', 'aria-disabled': 'true', 'aria-selected': 'false',
    text: all.length === 0 ? 'nothing' : `${all.length} of ${commands.length}` }));
  open(Boolean(state.found));
  mark(0);
}

function open(is) {
  by('found').hidden = !is;
  by('search').setAttribute('aria-expanded', String(is));
}

function take(i) {
  open(false);
  choose('command', i);
}

export function startSearch() {
  const input = by('search');
  let waiting = 0;
  input.addEventListener('input', () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => {
      search(input.value);
      list();
    });
  });
  input.addEventListener('keydown', event => {
    if (event.key === 'ArrowDown') mark(marked + 1);
    else if (event.key === 'ArrowUp') mark(marked - 1);
    else if (event.key === 'Enter' && marked >= 0) take(+entries()[marked].dataset.command);
    else if (event.key === 'Escape') {
      input.value = '';
      search('');
      list();
      input.blur();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
  input.addEventListener('blur', () => open(false));
  input.addEventListener('focus', () => { if (state.found) open(true); });
}
