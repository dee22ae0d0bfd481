// What is chosen, searched for and shown; views listen.
import { data, commands, kernelOf, layerOf } from './data.js';

export const views = ['overview', 'graph', 'timeline', 'memory', 'roofline', 'commands', 'fusions', 'passes', 'numbers'];
export const state = {
  view: 'overview',
  chosen: null,    // {kind: 'command' | 'edge' | 'buffer' | 'input' | 'output' | 'repeat', id}
  query: '',
  found: null,     // numbers of commands that the query finds; null: no query
};

const listeners = [];
// function(what): 'view', 'chosen' or 'query' changed.
export const listen = listener => listeners.push(listener);
const tell = what => listeners.forEach(listener => listener(what));

function remember() {
  const { chosen } = state;
  history.replaceState(null, '', '#/' + state.view + (chosen ? `/${chosen.kind}/${chosen.id}` : ''));
}

export function show(view) {
  state.view = view;
  remember();
  tell('view');
}

export function choose(kind, id) {
  state.chosen = kind === null ? null : { kind, id };
  remember();
  tell('chosen');
}

export const isChosen = (kind, id) => Boolean(state.chosen) && state.chosen.kind === kind && state.chosen.id === id;

let texts = null; // of commands, in small letters, made when they are first needed
function textsOfCommands() {
  texts ??= commands.map(command => [command.name, command.operators, layerOf(command), kernelOf(command)?.label,
    kernelOf(command)?.name, ...command.nodes.map(node => data.nodes[node])].join('\n').toLowerCase());
  return texts;
}

export function search(query) {
  state.query = query.trim().toLowerCase();
  const all = state.query ? textsOfCommands() : [];
  state.found = state.query ? new Set([...commands.keys()].filter(i => all[i].includes(state.query))) : null;
  tell('query');
}

const sizes = { command: commands, edge: data.edges, buffer: data.memory.buffers, input: data.inputs,
  output: data.outputs, repeat: data.repeats };
// "#/graph/command/12": an element of that name would be scrolled to.
export function restore() {
  const [view, kind, id] = location.hash.slice(2).split('/');
  if (views.includes(view)) state.view = view;
  if (Object.hasOwn(sizes, kind) && +id >= 0 && +id < sizes[kind].length) state.chosen = { kind, id: +id };
  tell('view');
  tell('chosen');
}
