// short_powers: powers by a small constant exponent as products, square roots and quotients.
// x^-1.5, say, is 1 / (x · sqrt(x)): some ten instructions a vector instead of two hundred.
// Each step rounds, so a result may be up to 2 ulp off where pow() is within 1.
#include <cmath>

#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

constexpr double kMostExponent = 4;  // beyond it the error of the products adds up

// 0: the exponent stays with pow(). Exponents of 1 and 2 are exact rules (rules.def).
double short_exponent(const Instr* power) {
  const Type type = power->shape().type();
  const Literal* exponent = splat_of(power->operand(1));
  if ((type != Type::f32 && type != Type::f64) || !exponent || !is_static_array(power)) return 0;
  const double number = exponent->get_f64(0);
  const bool is_short = std::abs(number) <= kMostExponent && 2 * number == std::round(2 * number);
  return is_short ? number : 0;
}

// x^m for m from 1 to 4.
Instr* whole_power(Instr* x, int64_t m, hlo::Builder& b) {
  if (m == 1) return x;
  Instr* square = b.binary(Opcode::multiply, x, x);
  if (m == 2) return square;
  return b.binary(Opcode::multiply, square, m == 3 ? x : square);
}

Instr* power_of(Instr* x, double exponent, hlo::Builder& b) {
  const double size = std::abs(exponent);
  const auto whole = static_cast<int64_t>(size);
  Instr* result = whole > 0 ? whole_power(x, whole, b) : nullptr;
  if (size != static_cast<double>(whole)) {
    Instr* root = b.unary(Opcode::sqrt, x);
    result = result ? b.binary(Opcode::multiply, result, root) : root;
  }
  if (exponent > 0) return result;
  return b.binary(Opcode::divide, b.full(x->shape().without_layout(), 1), result);
}

bool is_power(const Instr* x) { return x->is(Opcode::power); }

}  // namespace

Result<bool> short_powers(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  for (Computation* computation : module.post_order()) {
    Rewriter rewriter(computation, context, "short_powers", is_power);
    changed |= rewriter.run([&](Instr* x) -> Rewriter::Proposal {
      if (!x->is(Opcode::power)) return {};
      const double exponent = short_exponent(x);
      if (exponent == 0 || !context.allow("short_powers", "power")) return {};
      context.note(
          "short_powers: powers by small constants are products and roots (rounding differs)");
      return {power_of(x->operand(0), exponent, rewriter.builder()), ""};
    });
  }
  return changed;
}

}  // namespace heddle::opt
