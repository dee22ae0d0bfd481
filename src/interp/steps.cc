// Steps of Body: the function and the loop for each elementwise instruction.
#include <cmath>

#include "interp/body.h"
#include "interp/scalar_ops.h"

namespace heddle::interp {
namespace {

using hlo::Instr;
using hlo::Opcode;

template <typename Function>
Function function_of(const Step& step) {
  return reinterpret_cast<Function>(step.function);
}

template <typename Function>
bool set_function(Step& step, Function function, Step::Run run) {
  step.function = reinterpret_cast<void (*)()>(function);
  step.run = run;
  return function != nullptr;
}

#define LOOP(Function, out_member, ...)                                                     \
  [](const Step& step, int64_t n, Cell* out, const Cell* a, const Cell* b, const Cell* c) { \
    auto f = function_of<Function>(step);                                                   \
    [[maybe_unused]] int bits = tensor::type_bits(step.from);                               \
    for (int64_t i = 0; i < n; ++i) out[i].out_member = f(__VA_ARGS__);                     \
  }
#define COMPLEX_LOOP(Function, ...)                                                         \
  [](const Step& step, int64_t n, Cell* out, const Cell* a, const Cell* b, const Cell* c) { \
    auto f = function_of<Function>(step);                                                   \
    for (int64_t i = 0; i < n; ++i) out[i] = from_complex(f(__VA_ARGS__));                  \
  }

bool make_unary(Opcode opcode, Step& step) {
  switch (domain_of(step.from)) {
    case Domain::floating:
      return set_function(step, float_unary(opcode), LOOP(FloatUnary, f, a[i].f));
    case Domain::is_signed:
      return set_function(step, signed_unary(opcode), LOOP(SignedUnary, s, a[i].s, bits));
    case Domain::is_unsigned:
      return set_function(step, unsigned_unary(opcode), LOOP(UnsignedUnary, u, a[i].u, bits));
    case Domain::pred:
      if (opcode != Opcode::not_) return false;
      step.run = [](const Step&, int64_t n, Cell* out, const Cell* a, const Cell*, const Cell*) {
        for (int64_t i = 0; i < n; ++i) out[i].u = a[i].u ^ 1;
      };
      return true;
    case Domain::complex:
      return set_function(step, complex_unary(opcode),
                          COMPLEX_LOOP(ComplexUnary, to_complex(a[i])));
  }
  return false;
}

bool make_binary(Opcode opcode, Step& step) {
  switch (domain_of(step.from)) {
    case Domain::floating:
      return set_function(step, float_binary(opcode), LOOP(FloatBinary, f, a[i].f, b[i].f));
    case Domain::is_signed:
      return set_function(step, signed_binary(opcode), LOOP(SignedBinary, s, a[i].s, b[i].s, bits));
    case Domain::is_unsigned:
      return set_function(step, unsigned_binary(opcode),
                          LOOP(UnsignedBinary, u, a[i].u, b[i].u, bits));
    case Domain::pred:
      return set_function(step, pred_binary(opcode), LOOP(UnsignedBinary, u, a[i].u, b[i].u, bits));
    case Domain::complex:
      return set_function(step, complex_binary(opcode),
                          COMPLEX_LOOP(ComplexBinary, to_complex(a[i]), to_complex(b[i])));
  }
  return false;
}
#undef LOOP
#undef COMPLEX_LOOP

bool make_compare(const Instr& instr, Step& step) {
  const auto& attrs = instr.attrs_as<hlo::CompareAttrs>();
  bool total_order = attrs.type == hlo::CompareType::total_order;
  return set_function(
      step, comparison(domain_of(step.from), attrs.direction, total_order),
      [](const Step& step, int64_t n, Cell* out, const Cell* a, const Cell* b, const Cell*) {
        auto test = function_of<CellTest>(step);
        for (int64_t i = 0; i < n; ++i) out[i].u = test(a[i], b[i]);
      });
}

double re_of(Type type, Cell cell) { return tensor::is_complex(type) ? cell.z.re : cell.f; }

// A number of any type as a double that rounds to `to` exactly as the number does.
double as_double(Type from, Type to, Cell cell) {
  bool exact_enough = to == Type::f64 || to == Type::c128;
  switch (domain_of(from)) {
    case Domain::is_signed:
      return exact_enough ? static_cast<double>(cell.s) : odd_from_s64(cell.s);
    case Domain::pred:
    case Domain::is_unsigned:
      return exact_enough ? static_cast<double>(cell.u) : odd_from_u64(cell.u);
    default:
      return re_of(from, cell);
  }
}

Cell convert_cell(Type from, Type to, Cell cell) {
  Domain domain = domain_of(from);
  bool real = domain == Domain::floating || domain == Domain::complex;
  switch (domain_of(to)) {
    case Domain::pred:
      if (domain == Domain::complex) return {.u = to_complex(cell) != Complex(0)};
      return {.u = domain == Domain::floating ? cell.f != 0 : cell.u != 0};
    case Domain::is_signed:
      if (!real) return cell;
      return {.s = float_to_signed(re_of(from, cell), tensor::type_bits(to))};
    case Domain::is_unsigned:
      if (!real) return cell;
      return {.u = float_to_unsigned(re_of(from, cell), tensor::type_bits(to))};
    case Domain::floating:
      return {.f = as_double(from, to, cell)};
    case Domain::complex:
      if (domain == Domain::complex) return cell;
      return {.z = {as_double(from, to, cell), 0}};
  }
  return cell;
}

void run_convert(const Step& step, int64_t n, Cell* out, const Cell* a, const Cell*, const Cell*) {
  for (int64_t i = 0; i < n; ++i) out[i] = convert_cell(step.from, step.to, a[i]);
}

void run_bitcast(const Step& step, int64_t n, Cell* out, const Cell* a, const Cell*, const Cell*) {
  for (int64_t i = 0; i < n; ++i)
    out[i] = cell_from_bits(step.declared_to, cell_to_bits(step.declared_from, a[i]));
}

void run_reduce_precision(const Step& step, int64_t n, Cell* out, const Cell* a, const Cell*,
                          const Cell*) {
  for (int64_t i = 0; i < n; ++i) {
    uint64_t bits = cell_to_bits(step.from, a[i]);
    out[i] = cell_from_bits(
        step.from, reduce_precision(step.from, bits, step.exponent_bits, step.mantissa_bits));
  }
}

// Rounds away from zero with a probability equal to the fraction, by comparing it with random bits.
Cell stochastic_convert(const Step& step, double x, uint64_t random) {
  int bits = tensor::type_bits(step.to);
  double whole = std::trunc(x);
  double limit = std::ldexp(1.0, bits - 1);
  if (!(std::fabs(x) < limit)) return {.s = float_to_signed(x, bits)};
  double scaled = std::ldexp(std::fabs(x - whole), tensor::type_bits(step.declared_from));
  if (static_cast<double>(random) < scaled) whole += x < 0 ? -1 : 1;
  return {.s = float_to_signed(whole, bits)};
}

void run_stochastic_convert(const Step& step, int64_t n, Cell* out, const Cell* a, const Cell* b,
                            const Cell*) {
  for (int64_t i = 0; i < n; ++i) out[i] = stochastic_convert(step, a[i].f, b[i].u);
}

void run_select(const Step&, int64_t n, Cell* out, const Cell* a, const Cell* b, const Cell* c) {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i].u ? b[i] : c[i];
}

bool make_clamp(Step& step) {
  switch (domain_of(step.to)) {
    case Domain::floating:
      step.run = [](const Step&, int64_t n, Cell* out, const Cell* a, const Cell* b,
                    const Cell* c) {
        static const FloatBinary max = float_binary(Opcode::maximum);
        static const FloatBinary min = float_binary(Opcode::minimum);
        for (int64_t i = 0; i < n; ++i) out[i].f = min(max(b[i].f, a[i].f), c[i].f);
      };
      return true;
    case Domain::is_signed:
      step.run = [](const Step&, int64_t n, Cell* out, const Cell* a, const Cell* b,
                    const Cell* c) {
        for (int64_t i = 0; i < n; ++i) out[i].s = std::min(std::max(b[i].s, a[i].s), c[i].s);
      };
      return true;
    case Domain::pred:
    case Domain::is_unsigned:
      step.run = [](const Step&, int64_t n, Cell* out, const Cell* a, const Cell* b,
                    const Cell* c) {
        for (int64_t i = 0; i < n; ++i) out[i].u = std::min(std::max(b[i].u, a[i].u), c[i].u);
      };
      return true;
    case Domain::complex:
      return false;
  }
  return false;
}

// abs, real and imag of complex numbers; complex of two floats; is-finite.
bool make_part(Opcode opcode, Step& step) {
  switch (opcode) {
    case Opcode::abs:
      step.run = [](const Step&, int64_t n, Cell* out, const Cell* a, const Cell*, const Cell*) {
        for (int64_t i = 0; i < n; ++i) out[i].f = std::hypot(a[i].z.re, a[i].z.im);
      };
      return true;
    case Opcode::real:
      step.run = [](const Step&, int64_t n, Cell* out, const Cell* a, const Cell*, const Cell*) {
        for (int64_t i = 0; i < n; ++i) out[i].f = a[i].z.re;
      };
      return true;
    case Opcode::imag:
      step.run = [](const Step&, int64_t n, Cell* out, const Cell* a, const Cell*, const Cell*) {
        for (int64_t i = 0; i < n; ++i) out[i].f = a[i].z.im;
      };
      return true;
    case Opcode::complex:
      step.run = [](const Step&, int64_t n, Cell* out, const Cell* a, const Cell* b, const Cell*) {
        for (int64_t i = 0; i < n; ++i) out[i].z = {a[i].f, b[i].f};
      };
      return tensor::is_float(step.from);
    case Opcode::is_finite:
      step.run = [](const Step&, int64_t n, Cell* out, const Cell* a, const Cell*, const Cell*) {
        for (int64_t i = 0; i < n; ++i) out[i].u = std::isfinite(a[i].f);
      };
      return tensor::is_float(step.from);
    default:
      return false;
  }
}

bool same_width_bits(const Step& step) {
  return bitcast_bits(step.declared_from) == bitcast_bits(step.declared_to) &&
         !tensor::is_complex(step.declared_from) && !tensor::is_complex(step.declared_to);
}

}  // namespace

