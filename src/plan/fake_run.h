// For the tests of this folder: fake kernels, a reference that stores every value separately, and a
// run of a planned program on poisoned memory. If both agree, no value was overwritten while it was
// still needed.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "hlo/text.h"
#include "plan/flow.h"
#include "plan/plan.h"
#include "program/views.h"

namespace heddle::plan {

using Bytes = std::vector<uint8_t>;

// Fake work: byte i of each result comes from byte i of each operand (elementwise: may run in
// place), or from a digest of all operands. Elementwise work reads the operands that it may not
// overwrite at other positions than i, so that overwriting them gives a wrong result.
struct FakeWork {
  uint64_t seed = 0;
  bool elementwise = false;
  std::vector<int> in_place;
  std::vector<bool> in_part;  // only every third byte of these is stored, operand unread

  static FakeWork of(const std::string& name, std::vector<int> in_place = {},
                     std::vector<bool> in_part = {}) {
    return {hash64(name), name.find("_e") != std::string::npos, std::move(in_place),
            std::move(in_part)};
  }
  bool is_in_part(size_t result) const { return result < in_part.size() && in_part[result]; }
  bool is_array(size_t operand) const {
    for (size_t r = 0; r < in_part.size(); ++r)
      if (in_part[r] && in_place[r] == static_cast<int>(operand)) return true;
    return false;
  }

  struct Piece {
    uint8_t* data;
    int64_t bytes;
  };
  // Results that are not in place, and workspaces, are poisoned before anything is read.
  void run(const std::vector<Piece>& operands, const std::vector<Piece>& results,
           const std::vector<Piece>& workspaces) const {
    auto spoil = [](const Piece& piece) {
      if (piece.bytes > 0) std::memset(piece.data, 0xcd, static_cast<size_t>(piece.bytes));
    };
    for (const Piece& piece : workspaces) spoil(piece);
    for (size_t r = 0; r < results.size(); ++r)
      if (is_in_part(r))
        HEDDLE_CHECK(operands[static_cast<size_t>(in_place[r])].data == results[r].data);
      else if (r >= in_place.size() || in_place[r] < 0 ||
               operands[static_cast<size_t>(in_place[r])].data != results[r].data)
        spoil(results[r]);
    uint64_t digest = seed;
    for (size_t o = 0; o < operands.size(); ++o)
      if (!elementwise && !is_array(o))
        digest = hash64(
            {reinterpret_cast<char*>(operands[o].data), static_cast<size_t>(operands[o].bytes)},
            digest);
    int64_t most = 0;
    for (const Piece& result : results) most = std::max(most, result.bytes);
    for (int64_t i = 0; i < most; ++i) {
      uint64_t mixed = digest;
      for (size_t o = 0; elementwise && o < operands.size(); ++o) {
        const bool here = std::count(in_place.begin(), in_place.end(), static_cast<int>(o)) > 0;
        if (operands[o].bytes > 0 && !is_array(o) && (!here || i < operands[o].bytes))
          mixed = mixed * 31 + operands[o].data[here ? i : (i * 3 + 5) % operands[o].bytes];
      }
      for (size_t r = 0; r < results.size(); ++r)
        if (i < results[r].bytes && (!is_in_part(r) || i % 3 == 1))
          results[r].data[i] =
              static_cast<uint8_t>((mixed * 7 + r * 13 + (elementwise ? 0 : i)) >> 3);
    }
  }
};

// A fake kernel for a fusion. Elementwise work may overwrite the operands in `in_place`.
inline KernelUse fake_kernel(const hlo::Instr& instr, std::vector<int> in_place = {},
                             std::vector<int64_t> workspace_bytes = {}) {
  KernelUse use;
  use.kernel.name = instr.name();
  use.kernel.phases = {{instr.name() + "_p0", 1, true}};
  use.workspace_bytes = std::move(workspace_bytes);
  use.in_place = std::move(in_place);
  return use;
}

// Loops and branches depend on fake values, too: the same ones in the reference and in a run.
inline bool fake_again(uint8_t predicate, int trips) { return trips < 3 && (predicate & 7) != 0; }
inline size_t fake_branch(uint8_t selector, size_t branches) { return selector % branches; }

// Writes the update slice into the array as a dynamic-update-slice does; starts are u8.
inline void fake_update(const tensor::Shape& all, const tensor::Shape& box, uint8_t* array,
                        const uint8_t* update, const std::vector<const uint8_t*>& starts) {
  const std::vector<int64_t> extents = box.extents();
  const int64_t bytes = tensor::type_bytes(all.type());
  for (int64_t i = 0; i < box.elems(); ++i) {
    int64_t rest = i, at = 0, stride = 1;
    for (int64_t d = box.rank(); d-- > 0;) {
      const int64_t start = *starts[static_cast<size_t>(d)];
      const int64_t first = std::clamp<int64_t>(start, 0, all.dim(d) - box.dim(d));
      at += (first + rest % extents[static_cast<size_t>(d)]) * stride;
      rest /= extents[static_cast<size_t>(d)];
      stride *= all.dim(d);
    }
    std::memcpy(array + at * bytes, update + i * bytes, static_cast<size_t>(bytes));
  }
}

// Concatenates the pieces along a dimension.
inline void fake_concatenate(const tensor::Shape& all, int64_t dimension,
                             const std::vector<Bytes>& pieces, uint8_t* to) {
  int64_t rows = 1;
  for (int64_t d = 0; d < dimension; ++d) rows *= all.dim(d);
  for (int64_t row = 0; row < rows; ++row)
    for (const Bytes& piece : pieces) {
      const int64_t bytes = std::ssize(piece) / rows;
      std::copy_n(piece.data() + row * bytes, bytes, to);
      to += bytes;
    }
}

// Computes all outputs, one instruction after another.
class Reference {
 public:
  using Values = std::vector<Bytes>;  // by leaf

