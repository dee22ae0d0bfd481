// Each struct has one function `visit` that lists its fields; Writer and Reader both use it, so
// that the two directions cannot differ. Numbers are little-endian 64-bit words; lists begin with
// their length.
#include "program/encode.h"

#include <cstring>
#include <limits>
#include <type_traits>

namespace heddle::program {
namespace {

using tensor::Dim;
using tensor::Layout;
using tensor::Shape;
using tensor::Tile;
using tensor::Type;

constexpr int kMaxNesting = 64;

template <typename A>
void visit(A& archive, Buffer& b) {
  archive(b.name, b.kind, b.bytes, b.space, b.offset_bytes, b.number, b.alias, b.first_command,
          b.last_command);
}
template <typename A>
void visit(A& archive, View& view) {
  archive(view.buffer, view.offset_bytes, view.shape);
}
template <typename A>
void visit(A& archive, Phase& phase) {
  archive(phase.symbol, phase.tasks, phase.serial);
}
template <typename A>
void visit(A& archive, Kernel& k) {
  archive(k.name, k.label, k.phases, k.scratch_bytes, k.flops, k.min_bytes, k.gathered, k.schedule,
          k.text);
}
template <typename A>
void visit(A& archive, Launch& launch) {
  archive(launch.kernel, launch.arguments, launch.dims, launch.inputs, launch.outputs,
          launch.in_place, launch.in_part);
}
template <typename A>
void visit(A& archive, Copy& copy) {
  archive(copy.from, copy.to);
}
template <typename A>
void visit(A& archive, HostCall& call) {
  archive(call.function, call.text, call.arguments, call.results);
}
template <typename A>
void visit(A& archive, Update& update) {
  archive(update.operand, update.update, update.result, update.starts);
}
template <typename A>
void visit(A& archive, Concatenate& concatenate) {
  archive(concatenate.pieces, concatenate.result, concatenate.dimension);
}
template <typename A>
void visit(A& archive, LibraryCall& call) {
  archive(call.library, call.operation, call.arguments, call.result, call.fixed, call.tasks,
          call.flops, call.min_bytes);
}
template <typename A>
void visit(A& archive, Carried& carried) {
  archive(carried.init, carried.state, carried.next, carried.swapped);
}
template <typename A>
void visit(A& archive, Loop& loop) {
  archive(loop.condition, loop.body, loop.predicate, loop.carried);
}
template <typename A>
void visit(A& archive, Joined& joined) {
  archive(joined.sources, joined.result);
}
template <typename A>
void visit(A& archive, Branch& branch) {
  archive(branch.selector, branch.regions, branch.joined);
}
template <typename A>
void visit(A& archive, CommandInfo& info) {
  archive(info.name, info.operators, info.nodes);
}
template <typename A>
void visit(A& archive, Region& region) {
  archive(region.commands, region.info);
}
template <typename A>
void visit(A& archive, Port& port) {
  archive(port.name, port.alias_name, port.shape, port.buffer, port.source);
}
template <typename A>
void visit(A& archive, tensor::IndexRange& range) {
  archive(range.low, range.high);
}
template <typename A>
void visit(A& archive, tensor::IndexCheck& check) {
  archive(check.node, check.ranges, check.input, check.starts, check.limits);
}
template <typename A>
void visit(A& archive, StateArray& state) {
  archive(state.start);
}
template <typename A>
void visit(A& archive, MemoryNumbers& m) {
  archive(m.lower_bound_bytes, m.plan_bytes, m.unshared_bytes, m.optimal);
}
template <typename A>
void visit(A& archive, PoolBlock& block) {
  archive(block.offset_bytes, block.bytes);
}
template <typename A>
void visit(A& archive, Dim& dim) {
  archive(dim.size, dim.dynamic, dim.symbol);
}
template <typename A>
void visit(A& archive, Tile& tile) {
  archive(tile.dims);
}
template <typename A>
void visit(A& archive, Layout& layout) {
  archive(layout.minor_to_major, layout.tiles, layout.element_size_bits, layout.memory_space,
          layout.padded_dimensions, layout.rest);
}
template <typename A>
void visit(A& archive, Program& p) {
  archive(p.name, p.target, p.build_id, p.options, p.notes, p.kernels, p.buffers, p.inputs,
          p.outputs, p.index_checks, p.states, p.once, p.commands, p.once_info, p.command_info,
          p.regions, p.once_bytes, p.memory, p.own_memory, p.host_once_bytes, p.host_memory,
          p.pool_blocks);
}
template <typename A>
void visit(A& archive, PortDimension& place) {
  archive(place.port, place.dimension, place.times);
}
template <typename A>
void visit(A& archive, std::pair<int64_t, int64_t>& term) {
  archive(term.first, term.second);
}
template <typename A>
void visit(A& archive, std::pair<tensor::Extent::Quotient, int64_t>& term) {
  archive(term.first.constant, term.first.terms, term.first.divisor, term.second);
}
template <typename A>
void visit(A& archive, Symbol& symbol) {
  archive(symbol.name, symbol.bound, symbol.least, symbol.of.constant, symbol.of.terms,
          symbol.of.quotients, symbol.inputs, symbol.outputs);
}

class Writer {
 public:
  template <typename... Fields>
  void operator()(const Fields&... fields) {
    (put(fields), ...);
  }
  std::vector<uint8_t> bytes;

