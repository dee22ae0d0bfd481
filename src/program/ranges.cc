#include "program/ranges.h"

namespace heddle::program {
namespace {

bool is_placed(const Buffer& buffer) {
  return buffer.kind == BufferKind::temporary || buffer.kind == BufferKind::once;
}

Memory memory_of(const Program& program, const Buffer& buffer) {
  if (is_placed(buffer)) return {buffer.kind, static_cast<int64_t>(buffer.space)};
  if (buffer.kind == BufferKind::input) return {BufferKind::input, buffer.number};
  if (buffer.kind == BufferKind::constant) return {BufferKind::constant, buffer.offset_bytes};
  const Port& port = program.outputs[static_cast<size_t>(buffer.number)];
  const BufferId alias =
      port.buffer.valid() ? program.buffers[port.buffer.index()].alias : buffer.alias;
  if (alias.valid()) return {BufferKind::input, program.buffers[alias.index()].number};
  return {BufferKind::output, buffer.number};
}

}  // namespace

ByteRange range_of(const Program& program, const View& view) {
  const Buffer& buffer = program.buffers[view.buffer.index()];
  const int64_t begin = view.offset_bytes + (is_placed(buffer) ? buffer.offset_bytes : 0);
  return {memory_of(program, buffer), begin, begin + stored_bytes(view.shape)};
}

}  // namespace heddle::program
