#include "stitch/boxes.h"

#include <cstring>
#include <optional>
#include <unordered_map>

#include "base/check.h"
#include "stitch/stitcher.h"

namespace heddle::stitch {

namespace {

using hlo::Instr;
using hlo::Opcode;

class BoxPutter {
 public:
  BoxPutter(const stage::StageGraph& graph, kernel::Kernel* kernel) : graph_(graph), k_(*kernel) {}

  void run() {
    for (size_t o = 0; o < graph_.outputs.size(); ++o) {
      const stage::Output& output = graph_.outputs[o];
      if (output.array < 0 || output.starts.empty()) continue;
      const BufferId buffer(graph_.inputs.size() + o);
      const ExprId begin = begin_of(output);
      for (kernel::Phase& phase : k_.phases)
        for (kernel::Group& group : phase.groups) move_stores(buffer, begin, &group.body);
    }
  }

 private:
  // Index in the array of the updated slice's first element.
  ExprId begin_of(const stage::Output& output) {
    ExprId sum = k_.constant(0);
    for (const stage::Start& start : output.starts) {
      const ExprId x = k_.convert(scalar(start.value), Type::s64);
      const ExprId inside =
          k_.binary(Op::min, k_.binary(Op::max, x, k_.constant(0)), k_.constant(start.limit));
      sum = k_.binary(Op::add, sum, k_.binary(Op::mul, inside, k_.constant(start.stride)));
    }
    return sum;
  }

  ExprId scalar(const Instr* value) {
    if (const auto known = scalars_.find(value); known != scalars_.end()) return known->second;
    const Type type = value->shape().type();
    ExprId result;
    if (value->is(Opcode::parameter)) {
      result = k_.load(BufferId(value->parameter_number()), {k_.constant(0)});
    } else if (value->is(Opcode::constant)) {
      uint64_t bits = 0;
      std::memcpy(&bits, value->literal().data(), static_cast<size_t>(tensor::type_bytes(type)));
      result = emit_constant(&k_, type, bits);
    } else if (value->is(Opcode::reshape) || value->is(Opcode::bitcast)) {
      result = scalar(value->operand(0));
    } else {
      std::vector<ExprId> operands;
      for (const Instr* operand : value->operands()) operands.push_back(scalar(operand));
      result = emit_op(&k_, value->opcode(), type, value, operands);
    }
    scalars_.emplace(value, result);
    return result;
  }

  // Offsets the group's stores to `buffer` by `begin`, which it computes first.
  void move_stores(BufferId buffer, ExprId begin, Block* body) {
    std::optional<VarId> name;
    visit(buffer, body, [&](Stmt* stmt) {
      if (!name) name = k_.add_var("box");
      stmt->indices[0] = k_.binary(Op::add, k_.ref(*name), stmt->indices[0]);
    });
    if (name) body->insert(body->begin(), make_let(*name, begin));
  }

  template <typename Function>
  void visit(BufferId buffer, Block* block, const Function& function) {
    for (Stmt& stmt : *block) {
      const bool touches =
          stmt.kind == kernel::StmtKind::store || stmt.kind == kernel::StmtKind::prefetch;
      if (touches && stmt.buffer == buffer) function(&stmt);
      visit(buffer, &stmt.body, function);
      visit(buffer, &stmt.otherwise, function);
    }
  }

  const stage::StageGraph& graph_;
  kernel::Kernel& k_;
  std::unordered_map<const Instr*, ExprId> scalars_;
};

}  // namespace

void put_boxes(const stage::StageGraph& graph, kernel::Kernel* kernel) {
  BoxPutter(graph, kernel).run();
}

}  // namespace heddle::stitch
