// The checker shares no code with the planner. It plays the commands on a map of memory that says
// which buffer's bytes lie where: a read must find its own buffer's bytes, whole. That one rule
// covers reads of what was never written, temporaries that share bytes while both are live, inputs
// overwritten through an alias too early, and once buffers used before their time.
#include "program/verify.h"

#include <algorithm>
#include <map>

#include "program/views.h"

namespace heddle::program {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 46;  // sums of a few of them cannot overflow

struct Range {
  int64_t begin = 0, end = 0;
  bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
};

// One space of memory: disjoint ranges, each with the buffer whose bytes it holds.
class Owners {
 public:
  void write(Range range, BufferId owner) {
    if (range.begin == range.end) return;
    split(range.begin);
    split(range.end);
    pieces_.erase(pieces_.lower_bound(range.begin), pieces_.lower_bound(range.end));
    pieces_[range.begin] = {range.end, owner};
  }

  // Whether all of `range` holds bytes of one of the two.
  bool holds(Range range, BufferId owner, BufferId other) const {
    int64_t at = range.begin;
    while (at < range.end) {
      auto piece = pieces_.upper_bound(at);
      if (piece == pieces_.begin()) return false;
      --piece;
      if (piece->second.end <= at) return false;
      if (piece->second.owner != owner && piece->second.owner != other) return false;
      at = piece->second.end;
    }
    return true;
  }

  void clear() { pieces_.clear(); }

 private:
  struct Piece {
    int64_t end;
    BufferId owner;
  };
  void split(int64_t at) {
    auto piece = pieces_.upper_bound(at);
    if (piece == pieces_.begin()) return;
    --piece;
    if (piece->first == at || piece->second.end <= at) return;
    pieces_[at] = piece->second;
    piece->second.end = at;
  }
  std::map<int64_t, Piece> pieces_;  // by begin
};

class Checker {
 public:
  explicit Checker(const Program& program) : program_(program) {}

