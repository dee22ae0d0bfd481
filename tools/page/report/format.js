// Numbers and names as people read them.
export function time(ms) {
  if (!(ms > 0)) return '0';
  if (ms >= 1000) return (ms / 1000).toPrecision(3) + ' s';
  if (ms >= 1) return ms.toPrecision(3) + ' ms';
  if (ms >= 1e-3) return (ms * 1e3).toPrecision(3) + ' µs';
  return (ms * 1e6).toPrecision(3) + ' ns';
}

export function bytes(count) {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  for (; count >= 1024 && unit < 4; ++unit) count /= 1024;
  return (unit === 0 ? count : count.toFixed(1)) + ' ' + units[unit];
}

export function flops(count) {
  const units = ['', 'k', 'M', 'G', 'T', 'P'];
  let unit = 0;
  for (; count >= 1000 && unit < 5; ++unit) count /= 1000;
  return `${unit === 0 ? count : +count.toPrecision(3)} ${units[unit]}flop`;
}

export function short(x) {
  if (!Number.isFinite(x)) return '';
  return x === 0 ? '0' : Math.abs(x) >= 1000 ? Math.round(x).toLocaleString('en') : String(+x.toPrecision(3));
}

export const percent = share => (Number.isFinite(share) ? (100 * share).toFixed(share < 0.1 ? 1 : 0) + ' %' : '');
export const count = (n, one, many) => `${n.toLocaleString('en')} ${n === 1 ? one : many || one + 's'}`;

// Text of a model may hold anything: what would change how its neighbours are drawn is spelled out.
export function clean(text) {
  // eslint-disable-next-line no-control-regex
  return String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    c => '⟨' + c.codePointAt(0).toString(16).padStart(4, '0') + '⟩');
}

// At most so many characters; the middle goes, as names differ at their ends.
export function shortened(text, most) {
  const letters = [...clean(text.length > 4 * most ? text.slice(0, 2 * most) + text.slice(-2 * most) : text)];
  if (letters.length <= most) return letters.join('');
  const head = Math.ceil((most - 1) * 0.4);
  return letters.slice(0, head).join('') + '…' + letters.slice(letters.length - (most - 1 - head)).join('');
}

// A word of a shell's command line.
export const quoted = word => (/^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'");
