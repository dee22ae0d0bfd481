#include "hlo/builder.h"
#include "kernel/op_info.h"
#include "stitch/stitcher.h"

namespace heddle::stitch {

using hlo::Opcode;

namespace {

bool small_float(Type type) { return type == Type::f16 || type == Type::bf16; }

// The kernel operator of each opcode (ops.def): a name that kernel/ops.def lacks does not compile.
std::optional<Op> kernel_op(Opcode opcode) {
  using enum Op;
  constexpr std::nullopt_t none = std::nullopt;
  static constexpr std::optional<Op> kOps[] = {
#define HEDDLE_OP(name, text, least, most, attrs, traits, stage, kernel_op, cost, mapping, \
                  narrowing)                                                               \
  kernel_op,
#include "hlo/ops.def"
  };
  return kOps[static_cast<size_t>(opcode)];
}

// Arithmetic of truth values is logic.
Op of_pred(Op op) {
  switch (op) {
    case Op::add:
    case Op::max:
      return Op::or_;
    case Op::mul:
    case Op::min:
      return Op::and_;
    default:
      return op;
  }
}

ExprId compare(kernel::Kernel* k, const hlo::Instr* instr, ExprId a, ExprId b) {
  switch (instr->attrs_as<hlo::CompareAttrs>().direction) {
    case hlo::Direction::eq:
      return k->compare(Op::eq, a, b);
    case hlo::Direction::ne:
      return k->compare(Op::ne, a, b);
    case hlo::Direction::ge:
      return k->compare(Op::ge, a, b);
    case hlo::Direction::gt:
      return k->compare(Op::gt, a, b);
    case hlo::Direction::le:
      return k->compare(Op::le, a, b);
    case hlo::Direction::lt:
      return k->compare(Op::lt, a, b);
  }
  HEDDLE_UNREACHABLE();
}

ExprId convert(kernel::Kernel* k, ExprId x, Type type) {
  if (k->expr(x).type == type) return x;
  if (type == Type::pred) return k->compare(Op::ne, x, emit_constant(k, k->expr(x).type, 0));
  // Between small floats by way of f32, where every value of both is exact.
  if (small_float(k->expr(x).type) && small_float(type)) x = k->convert(x, Type::f32);
  return k->convert(x, type);
}

ExprId reduce_precision(kernel::Kernel* k, const hlo::Instr* instr, ExprId x) {
  const auto& attrs = instr->attrs_as<hlo::ReducePrecisionAttrs>();
  Type type = k->expr(x).type;
  if (attrs.exponent_bits == 8 && attrs.mantissa_bits == 7)
    return convert(k, convert(k, x, Type::bf16), type);
  if (attrs.exponent_bits == 5 && attrs.mantissa_bits == 10)
    return convert(k, convert(k, x, Type::f16), type);
  return x;  // can_stage lets nothing else through
}

}  // namespace

Type accumulation_type(Type type) { return small_float(type) ? Type::f32 : type; }

ExprId emit_constant(kernel::Kernel* kernel, Type type, uint64_t bits) {
  kernel::Expr expr{kernel::Op::constant, type, {}, static_cast<int64_t>(bits), {}, {}, false};
  if (tensor::is_signed_integer(type)) {  // sign-extended, as the kernel's folding keeps them
    int shift = 64 - tensor::type_bits(type);
    expr.imm = static_cast<int64_t>(bits << shift) >> shift;
  }
  return kernel->add(expr);
}

ExprId emit_word(kernel::Kernel* kernel, Type type, const std::vector<ExprId>& parts) {
  ExprId word;
  for (size_t i = 0; i < parts.size(); ++i) {
    const int bits = tensor::type_bits(kernel->expr(parts[i]).type);
    ExprId x = kernel->add({Op::bitcast, bits == 8 ? Type::u8 : Type::u16, {parts[i]}});
    x = kernel->convert(x, type);
    if (i > 0)
      x = kernel->binary(Op::shl, x, kernel->constant(type, static_cast<double>(bits * i)));
    word = i > 0 ? kernel->binary(Op::or_, word, x) : x;
  }
  return word;
}

// With both sides scaled so that y has a reciprocal r: q = x r, corrected by the remainder times r.
// Where the remainder is not finite (a zero or infinite y, an infinite q) q is the result.
ExprId emit_shared_quotient(kernel::Kernel* k, ExprId x, ExprId y) {
  auto number = [&](double value) { return k->constant(Type::f32, value); };
  const ExprId size = k->unary(Op::abs, y);
  const ExprId large =
      k->select(k->compare(Op::gt, size, number(0x1p64)), number(0x1p-64), number(1));
  const ExprId scale = k->select(k->compare(Op::lt, size, number(0x1p-64)), number(0x1p64), large);
  const ExprId divisor = k->binary(Op::mul, y, scale);
  const ExprId reciprocal = k->binary(Op::div, number(1), divisor);
  const ExprId dividend = k->binary(Op::mul, x, scale);
  const ExprId quotient = k->binary(Op::mul, dividend, reciprocal);
  const ExprId left = k->fma(k->unary(Op::neg, divisor), quotient, dividend);
  const ExprId finite = k->add({Op::is_finite, Type::pred, {left}, 0, {}, {}, false});
  return k->select(finite, k->fma(left, reciprocal, quotient), quotient);
}

