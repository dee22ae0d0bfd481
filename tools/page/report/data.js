// The document of the report (docs/report.md), and what every view asks of it.
export const data = JSON.parse(document.getElementById('data').textContent);

export const commands = data.commands;
export const measured = Boolean(data.measured);
// Of all its launches in one run, measured where anything was, else predicted.
export const msOf = command =>
  (measured ? command.ms || 0 : (command.predicted_ns || 0) * (command.launches || 1) / 1e6);
export const totalMs = commands.reduce((sum, command) => sum + msOf(command), 0);
export const kernelOf = command => (command.kernel === undefined ? null : data.kernels[command.kernel]);
export const labelOf = command => (kernelOf(command) ? kernelOf(command).label : command.kind);
export const layerOf = command => data.layers[command.layer];

export const edgesFrom = commands.map(() => []);
export const edgesTo = commands.map(() => []);
data.edges.forEach((edge, i) => {
  edgesFrom[edge.from].push(i);
  edgesTo[edge.to].push(i);
});

// Inputs of the model by the command that reads them, outputs by the one that makes them.
export const inputsOf = commands.map(() => []);
data.inputs.forEach((input, i) => input.readers.forEach(reader => inputsOf[reader].push(i)));
export const outputsOf = commands.map(() => []);
data.outputs.forEach((output, i) => { if (output.maker >= 0) outputsOf[output.maker].push(i); });

// What one command needs at least by each roof, and how near it came. `work`: {flops, bytes, ms} of the
// same runs.
export function roofOf(work) {
  const { gflops_per_s: flops, gbytes_per_s: bytes } = data.roofs;
  if (!(flops > 0) || !(bytes > 0) || !(work.ms > 0)) return null;
  const byFlops = work.flops / flops / 1e6, byBytes = work.bytes / bytes / 1e6;
  return { share: Math.max(byFlops, byBytes) / work.ms, bound: byFlops > byBytes ? 'arithmetic' : 'memory' };
}

export function workOf(list) {
  const work = { flops: 0, bytes: 0, ms: 0, predicted: 0, launches: 0 };
  for (const i of list) {
    const command = commands[i], launches = command.launches ?? 1;
    work.flops += command.flops * launches;
    work.bytes += command.bytes * launches;
    work.ms += msOf(command);
    work.predicted += (command.predicted_ns || 0) * launches / 1e6;
    work.launches += launches;
  }
  return work;
}

// Numbers of commands by a key, in the order of first appearance.
export function grouped(keyOf) {
  const groups = new Map();
  commands.forEach((command, i) => {
    const key = keyOf(command);
    if (groups.has(key)) groups.get(key).push(i);
    else groups.set(key, [i]);
  });
  return groups;
}
export const byLayer = grouped(command => command.layer);
export const byKernel = grouped(command => command.kernel ?? command.kind);

// Long texts are kept packed; a piece is unpacked once, when one of its texts is asked for.
const pieces = [...document.querySelectorAll('script.piece')];
const unpacked = new Map();

async function unpack(number) {
  const bytes = Uint8Array.from(atob(pieces[number].textContent), c => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return JSON.parse(await new Response(stream).text());
}

export async function textOf(number) {
  if (typeof DecompressionStream === 'undefined') return 'This browser cannot unpack texts; heddle report --json has them.';
  let piece = data.text_pieces.length - 1;
  while (data.text_pieces[piece] > number) --piece;
  if (!unpacked.has(piece)) unpacked.set(piece, unpack(piece));
  return (await unpacked.get(piece))[number - data.text_pieces[piece]];
}