 private:
  void word(uint64_t value) { raw(&value, sizeof(value)); }
  void raw(const void* data, size_t size) {
    const auto* begin = static_cast<const uint8_t*>(data);
    bytes.insert(bytes.end(), begin, begin + size);
  }
  void put(int64_t value) { word(static_cast<uint64_t>(value)); }
  void put(bool value) { bytes.push_back(value); }
  void put(uint8_t value) { bytes.push_back(value); }
  void put(BufferKind kind) { bytes.push_back(static_cast<uint8_t>(kind)); }
  void put(Space space) { bytes.push_back(static_cast<uint8_t>(space)); }
  void put(const std::string& text) {
    word(text.size());
    raw(text.data(), text.size());
  }
  template <typename Tag>
  void put(Id<Tag> id) {
    word(id.value);
  }
  template <typename T>
  void put(const std::vector<T>& list) {
    word(list.size());
    for (const T& item : list) put(item);
  }
  void put(const Command& command) {
    bytes.push_back(static_cast<uint8_t>(command.index()));
    std::visit([&](const auto& c) { put(c); }, command);
  }
  void put(const Shape& shape) {
    bytes.push_back(static_cast<uint8_t>(shape.type()));
    if (shape.is_tuple()) put(shape.elements());
    if (!shape.is_array()) return;
    put(shape.dims());
    put(shape.layout().has_value());
    if (shape.layout()) put(*shape.layout());
  }
  template <typename T>
    requires std::is_class_v<T>
  void put(const T& value) {
    visit(*this, const_cast<T&>(value));  // only read
  }
};

// After the first error every read returns zeros; `fault` describes the error.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : rest_(bytes) {}
  template <typename... Fields>
  void operator()(Fields&... fields) {
    (get(fields), ...);
  }
  const char* fault = nullptr;
  size_t left() const { return rest_.size(); }

 private:
  void fail(const char* what) {
    if (fault == nullptr) fault = what;
    rest_ = {};
  }
  void raw(void* data, size_t size) {
    if (size > rest_.size()) {
      std::memset(data, 0, size);
      return fail("it ends too early");
    }
    std::memcpy(data, rest_.data(), size);
    rest_ = rest_.subspan(size);
  }
  uint8_t byte() {
    uint8_t value = 0;
    raw(&value, 1);
    return value;
  }
  uint64_t word() {
    uint64_t value = 0;
    raw(&value, sizeof(value));
    return value;
  }
  void get(int64_t& value) { value = static_cast<int64_t>(word()); }
  void get(uint8_t& value) { value = byte(); }
  void get(bool& value) {
    const uint8_t b = byte();
    if (b > 1) fail("a truth value is neither 0 nor 1");
    value = b == 1;
  }
  void get(BufferKind& kind) {
    const uint8_t b = byte();
    if (b > static_cast<uint8_t>(BufferKind::temporary)) fail("unknown kind of buffer");
    kind = static_cast<BufferKind>(b);
  }
  void get(Space& space) {
    const uint8_t b = byte();
    if (b > static_cast<uint8_t>(Space::host)) fail("unknown space of a buffer");
    space = static_cast<Space>(b);
  }
  void get(std::string& text) {
    const uint64_t size = word();
    if (size > rest_.size()) return fail("a text is longer than the section");
    text.assign(reinterpret_cast<const char*>(rest_.data()), size);
    rest_ = rest_.subspan(size);
  }
  template <typename Tag>
  void get(Id<Tag>& id) {
    const uint64_t value = word();
    if (value > std::numeric_limits<uint32_t>::max()) return fail("a number is too large");
    id.value = static_cast<uint32_t>(value);
  }
  template <typename T>
  void get(std::vector<T>& list) {
    const uint64_t size = word();
    // Every item takes at least one byte, so a list cannot be longer than the remaining bytes; it
    // grows as items are read.
    if (size > rest_.size()) return fail("a list is longer than the section");
    for (uint64_t i = 0; i < size && fault == nullptr; ++i) get(list.emplace_back());
  }
  void get(Command& command) {
    switch (byte()) {
      case 0:
        return get(command.emplace<Launch>());
      case 1:
        return get(command.emplace<Copy>());
      case 2:
        return get(command.emplace<HostCall>());
      case 3:
        return get(command.emplace<Update>());
      case 4:
        return get(command.emplace<Loop>());
      case 5:
        return get(command.emplace<Branch>());
      case 6:
        return get(command.emplace<Concatenate>());
      case 7:
        return get(command.emplace<LibraryCall>());
      default:
        fail("unknown kind of command");
    }
  }
  void get(Shape& shape) {
    const uint8_t code = byte();
    if (code > static_cast<uint8_t>(Type::tuple)) return fail("unknown element type");
    const auto type = static_cast<Type>(code);
    if (type == Type::token) shape = Shape::make_token();
    if (type == Type::opaque) shape = Shape::make_opaque();
    if (type == Type::tuple) {
      if (++nesting_ > kMaxNesting) return fail("tuples are nested too deeply");
      std::vector<Shape> elements;
      get(elements);
      --nesting_;
      shape = Shape::make_tuple(std::move(elements));
    }
    if (!tensor::is_array_type(type)) return;
    std::vector<Dim> dims;
    bool has_layout = false;
    get(dims);
    get(has_layout);
    for (const Dim& dim : dims)
      if (dim.size < Dim::kUnbounded) return fail("a dimension is negative");
    shape = Shape(type, std::move(dims));
    if (!has_layout) return;
    Layout layout;
    get(layout);
    if (fault == nullptr && !fits(layout, shape.rank())) return fail("a layout is wrong");
    shape.set_layout(std::move(layout));
  }
  // Whether the layout satisfies the preconditions of the layout functions.
  static bool fits(const Layout& layout, int64_t rank) {
    std::vector<bool> seen(static_cast<size_t>(rank));
    if (static_cast<int64_t>(layout.minor_to_major.size()) != rank) return false;
    for (int64_t d : layout.minor_to_major) {
      if (d < 0 || d >= rank || seen[d]) return false;
      seen[d] = true;
    }
    for (const Tile& tile : layout.tiles) {
      if (static_cast<int64_t>(tile.dims.size()) > rank) return false;
      for (int64_t d : tile.dims)
        if (d != Tile::kCombine && (d <= 0 || d > (int64_t{1} << 30))) return false;
    }
    const auto padded = static_cast<int64_t>(layout.padded_dimensions.size());
    if (padded != 0 && padded != rank) return false;
    for (int64_t d : layout.padded_dimensions)
      if (d < 0 || d > (int64_t{1} << 40)) return false;
    return true;
  }
  template <typename T>
    requires std::is_class_v<T>
  void get(T& value) {
    visit(*this, value);
  }