ExprId emit_op(kernel::Kernel* k, Opcode opcode, Type type, const hlo::Instr* instr,
               const std::vector<ExprId>& given, bool fast) {
  std::vector<ExprId> x = given;
  if (opcode == Opcode::convert) return convert(k, x[0], type);
  if (opcode == Opcode::bitcast_convert)
    return k->add({Op::bitcast, type, {x[0]}, 0, {}, {}, false});
  // Small floats are widened for arithmetic and rounded after it.
  for (ExprId& operand : x)
    if (small_float(k->expr(operand).type)) operand = k->convert(operand, Type::f32);
  ExprId result;
  bool pred = k->expr(x[0]).type == Type::pred;
  if (opcode == Opcode::compare) return compare(k, instr, x[0], x[1]);
  if (opcode == Opcode::is_finite)
    return k->add({Op::is_finite, Type::pred, {x[0]}, 0, {}, {}, false});
  if (opcode == Opcode::select) {
    result = k->select(x[0], x[1], x[2]);
  } else if (opcode == Opcode::clamp) {
    result = k->binary(Op::min, k->binary(Op::max, x[0], x[1]), x[2]);
  } else if (opcode == Opcode::reduce_precision) {
    result = reduce_precision(k, instr, x[0]);
  } else if (fast && opcode == Opcode::divide) {
    // One divisor for a whole row: its reciprocal is computed once.
    result = k->binary(Op::mul, x[0], k->binary(Op::div, k->constant(type, 1), x[1]));
  } else {
    std::optional<Op> op = kernel_op(opcode);
    if (op && fast) op = kernel::fast_form(*op);
    HEDDLE_CHECK(op, "no kernel form of {}", opcode_text(opcode));
    result = kernel::op_operands(*op) == 1 ? k->unary(*op, x[0])
                                           : k->binary(pred ? of_pred(*op) : *op, x[0], x[1]);
  }
  return small_float(type) ? k->convert(result, type) : result;
}

std::vector<ExprId> emit_combine(kernel::Kernel* k, const hlo::Computation& combine,
                                 const std::vector<ExprId>& arguments) {
  std::unordered_map<const hlo::Instr*, ExprId> values;
  for (const hlo::Instr* instr : combine.instrs()) {
    if (instr->is(Opcode::tuple)) continue;
    if (instr->is(Opcode::parameter)) {
      values[instr] = arguments.at(instr->parameter_number());
      continue;
    }
    // Accumulation types all the way: small floats do not round between operators.
    Type type = accumulation_type(instr->shape().type());
    if (instr->is(Opcode::constant)) {
      uint64_t bits = 0;
      std::memcpy(&bits, instr->literal().data(), tensor::type_bytes(instr->literal().type()));
      values[instr] = k->convert(emit_constant(k, instr->shape().type(), bits), type);
      continue;
    }
    std::vector<ExprId> operands;
    for (const hlo::Instr* operand : instr->operands()) operands.push_back(values.at(operand));
    values[instr] = emit_op(k, instr->opcode(), type, instr, operands);
  }
  std::vector<ExprId> results;
  if (combine.root()->is(Opcode::tuple)) {
    for (const hlo::Instr* leaf : combine.root()->operands()) results.push_back(values.at(leaf));
  } else {
    results.push_back(values.at(combine.root()));
  }
  return results;
}

std::optional<ExprId> neutral_start(kernel::Kernel* k, const hlo::Computation& combine, Type type) {
  const hlo::Instr* root = combine.root();
  if (root->operands().size() != 2 || !root->operand(0)->is(Opcode::parameter) ||
      !root->operand(1)->is(Opcode::parameter) || root->operand(0) == root->operand(1))
    return std::nullopt;
  switch (root->opcode()) {
    case Opcode::add:
    case Opcode::multiply:
    case Opcode::maximum:
    case Opcode::minimum:
    case Opcode::and_:
    case Opcode::or_: {
      tensor::Literal neutral = hlo::neutral_value(root->opcode(), type);
      uint64_t bits = 0;
      std::memcpy(&bits, neutral.data(), tensor::type_bytes(type));
      return emit_constant(k, type, bits);
    }
    default:
      return std::nullopt;
  }
}

}  // namespace heddle::stitch
