#include "program/verify_parts.h"

#include <algorithm>

namespace heddle::program {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 46;  // sums of a few of them cannot overflow

class PartsChecker {
 public:
  explicit PartsChecker(const Program& program) : program_(program) {}

  Status run() const {
    HEDDLE_RETURN_IF_ERROR(buffers());
    HEDDLE_RETURN_IF_ERROR(kernels());
    HEDDLE_RETURN_IF_ERROR(ports());
    HEDDLE_RETURN_IF_ERROR(states());
    HEDDLE_RETURN_IF_ERROR(index_checks());
    HEDDLE_RETURN_IF_ERROR(memory_numbers());
    return pool_blocks();
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
      const bool port = b.kind == BufferKind::input || b.kind == BufferKind::output;
      if ((b.space == Space::host && (!program_.own_memory || b.kind == BufferKind::constant)) ||
          (port && program_.own_memory && b.space != Space::host))
        return fail("buffer {} ({}) lies in the wrong space", i, b.name);
      const bool is_constant = b.kind == BufferKind::constant;
      const tensor::Literal& value = program_.constants[i];
      if (is_constant ? value.bytes() != b.bytes || (b.bytes > 0 && value.data() == nullptr)
                      : value.shape().is_array())
        return fail("buffer {} ({}): {} bytes, its constant has {}", i, b.name, b.bytes,
                    value.bytes());
      HEDDLE_RETURN_IF_ERROR(alias_of(i));
    }
    HEDDLE_RETURN_IF_ERROR(disjoint(BufferKind::constant, Space::device, kMaxBytes));
    HEDDLE_RETURN_IF_ERROR(disjoint(BufferKind::once, Space::device, program_.once_bytes));
    return disjoint(BufferKind::once, Space::host, program_.host_once_bytes);
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

