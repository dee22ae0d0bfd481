#include "runtime/boxes.h"

#include <algorithm>

#include "program/views.h"

namespace heddle::runtime {

namespace {

using program::BufferKind;
using program::Command;
using program::Launch;
using program::Update;
using program::Use;
using program::View;

class BoxPlacer {
 public:
  BoxPlacer(const program::Program& program, const std::vector<Command>& commands)
      : program_(program), uses_(program.buffers.size()) {
    auto count = [&](const View& view, Use) { ++uses_[view.buffer.index()]; };
    program::for_each_view_within(program, program.once, count);
    program::for_each_view_within(program, program.commands, count);
    for (const program::Port& port : program.outputs)
      if (port.source.buffer.valid()) ++uses_[port.source.buffer.index()];
    visit(commands);
  }

  PlacedBoxes take() { return std::move(result_); }

 private:
  void visit(const std::vector<Command>& commands) {
    for (size_t i = 0; i < commands.size(); ++i) {
      if (const auto* update = std::get_if<Update>(&commands[i])) find(commands, i, *update);
      for (program::RegionId id : program::regions_of(commands[i]))
        visit(program_.regions[id.index()].commands);
    }
  }

  // Finds the launch that computes the slice, if no command between it and the update interferes.
  void find(const std::vector<Command>& commands, size_t at, const Update& update) {
    const View& box = update.update;
    if (uses_[box.buffer.index()] != 2 || !is_run(update) || !fills(box)) return;
    for (size_t i = at; i-- > 0;) {
      const auto* launch = std::get_if<Launch>(&commands[i]);
      const int64_t argument = launch ? made_by(*launch, box) : -1;
      if (argument < 0) continue;
      for (size_t between = i; between < at; ++between)
        if (in_the_way(commands[between], update)) return;
      result_.of_launch[launch].push_back({static_cast<size_t>(argument), &update});
      result_.updates.insert(&update);
      return;
    }
  }

  static int64_t made_by(const Launch& launch, const View& box) {
    for (int64_t a = launch.inputs; a < launch.inputs + launch.outputs; ++a)
      if (launch.arguments[static_cast<size_t>(a)].buffer == box.buffer) return a;
    return -1;
  }

  bool fills(const View& box) const {
    const program::Buffer& buffer = program_.buffers[box.buffer.index()];
    return buffer.kind == BufferKind::temporary && box.offset_bytes == 0 &&
           buffer.bytes == program::stored_bytes(box.shape) && buffer.bytes > 0;
  }

  // Whether the slice is one contiguous, aligned run of bytes in the array.
  static bool is_run(const Update& update) {
    const std::vector<int64_t> all = update.operand.shape.extents(),
                               box = update.update.shape.extents();
    int64_t stride = tensor::type_bytes(update.operand.shape.type());
    bool run = true;
    for (size_t d = all.size(); d-- > 0;) {
      if (!run && box[d] != 1) return false;
      if (box[d] < all[d] && stride % program::kAlignmentBytes != 0) return false;
      run = run && box[d] == all[d];
      stride *= all[d];
    }
    return update.result.offset_bytes % program::kAlignmentBytes == 0;
  }

  // Whether the command touches the array, or writes one of the slice's start indices.
  bool in_the_way(const Command& command, const Update& update) const {
    bool found = false;
    auto visit = [&](const View& view, Use use) {
      found |= overlap(view, update.result) || overlap(view, update.operand);
      if (use == Use::read) return;
      for (const View& start : update.starts) found |= overlap(view, start);
    };
    program::for_each_view(command, visit);
    for (program::RegionId id : program::regions_of(command))
      program::for_each_view_within(program_, program_.regions[id.index()].commands, visit);
    return found;
  }

  // Every input and output has memory of its own, except an output that aliases an input.
  bool overlap(const View& a, const View& b) const {
    const auto *one = &program_.buffers[a.buffer.index()],
               *other = &program_.buffers[b.buffer.index()];
    auto home = [&](const program::Buffer* buffer) {
      return buffer->alias.valid() ? &program_.buffers[buffer->alias.index()] : buffer;
    };
    one = home(one);
    other = home(other);
    if (one->kind != other->kind || one->space != other->space) return false;
    if (one->kind == BufferKind::input || one->kind == BufferKind::output)
      return one->number == other->number;
    return one->offset_bytes < other->offset_bytes + other->bytes &&
           other->offset_bytes < one->offset_bytes + one->bytes;
  }

  const program::Program& program_;
  std::vector<int64_t> uses_;  // by buffer
  PlacedBoxes result_;
};

}  // namespace

PlacedBoxes place_boxes(const program::Program& program, const std::vector<Command>& commands) {
  return BoxPlacer(program, commands).take();
}

}  // namespace heddle::runtime
