// The checker shares no code with the planner. It replays the commands on a map from memory to the
// buffer whose bytes are there: a read must find all bytes of its own buffer. That one rule covers
// reads of unwritten memory, temporaries that share bytes while both are live, inputs overwritten
// too early through an alias, and once buffers used before they are computed.
//
// A loop is replayed until the map before its condition no longer changes: it is then what holds
// both before the first trip and after any other. After a branch the map is what holds after all
// regions.
#include "program/verify.h"

#include <algorithm>
#include <map>
#include <set>

#include "program/nodes_text.h"
#include "program/owners.h"
#include "program/verify_parts.h"
#include "program/views.h"

namespace heddle::program {
namespace {

class Checker {
 public:
  explicit Checker(const Program& program) : program_(program) {}

  Status run() {
    HEDDLE_RETURN_IF_ERROR(verify_parts(program_));
    bring_inputs();
    HEDDLE_RETURN_IF_ERROR(regions());
    HEDDLE_RETURN_IF_ERROR(section(program_.once, program_.once_info, true));
    HEDDLE_RETURN_IF_ERROR(section(program_.commands, program_.command_info, false));
    where_ = "the end";
    HEDDLE_RETURN_IF_ERROR(verify_spaces(program_));
    HEDDLE_RETURN_IF_ERROR(temporaries_in_blocks());
    return outputs_written();
  }

 private:
  template <typename... Args>
  auto fail(fmt::format_string<Args...> format, Args&&... args) const {
    return user_error("program {}: {}", program_.name,
                      fmt::format(format, std::forward<Args>(args)...));
  }

  const Buffer& buffer(BufferId id) const { return program_.buffers[id.index()]; }
  bool in_range(BufferId id) const { return id.index() < program_.buffers.size(); }

  // If memory is dynamic: temporaries of the run are inside pool blocks.
  Status temporaries_in_blocks() const {
    const std::vector<PoolBlock>& blocks = program_.pool_blocks;
    if (blocks.empty()) return {};
    Status status;
    for_each_view_within(program_, program_.commands, [&](const View& view, Use) {
      const Buffer& b = buffer(view.buffer);
      if (b.kind != BufferKind::temporary || b.bytes == 0 || on_host(b)) return;
      const auto above = std::upper_bound(
          blocks.begin(), blocks.end(), b.offset_bytes,
          [](int64_t offset, const PoolBlock& block) { return offset < block.offset_bytes; });
      const bool inside =
          above != blocks.begin() &&
          b.offset_bytes + b.bytes <= std::prev(above)->offset_bytes + std::prev(above)->bytes;
      if (!inside) status = fail("{} lies in no pool block", b.name);
    });
    return status;
  }

  void bring_inputs() {
    memory_.external.resize(program_.inputs.size() + program_.outputs.size());
    for (const Port& port : program_.inputs) {
      auto [owners, base] = space(port.buffer);
      owners->write({base, base + buffer(port.buffer).bytes}, port.buffer);
    }
  }

  // The space of a buffer and its offset there. Constants have none.
  std::pair<Owners*, int64_t> space(BufferId id) {
    const Buffer& b = buffer(id);
    switch (b.kind) {
      case BufferKind::temporary:
        return {on_host(b) ? &memory_.host_arena : &memory_.arena, b.offset_bytes};
      case BufferKind::once:
        return {on_host(b) ? &memory_.host_once : &memory_.once, b.offset_bytes};
      case BufferKind::input:
        return {&memory_.external[b.number], 0};
      case BufferKind::output:
        if (b.alias.valid()) return {&memory_.external[buffer(b.alias).number], 0};
        return {&memory_.external[program_.inputs.size() + b.number], 0};
      case BufferKind::constant:
        return {nullptr, b.offset_bytes};
    }
    return {nullptr, 0};
  }

  Status view_fits(const View& view) const {
    if (!in_range(view.buffer)) return fail("{}: a view of no buffer", where_);
    const int64_t bytes = stored_bytes(view.shape), size = buffer(view.buffer).bytes;
    if (view.offset_bytes < 0 || view.offset_bytes > size || bytes > size - view.offset_bytes)
      return fail("{}: {} bytes at {} of {}, which has {}", where_, bytes, view.offset_bytes,
                  buffer(view.buffer).name, size);
    return {};
  }

  Range range(const View& view) {
    const int64_t begin = space(view.buffer).second + view.offset_bytes;
    return {begin, begin + stored_bytes(view.shape)};
  }

