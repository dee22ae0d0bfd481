// Boxes in layers: every box below all that it reads, near what it is connected to.
export const kWidth = 190;
export const kHeight = 38;
const kGapX = 26, kGapY = 34;
const kSweeps = 6, kPlacings = 10;
const kBoxWeight = 20; // where a box and a line want the same place, the line gives way
const kToMiddle = 0.04; // of the way to the middle, but for the last times: else long chains drift away
const kMostSpan = 24; // a line over more layers keeps beside the boxes instead of finding a way between them

// The longest way from a box without lines into it. Lines against the order (of loops) do not count.
function layersOf(size, lines) {
  const after = Array.from({ length: size }, () => []);
  for (const line of lines) if (line.from < line.to) after[line.from].push(line.to);
  const layer = new Array(size).fill(0);
  for (let i = 0; i < size; ++i) for (const to of after[i]) layer[to] = Math.max(layer[to], layer[i] + 1);
  return layer;
}

// Inputs stand just above their first reader, outputs just below their maker.
function pullInputs(items, lines, layer) {
  const first = new Map();
  for (const line of lines)
    if (items[line.from].kind === 'input') first.set(line.from, Math.min(first.get(line.from) ?? Infinity, layer[line.to]));
  for (const [input, reader] of first) layer[input] = Math.max(0, reader - 1);
}

// Points: boxes, and one for each layer that a line passes.
function pointsOf(items, lines, layer) {
  const points = items.map((_, i) => ({ layer: layer[i], before: [], after: [], width: kWidth, weight: kBoxWeight }));
  const ways = [];
  for (const line of lines) {
    const span = layer[line.to] - layer[line.from];
    if (span < 1 || span > kMostSpan) {
      ways.push(null);
      continue;
    }
    const way = [line.from];
    for (let step = 1; step < span; ++step) {
      points.push({ layer: layer[line.from] + step, before: [], after: [], width: 12, weight: 1 });
      way.push(points.length - 1);
    }
    way.push(line.to);
    for (let i = 0; i + 1 < way.length; ++i) {
      points[way[i]].after.push(way[i + 1]);
      points[way[i + 1]].before.push(way[i]);
    }
    ways.push(way);
  }
  return { points, ways };
}

function mean(numbers, of, weight = () => 1) {
  return numbers.reduce((sum, n) => sum + weight(n) * of(n), 0) / numbers.reduce((sum, n) => sum + weight(n), 0);
}

// Each layer in the order of its neighbours' middle, downwards and upwards by turns.
function order(rows, points) {
  rows.forEach(row => row.forEach((p, i) => { points[p].place = i; }));
  for (let sweep = 0; sweep < kSweeps; ++sweep) {
    const down = sweep % 2 === 0;
    for (const row of down ? rows : [...rows].reverse()) {
      const keys = new Map(row.map(p => {
        const near = down ? points[p].before : points[p].after;
        return [p, near.length ? mean(near, n => points[n].place) : points[p].place];
      }));
      row.sort((a, b) => keys.get(a) - keys.get(b));
      row.forEach((p, i) => { points[p].place = i; });
    }
  }
}

// Middles of a row, as near to the wanted ones as the widths allow: neighbours that would overlap form a
// block, which lies where its members want to be on average (Pool Adjacent Violators).
function spread(row, points, wanted) {
  const blocks = [];
  row.forEach((p, i) => {
    const before = i === 0 ? 0 : (points[row[i - 1]].width + points[p].width) / 2 + kGapX;
    const { weight } = points[p];
    let block = { members: [{ p, shift: 0 }], sum: weight * wanted[i], weight, width: 0, x: wanted[i] };
    let gap = before;
    while (blocks.length && blocks.at(-1).x + blocks.at(-1).width + gap > block.x) {
      const last = blocks.pop();
      const shift = last.width + gap;
      const members = [...last.members, ...block.members.map(member => ({ p: member.p, shift: member.shift + shift }))];
      const sum = last.sum + block.sum - shift * block.weight, weights = last.weight + block.weight;
      block = { members, sum, weight: weights, width: shift + block.width, x: sum / weights };
      gap = last.gap;
    }
    block.gap = gap;
    blocks.push(block);
  });
  for (const block of blocks) for (const { p, shift } of block.members) points[p].x = block.x + shift;
}

// Boxes follow boxes, and long lines keep straight, rather than one the other.
const kAlike = 6;

function place(rows, points, boxes) {
  for (const point of points) point.x = 0;
  for (const row of rows) spread(row, points, row.map((_, i) => (i - (row.length - 1) / 2) * (kWidth + kGapX)));
  for (let turn = 0; turn < kPlacings; ++turn) {
    const down = turn % 2 === 0;
    for (const row of down ? rows : [...rows].reverse()) {
      spread(row, points, row.map(p => {
        const near = down ? points[p].before : points[p].after;
        return (turn < kPlacings - 2 ? 1 - kToMiddle : 1) * (near.length ? mean(near, n => points[n].x, n => ((n < boxes) === (p < boxes) ? kAlike : 1)) : points[p].x);
      }));
    }
  }
}

// {x, y of each item (its upper left corner), paths of the lines, width, height}.
export function layout(items, lines) {
  const layer = layersOf(items.length, lines);
  pullInputs(items, lines, layer);
  const { points, ways } = pointsOf(items, lines, layer);
  const rows = Array.from({ length: Math.max(0, ...layer) + 1 }, () => []);
  points.forEach((point, p) => rows[point.layer].push(p));
  order(rows, points);
  place(rows, points, items.length);
  let left = Infinity, right = -Infinity;
  for (const point of points) {
    left = Math.min(left, point.x - point.width / 2);
    right = Math.max(right, point.x + point.width / 2);
  }
  const y = p => points[p].layer * (kHeight + kGapY);
  const lanes = new Map(); // beside all boxes, by what is read: its lines share one
  const paths = lines.map((line, i) => {
    if (ways[i]) return along(ways[i], points, y, items.length);
    if (!lanes.has(line.from)) lanes.set(line.from, lanes.size);
    const x = right + 14 + 7 * (lanes.get(line.from) % 12);
    const x0 = points[line.from].x, x1 = points[line.to].x, y0 = y(line.from) + kHeight, y1 = y(line.to);
    return `M${x0} ${y0}C${x0} ${y0 + 20} ${x} ${y0} ${x} ${y0 + 30}L${x} ${y1 - 30}C${x} ${y1} ${x1} ${y1 - 20} ${x1} ${y1}`;
  });
  return { at: items.map((_, i) => ({ x: points[i].x - kWidth / 2, y: y(i) })), paths,
    left: left - 20, width: right - left + 140, height: rows.length * (kHeight + kGapY) + 20 };
}

function along(way, points, y, boxes) {
  let x0 = points[way[0]].x, y0 = y(way[0]) + kHeight;
  let path = `M${x0.toFixed(1)} ${y0}`;
  for (const p of way.slice(1)) {
    const x1 = points[p].x, y1 = y(p);
    path += `C${x0.toFixed(1)} ${y0 + kGapY / 2} ${x1.toFixed(1)} ${y1 - kGapY / 2} ${x1.toFixed(1)} ${y1}`;
    x0 = x1;
    y0 = y1;
    if (p >= boxes) path += `V${y0 += kHeight}`;
  }
  return path;
}
