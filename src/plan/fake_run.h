// For the tests of this folder: fake kernels, a reference that keeps every value apart, and a run
// of a planned program on poisoned memory. If both agree, no value was overwritten while it was
// needed.
#pragma once

#include <algorithm>
#include <cstring>
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

// What fake work does: byte i of each result from byte i of each operand (elementwise: may run in
// place), or from a digest of everything. An elementwise one reads its other operands away from i,
// so that only those that it says it may overwrite may be overwritten.
struct FakeWork {
  uint64_t seed = 0;
  bool elementwise = false;
  std::vector<int> in_place;

  static FakeWork of(const std::string& name, std::vector<int> in_place = {}) {
    return {hash64(name), name.find("_e") != std::string::npos, std::move(in_place)};
  }

  struct Piece {
    uint8_t* data;
    int64_t bytes;
  };
  // Memory of results that are not in place is spoilt before anything is read, workspace too.
  void run(const std::vector<Piece>& operands, const std::vector<Piece>& results,
           const std::vector<Piece>& workspaces) const {
    auto spoil = [](const Piece& piece) {
      if (piece.bytes > 0) std::memset(piece.data, 0xcd, static_cast<size_t>(piece.bytes));
    };
    for (const Piece& piece : workspaces) spoil(piece);
    for (size_t r = 0; r < results.size(); ++r)
      if (r >= in_place.size() || in_place[r] < 0 ||
          operands[static_cast<size_t>(in_place[r])].data != results[r].data)
        spoil(results[r]);
    uint64_t digest = seed;
    for (const Piece& operand : operands)
      if (!elementwise)
        digest = hash64({reinterpret_cast<char*>(operand.data), static_cast<size_t>(operand.bytes)},
                        digest);
    int64_t most = 0;
    for (const Piece& result : results) most = std::max(most, result.bytes);
    for (int64_t i = 0; i < most; ++i) {
      uint64_t mixed = digest;
      for (size_t o = 0; elementwise && o < operands.size(); ++o) {
        const bool here = std::count(in_place.begin(), in_place.end(), static_cast<int>(o)) > 0;
        if (operands[o].bytes > 0 && (!here || i < operands[o].bytes))
          mixed = mixed * 31 + operands[o].data[here ? i : (i * 3 + 5) % operands[o].bytes];
      }
      for (size_t r = 0; r < results.size(); ++r)
        if (i < results[r].bytes)
          results[r].data[i] =
              static_cast<uint8_t>((mixed * 7 + r * 13 + (elementwise ? 0 : i)) >> 3);
    }
  }
};

// A kernel for every fusion. Elementwise ones may overwrite the operand given by `in_place`.
inline KernelUse fake_kernel(const hlo::Instr& instr, std::vector<int> in_place = {},
                             std::vector<int64_t> workspace_bytes = {}) {
  KernelUse use;
  use.kernel.name = instr.name();
  use.kernel.phases = {{instr.name() + "_p0", 1, true}};
  use.workspace_bytes = std::move(workspace_bytes);
  use.in_place = std::move(in_place);
  return use;
}

// Values of all outputs, by the instructions one after the other.
class Reference {
 public:
  Reference(const hlo::Module& module, const Kernels& kernels, const std::vector<Bytes>& inputs) {
    size_t input = 0;
    for (const hlo::Instr* p : module.entry()->parameters())
      for (int64_t i = 0; i < leaf_count(p->shape()); ++i) values_[p].push_back(inputs[input++]);
    for (const hlo::Instr* instr : module.entry()->instrs()) evaluate(*instr, kernels);
    outputs = values_[module.entry()->root()];
  }
  std::vector<Bytes> outputs;