  // All buffers of a kind that exist at the same time in one block must be disjoint.
  Status disjoint(BufferKind kind, Space space, int64_t block_bytes) const {
    std::vector<const Buffer*> all;
    for (const Buffer& b : program_.buffers)
      if (b.kind == kind && b.space == space && b.bytes > 0) all.push_back(&b);
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

  Status port_buffers(const std::vector<Port>& list, BufferKind kind) const {
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

  Status ports() const {
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
    return {};
  }

  static bool is_integers(const tensor::Shape& shape) {
    return shape.is_array() && tensor::is_integer(shape.type()) &&
           tensor::type_bits(shape.type()) >= 8 && stored_bytes(shape) <= kMaxBytes &&
           (!shape.layout() || shape.layout()->is_row_major());
  }

  static bool is_box(const tensor::IndexCheck& check, const tensor::Shape& shape) {
    if (check.starts.empty() && check.limits.empty()) return true;
    bool fits = std::ssize(check.starts) == shape.rank() &&
                std::ssize(check.limits) == shape.rank() && shape.rank() > 0 &&
                check.ranges.size() == 1;
    for (int64_t d = 0; fits && d < shape.rank(); ++d) {
      const int64_t start = check.starts[static_cast<size_t>(d)];
      const int64_t limit = check.limits[static_cast<size_t>(d)];
      fits = start >= 0 && limit <= shape.dim(d) && start < (limit < 0 ? shape.dim(d) : limit);
    }
    return fits;
  }

  Status states() const {
    const size_t count = program_.states.size();
    if (count > program_.inputs.size() || count > program_.outputs.size())
      return fail("{} states, {} inputs and {} outputs", count, program_.inputs.size(),
                  program_.outputs.size());
    for (size_t i = 0; i < count; ++i) {
      const Port& input = program_.inputs[program_.inputs.size() - count + i];
      const Port& output = program_.outputs[program_.outputs.size() - count + i];
      if (!is_plain(input.shape) || output.shape != input.shape ||
          stored_bytes(input.shape) != std::ssize(program_.states[i].start))
        return fail("state {} of {} bytes is {} before a run and {} after it", i,
                    program_.states[i].start.size(), tensor::to_string(input.shape),
                    tensor::to_string(output.shape));
    }
    return {};
  }

  Status index_checks() const {
    const int64_t hidden =
        tensor::hidden_outputs(program_.index_checks) + std::ssize(program_.states);
    int64_t output = static_cast<int64_t>(program_.outputs.size()) - hidden;
    if (output < 0)
      return fail("{} outputs, of which {} are hidden", program_.outputs.size(), hidden);
    for (const tensor::IndexCheck& check : program_.index_checks) {
      bool fits = !check.ranges.empty() && check.input >= -1 &&
                  check.input < static_cast<int64_t>(shown_inputs(program_));
      for (const tensor::IndexRange& range : check.ranges)
        fits = fits && range.low <= 0 && range.high >= 0;
      if (fits && check.input < 0) {
        fits = is_integers(program_.outputs[output].shape) &&
               program_.outputs[output].shape.type() == tensor::Type::u64 &&
               program_.outputs[output].shape.elems() == std::ssize(check.ranges);
        ++output;
      } else if (fits) {
        const tensor::Shape& shape = program_.inputs[check.input].shape;
        fits = is_integers(shape) && shape.elems() % std::ssize(check.ranges) == 0 &&
               is_box(check, shape);
      }
      if (!fits) return fail("the check of {} does not fit its port", check.node);
    }
    return {};
  }

  // An input has one buffer; an output may have more, with earlier values in its memory.
  bool is_of_port(const Buffer& b, const Port& port, bool input) const {
    if (!in_range(port.buffer)) return false;
    const Buffer& own = buffer(port.buffer);
    return &own == &b || (!input && !b.alias.valid() && !own.alias.valid() && own.bytes == b.bytes);
  }

  Status memory_numbers() const {
    HEDDLE_RETURN_IF_ERROR(memory_numbers(program_.memory, program_.once_bytes));
    if (!program_.own_memory &&
        (program_.host_once_bytes != 0 || program_.host_memory.plan_bytes != 0))
      return fail("{} and {} bytes on the host of a program without spaces",
                  program_.host_once_bytes, program_.host_memory.plan_bytes);
    return memory_numbers(program_.host_memory, program_.host_once_bytes);
  }

  Status memory_numbers(const MemoryNumbers& m, int64_t once_bytes) const {
    if (m.lower_bound_bytes < 0 || m.lower_bound_bytes > m.plan_bytes || m.plan_bytes > kMaxBytes ||
        m.unshared_bytes < 0 || once_bytes < 0 || once_bytes > kMaxBytes)
      return fail("memory numbers {}, {}, {} do not fit", m.lower_bound_bytes, m.plan_bytes,
                  m.unshared_bytes);
    return {};
  }

  Status pool_blocks() const {
    const std::vector<PoolBlock>& blocks = program_.pool_blocks;
    int64_t end = 0;
    for (const PoolBlock& block : blocks) {
      if (block.offset_bytes < end || block.offset_bytes % kAlignmentBytes != 0 ||
          block.bytes <= 0 || block.bytes > kMaxBytes || block.offset_bytes > kMaxBytes)
        return fail("a pool block of {} bytes at {} is out of place", block.bytes,
                    block.offset_bytes);
      end = block.offset_bytes + block.bytes;
    }
    return {};
  }

  const Program& program_;
};

}  // namespace

Status verify_parts(const Program& program) { return PartsChecker(program).run(); }

bool is_plain(const tensor::Shape& shape) {
  return shape.is_array() && shape.is_static() &&
         (!shape.layout() || shape.layout()->is_row_major());
}

bool is_number(const View& view) {
  return is_plain(view.shape) && view.shape.is_scalar() && tensor::is_integer(view.shape.type());
}

bool fits(const Update& update) {
  const tensor::Shape &all = update.operand.shape, &box = update.update.shape;
  const auto rank = static_cast<size_t>(all.is_array() ? all.rank() : 0);
  bool fits = is_plain(all) && is_plain(box) && is_plain(update.result.shape) &&
              box.type() == all.type() && update.result.shape.type() == all.type() &&
              update.result.shape.extents() == all.extents() &&
              box.rank() == static_cast<int64_t>(rank) && update.starts.size() == rank;
  for (size_t d = 0; fits && d < rank; ++d)
    fits = box.extents()[d] <= all.extents()[d] && is_number(update.starts[d]);
  return fits;
}

bool fits(const Concatenate& concatenate) {
  const tensor::Shape& all = concatenate.result.shape;
  const int64_t d = concatenate.dimension;
  bool fits = is_plain(all) && d >= 0 && d < all.rank() && !concatenate.pieces.empty();
  int64_t length = 0;
  for (size_t i = 0; fits && i < concatenate.pieces.size(); ++i) {
    const tensor::Shape& piece = concatenate.pieces[i].shape;
    fits = is_plain(piece) && piece.type() == all.type() && piece.rank() == all.rank();
    for (int64_t other = 0; fits && other < all.rank(); ++other)
      fits = other == d || piece.dim(other) == all.dim(other);
    if (fits) fits = piece.dim(d) <= all.dim(d) - length;
    if (fits) length += piece.dim(d);
  }
  return fits && length == all.dim(d);
}

}  // namespace heddle::program
