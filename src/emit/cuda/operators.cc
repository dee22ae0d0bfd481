// Single operators as CUDA C++. Operands come as atoms or in parentheses.
#include "emit/cuda/cuda_emitter.h"
#include "kernel/op_info.h"
#include "kernel/stmt_text.h"

namespace heddle::emit::cuda {

namespace {

bool is_wide(Type type) { return tensor::type_bits(type) > 32; }

// The C++ operator between two operands; null: there is none for that kind of type.
struct Symbols {
  const char *number = nullptr, *integer = nullptr, *pred = nullptr;
};

Symbols symbols(Op op) {
  switch (op) {
    case Op::eq:
      return {"==", "==", "=="};
    case Op::ne:
      return {"!=", "!=", "!="};
    case Op::lt:
      return {"<", "<", "<"};
    case Op::le:
      return {"<=", "<=", "<="};
    case Op::gt:
      return {">", ">", ">"};
    case Op::ge:
      return {">=", ">=", ">="};
    case Op::add:
      return {"+", "+", "||"};
    case Op::sub:
      return {"-", "-", nullptr};
    case Op::mul:
      return {"*", "*", "&&"};
    case Op::div:
      return {"/", nullptr, nullptr};
    case Op::min:
      return {nullptr, nullptr, "&&"};
    case Op::max:
      return {nullptr, nullptr, "||"};
    case Op::and_:
      return {nullptr, "&", "&&"};
    case Op::or_:
      return {nullptr, "|", "||"};
    case Op::xor_:
      return {nullptr, "^", "!="};
    default:
      return {};
  }
}

bool is_comparison(Op op) {
  return op == Op::eq || op == Op::ne || op == Op::lt || op == Op::le || op == Op::gt ||
         op == Op::ge;
}

}  // namespace

std::string c_type(Type type) {
  switch (type) {
    case Type::pred:
      return "bool";
    case Type::s8:
      return "signed char";
    case Type::s16:
      return "short";
    case Type::s32:
      return "int";
    case Type::s64:
      return "long long";
    case Type::u8:
      return "unsigned char";
    case Type::u16:
    case Type::f16:
    case Type::bf16:
      return "unsigned short";
    case Type::u32:
      return "unsigned";
    case Type::u64:
      return "unsigned long long";
    case Type::f64:
      return "double";
    case Type::f32:
      return "float";
    default:
      return "";
  }
}

std::string CudaEmitter::apply(const Expr& expr, const std::vector<std::string>& x, bool narrow) {
  const Type type = kernel_.expr(expr.operands[expr.op == Op::select ? 1 : 0]).type;
  const auto infix = [&](const char* op) { return fmt::format("({} {} {})", x[0], op, x[1]); };
  switch (expr.op) {
    case Op::convert:
      return narrow && type != Type::s64 ? fmt::format("(int){}", x[0])
                                         : convert(type, expr.type, x[0]);
    case Op::bitcast:
      return bitcast(type, expr.type, x[0]);
    case Op::lane:
      return shuffle(expr.type, "__shfl_sync", x[0], expr.imm);
    case Op::shuffle_xor:
      return shuffle(expr.type, "__shfl_xor_sync", x[0], expr.imm);
    case Op::select:
      return fmt::format("({} ? {} : {})", x[0], x[1], x[2]);
    case Op::dot:
      refuse("dot");
      return "0";
    case Op::fma:
      return fmt::format("{}({}, {}, {})", is_wide(type) ? "fma" : "fmaf", x[0], x[1], x[2]);
    default:
      break;
  }
  const Symbols symbol = symbols(expr.op);
  if (is_comparison(expr.op)) return infix(symbol.number);
  if (type == Type::pred) {
    if (expr.op == Op::not_) return fmt::format("!{}", x[0]);
    if (symbol.pred) return infix(symbol.pred);
    refuse(fmt::format("{} of pred", kernel::op_text(expr.op)));
    return "false";
  }
  if (narrow && expr.type == Type::s64) {  // no sum leaves 32 bits
    switch (expr.op) {
      case Op::add:
      case Op::sub:
      case Op::mul:
        return infix(symbol.integer);
      case Op::min:
      case Op::max:
        return fmt::format("{}({}, {})", expr.op == Op::min ? "min" : "max", x[0], x[1]);
      case Op::floor_div:
      case Op::floor_mod:
        if (ranges_.of(expr.operands[0]).low >= 0)
          return infix(expr.op == Op::floor_div ? "/" : "%");
        return fmt::format(
            "{}({}, {})", helper(expr.op == Op::floor_div ? "floor_div" : "floor_mod"), x[0], x[1]);
      default:
        break;
    }
  }
  if (!tensor::is_float(type)) return apply_integer(expr, x);
  if (symbol.number) return infix(symbol.number);
  switch (expr.op) {
    case Op::max:
      return fmt::format("{}({}, {})", helper("max_nan"), x[0], x[1]);
    case Op::min:
      return fmt::format("{}({}, {})", helper("min_nan"), x[0], x[1]);
    case Op::rem:
    case Op::pow:
    case Op::atan2:
      return fmt::format("{}{}({}, {})", kernel::cuda_name(expr.op), is_wide(type) ? "" : "f", x[0],
                         x[1]);
    default:
      return apply_function(expr, x[0], is_wide(type));
  }
}

std::string CudaEmitter::apply_function(const Expr& expr, const std::string& x, bool wide) {
  const char* suffix = wide ? "" : "f";
  const char* one = wide ? "1.0" : "1.0f";
  switch (expr.op) {
    case Op::neg:
      return fmt::format("(-{})", x);
    case Op::sign:
      return fmt::format("{}({})", helper("sign_of"), x);
    case Op::is_finite:
      return wide ? fmt::format("(fabs({}) < __longlong_as_double(0x7ff0000000000000ll))", x)
                  : fmt::format("(fabsf({}) < __int_as_float(0x7f800000))", x);
    case Op::rsqrt:
      return fmt::format("({} / sqrt{}({}))", one, suffix, x);
    // A quotient within 2 ulp of 1 by a number of at least 1; 0 from 2^126 on.
    case Op::logistic_fast:
      if (!wide) return fmt::format("__fdividef(1.0f, (1.0f + expf(-{})))", x);
      [[fallthrough]];
    case Op::logistic:
      return fmt::format("({} / ({} + exp{}(-{})))", one, one, suffix, x);
    case Op::tanh_fast:
      if (!wide) return fmt::format("(1.0f - __fdividef(2.0f, (1.0f + expf({} + {}))))", x, x);
      return fmt::format("tanh({})", x);
    default:
      if (const std::string_view name = kernel::cuda_name(expr.op); !name.empty())
        return fmt::format("{}{}({})", name, suffix, x);
      refuse(fmt::format("the operator {}", kernel::op_text(expr.op)));
      return "0";
  }
}

// Types below 32 bits are computed in 32 bits and truncated.
std::string CudaEmitter::apply_integer(const Expr& expr, const std::vector<std::string>& x) {
  const Type type = kernel_.expr(expr.operands[0]).type;
  const bool is_signed = tensor::is_signed_integer(type);
  const int bits = tensor::type_bits(type);
  const std::string own = c_type(type);
  const std::string wide = bits > 32 ? (is_signed ? "long long" : "unsigned long long")
                                     : (is_signed ? "int" : "unsigned");
  const std::string plain = bits > 32 ? "unsigned long long" : "unsigned";
  const auto cut = [&](const std::string& text) {
    return bits < 32 ? fmt::format("({}){}", own, text) : text;
  };
  const auto as = [&](const std::string& to, const std::string& text) {
    return to == own ? text : fmt::format("({}){}", to, text);
  };
  const auto call = [&](const char* name) {
    return cut(fmt::format("{}({}, {})", helper(name), as(wide, x[0]), as(wide, x[1])));
  };
  const auto infix = [&] {
    return cut(fmt::format("({} {} {})", as(wide, x[0]), symbols(expr.op).integer, as(wide, x[1])));
  };
  const auto call_or_infix = [&](const char* name) { return is_signed ? call(name) : infix(); };
  switch (expr.op) {
    case Op::add:
      return call_or_infix("wrap_add");
    case Op::sub:
      return call_or_infix("wrap_sub");
    case Op::mul:
      return call_or_infix("wrap_mul");
    case Op::neg:
      return is_signed ? cut(fmt::format("{}(({})0, {})", helper("wrap_sub"), wide, as(wide, x[0])))
                       : cut(fmt::format("(0 - {})", as(wide, x[0])));
    case Op::abs:
      if (!is_signed) return x[0];
      return cut(fmt::format("({} < 0 ? {}(({})0, {}) : {})", x[0], helper("wrap_sub"), wide,
                             as(wide, x[0]), as(wide, x[0])));
    case Op::sign:
      if (!is_signed) return fmt::format("({})({} != 0)", own, x[0]);
      return cut(fmt::format("{}({})", helper("sign_of"), as(wide, x[0])));
    case Op::not_:
      return cut(fmt::format("(~{})", as(wide, x[0])));
    case Op::popcnt:
      if (bits > 32) return fmt::format("({})__popcll((unsigned long long){})", own, x[0]);
      return fmt::format("({})__popc({}{})", own, fmt::format("(unsigned){}", x[0]),
                         bits < 32 ? fmt::format(" & {:#x}u", (1u << bits) - 1) : "");
    case Op::clz:
      if (bits > 32) return fmt::format("({})__clzll((long long){})", own, x[0]);
      if (bits == 32) return fmt::format("({})__clz((int){})", own, x[0]);
      return fmt::format("({})(__clz((int)((unsigned){} & {:#x}u)) - {})", own, x[0],
                         (1u << bits) - 1, 32 - bits);
    case Op::div:
      return call("int_div");
    case Op::rem:
      return call("int_rem");
    case Op::floor_div:
      return is_signed ? call("floor_div") : call("int_div");
    case Op::floor_mod:
      return is_signed ? call("floor_mod") : call("int_rem");
    case Op::min:
      return fmt::format("({} < {} ? {} : {})", x[0], x[1], x[0], x[1]);
    case Op::max:
      return fmt::format("({} > {} ? {} : {})", x[0], x[1], x[0], x[1]);
    case Op::and_:
    case Op::or_:
    case Op::xor_:
      return infix();
    case Op::shl:
      return fmt::format("({}){}(({}){}, (unsigned long long){}, {})", own, helper("shift_left"),
                         plain, x[0], x[1], bits);
    case Op::shr_logical: {
      const std::string mask = bits < 32 ? fmt::format(" & {:#x}u", (1u << bits) - 1) : "";
      return fmt::format("({}){}(({}){}{}, (unsigned long long){}, {})", own, helper("shift_right"),
                         plain, x[0], mask, x[1], bits);
    }
    case Op::shr_arithmetic: {
      const std::string sign = is_signed    ? own
                               : bits == 8  ? "signed char"
                               : bits == 16 ? "short"
                               : bits == 32 ? "int"
                                            : "long long";
      return fmt::format("({}){}(({})({}){}, (unsigned long long){}, {})", own,
                         helper("shift_sign"), bits > 32 ? "long long" : "int", sign, x[0], x[1],
                         bits);
    }
    case Op::mulhi:
      if (bits > 32)
        return fmt::format("{}({}, {})", is_signed ? "__mul64hi" : "__umul64hi", x[0], x[1]);
      if (bits == 32)
        return fmt::format("{}({}, {})", is_signed ? "__mulhi" : "__umulhi", x[0], x[1]);
      return fmt::format("({})(({} * {}) >> {})", own, as(wide, x[0]), as(wide, x[1]), bits);
    default:
      refuse(fmt::format("{} of {}", kernel::op_text(expr.op), tensor::type_name(type)));
      return "0";
  }
}

std::string CudaEmitter::convert(Type from, Type to, const std::string& x) {
  if (from == to) return x;
  if (from == Type::f16)
    return convert(Type::f32, to, fmt::format("{}({})", helper("from_half"), x));
  if (from == Type::bf16)
    return convert(Type::f32, to, fmt::format("{}({})", helper("from_bfloat"), x));
  if (to == Type::f16 || to == Type::bf16) {
    // f32 holds these exactly, so that the value is rounded once.
    const bool exact =
        from == Type::f32 || (!tensor::is_float(from) && tensor::type_bits(from) <= 16);
    const std::string narrow = from == Type::f32 ? x : fmt::format("(float){}", x);
    if (exact)
      return fmt::format("{}({})", helper(to == Type::f16 ? "to_half" : "to_bfloat"), narrow);
    if (from == Type::f64 || tensor::type_bits(from) <= 32)
      return fmt::format("{}((double){})", helper(to == Type::f16 ? "to_half" : "to_bfloat"), x);
    refuse(fmt::format("convert of {} to {}", tensor::type_name(from), tensor::type_name(to)));
    return "0";
  }
  if (c_type(from).empty() || c_type(to).empty()) {
    refuse(fmt::format("convert of {} to {}", tensor::type_name(from), tensor::type_name(to)));
    return "0";
  }
  if (to == Type::pred) return fmt::format("({} != 0)", x);
  if (!tensor::is_float(from) || tensor::is_float(to)) return fmt::format("({}){}", c_type(to), x);
  const int bits = tensor::type_bits(to);
  const bool is_signed = tensor::is_signed_integer(to);
  // Powers of two are exact in either float.
  const std::string beyond = fmt::format("({})0x1p{}", c_type(from), is_signed ? bits - 1 : bits);
  const std::string least = is_signed ? "-" + beyond : fmt::format("({})0", c_type(from));
  const std::string high =
      is_signed ? fmt::format("({})0x{:x}ull", c_type(to), (uint64_t{1} << (bits - 1)) - 1)
                : fmt::format("({})0x{:x}ull", c_type(to),
                              bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1);
  const std::string low = is_signed
                              ? fmt::format("({})0x{:x}ull", c_type(to), uint64_t{1} << (bits - 1))
                              : fmt::format("({})0", c_type(to));
  return fmt::format("{}<{}>({}, {}, {}, {}, {})", helper("to_integer"), c_type(to), x, least,
                     beyond, low, high);
}

std::string CudaEmitter::bitcast(Type from, Type to, const std::string& x) {
  if (c_type(from) == c_type(to)) return x;
  const auto is_real = [](Type type) { return type == Type::f32 || type == Type::f64; };
  std::string bits = x;
  if (from == Type::f32) bits = fmt::format("__float_as_uint({})", x);
  if (from == Type::f64) bits = fmt::format("__double_as_longlong({})", x);
  if (to == Type::f32) return fmt::format("__uint_as_float((unsigned){})", bits);
  if (to == Type::f64) return fmt::format("__longlong_as_double((long long){})", bits);
  if (c_type(from).empty() || c_type(to).empty()) {
    refuse(fmt::format("bitcast of {} to {}", tensor::type_name(from), tensor::type_name(to)));
    return "0";
  }
  return is_real(from) || c_type(from) != c_type(to) ? fmt::format("({}){}", c_type(to), bits)
                                                     : bits;
}

std::string CudaEmitter::shuffle(Type type, const std::string& call, const std::string& x,
                                 int64_t n) {
  const std::string moved = tensor::type_bits(type) < 32 ? fmt::format("(int){}", x) : x;
  const std::string text = fmt::format("{}(0xffffffffu, {}, {})", call, moved, n);
  return tensor::type_bits(type) < 32 ? fmt::format("({}){}", c_type(type), text) : text;
}

}  // namespace heddle::emit::cuda