  Status readable(const View& view) {
    HEDDLE_RETURN_IF_ERROR(view_fits(view));
    const Buffer& b = buffer(view.buffer);
    const Owners* owners = space(view.buffer).first;
    if (in_once_ && (b.kind == BufferKind::input || b.kind == BufferKind::output))
      return fail("{}: the once section reads {}", where_, b.name);
    // An aliased output that nothing has written yet holds the input's bytes.
    if (owners && !owners->holds(range(view), view.buffer, b.alias))
      return fail("{}: reads {} where it was not written or is overwritten", where_, b.name);
    return {};
  }

  Status writable(const View& view) {
    HEDDLE_RETURN_IF_ERROR(view_fits(view));
    const Buffer& b = buffer(view.buffer);
    const bool allowed = b.kind == BufferKind::temporary ||
                         b.kind == (in_once_ ? BufferKind::once : BufferKind::output);
    if (!allowed) return fail("{}: writes {}", where_, b.name);
    if (b.kind == BufferKind::temporary) {
      if (command_ < b.first_command || command_ > b.last_command)
        return fail("{}: writes {}, which lives in [{}, {}]", where_, b.name, b.first_command,
                    b.last_command);
      const int64_t arena_bytes = (on_host(b) ? program_.host_memory : program_.memory).plan_bytes;
      if (!in_once_ && b.offset_bytes + b.bytes > arena_bytes)
        return fail("{}: {} ends at {} of an arena of {} bytes", where_, b.name,
                    b.offset_bytes + b.bytes, arena_bytes);
    }
    return {};
  }

  static bool on_host(const Buffer& buffer) { return buffer.space == Space::host; }

  // Checks the reads, then that writes overlap neither each other nor reads, then records the
  // writes.
  Status touch(const Command& command) {
    struct Touched {
      const View* view;
      Use use;
      Owners* owners;
      Range range;
      int64_t in_place = -1;  // the read that it may alias
    };
    const auto* launch = std::get_if<Launch>(&command);
    const bool updates = std::holds_alternative<Update>(command);
    std::vector<Touched> touched;
    int64_t outputs = 0;
    Status status;
    for_each_view(command, [&](const View& view, Use use) {
      if (!status) return;
      status = use == Use::read ? readable(view) : writable(view);
      if (!status) return;
      touched.push_back({&view, use, space(view.buffer).first, range(view)});
      if (updates && use == Use::write) touched.back().in_place = 0;
      if (launch == nullptr || use != Use::write) return;
      if (outputs < static_cast<int64_t>(launch->in_place.size()))
        touched.back().in_place = launch->in_place[outputs];
      ++outputs;
    });
    HEDDLE_RETURN_IF_ERROR(status);
    for (size_t i = 0; i < touched.size(); ++i) {
      const Touched& a = touched[i];
      if (a.use == Use::read) continue;
      for (size_t j = 0; j < touched.size(); ++j) {
        const Touched& b = touched[j];
        if (i == j || a.owners != b.owners || !a.range.overlaps(b.range)) continue;
        const bool same = a.range.begin == b.range.begin && a.range.end == b.range.end;
        if (b.use == Use::read && same && a.in_place == static_cast<int64_t>(j)) continue;
        return fail("{}: {} and {} overlap", where_, buffer(a.view->buffer).name,
                    buffer(b.view->buffer).name);
      }
    }
    for (const Touched& t : touched)
      if (t.use != Use::read) t.owners->write(t.range, t.view->buffer);
    return {};
  }

  Status launch_fits(const Launch& launch) {
    if (launch.kernel.index() >= program_.kernels.size()) return fail("{}: no kernel", where_);
    const auto count = static_cast<int64_t>(launch.arguments.size());
    if (launch.inputs < 0 || launch.outputs < 0 || launch.inputs > count ||
        launch.outputs > count - launch.inputs)
      return fail("{}: {} inputs and {} outputs of {} arguments", where_, launch.inputs,
                  launch.outputs, count);
    HEDDLE_RETURN_IF_ERROR(boxes_fit(launch));
    for (int64_t dim : launch.dims)
      if (dim < 0) return fail("{}: a run-time dimension of {}", where_, dim);
    // All launches of a kernel with equal dimensions must have the same needs.
    const Launch*& first = first_launch_[{launch.kernel.index(), launch.dims}];
    if (first == nullptr) first = &launch;
    bool same = first->arguments.size() == launch.arguments.size() &&
                first->inputs == launch.inputs && first->outputs == launch.outputs;
    for (int64_t i = 0; same && i < count; ++i)
      same = stored_bytes(first->arguments[i].shape) == stored_bytes(launch.arguments[i].shape);
    if (!same)
      return fail("{}: arguments differ from those of another launch of {}", where_,
                  program_.kernels[launch.kernel.index()].name);
    return {};
  }