  Status run() {
    HEDDLE_RETURN_IF_ERROR(buffers());
    HEDDLE_RETURN_IF_ERROR(kernels());
    HEDDLE_RETURN_IF_ERROR(ports());
    HEDDLE_RETURN_IF_ERROR(memory_numbers());
    HEDDLE_RETURN_IF_ERROR(section(program_.once, true));
    HEDDLE_RETURN_IF_ERROR(section(program_.commands, false));
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

  Status buffers() const {
    const size_t count = program_.buffers.size();
    if (program_.constants.size() != count)
      return fail("{} constants for {} buffers", program_.constants.size(), count);
    for (size_t i = 0; i < count; ++i) {
      const Buffer& b = program_.buffers[i];
      if (b.bytes < 0 || b.bytes > kMaxBytes || b.offset_bytes < 0 || b.offset_bytes > kMaxBytes)
        return fail("buffer {} ({}): {} bytes at {}", i, b.name, b.bytes, b.offset_bytes);
      if (b.offset_bytes % kAlignmentBytes != 0)
        return fail("buffer {} ({}): offset {} is not a multiple of {}", i, b.name, b.offset_bytes,
                    kAlignmentBytes);
      const bool is_constant = b.kind == BufferKind::constant;
      const tensor::Literal& value = program_.constants[i];
      if (is_constant ? value.bytes() != b.bytes || (b.bytes > 0 && value.data() == nullptr)
                      : value.shape().is_array())
        return fail("buffer {} ({}): {} bytes, its constant has {}", i, b.name, b.bytes,
                    value.bytes());
      HEDDLE_RETURN_IF_ERROR(alias_of(i));
    }
    HEDDLE_RETURN_IF_ERROR(disjoint(BufferKind::constant, kMaxBytes));
    return disjoint(BufferKind::once, program_.once_bytes);
  }

  Status alias_of(size_t i) const {
    const Buffer& b = program_.buffers[i];
    if (!b.alias.valid()) return {};
    if (b.kind != BufferKind::output || !in_range(b.alias) ||
        buffer(b.alias).kind != BufferKind::input || buffer(b.alias).bytes != b.bytes)
      return fail("buffer {} ({}): only an output may alias, and only an input of equal size", i,
                  b.name);
    for (size_t j = 0; j < i; ++j)
      if (program_.buffers[j].alias == b.alias)
        return fail("buffers {} and {} both alias {}", j, i, buffer(b.alias).name);
    return {};
  }

  // All buffers of a kind that live side by side in one block.
  Status disjoint(BufferKind kind, int64_t block_bytes) const {
    std::vector<const Buffer*> all;
    for (const Buffer& b : program_.buffers)
      if (b.kind == kind && b.bytes > 0) all.push_back(&b);
    std::sort(all.begin(), all.end(),
              [](const Buffer* a, const Buffer* b) { return a->offset_bytes < b->offset_bytes; });
    for (size_t i = 0; i < all.size(); ++i) {
      const int64_t end = all[i]->offset_bytes + all[i]->bytes;
      if (end > block_bytes)
        return fail("{} ends at {} of a block of {} bytes", all[i]->name, end, block_bytes);
      if (i + 1 < all.size() && end > all[i + 1]->offset_bytes)
        return fail("{} and {} overlap", all[i]->name, all[i + 1]->name);
    }
    return {};
  }

  Status kernels() const {
    for (const Kernel& kernel : program_.kernels) {
      if (kernel.phases.empty()) return fail("kernel {} has no phase", kernel.name);
      if (kernel.scratch_bytes < 0 || kernel.scratch_bytes > kMaxBytes)
        return fail("kernel {}: {} bytes of scratch", kernel.name, kernel.scratch_bytes);
      for (const Phase& phase : kernel.phases)
        if (phase.symbol.empty() || phase.tasks < 0)
          return fail("kernel {}: phase '{}' of {} tasks", kernel.name, phase.symbol, phase.tasks);
    }
    return {};
  }

  Status port_buffers(const std::vector<Port>& list, BufferKind kind) {
    for (size_t i = 0; i < list.size(); ++i) {
      const Port& port = list[i];
      if (!port.buffer.valid() && kind == BufferKind::output) continue;
      if (!in_range(port.buffer)) return fail("port {} has no buffer", port.name);
      const Buffer& b = buffer(port.buffer);
      if (b.kind != kind || b.number != static_cast<int64_t>(i))
        return fail("port {}: buffer {} is not its own", port.name, b.name);
      if (b.bytes != stored_bytes(port.shape))
        return fail("port {}: buffer of {} bytes for {}", port.name, b.bytes,
                    tensor::to_string(port.shape));
    }
    return {};
  }

  Status ports() {
    HEDDLE_RETURN_IF_ERROR(port_buffers(program_.inputs, BufferKind::input));
    HEDDLE_RETURN_IF_ERROR(port_buffers(program_.outputs, BufferKind::output));
    const size_t inputs = program_.inputs.size(), outputs = program_.outputs.size();
    for (const Buffer& b : program_.buffers) {
      const bool input = b.kind == BufferKind::input;
      if (!input && b.kind != BufferKind::output) continue;
      const std::vector<Port>& list = input ? program_.inputs : program_.outputs;
      if (b.number < 0 || b.number >= static_cast<int64_t>(input ? inputs : outputs) ||
          !is_of_port(b, list[b.number], input))
        return fail("buffer {} is not of port {}", b.name, b.number);
    }
    external_.resize(inputs + outputs);
    for (const Port& port : program_.inputs) {
      auto [owners, base] = space(port.buffer);
      owners->write({base, base + buffer(port.buffer).bytes}, port.buffer);
    }
    return {};
  }

  // An input has one buffer; an output may have others, with the values that its memory held
  // before.
  bool is_of_port(const Buffer& b, const Port& port, bool input) const {
    if (!in_range(port.buffer)) return false;
    const Buffer& own = buffer(port.buffer);
    return &own == &b || (!input && !b.alias.valid() && !own.alias.valid() && own.bytes == b.bytes);
  }

  Status memory_numbers() const {
    const MemoryNumbers& m = program_.memory;
    if (m.lower_bound_bytes < 0 || m.lower_bound_bytes > m.plan_bytes || m.plan_bytes > kMaxBytes ||
        m.unshared_bytes < 0 || program_.once_bytes < 0 || program_.once_bytes > kMaxBytes)
      return fail("memory numbers {}, {}, {} do not fit", m.lower_bound_bytes, m.plan_bytes,
                  m.unshared_bytes);
    return {};
  }

  // Where a buffer lies: its space, and its begin there. Constants have none.
  std::pair<Owners*, int64_t> space(BufferId id) {
    const Buffer& b = buffer(id);
    switch (b.kind) {
      case BufferKind::temporary:
        return {&arena_, b.offset_bytes};
      case BufferKind::once:
        return {&once_, b.offset_bytes};
      case BufferKind::input:
        return {&external_[b.number], 0};
      case BufferKind::output:
        if (b.alias.valid()) return {&external_[buffer(b.alias).number], 0};
        return {&external_[program_.inputs.size() + b.number], 0};
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
    // An aliased output that nobody wrote holds what the input held.
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
      if (!in_once_ && b.offset_bytes + b.bytes > program_.memory.plan_bytes)
        return fail("{}: {} ends at {} of an arena of {} bytes", where_, b.name,
                    b.offset_bytes + b.bytes, program_.memory.plan_bytes);
    }
    return {};
  }

  // The reads, then that the writes overlap neither each other nor the reads, then the writes.
  Status touch(const Command& command) {
    struct Touched {
      const View* view;
      Use use;
      Owners* owners;
      Range range;
      int64_t in_place = -1;  // the read that it may lie on
    };
    const auto* launch = std::get_if<Launch>(&command);
    std::vector<Touched> touched;
    int64_t outputs = 0;
    Status status;
    for_each_view(command, [&](const View& view, Use use) {
      if (!status) return;
      status = use == Use::read ? readable(view) : writable(view);
      if (!status) return;
      touched.push_back({&view, use, space(view.buffer).first, range(view)});
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
    for (int64_t dim : launch.dims)
      if (dim < 0) return fail("{}: a run-time dimension of {}", where_, dim);
    // What one launch of a kernel needs, all its launches with the same dimensions need.
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

  Status section(const std::vector<Command>& commands, bool once) {
    const auto& info = once ? program_.once_info : program_.command_info;
    if (info.size() != commands.size())
      return fail("{} commands with {} names", commands.size(), info.size());
    in_once_ = once;
    arena_.clear();
    for (size_t i = 0; i < commands.size(); ++i, ++command_) {
      where_ = fmt::format("{} {} ({})", once ? "once" : "command", i, info[i].name);
      const Command& command = commands[i];
      if (const auto* launch = std::get_if<Launch>(&command)) {
        HEDDLE_RETURN_IF_ERROR(launch_fits(*launch));
      } else if (const auto* copy = std::get_if<Copy>(&command)) {
        if (stored_bytes(copy->from.shape) != stored_bytes(copy->to.shape))
          return fail("{}: copies {} bytes to {}", where_, stored_bytes(copy->from.shape),
                      stored_bytes(copy->to.shape));
      } else if (std::get<HostCall>(command).function.empty()) {
        return fail("{}: a host call of no function", where_);
      }
      HEDDLE_RETURN_IF_ERROR(touch(command));
    }
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
  Owners arena_, once_;
  std::vector<Owners> external_;  // inputs, then outputs
  std::map<std::pair<size_t, std::vector<int64_t>>, const Launch*> first_launch_;
  bool in_once_ = false;
  int64_t command_ = 0;
  std::string where_;
};

}  // namespace

Status verify(const Program& program) { return Checker(program).run(); }

}  // namespace heddle::program