bool make_step(const Instr& instr, bool widen, Step& step) {
  auto held = [&](Type type) { return widen ? wide_type(type) : type; };
  if (!instr.shape().is_array() || instr.operands().empty()) return false;
  for (const Instr* operand : instr.operands()) {
    if (!operand->shape().is_array()) return false;
  }
  step.declared_from = instr.operand(0)->shape().type();
  step.declared_to = instr.shape().type();
  step.from = held(step.declared_from);
  step.to = held(step.declared_to);
  switch (instr.opcode()) {
    case Opcode::convert:
      step.run = run_convert;
      return true;
    case Opcode::bitcast:
    case Opcode::bitcast_convert:
      step.run = run_bitcast;
      return same_width_bits(step);
    case Opcode::reduce_precision: {
      const auto& attrs = instr.attrs_as<hlo::ReducePrecisionAttrs>();
      step.exponent_bits = attrs.exponent_bits;
      step.mantissa_bits = attrs.mantissa_bits;
      step.run = run_reduce_precision;
      return tensor::is_float(step.from) && step.exponent_bits >= 1 && step.mantissa_bits >= 0;
    }
    case Opcode::stochastic_convert:
      step.run = run_stochastic_convert;
      return tensor::is_float(step.from) && tensor::is_signed_integer(step.to);
    case Opcode::select:
      step.run = run_select;
      return step.from == Type::pred;
    case Opcode::clamp:
      return make_clamp(step);
    case Opcode::compare:
      return make_compare(instr, step);
    case Opcode::copy:
      step.run = run_convert;
      return step.from == step.to;
    case Opcode::complex:
    case Opcode::is_finite:
      return make_part(instr.opcode(), step);
    case Opcode::abs:
    case Opcode::real:
    case Opcode::imag:
      if (tensor::is_complex(step.from)) return make_part(instr.opcode(), step);
      return make_unary(instr.opcode(), step);
    default:
      if (instr.operands().size() == 1) return make_unary(instr.opcode(), step);
      return instr.operands().size() == 2 && make_binary(instr.opcode(), step);
  }
}

}  // namespace heddle::interp