  Status section(const std::vector<Command>& commands, const std::vector<CommandInfo>& info,
                 bool once) {
    in_once_ = once;
    memory_.arena.clear();
    memory_.host_arena.clear();
    return play(commands, info);
  }

  // Every region belongs to exactly one command, and not to itself.
  Status regions() {
    std::vector<bool> seen(program_.regions.size());
    HEDDLE_RETURN_IF_ERROR(mark_regions(program_.once, 0, seen));
    HEDDLE_RETURN_IF_ERROR(mark_regions(program_.commands, 0, seen));
    for (size_t i = 0; i < seen.size(); ++i)
      if (!seen[i]) return fail("region {} belongs to no command", i);
    return {};
  }

  Status mark_regions(const std::vector<Command>& commands, int depth, std::vector<bool>& seen) {
    if (depth > Program::kMaxNesting)
      return fail("regions are nested more than {} deep", Program::kMaxNesting);
    for (const Command& command : commands) {
      if (const auto* loop = std::get_if<Loop>(&command))
        for (const Carried& carried : loop->carried)
          if (carried.swapped && (!swapped_.insert(carried.state.buffer).second ||
                                  !swapped_.insert(carried.next.buffer).second))
            return fail("a buffer is swapped by two loops");
      for (RegionId id : regions_of(command)) {
        if (id.index() >= seen.size()) return fail("no region {}", id.value);
        if (seen[id.index()]) return fail("region {} belongs to two commands", id.value);
        seen[id.index()] = true;
        HEDDLE_RETURN_IF_ERROR(
            mark_regions(program_.regions[id.index()].commands, depth + 1, seen));
      }
    }
    return {};
  }

  Status play(const std::vector<Command>& commands, const std::vector<CommandInfo>& info) {
    if (info.size() != commands.size())
      return fail("{} commands with {} names", commands.size(), info.size());
    for (size_t i = 0; i < commands.size(); ++i) {
      const std::string name = fmt::format("{} {} ({})", in_once_ ? "once" : "command", i,
                                           where_text(info[i].name, info[i].nodes));
      where_ = name;
      if (std::ranges::any_of(info[i].nodes, &std::string::empty))
        return fail("{}: a node without a name", where_);
      HEDDLE_RETURN_IF_ERROR(play(commands[i], name));
    }
    return {};
  }

  Status play(const Command& command, const std::string& name) {
    if (const auto* loop = std::get_if<Loop>(&command)) return play_loop(*loop, name);
    if (const auto* branch = std::get_if<Branch>(&command)) return play_branch(*branch, name);
    if (const auto* launch = std::get_if<Launch>(&command)) {
      HEDDLE_RETURN_IF_ERROR(launch_fits(*launch));
    } else if (const auto* copy = std::get_if<Copy>(&command)) {
      if (stored_bytes(copy->from.shape) != stored_bytes(copy->to.shape))
        return fail("{}: copies {} bytes to {}", where_, stored_bytes(copy->from.shape),
                    stored_bytes(copy->to.shape));
    } else if (const auto* update = std::get_if<Update>(&command)) {
      HEDDLE_RETURN_IF_ERROR(update_fits(*update));
    } else if (const auto* concatenate = std::get_if<Concatenate>(&command)) {
      HEDDLE_RETURN_IF_ERROR(concatenate_fits(*concatenate));
    } else if (const auto* call = std::get_if<LibraryCall>(&command)) {
      HEDDLE_RETURN_IF_ERROR(library_call_fits(*call));
    } else if (std::get<HostCall>(command).function.empty()) {
      return fail("{}: a host call of no function", where_);
    }
    HEDDLE_RETURN_IF_ERROR(touch(command));
    ++command_;
    return {};
  }

  Status play(RegionId id) {
    const Region& region = program_.regions[id.index()];
    return play(region.commands, region.info);
  }

  static bool is_pred(const View& view) {
    return is_plain(view.shape) && view.shape.is_scalar() &&
           view.shape.type() == tensor::Type::pred;
  }

  Status update_fits(const Update& update) const {
    if (!fits(update))
      return fail("{}: cannot put {} into {} with {} starts", where_,
                  tensor::to_string(update.update.shape), tensor::to_string(update.operand.shape),
                  update.starts.size());
    return same_memory(update.operand, update.result);
  }

