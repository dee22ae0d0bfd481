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
    for_each_view_within(program, program.commands,
                         [&](const View& view, Use) { mark(view.buffer); });
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

// Keeps the regions of the run, renumbered.
void keep_regions(Program& result, std::vector<Command>& commands, std::vector<Region>& kept) {
  auto keep = [&](RegionId& id) {
    Region region = std::move(result.regions[id.index()]);
    keep_regions(result, region.commands, kept);
    kept.push_back(std::move(region));
    id = RegionId(kept.size() - 1);
  };
  for (Command& command : commands) {
    if (auto* loop = std::get_if<Loop>(&command)) {
      keep(loop->condition);
      keep(loop->body);
    } else if (auto* branch = std::get_if<Branch>(&command)) {
      for (RegionId& id : branch->regions) keep(id);
    }
  }
}

int64_t align_up(int64_t bytes) {
  return (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

}  // namespace

size_t shown_inputs(const Program& program) {
  return program.inputs.size() - program.states.size();
}

size_t shown_outputs(const Program& program) {
  return program.outputs.size() - program.states.size() -
         static_cast<size_t>(tensor::hidden_outputs(program.index_checks));
}

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
  result.host_once_bytes = 0;
  result.buffers.clear();
  result.constants.clear();
  std::vector<Region> regions;
  keep_regions(result, result.commands, regions);
  result.regions = std::move(regions);
  const int64_t shift = command_count(program, program.once);
  int64_t image_bytes = 0;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    if (!place.needed(i)) continue;
    Buffer buffer = program.buffers[i];
    buffer.alias = place(buffer.alias);
    Literal value = program.constants[i];
    if (buffer.kind == BufferKind::once) {
      buffer.kind = BufferKind::constant;
      buffer.space = Space::device;
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
  for_each_view_within(result, result.commands,
                       [&](View& view, Use) { view.buffer = place(view.buffer); });
  for (auto* ports : {&result.inputs, &result.outputs}) {
    for (Port& port : *ports) {
      port.buffer = place(port.buffer);
      port.source.buffer = place(port.source.buffer);
    }
  }
  return result;
}

Program fold_once(const Program& program, const Literal& once_block) {
  HEDDLE_CHECK(once_block.bytes() == program.once_bytes + program.host_once_bytes,
               "{} bytes, not {} and {}", once_block.bytes(), program.once_bytes,
               program.host_once_bytes);
  std::vector<Literal> values(program.buffers.size());
  const auto owner = std::make_shared<const Literal>(once_block);
  for (size_t i = 0; i < values.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    if (buffer.kind != BufferKind::once) continue;
    const tensor::Shape bytes = tensor::Shape::array(tensor::Type::u8, {buffer.bytes});
    const int64_t begin =
        buffer.offset_bytes + (buffer.space == Space::host ? program.once_bytes : 0);
    values[i] =
        buffer.bytes == 0
            ? Literal(bytes)
            : Literal::view(bytes, static_cast<const char*>(once_block.data()) + begin, owner);
  }
  return fold_once(program, values);
}

}  // namespace heddle::program
