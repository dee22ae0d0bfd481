#include "program/program.h"

#include <limits>

#include "base/check.h"
#include "program/views.h"

namespace heddle::program {
namespace {

using tensor::Literal;

// Renumbers the buffers that are still needed.
class Renumbering {
 public:
  explicit Renumbering(const Program& program) : needed_(program.buffers.size()) {
    for (const Command& command : program.commands)
      for_each_view(command, [&](const View& view, Use) { mark(view.buffer); });
    for (const auto* ports : {&program.inputs, &program.outputs}) {
      for (const Port& port : *ports) {
        mark(port.buffer);
        mark(port.source.buffer);
      }
    }
    for (size_t i = 0; i < needed_.size(); ++i)
      if (needed_[i]) mark(program.buffers[i].alias);
    places_.resize(needed_.size());
    size_t next = 0;
    for (size_t i = 0; i < needed_.size(); ++i)
      if (needed_[i]) places_[i] = BufferId(next++);
  }

  bool needed(size_t i) const { return needed_[i]; }
  BufferId operator()(BufferId id) const { return id.valid() ? places_[id.index()] : id; }

 private:
  void mark(BufferId id) {
    if (id.valid()) needed_[id.index()] = true;
  }
  std::vector<bool> needed_;
  std::vector<BufferId> places_;
};

int64_t align_up(int64_t bytes) {
  return (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

}  // namespace

int64_t stored_bytes(const tensor::Shape& shape) {
  if (!shape.is_array()) return 0;
  for (const tensor::Dim& dim : shape.dims())
    if (dim.size < 0) return std::numeric_limits<int64_t>::max();
  const int64_t dense = shape.bytes();
  if (dense == std::numeric_limits<int64_t>::max() || !shape.layout()) return dense;
  const tensor::Layout& layout = *shape.layout();
  if (layout.tiles.empty() && layout.padded_dimensions.empty()) return dense;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(tensor::padded_elems(layout, shape.extents()),
                             tensor::type_bytes(shape.type()), &bytes))
    return std::numeric_limits<int64_t>::max();
  return bytes;
}

Program fold_once(const Program& program, const std::vector<Literal>& values) {
  HEDDLE_CHECK(values.size() == program.buffers.size(), "{} values of {} buffers", values.size(),
               program.buffers.size());
  const Renumbering place(program);
  Program result = program;
  result.once.clear();
  result.once_info.clear();
  result.once_bytes = 0;
  result.buffers.clear();
  result.constants.clear();
  const auto shift = static_cast<int64_t>(program.once.size());
  int64_t image_bytes = 0;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    if (!place.needed(i)) continue;
    Buffer buffer = program.buffers[i];
    buffer.alias = place(buffer.alias);
    Literal value = program.constants[i];
    if (buffer.kind == BufferKind::once) {
      buffer.kind = BufferKind::constant;
      value = values[i];
      HEDDLE_CHECK(value.bytes() == buffer.bytes, "{}: {} bytes, not {}", buffer.name,
                   value.bytes(), buffer.bytes);
    }
    if (buffer.kind == BufferKind::constant) {
      buffer.offset_bytes = image_bytes;
      image_bytes += align_up(buffer.bytes);
    }
    if (buffer.kind == BufferKind::temporary) {
      buffer.first_command -= shift;
      buffer.last_command -= shift;
    }
    result.buffers.push_back(std::move(buffer));
    result.constants.push_back(std::move(value));
  }
  for (Command& command : result.commands)
    for_each_view(command, [&](View& view, Use) { view.buffer = place(view.buffer); });
  for (auto* ports : {&result.inputs, &result.outputs}) {
    for (Port& port : *ports) {
      port.buffer = place(port.buffer);
      port.source.buffer = place(port.source.buffer);
    }
  }
  return result;
}

}  // namespace heddle::program