  // Updated slices of outputs written in part.
  Status boxes_fit(const Launch& launch) const {
    if (std::ssize(launch.in_part) > launch.outputs)
      return fail("{}: {} outputs in part of {}", where_, launch.in_part.size(), launch.outputs);
    for (size_t o = 0; o < launch.in_part.size(); ++o) {
      if (launch.in_part[o] == 0) continue;
      const int64_t input = o < launch.in_place.size() ? launch.in_place[o] : -1;
      if (input < 0 || input >= launch.inputs)
        return fail("{}: output {} is written in part and lies on no input", where_, o);
      HEDDLE_RETURN_IF_ERROR(same_memory(launch.arguments[static_cast<size_t>(input)],
                                         launch.arguments[static_cast<size_t>(launch.inputs) + o]));
    }
    return {};
  }

  Status concatenate_fits(const Concatenate& concatenate) const {
    if (fits(concatenate)) return {};
    return fail("{}: {} pieces do not make {}", where_, concatenate.pieces.size(),
                tensor::to_string(concatenate.result.shape));
  }

  // How the operation uses its arguments is checked when the call is prepared (api).
  Status library_call_fits(const LibraryCall& call) const {
    constexpr int64_t kMostTasks = 1 << 16;
    if (call.library.empty()) return fail("{}: a call of no library", where_);
    if (call.arguments.size() < 2 || call.arguments.size() > 3 || call.tasks < 1 ||
        call.tasks > kMostTasks)
      return fail("{}: {} arguments and {} tasks of a library", where_, call.arguments.size(),
                  call.tasks);
    bool plain = is_plain(call.result.shape) && call.result.shape.type() == tensor::Type::f32;
    for (const View& view : call.arguments)
      plain = plain && is_plain(view.shape) && view.shape.type() == tensor::Type::f32;
    if (!plain) return fail("{}: an array of a library is not plain f32", where_);
    for (int64_t i : call.fixed) {
      if (i < 0 || i >= std::ssize(call.arguments))
        return fail("{}: there is no argument {}", where_, i);
      const View& view = call.arguments[static_cast<size_t>(i)];
      HEDDLE_RETURN_IF_ERROR(view_fits(view));
      const BufferKind kind = buffer(view.buffer).kind;
      if (kind != BufferKind::constant && kind != BufferKind::once)
        return fail("{}: {} is marked fixed but is not a constant", where_,
                    buffer(view.buffer).name);
    }
    return {};
  }

  Status same_memory(const View& a, const View& b) const {
    HEDDLE_RETURN_IF_ERROR(view_fits(a));
    HEDDLE_RETURN_IF_ERROR(view_fits(b));
    auto* self = const_cast<Checker*>(this);
    if (self->space(a.buffer).first != self->space(b.buffer).first ||
        self->range(a) != self->range(b) || self->space(a.buffer).first == nullptr)
      return fail("{}: {} and {} are not one memory", where_, buffer(a.buffer).name,
                  buffer(b.buffer).name);
    return {};
  }

  // Whether commands may write the view's buffer.
  Status may_hold(const View& view) const {
    const BufferKind kind = buffer(view.buffer).kind;
    if (kind == BufferKind::temporary || kind == (in_once_ ? BufferKind::once : BufferKind::output))
      return {};
    return fail("{}: {} is written", where_, buffer(view.buffer).name);
  }

  void own(const View& view) { space(view.buffer).first->write(range(view), view.buffer); }

  Status play_loop(const Loop& loop, const std::string& name) {
    if (!is_pred(loop.predicate)) return fail("{}: its predicate is not pred[]", name);
    for (const Carried& carried : loop.carried) {
      HEDDLE_RETURN_IF_ERROR(readable(carried.init));
      HEDDLE_RETURN_IF_ERROR(same_memory(carried.init, carried.state));
      HEDDLE_RETURN_IF_ERROR(may_hold(carried.state));
      HEDDLE_RETURN_IF_ERROR(view_fits(carried.next));
      if (!carried.swapped) HEDDLE_RETURN_IF_ERROR(same_memory(carried.state, carried.next));
      if (carried.swapped) HEDDLE_RETURN_IF_ERROR(may_swap(loop, carried));
    }
    for (const Carried& carried : loop.carried) own(carried.state);
    const int64_t first = ++command_;
    for (;;) {
      Memory head = Memory::common(memory_, memory_), exit;
      command_ = first;
      HEDDLE_RETURN_IF_ERROR(play(loop.condition));
      where_ = name;
      HEDDLE_RETURN_IF_ERROR(readable(loop.predicate));
      exit = memory_;
      HEDDLE_RETURN_IF_ERROR(play(loop.body));
      where_ = name;
      for (const Carried& carried : loop.carried) HEDDLE_RETURN_IF_ERROR(readable(carried.next));
      for (const Carried& carried : loop.carried) {
        own(carried.state);
        if (carried.swapped) space(carried.next.buffer).first->erase(range(carried.next));
      }
      memory_ = Memory::common(head, memory_);
      for (const Carried& carried : loop.carried) HEDDLE_RETURN_IF_ERROR(readable(carried.state));
      if (memory_ != head) continue;
      memory_ = std::move(exit);
      return {};
    }
  }