 private:
  void evaluate(const hlo::Instr& instr, const Kernels& kernels) {
    std::vector<Bytes> operands;
    for (const hlo::Instr* operand : instr.operands())
      for (const Bytes& leaf : values_[operand]) operands.push_back(leaf);
    std::vector<Bytes>& results = values_[&instr];
    switch (instr.opcode()) {
      case hlo::Opcode::parameter:
        return;
      case hlo::Opcode::constant: {
        const auto* data = static_cast<const uint8_t*>(instr.literal().data());
        results = {Bytes(data, data + instr.literal().bytes())};
        return;
      }
      case hlo::Opcode::get_tuple_element: {
        int64_t begin = 0;
        const auto& elements = instr.operand(0)->shape().elements();
        for (int64_t i = 0; i < instr.tuple_index(); ++i) begin += leaf_count(elements[i]);
        results.assign(operands.begin() + begin,
                       operands.begin() + begin + leaf_count(instr.shape()));
        return;
      }
      case hlo::Opcode::tuple:
      case hlo::Opcode::bitcast:
      case hlo::Opcode::reshape:
      case hlo::Opcode::copy:
        results = std::move(operands);
        return;
      default:
        break;
    }
    std::vector<const tensor::Shape*> shapes;
    append_leaves(instr.shape(), shapes);
    for (const tensor::Shape* shape : shapes)
      results.emplace_back(static_cast<size_t>(program::stored_bytes(*shape)));
    std::vector<FakeWork::Piece> from, to;
    for (Bytes& bytes : operands) from.push_back({bytes.data(), std::ssize(bytes)});
    for (Bytes& bytes : results) to.push_back({bytes.data(), std::ssize(bytes)});
    if (auto kernel = kernels.find(&instr); kernel != kernels.end()) {
      FakeWork::of(kernel->second.kernel.name, kernel->second.in_place).run(from, to, {});
    } else {
      FakeWork::of(std::string(hlo::opcode_text(instr.opcode()))).run(from, to, {});
    }
  }
  std::unordered_map<const hlo::Instr*, std::vector<Bytes>> values_;
};

// Runs a program. Inputs that an output aliases are donated. Host calls do the fake work of the
// operator that their text has as its root.
inline std::vector<Bytes> fake_run(const program::Program& p, std::vector<Bytes> inputs) {
  int64_t once_arena_bytes = 0;
  for (const program::Buffer& b : p.buffers)
    if (b.kind == program::BufferKind::temporary)
      once_arena_bytes = std::max(once_arena_bytes, b.offset_bytes + b.bytes);
  Bytes once_arena(static_cast<size_t>(once_arena_bytes), 0xab);
  Bytes arena(static_cast<size_t>(p.memory.plan_bytes), 0xab);
  Bytes once_block(static_cast<size_t>(p.once_bytes), 0xab);
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
        base = once_block.data() + b.offset_bytes;
        break;
      case program::BufferKind::temporary:
        base = (in_once ? once_arena : arena).data() + b.offset_bytes;
        break;
    }
    return {base + view.offset_bytes, program::stored_bytes(view.shape)};
  };
  for (const auto* commands : {&p.once, &p.commands}) {
    in_once = commands == &p.once;
    for (const program::Command& command : *commands) {
      std::vector<FakeWork::Piece> reads, writes, workspaces;
      program::for_each_view(command, [&](const program::View& view, program::Use use) {
        (use == program::Use::read    ? reads
         : use == program::Use::write ? writes
                                      : workspaces)
            .push_back(piece(view));
      });
      if (const auto* launch = std::get_if<program::Launch>(&command)) {
        FakeWork::of(p.kernels[launch->kernel.index()].name,
                     {launch->in_place.begin(), launch->in_place.end()})
            .run(reads, writes, workspaces);
      } else if (std::holds_alternative<program::Copy>(command)) {
        std::memcpy(writes[0].data, reads[0].data, static_cast<size_t>(reads[0].bytes));
      } else {
        auto module = hlo::parse_module(std::get<program::HostCall>(command).text);
        HEDDLE_CHECK(module, "{}", module.error().message);
        const hlo::Computation& entry = *(*module)->entry();
        HEDDLE_CHECK(entry.parameters().size() == reads.size());
        FakeWork::of(std::string(hlo::opcode_text(entry.root()->opcode()))).run(reads, writes, {});
      }
    }
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
