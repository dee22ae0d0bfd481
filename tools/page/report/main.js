// Views, keys, light and dark, printing.
import { commands } from './data.js';
import { by, make, put } from './dom.js';
import { state, views, listen, show, choose, restore } from './state.js';
import { startOverview, kindsHere } from './overview.js';
import { startGraph, showGraph, showAllOfGraph } from './graph.js';
import { showTimeline } from './timeline.js';
import { showMemory } from './memory.js';
import { showRoofline } from './roofline.js';
import { showCommands, renderTable } from './table.js';
import { showFusions } from './fusions.js';
import { showPasses } from './passes.js';
import { showNumbers } from './numbers.js';
import { startDetails } from './details.js';
import { startSearch } from './search.js';

const showing = { overview() {}, graph: showGraph, timeline: showTimeline, memory: showMemory, roofline: showRoofline,
  commands: showCommands, fusions: showFusions, passes: showPasses, numbers: showNumbers };
const themes = { auto: 'as the system', light: 'light', dark: 'dark' };

function showView() {
  for (const view of views) {
    const is = view === state.view, tab = by('tab-' + view);
    by(view).hidden = !is;
    tab.setAttribute('aria-selected', String(is));
    tab.tabIndex = is ? 0 : -1;
    if (is) tab.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }
  showing[state.view]();
}

function startTabs() {
  const step = by_ => {
    const next = views[(views.indexOf(state.view) + by_ + views.length) % views.length];
    show(next);
    by('tab-' + next).focus();
  };
  views.forEach((view, i) => by('tabs').append(make('button', { id: 'tab-' + view, role: 'tab', 'aria-controls': view, title: `${view} (${i + 1})`,
    text: view[0].toUpperCase() + view.slice(1), onclick: () => show(view), onkeydown: event => {
      if (event.key === 'ArrowRight') step(1);
      else if (event.key === 'ArrowLeft') step(-1);
      else return;
      event.stopPropagation();
      event.preventDefault();
    } })));
}

function setTheme(theme) {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  by('theme').textContent = { auto: '◐', light: '☀', dark: '☾' }[theme];
  by('theme').setAttribute('aria-label', 'colours: ' + themes[theme]);
  by('theme').dataset.theme = theme;
  try {
    localStorage.setItem('heddle-theme', theme);
  } catch { /* a page from a file may have no storage */ }
}

function nextTheme() {
  const all = Object.keys(themes);
  setTheme(all[(all.indexOf(by('theme').dataset.theme) + 1) % all.length]);
}

function startTheme() {
  let kept = null;
  try {
    kept = localStorage.getItem('heddle-theme');
  } catch { /* as above */ }
  setTheme(Object.hasOwn(themes, kept) ? kept : 'auto');
  by('theme').addEventListener('click', nextTheme);
}

const keyList = [['1 … 9', 'views'], ['/', 'search'], ['Esc', 'close what is chosen'], ['n, p', 'next and previous command'], ['t', 'light, dark, as the system'],
  ['arrows, Enter', 'in the graph: to a neighbour, choose it; in the timeline: move'], ['+, −, 0', 'in the graph and the timeline: larger, smaller, all'], ['?', 'this']];

function startHelp() {
  const help = by('help');
  put(help, make('h2', { id: 'help-title', text: 'Keys' }), make('dl', {}, keyList.flatMap(([key, what]) => [make('dt', {}, make('kbd', { text: key })), make('dd', { text: what })])),
    make('p', { text: 'In the graph: drag to move, the wheel with Ctrl to zoom; a box with ▸ opens. A box is a command of a run, a line a value that one hands to another.' }),
    make('button', { id: 'help-close', text: 'close', onclick: () => help.close() }));
  by('help-open').addEventListener('click', () => help.showModal());
}

function step(by_) {
  const at = state.chosen?.kind === 'command' ? state.chosen.id + by_ : 0;
  if (commands.length) choose('command', (at + commands.length) % commands.length);
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || by('help').open) return;
  if (event.target.closest?.('input:not([type=range]), textarea, select')) return;
  const view = views[event.key - 1];
  if (view) show(view);
  else if (event.key === '/') by('search').focus();
  else if (event.key === 'Escape') choose(null);
  else if (event.key === 'n') step(1);
  else if (event.key === 'p') step(-1);
  else if (event.key === 't') nextTheme();
  else if (event.key === '?') by('help').showModal();
  else return;
  event.preventDefault();
}

// On paper all views stand one behind the other.
function startPrinting() {
  window.addEventListener('beforeprint', () => {
    for (const view of views) {
      by(view).hidden = false;
      showing[view]();
    }
    showAllOfGraph();
    if (commands.length <= 500) renderTable(true);
  });
  window.addEventListener('afterprint', showView);
}

startTheme();
startTabs();
startOverview();
startDetails();
startGraph();
startSearch();
startHelp();
startPrinting();
by('kinds').append(...kindsHere().map(kind => make('span', { class: 'badge ' + kind, text: kind })));
listen(what => { if (what === 'view') showView(); });
document.addEventListener('keydown', keys);
let resized = 0;
window.addEventListener('resize', () => {
  cancelAnimationFrame(resized);
  resized = requestAnimationFrame(() => showing[state.view]());
});
restore();
