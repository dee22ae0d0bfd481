// StableHLO: calls, loops, branches, tokens.
#include <algorithm>

#include "import/stablehlo_ops.h"

namespace heddle::import {
namespace {

void call(ShloOp& op) { op.results = op.importer.call(op.text("callee"), op.operands, op.frame); }

// Composites are inlined as their decomposition. The exceptions are the error function and top-k,
// which HLO has (as XLA does): one instruction each, which later passes recognise. For many
// elements sorting is faster.
constexpr int64_t kMostLargest = 128;

void composite(ShloOp& op) {
  if (op.text("name") == "chlo.erf" && op.integer("version", 0) == 1 && op.count() == 1)
    return unary<Opcode::erf>(op);
  if (op.text("name") == "chlo.top_k" && op.integer("version", 0) == 1 && op.count() == 1 &&
      op.result_types.size() == 2 && op.result_types[0]->is_static() &&
      !op.result_types[0]->dims.empty() && op.result_types[0]->dims.back() <= kMostLargest) {
    hlo::TopKAttrs attrs;
    attrs.k = op.result_types[0]->dims.back();
    attrs.is_stable = true;
    return op.give_tuple(op.b.make(Opcode::topk, {op.operand(0)}, attrs));
  }
  op.results = op.importer.call(op.text("decomposition"), op.operands, op.frame);
}

// Outer values that the regions use: names, and the values that must be passed in.
struct Captured {
  std::vector<MlirValue> names;
  Instrs values;
};

Captured captured_by(ShloOp& op) {
  Captured captured;
  for (const MlirRegion& region : op.op.regions) {
    if (region.blocks.size() != 1) fail("a region of {} blocks, wanted one", region.blocks.size());
    for (const MlirValue name : op.importer.captures_of(region)) {
      if (std::find(captured.names.begin(), captured.names.end(), name) != captured.names.end())
        continue;
      captured.names.push_back(name);
      Instr* value = op.importer.value(name, op.frame);
      if (StablehloImporter::is_copied(value)) continue;
      if (std::find(captured.values.begin(), captured.values.end(), value) == captured.values.end())
        captured.values.push_back(value);
    }
  }
  return captured;
}

// The names that one region uses.
std::vector<MlirValue> names_in(ShloOp& op, const MlirRegion& region) {
  return op.importer.captures_of(region);
}

void while_loop(ShloOp& op) {
  if (op.op.regions.size() != 2) fail("{} regions, wanted two", op.op.regions.size());
  const Captured captured = captured_by(op);
  std::vector<Shape> shapes;
  for (const Instr* operand : op.operands) shapes.push_back(operand->shape());
  Instrs state = op.operands;
  state.insert(state.end(), captured.values.begin(), captured.values.end());
  const MlirRegion &condition = op.region(0), &body = op.region(1);
  hlo::Computation* test = op.importer.tuple_region(condition.blocks[0], shapes, captured.values,
                                                    names_in(op, condition), op.frame, false, true);
  hlo::Computation* step = op.importer.tuple_region(body.blocks[0], shapes, captured.values,
                                                    names_in(op, body), op.frame, true, false);
  Instr* result = op.b.while_loop(test, step, op.b.tuple(state));
  if (!op.b.status()) return;
  for (size_t i = 0; i < op.count(); ++i)
    op.give(op.b.get_tuple_element(result, static_cast<int64_t>(i)));
}

// Each branch is a function of one tuple: the values that any of them uses.
void branches(ShloOp& op, Instr* selector) {
  const Captured captured = captured_by(op);
  std::vector<hlo::Computation*> called;
  Instr* state = op.b.tuple(captured.values);
  Instrs operands{selector};
  for (const MlirRegion& region : op.op.regions) {
    called.push_back(op.importer.tuple_region(region.blocks[0], {}, captured.values,
                                              names_in(op, region), op.frame, false, false));
    operands.push_back(state);
  }
  op.give_tuple(op.b.make(Opcode::conditional, operands, hlo::NoAttrs{}, called));
}

void if_else(ShloOp& op) {
  if (op.op.regions.size() != 2) fail("{} regions, wanted two", op.op.regions.size());
  branches(op, op.operand(0));
}

void case_of(ShloOp& op) {
  if (op.op.regions.empty()) fail("no branches");
  branches(op, op.operand(0));
}

// Executed synchronously: its results are a tuple until async_done takes them apart.
void async_start(ShloOp& op) {
  const MlirRegion& region = op.region(0);
  if (region.blocks.size() != 1 || region.blocks[0].arguments.size() != op.count())
    fail("the region does not fit the operands");
  Frame inner = op.frame;
  for (size_t i = 0; i < op.count(); ++i)
    inner.values[region.blocks[0].arguments[i]] = op.operand(i);
  op.give(op.b.tuple(op.importer.block(region.blocks[0], inner)));
}

void async_done(ShloOp& op) {
  if (!op.operand(0)->shape().is_tuple()) fail("the operand is no asynchronous value");
  op.give_tuple(op.operand(0));
}

void optimization_barrier(ShloOp& op) {
  if (op.count() == 1) return op.give(op.b.unary(Opcode::opt_barrier, op.operand(0)));
  op.give_tuple(op.b.make(Opcode::opt_barrier, {op.b.tuple(op.operands)}));
}

void after_all(ShloOp& op) { op.give(op.b.make(Opcode::after_all, op.operands)); }

// The computation of each device on its part; with one device the part is the whole.
void manual_computation(ShloOp& op) {
  const MlirRegion& region = op.region(0);
  if (region.blocks.size() != 1 || region.blocks[0].arguments.size() != op.count())
    fail("the region does not fit the operands");
  const MlirBlock& body = region.blocks[0];
  Frame inner = op.frame;  // it may use outer values
  for (size_t i = 0; i < op.count(); ++i) {
    const MlirType& type = op.importer.type_of(body.arguments[i]);
    if (!type.is_tensor() || type.dims != op.operand(i)->shape().extents())
      fail("this program is for several devices (operand {}); one is supported", i);
    inner.values[body.arguments[i]] = op.operand(i);
  }
  op.results = op.importer.block(body, inner);
}

void identity(ShloOp& op) { op.results = op.operands; }
void nothing(ShloOp&) {}

constexpr ShloEntry kOps[] = {
    {"func.call", call},
    {"stablehlo.composite", composite},
    {"stablehlo.while", while_loop},
    {"stablehlo.if", if_else, 1, 1},
    {"stablehlo.case", case_of, 1, 1},
    {"stablehlo.optimization_barrier", optimization_barrier, 0, SIZE_MAX, true},
    {"stablehlo.async_start", async_start},
    {"stablehlo.async_done", async_done, 1, 1},
    {"stablehlo.after_all", after_all},
    {"stablehlo.create_token", after_all, 0, 0},
    {"sdy.sharding_constraint", identity, 1, 1, true},
    {"sdy.sharding_group", nothing, 1, 1, true},
    {"sdy.manual_computation", manual_computation},
    {"interpreter.print", nothing, 1, 1, true},
};

}  // namespace

std::span<const ShloEntry> shlo_control_ops() { return kOps; }

}  // namespace heddle::import