  std::span<const uint8_t> rest_;
  int nesting_ = 0;
};

void write_program(Writer& writer, const Program& program) {
  writer(program);
  for (size_t i = 0; i < program.buffers.size(); ++i)
    if (program.buffers[i].kind == BufferKind::constant) writer(program.constants[i].shape());
}

void read_program(Reader& reader, Program& program, std::vector<Shape>& constant_shapes) {
  reader(program);
  constant_shapes.resize(program.buffers.size());
  for (size_t i = 0; i < program.buffers.size() && reader.fault == nullptr; ++i)
    if (program.buffers[i].kind == BufferKind::constant) reader(constant_shapes[i]);
  program.constants.resize(program.buffers.size());
}

Status end_of(Reader& reader) {
  if (reader.fault == nullptr && reader.left() != 0) reader.fault = "bytes are left over";
  if (reader.fault != nullptr) return user_error("{}", reader.fault);
  return {};
}

}  // namespace

std::vector<uint8_t> encode(const Program& program) {
  Writer writer;
  write_program(writer, program);
  return std::move(writer.bytes);
}

Result<Decoded> decode(std::span<const uint8_t> bytes) {
  Reader reader(bytes);
  Decoded decoded;
  read_program(reader, decoded.program, decoded.constant_shapes);
  HEDDLE_RETURN_IF_ERROR(end_of(reader));
  return decoded;
}

std::vector<uint8_t> encode(const Saved& saved) {
  Writer writer;
  writer(saved.symbols, static_cast<int64_t>(saved.variants.size()));
  for (const Variant& variant : saved.variants) {
    writer(variant.least, variant.bounds, variant.told,
           static_cast<int64_t>(variant.program.object.size()));
    write_program(writer, variant.program);
  }
  return std::move(writer.bytes);
}

Result<DecodedSaved> decode_saved(std::span<const uint8_t> bytes) {
  Reader reader(bytes);
  DecodedSaved decoded;
  int64_t count = 0;
  reader(decoded.saved.symbols, count);
  for (int64_t v = 0; v < count && reader.fault == nullptr; ++v) {
    Variant& variant = decoded.saved.variants.emplace_back();
    reader(variant.least, variant.bounds, variant.told, decoded.object_bytes.emplace_back());
    read_program(reader, variant.program, decoded.constant_shapes.emplace_back());
  }
  HEDDLE_RETURN_IF_ERROR(end_of(reader));
  return decoded;
}

}  // namespace heddle::program