  Reference(const hlo::Module& module, const Kernels& kernels, const Values& inputs)
      : kernels_(kernels) {
    outputs = run(*module.entry(), inputs);
  }
  Values outputs;

 private:
  Values run(const hlo::Computation& computation, const Values& inputs) {
    std::unordered_map<const hlo::Instr*, Values> values;
    size_t input = 0;
    for (const hlo::Instr* p : computation.parameters())
      for (int64_t i = 0; i < leaf_count(p->shape()); ++i) values[p].push_back(inputs[input++]);
    for (const hlo::Instr* instr : computation.instrs()) {
      if (instr->is(hlo::Opcode::parameter)) continue;
      Values operands;
      for (const hlo::Instr* operand : instr->operands())
        for (const Bytes& leaf : values[operand]) operands.push_back(leaf);
      values[instr] = evaluate(*instr, std::move(operands));
    }
    return values[computation.root()];
  }

  Values evaluate(const hlo::Instr& instr, Values operands) {
    switch (instr.opcode()) {
      case hlo::Opcode::constant: {
        const auto* data = static_cast<const uint8_t*>(instr.literal().data());
        return {Bytes(data, data + instr.literal().bytes())};
      }
      case hlo::Opcode::get_tuple_element: {
        int64_t begin = 0;
        const auto& elements = instr.operand(0)->shape().elements();
        for (int64_t i = 0; i < instr.tuple_index(); ++i) begin += leaf_count(elements[i]);
        return {operands.begin() + begin, operands.begin() + begin + leaf_count(instr.shape())};
      }
      case hlo::Opcode::tuple:
      case hlo::Opcode::bitcast:
      case hlo::Opcode::reshape:
      case hlo::Opcode::copy:
        return operands;
      case hlo::Opcode::while_:
        for (int trips = 0; fake_again(run(*instr.called()[0], operands)[0][0], trips); ++trips)
          operands = run(*instr.called()[1], operands);
        return operands;
      case hlo::Opcode::conditional: {
        const size_t branch = fake_branch(operands[0][0], instr.called().size());
        int64_t begin = 1;
        for (size_t i = 0; i < branch; ++i) begin += leaf_count(instr.operand(i + 1)->shape());
        const int64_t end = begin + leaf_count(instr.operand(branch + 1)->shape());
        return run(*instr.called()[branch], {operands.begin() + begin, operands.begin() + end});
      }
      case hlo::Opcode::concatenate:
        if (!kernels_.contains(&instr)) {
          Bytes all(static_cast<size_t>(instr.shape().bytes()));
          fake_concatenate(instr.shape(), instr.dimensions()[0], operands, all.data());
          return {all};
        }
        break;
      case hlo::Opcode::dynamic_update_slice:
        if (!kernels_.contains(&instr)) {
          std::vector<const uint8_t*> starts;
          for (size_t i = 2; i < operands.size(); ++i) starts.push_back(operands[i].data());
          fake_update(instr.shape(), instr.operand(1)->shape(), operands[0].data(),
                      operands[1].data(), starts);
          operands.resize(1);
          return operands;
        }
        break;
      default:
        break;
    }
    Values results;
    std::vector<const tensor::Shape*> shapes;
    append_leaves(instr.shape(), shapes);
    for (const tensor::Shape* shape : shapes)
      results.emplace_back(static_cast<size_t>(program::stored_bytes(*shape)));
    std::vector<FakeWork::Piece> from, to;
    for (Bytes& bytes : operands) from.push_back({bytes.data(), std::ssize(bytes)});
    for (Bytes& bytes : results) to.push_back({bytes.data(), std::ssize(bytes)});
    if (auto kernel = kernels_.find(&instr); kernel != kernels_.end()) {
      const KernelUse& use = kernel->second;
      const FakeWork work = FakeWork::of(use.kernel.name, use.in_place, use.in_part);
      for (size_t r = 0; r < to.size(); ++r)
        if (work.is_in_part(r)) {
          const auto array = static_cast<size_t>(use.in_place[r]);
          results[r] = operands[array];
          from[array] = to[r] = {results[r].data(), std::ssize(results[r])};
        }
      work.run(from, to, {});
    } else {
      FakeWork::of(std::string(hlo::opcode_text(instr.opcode()))).run(from, to, {});
    }
    return results;
  }

