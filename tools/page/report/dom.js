// Elements. Text of a model only ever becomes text.
export const by = id => document.getElementById(id);

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'text') element.textContent = value;
    else if (name === 'data') Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined && child !== false) element.append(child);
  return element;
}

export const make = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
const kSvg = 'http://www.w3.org/2000/svg';
export const draw = (tag, properties, ...children) => fill(document.createElementNS(kSvg, tag), properties, children);

// As append(), without what is no element and no text.
export const put = (element, ...children) => fill(element, {}, children);

// The size of a drawing in pixels; on paper it shrinks to the width there is.
export function sized(svg, width, height) {
  svg.setAttribute('width', width);
  svg.setAttribute('height', height);
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
}

export function clear(element) {
  element.textContent = '';
  return element;
}

// A table whose rows can be chosen. columns: {text, number, cell(item), title}; chosen(item): what a click
// does, or nothing.
export function table(caption, columns, items, chosen) {
  const made = make('table', {}, make('caption', { class: 'hidden', text: caption }),
    make('thead', {}, make('tr', {}, columns.map(column =>
      make('th', { scope: 'col', class: column.number && 'number', title: column.title, text: column.text })))));
  const body = make('tbody');
  for (const item of items) body.append(row(columns, item, chosen));
  made.append(body);
  return made;
}

export function row(columns, item, chosen) {
  const made = make('tr', {}, columns.map((column, i) => {
    const cell = column.cell(item);
    const inner = i === 0 && chosen
      ? make('button', { class: 'plain', onclick: event => { event.stopPropagation(); chosen(item); } }, cell) : cell;
    return make('td', { class: column.number ? 'number' : column.word && 'word' }, inner);
  }));
  if (chosen) {
    made.classList.add('chooses');
    made.addEventListener('click', () => { if (!String(getSelection())) chosen(item); });
  }
  return made;
}

// A button that copies a text and says so.
export function copier(text) {
  const button = make('button', { class: 'small', text: 'copy', onclick: async () => {
    try {
      await navigator.clipboard.writeText(text());
    } catch {
      const area = make('textarea', { 'aria-label': 'text to copy' });
      area.value = text();
      document.body.append(area);
      area.select();
      document.execCommand('copy');
      area.remove();
    }
    button.textContent = 'copied';
    setTimeout(() => { button.textContent = 'copy'; }, 1500);
  } });
  return button;
}

// A block of text that scrolls by itself, also by keys.
export const block = (text, label) => make('pre', { tabindex: 0, role: 'region', 'aria-label': label, text });
