// Values of a row: starts, combines, and the homes of finished ones.
#include <algorithm>

#include "stitch/row_emitter.h"

namespace heddle::stitch {

size_t RowEmitter::reduced_from(size_t m) const {
  const Stage& stage = stage_of(members_[m]);
  for (size_t i = 0; i < row_.own.size(); ++i)
    if (row_.own[i].digits[m] >= static_cast<int>(stage.out.size())) return i;
  return row_.own.size();
}

std::vector<ExprId> RowEmitter::starts(Stitcher::Context* context, const Stage& stage,
                                       bool* neutral) {
  std::vector<ExprId> result;
  *neutral = true;
  for (const stage::Value& value : stage.values) {
    Type type = accumulation_type(value.type);
    if (value.init < 0) {
      result.push_back(emit_constant(&k_, type, 0));
      continue;
    }
    std::optional<ExprId> start;
    if (stage.combine && stage.values.size() == 1) start = neutral_start(&k_, *stage.combine, type);
    if (!start) {
      *neutral = false;
      start = emit_op(&k_, hlo::Opcode::convert, type, nullptr, {s_.node(context, value.init)});
    }
    result.push_back(*start);
  }
  return result;
}

std::vector<ExprId> RowEmitter::combine(const Stage& stage, const std::vector<ExprId>& a,
                                        const std::vector<ExprId>& b) {
  if (!stage.combine)  // a dot's sum; of booleans: or
    return {k_.binary(k_.expr(a[0]).type == Type::pred ? Op::or_ : Op::add, a[0], b[0])};
  std::vector<ExprId> arguments = a;
  arguments.insert(arguments.end(), b.begin(), b.end());
  return emit_combine(&k_, *stage.combine, arguments);
}

// a * b + c: an fma where the target has one.
ExprId RowEmitter::multiply_add(ExprId a, ExprId b, ExprId c) {
  if (is_gpu() || s_.target_.has("fma") || s_.target_.has("avx512f")) return k_.fma(a, b, c);
  return k_.binary(Op::add, c, k_.binary(Op::mul, a, b));
}

// Whether a node is an f32 or f64 product that may be contracted to an fma.
bool RowEmitter::is_product(const Stage& stage, int number) {
  const Node& node = stage.nodes[static_cast<size_t>(number)];
  return node.kind == Node::Kind::op && node.opcode == hlo::Opcode::multiply &&
         node.guards.empty() && !node.fast && (node.type == Type::f32 || node.type == Type::f64);
}

bool RowEmitter::sums_products(const Stage& stage, int number) {
  const Node& node = stage.nodes[static_cast<size_t>(number)];
  return node.kind == Node::Kind::op && node.opcode == hlo::Opcode::add && node.guards.empty() &&
         (is_product(stage, node.operands[0]) || is_product(stage, node.operands[1]));
}

// A node that a sum adds up or multiplies, with the products in it added by multiply_add().
ExprId RowEmitter::summand(Stitcher::Context* context, const Stage& stage, int number) {
  const Node& node = stage.nodes[static_cast<size_t>(number)];
  if (!sums_products(stage, number) || context->memo.contains(number))
    return s_.node(context, number);
  for (size_t side : {size_t{1}, size_t{0}}) {
    const int product = node.operands[side], rest = node.operands[1 - side];
    if (!is_product(stage, product) || context->memo.contains(product)) continue;
    const auto& sides = stage.nodes[static_cast<size_t>(product)].operands;
    return multiply_add(s_.node(context, sides[0]), s_.node(context, sides[1]),
                        summand(context, stage, rest));
  }
  return s_.node(context, number);
}

std::vector<ExprId> RowEmitter::accumulate(Stitcher::Context* context, const Stage& stage,
                                           const std::vector<ExprId>& accumulators) {
  const bool adds = !stage.combine || stage.combine->root()->is(hlo::Opcode::add);
  const int result = stage.values[0].result;
  const Type type = accumulation_type(stage.values[0].type);
  const bool is_float = type == Type::f32 || type == Type::f64;
  if (!stage.combine) {
    const Node& product = stage.nodes[result];
    if (product.kind == Node::Kind::op && product.opcode == hlo::Opcode::multiply && is_float) {
      std::vector<ExprId> sides;
      for (int operand : product.operands)
        sides.push_back(
            emit_op(&k_, hlo::Opcode::convert, type, nullptr, {s_.node(context, operand)}));
      return {multiply_add(sides[0], sides[1], accumulators[0])};
    }
  } else if (adds && is_float && stage.values.size() == 1 &&
             stage.nodes[static_cast<size_t>(result)].type == type) {
    // A single product is added without an fma, whose latency in a loop-carried sum is longer.
    if (is_product(stage, result) && !context->memo.contains(result)) {
      const auto& sides = stage.nodes[static_cast<size_t>(result)].operands;
      if (sums_products(stage, sides[0]) || sums_products(stage, sides[1]))
        return {multiply_add(summand(context, stage, sides[0]), summand(context, stage, sides[1]),
                             accumulators[0])};
    } else if (sums_products(stage, result)) {
      return combine(stage, accumulators, {summand(context, stage, result)});
    }
  }
  std::vector<ExprId> elements;
  for (const stage::Value& value : stage.values)
    elements.push_back(emit_op(&k_, hlo::Opcode::convert, accumulation_type(value.type), nullptr,
                               {s_.node(context, value.result)}));
  return combine(stage, accumulators, elements);
}

void RowEmitter::finish(Member* member, std::vector<ExprId> results, Block* block) {
  const Stage& stage = stage_of(*member);
  Stitcher::Context context = s_.context(member->stage, member->digits);
  bool neutral = true;
  starts(&context, stage, &neutral);
  if (neutral && stage.combine) {
    std::vector<ExprId> init;
    bool plain = true;
    for (const stage::Value& value : stage.values) {
      Type type = accumulation_type(value.type);
      init.push_back(
          emit_op(&k_, hlo::Opcode::convert, type, nullptr, {s_.node(&context, value.init)}));
      plain &= init.back() == *neutral_start(&k_, *stage.combine, type);
    }
    if (!plain) results = combine(stage, init, results);
  }
  for (size_t v = 0; v < results.size(); ++v) keep(member, static_cast<int>(v), results[v], block);
}

void RowEmitter::keep(Member* member, int value, ExprId x, Block* block) {
  const Stage& stage = stage_of(*member);
  x = emit_op(&k_, hlo::Opcode::convert, stage.values[value].type, nullptr, {x});
  if (k_.expr(x).op != Op::var && k_.expr(x).op != Op::constant) {
    VarId var = k_.add_var(fmt::format("v{}", member->stage), k_.expr(x).type);
    block->push_back(make_let(var, x));
    x = k_.ref(var);
  }
  s_.store_value(member->stage, value, member->digits, x, block);
  Home& home = s_.homes_[member->stage][value];
  if (home.kind != Home::Kind::buffer) home = {Home::Kind::uniform, x, {}, false, false};
}

BufferId RowEmitter::partial_buffer(const Stage& stage, int number, int value, int count) {
  kernel::Buffer buffer;
  buffer.name = fmt::format("acc{}{}", number, value ? fmt::format("_{}", value) : "");
  buffer.type = accumulation_type(stage.values[value].type);
  buffer.extents = {count};
  buffer.space = kernel::Space::reg;
  buffer.lanes = lanes_;
  return k_.add_buffer(buffer);
}

Stmt RowEmitter::lanes_loop(VarId var, int64_t extent, Block body) {
  return make_loop(LoopKind::vector, var, k_.constant(extent), std::move(body), lanes_);
}

Stmt RowEmitter::unrolled(VarId var, int64_t extent, Stmt inner) {
  Block body;
  body.push_back(std::move(inner));
  return make_loop(LoopKind::unrolled, var, k_.constant(extent), std::move(body));
}

std::vector<ExprId> RowEmitter::name_all(const std::vector<ExprId>& values, Block* block) {
  std::vector<ExprId> named;
  for (ExprId x : values) {
    VarId var = k_.add_var("t", k_.expr(x).type);
    block->push_back(make_let(var, x));
    named.push_back(k_.ref(var));
  }
  return named;
}

}  // namespace heddle::stitch
