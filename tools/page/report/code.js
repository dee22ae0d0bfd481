// Long texts, shown when they are asked for.
import { textOf } from './data.js';
import { make, clear, block, copier, put } from './dom.js';
import { clean } from './format.js';

const kMostShown = 400_000; // characters; the rest is a click away

// A button for each text; texts: {text: of the button, number}. The text appears below.
export function codeTabs(texts, label) {
  const place = make('div', { class: 'code' });
  const buttons = texts.map(({ text, number }) => make('button', { class: 'small', text, 'aria-pressed': 'false', data: { code: text },
    onclick: async event => {
      const button = event.currentTarget, wasOpen = button.getAttribute('aria-pressed') === 'true';
      buttons.forEach(other => other.setAttribute('aria-pressed', 'false'));
      clear(place);
      if (wasOpen) return;
      button.setAttribute('aria-pressed', 'true');
      const whole = await textOf(number);
      if (button.getAttribute('aria-pressed') === 'true') showText(place, whole, `${text} of ${label}`);
    } }));
  return make('div', {}, make('div', { class: 'bar', role: 'group', 'aria-label': 'code' }, buttons), place);
}

function showText(place, whole, label) {
  const text = clean(whole);
  const pre = block(text.slice(0, kMostShown), label);
  clear(place).append(copier(() => whole), pre);
  if (text.length > kMostShown)
    put(place, make('button', { text: 'show all of it', onclick: event => { pre.textContent = text; event.currentTarget.remove(); } }));
}

// Lines that came and went in colours.
export function diffBlock(text) {
  const pre = block('', 'what changed');
  pre.classList.add('diff');
  for (const line of text.split('\n')) {
    const kind = line.startsWith('+ ') ? 'come' : line.startsWith('- ') ? 'gone' : '';
    put(pre, kind ? make('span', { class: kind, text: clean(line) + '\n' }) : clean(line) + '\n');
  }
  return pre;
}