  const Kernels& kernels_;
};

// Runs a program. Inputs that an output aliases are donated. A host call does the fake work of the
// root operator in its text, or of the kernel that it replaces.
inline std::vector<Bytes> fake_run(const program::Program& p, std::vector<Bytes> inputs,
                                   const Kernels& kernels = {}) {
  std::unordered_map<std::string, const KernelUse*> kernel_of;
  for (const auto& [instr, use] : kernels) kernel_of[instr->name()] = &use;
  int64_t once_arena_bytes = 0;
  for (const program::Buffer& b : p.buffers)
    if (b.kind == program::BufferKind::temporary)
      once_arena_bytes = std::max(once_arena_bytes, b.offset_bytes + b.bytes);
  // Of the device, then of the host.
  const Bytes once_arena_of(static_cast<size_t>(once_arena_bytes), 0xab);
  Bytes once_arena[2] = {once_arena_of, once_arena_of};
  Bytes arena[2] = {Bytes(static_cast<size_t>(p.memory.plan_bytes), 0xab),
                    Bytes(static_cast<size_t>(p.host_memory.plan_bytes), 0xab)};
  Bytes once_block[2] = {Bytes(static_cast<size_t>(p.once_bytes), 0xab),
                         Bytes(static_cast<size_t>(p.host_once_bytes), 0xab)};
  std::vector<Bytes> outputs;
  for (const program::Port& port : p.outputs)
    outputs.emplace_back(static_cast<size_t>(program::stored_bytes(port.shape)), 0xab);
  bool in_once = true;
  auto piece = [&](const program::View& view) -> FakeWork::Piece {
    const program::Buffer& b = p.buffers[view.buffer.index()];
    uint8_t* base = nullptr;
    switch (b.kind) {
      case program::BufferKind::input:
        base = inputs[b.number].data();
        break;
      case program::BufferKind::output:
        base = b.alias.valid() ? inputs[p.buffers[b.alias.index()].number].data()
                               : outputs[b.number].data();
        break;
      case program::BufferKind::constant:
        base = static_cast<uint8_t*>(const_cast<void*>(p.constants[view.buffer.index()].data()));
        break;
      case program::BufferKind::once:
        base = once_block[static_cast<int>(b.space)].data() + b.offset_bytes;
        break;
      case program::BufferKind::temporary:
        base = (in_once ? once_arena : arena)[static_cast<int>(b.space)].data() + b.offset_bytes;
        break;
    }
    return {base + view.offset_bytes, program::stored_bytes(view.shape)};
  };
  std::function<void(const std::vector<program::Command>&)> run_all;
  auto run_region = [&](program::RegionId id) { run_all(p.regions[id.index()].commands); };
  auto run_loop = [&](const program::Loop& loop) {
    for (int trips = 0;; ++trips) {
      run_region(loop.condition);
      if (!fake_again(*piece(loop.predicate).data, trips)) return;
      run_region(loop.body);
      for (const program::Carried& carried : loop.carried) {
        if (!carried.swapped) continue;
        const FakeWork::Piece state = piece(carried.state);
        std::swap_ranges(state.data, state.data + state.bytes, piece(carried.next).data);
      }
    }
  };
  auto run_command = [&](const program::Command& command) {
    std::vector<FakeWork::Piece> reads, writes, workspaces;
    program::for_each_view(command, [&](const program::View& view, program::Use use) {
      (use == program::Use::read    ? reads
       : use == program::Use::write ? writes
                                    : workspaces)
          .push_back(piece(view));
    });
    if (const auto* launch = std::get_if<program::Launch>(&command)) {
      FakeWork::of(p.kernels[launch->kernel.index()].name,
                   {launch->in_place.begin(), launch->in_place.end()},
                   {launch->in_part.begin(), launch->in_part.end()})
          .run(reads, writes, workspaces);
    } else if (std::holds_alternative<program::Copy>(command)) {
      if (reads[0].bytes > 0)
        std::memmove(writes[0].data, reads[0].data, static_cast<size_t>(reads[0].bytes));
    } else if (const auto* update = std::get_if<program::Update>(&command)) {
      std::vector<const uint8_t*> starts;
      for (size_t i = 2; i < reads.size(); ++i) starts.push_back(reads[i].data);
      fake_update(update->result.shape, update->update.shape, writes[0].data, reads[1].data,
                  starts);
    } else if (const auto* concatenate = std::get_if<program::Concatenate>(&command)) {
      std::vector<Bytes> pieces;
      for (const FakeWork::Piece& piece : reads)
        pieces.emplace_back(piece.data, piece.data + piece.bytes);
      fake_concatenate(concatenate->result.shape, concatenate->dimension, pieces, writes[0].data);
    } else if (const auto* loop = std::get_if<program::Loop>(&command)) {
      run_loop(*loop);
    } else if (const auto* branch = std::get_if<program::Branch>(&command)) {
      run_region(branch->regions[fake_branch(*reads[0].data, branch->regions.size())]);
    } else {
      auto module = hlo::parse_module(std::get<program::HostCall>(command).text);
      HEDDLE_CHECK(module, "{}", module.error().message);
      Kernels own;
      for (const hlo::Instr* instr : (*module)->entry()->instrs())
        if (const auto kernel = kernel_of.find(instr->name()); kernel != kernel_of.end())
          own.emplace(instr, *kernel->second);
      std::vector<Bytes> arguments;
      for (const FakeWork::Piece& read : reads)
        arguments.emplace_back(read.data, read.data + read.bytes);
      const std::vector<Bytes> made = Reference(**module, own, arguments).outputs;
      HEDDLE_CHECK(made.size() == writes.size());
      for (size_t i = 0; i < made.size(); ++i)
        std::copy(made[i].begin(), made[i].end(), writes[i].data);
    }
  };
  run_all = [&](const std::vector<program::Command>& commands) {
    for (const program::Command& command : commands) run_command(command);
  };
  for (const auto* commands : {&p.once, &p.commands}) {
    in_once = commands == &p.once;
    run_all(*commands);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const program::View view = p.outputs[i].buffer.valid()
                                   ? program::View{p.outputs[i].buffer, 0, p.outputs[i].shape}
                                   : p.outputs[i].source;
    const FakeWork::Piece from = piece(view);
    if (from.data != outputs[i].data() && from.bytes > 0)
      std::memcpy(outputs[i].data(), from.data, static_cast<size_t>(from.bytes));
  }
  return outputs;
}

}  // namespace heddle::plan