  // While the loop runs the two addresses are exchanged, so no other value may be in this memory.
  Status may_swap(const Loop& loop, const Carried& carried) {
    HEDDLE_RETURN_IF_ERROR(may_hold(carried.next));
    for (const View* view : {&carried.state, &carried.next}) {
      if (view->offset_bytes != 0 || stored_bytes(view->shape) != buffer(view->buffer).bytes ||
          buffer(view->buffer).bytes != buffer(carried.state.buffer).bytes)
        return fail("{}: swaps a part of {}", where_, buffer(view->buffer).name);
    }
    auto lies_on = [&](const View& view, const View& other) {
      return space(view.buffer).first == space(other.buffer).first &&
             range(view).overlaps(range(other));
    };
    if (lies_on(carried.state, carried.next) || carried.state.buffer == carried.next.buffer)
      return fail("{}: swaps {} with itself", where_, buffer(carried.state.buffer).name);
    Status status;
    for (RegionId id : {loop.condition, loop.body}) {
      for_each_view_within(
          program_, program_.regions[id.index()].commands, [&](const View& view, Use) {
            if (!status || view.buffer == carried.state.buffer ||
                view.buffer == carried.next.buffer)
              return;
            status = view_fits(view);
            if (status && (lies_on(view, carried.state) || lies_on(view, carried.next)))
              status = fail("{}: {} lies where {} is swapped", where_, buffer(view.buffer).name,
                            buffer(carried.state.buffer).name);
          });
    }
    return status;
  }

  Status play_branch(const Branch& branch, const std::string& name) {
    const bool pred = is_pred(branch.selector);
    if (!pred && !is_number(branch.selector)) return fail("{}: its selector is not a number", name);
    if (branch.regions.empty() || (pred && branch.regions.size() != 2))
      return fail("{}: {} regions", name, branch.regions.size());
    HEDDLE_RETURN_IF_ERROR(readable(branch.selector));
    for (const Joined& joined : branch.joined) {
      HEDDLE_RETURN_IF_ERROR(view_fits(joined.result));
      HEDDLE_RETURN_IF_ERROR(may_hold(joined.result));
      if (joined.sources.size() != branch.regions.size())
        return fail("{}: {} sources of {} regions", name, joined.sources.size(),
                    branch.regions.size());
    }
    ++command_;
    const Memory before = memory_;
    Memory after;
    for (size_t r = 0; r < branch.regions.size(); ++r) {
      memory_ = before;
      HEDDLE_RETURN_IF_ERROR(play(branch.regions[r]));
      where_ = name;
      for (const Joined& joined : branch.joined) {
        HEDDLE_RETURN_IF_ERROR(readable(joined.sources[r]));
        HEDDLE_RETURN_IF_ERROR(same_memory(joined.sources[r], joined.result));
      }
      for (const Joined& joined : branch.joined) own(joined.result);
      after = r == 0 ? std::move(memory_) : Memory::common(after, memory_);
    }
    memory_ = std::move(after);
    return {};
  }

  Status outputs_written() {
    for (const Port& port : program_.outputs) {
      where_ = fmt::format("output {}", port.name);
      View view = port.source;
      if (port.buffer.valid()) {
        if (view.buffer.valid()) return fail("{}: a buffer and a source", where_);
        view = {port.buffer, 0, port.shape};
      } else if (stored_bytes(view.shape) != stored_bytes(port.shape)) {
        return fail("{}: its source has {} bytes, not {}", where_, stored_bytes(view.shape),
                    stored_bytes(port.shape));
      }
      HEDDLE_RETURN_IF_ERROR(readable(view));
      if (!port.buffer.valid() && buffer(view.buffer).kind == BufferKind::temporary &&
          buffer(view.buffer).bytes > 0)
        return fail("{}: its source is a temporary", where_);
    }
    return {};
  }

  const Program& program_;
  Memory memory_;
  std::set<BufferId> swapped_;
  std::map<std::pair<size_t, std::vector<int64_t>>, const Launch*> first_launch_;
  bool in_once_ = false;
  int64_t command_ = 0;
  std::string where_;
};

}  // namespace

Status verify(const Program& program) { return Checker(program).run(); }

}  // namespace heddle::program
