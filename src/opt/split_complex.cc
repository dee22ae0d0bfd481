// split_complex: complex arithmetic as arithmetic on the two parts, which kernels support; also
// splits the state of loops. split_complex_dots: the same for their products, which the reference
// rounds once. Arrays stay complex where a producer or consumer needs whole numbers: a Fourier
// transform, a parameter, a result.
//   f(z) => complex(g(real(z), imag(z)), h(real(z), imag(z)))
// real(complex(x, y)) => x is a rule of algebraic. Division uses Smith's algorithm and moduli are
// scaled, so intermediate values do not overflow if the results fit.
#include <cstring>
#include <limits>

#include "hlo/combiner.h"
#include "opt/loop_state.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

using hlo::Builder;

bool is_complex_array(const Shape& shape) {
  return shape.is_array() && shape.is_static() && tensor::is_complex(shape.type());
}

Type part_type(Type type) { return type == Type::c128 ? Type::f64 : Type::f32; }

struct Pair {
  Instr *re = nullptr, *im = nullptr;
};

class Splitter {
 public:
  Splitter(Instr* instr, Builder& b) : x_(*instr), b_(b) {}

  // The replacement of the instruction; null: it stays.
  Instr* split() {
    if (x_.is(Opcode::abs)) return modulus(operand(0));
    if (x_.is(Opcode::compare)) return comparison();
    const Pair pair = parts();
    return pair.re ? b_.make(Opcode::complex, {pair.re, pair.im}) : nullptr;
  }

 private:
  Pair of(Instr* z) { return {b_.unary(Opcode::real, z), b_.unary(Opcode::imag, z)}; }
  Pair operand(size_t i) { return of(x_.operand(i)); }
  Instr* add(Instr* x, Instr* y) { return b_.binary(Opcode::add, x, y); }
  Instr* subtract(Instr* x, Instr* y) { return b_.binary(Opcode::subtract, x, y); }
  Instr* multiply(Instr* x, Instr* y) { return b_.binary(Opcode::multiply, x, y); }
  Instr* divide(Instr* x, Instr* y) { return b_.binary(Opcode::divide, x, y); }
  Instr* absolute(Instr* x) { return b_.unary(Opcode::abs, x); }

  Pair parts() {
    switch (x_.opcode()) {
      case Opcode::add:
      case Opcode::subtract: {
        const Pair x = operand(0), y = operand(1);
        return {b_.binary(x_.opcode(), x.re, y.re), b_.binary(x_.opcode(), x.im, y.im)};
      }
      case Opcode::negate: {
        const Pair x = operand(0);
        return {b_.unary(Opcode::negate, x.re), b_.unary(Opcode::negate, x.im)};
      }
      case Opcode::multiply: {
        const Pair x = operand(0), y = operand(1);
        return {subtract(multiply(x.re, y.re), multiply(x.im, y.im)),
                add(multiply(x.re, y.im), multiply(x.im, y.re))};
      }
      case Opcode::divide:
        return quotient(operand(0), operand(1));
      case Opcode::exponential: {
        const Pair x = operand(0);
        Instr* length = b_.unary(Opcode::exponential, x.re);
        return {multiply(length, b_.unary(Opcode::cosine, x.im)),
                multiply(length, b_.unary(Opcode::sine, x.im))};
      }
      case Opcode::convert:
        return converted();
      case Opcode::select: {
        const Pair x = operand(1), y = operand(2);
        return {b_.select(x_.operand(0), x.re, y.re), b_.select(x_.operand(0), x.im, y.im)};
      }
      case Opcode::dot: {
        const Pair x = operand(0), y = operand(1);
        const auto& attrs = x_.attrs_as<hlo::DotAttrs>();
        return {subtract(b_.dot(x.re, y.re, attrs), b_.dot(x.im, y.im, attrs)),
                add(b_.dot(x.re, y.im, attrs), b_.dot(x.im, y.re, attrs))};
      }
      case Opcode::reduce: {
        const Pair x = operand(0);
        return {b_.reduce(Opcode::add, x.re, x_.dimensions()),
                b_.reduce(Opcode::add, x.im, x_.dimensions())};
      }
      default:
        return {moved(Opcode::real), moved(Opcode::imag)};
    }
  }

  // Smith's algorithm: divides by the larger part of the divisor.
  Pair quotient(const Pair& x, const Pair& y) {
    Instr* wide = b_.compare(hlo::Direction::ge, absolute(y.re), absolute(y.im));
    Instr *large = b_.select(wide, y.re, y.im), *small = b_.select(wide, y.im, y.re);
    Instr* ratio = divide(small, large);
    Instr* by = add(large, multiply(small, ratio));
    Instr *first = b_.select(wide, x.re, x.im), *second = b_.select(wide, x.im, x.re);
    Instr* im = b_.select(wide, subtract(x.im, multiply(x.re, ratio)),
                          subtract(multiply(x.im, ratio), x.re));
    return with_limits(x, y, {divide(add(first, multiply(second, ratio)), by), divide(im, by)});
  }

  // Quotients by zero, of infinities and by infinities, if the computed result is NaN: as in Annex
  // G of C.
  Pair with_limits(const Pair& x, const Pair& y, const Pair& computed) {
    const Shape& shape = computed.re->shape();
    Instr *zero = b_.full(shape, 0),
          *infinity = b_.full(shape, std::numeric_limits<double>::infinity());
    const auto both = [&](Instr* p, Instr* q) { return b_.binary(Opcode::and_, p, q); };
    const auto is = [&](hlo::Direction direction, Instr* p, Instr* q) {
      return b_.compare(direction, p, q);
    };
    const auto is_finite = [&](Instr* p) { return is(hlo::Direction::lt, absolute(p), infinity); };
    const auto are_finite = [&](const Pair& z) { return both(is_finite(z.re), is_finite(z.im)); };
    const auto direction_of = [&](const Pair& z) {  // of an infinity
      const auto part = [&](Instr* p) {
        return b_.select(is(hlo::Direction::eq, absolute(p), infinity), b_.unary(Opcode::sign, p),
                         zero);
      };
      return Pair{part(z.re), part(z.im)};
    };
    const auto times = [&](Instr* by, const Pair& p, const Pair& q) {
      return Pair{multiply(by, add(multiply(p.re, q.re), multiply(p.im, q.im))),
                  multiply(by, subtract(multiply(p.im, q.re), multiply(p.re, q.im)))};
    };
    const Pair of_infinity = times(infinity, direction_of(x), y);
    const Pair by_infinity = times(zero, x, direction_of(y));
    Instr* signed_infinity = divide(b_.full(shape, 1), y.re);  // if it is a zero
    Instr* no_number = both(is(hlo::Direction::ne, computed.re, computed.re),
                            is(hlo::Direction::ne, computed.im, computed.im));
    Instr* by_zero = both(is(hlo::Direction::eq, y.re, zero), is(hlo::Direction::eq, y.im, zero));
    const auto part = [&](Instr* plain, Instr* of_x, Instr* large, Instr* small) {
      Instr* finite = b_.select(are_finite(x), b_.select(are_finite(y), plain, small),
                                b_.select(are_finite(y), large, plain));
      return b_.select(no_number, b_.select(by_zero, multiply(signed_infinity, of_x), finite),
                       plain);
    };
    return {part(computed.re, x.re, of_infinity.re, by_infinity.re),
            part(computed.im, x.im, of_infinity.im, by_infinity.im)};
  }

  Instr* modulus(const Pair& z) {
    Instr *re = absolute(z.re), *im = absolute(z.im);
    Instr *large = b_.binary(Opcode::maximum, re, im), *small = b_.binary(Opcode::minimum, re, im);
    Instr* ratio = divide(small, large);
    Instr* one = b_.full(re->shape(), 1);
    Instr* length = multiply(large, b_.unary(Opcode::sqrt, add(one, multiply(ratio, ratio))));
    // Zeros and infinities have no ratio and are handled separately.
    Instr* plain = b_.compare(hlo::Direction::eq, large, small);
    Instr* flat = b_.compare(hlo::Direction::eq, small, b_.full(re->shape(), 0));
    Instr* root_of_two = b_.full(re->shape(), 1.4142135623730951);
    return b_.select(flat, large, b_.select(plain, multiply(large, root_of_two), length));
  }

  Instr* comparison() {
    const Pair x = operand(0), y = operand(1);
    const hlo::Direction direction = x_.attrs_as<hlo::CompareAttrs>().direction;
    return b_.binary(direction == hlo::Direction::eq ? Opcode::and_ : Opcode::or_,
                     b_.compare(direction, x.re, y.re), b_.compare(direction, x.im, y.im));
  }

  Pair converted() {
    const Type type = part_type(x_.shape().type());
    Instr* from = x_.operand(0);
    if (!tensor::is_complex(from->shape().type())) {
      Instr* re = b_.convert(from, type);
      return {re, b_.full(re->shape(), 0)};
    }
    const Pair x = of(from);
    return {b_.convert(x.re, type), b_.convert(x.im, type)};
  }

  // Moves one part in the same way.
  Instr* moved(Opcode part) {
    std::vector<Instr*> operands;
    for (Instr* operand : x_.operands())
      operands.push_back(tensor::is_complex(operand->shape().type()) ? b_.unary(part, operand)
                                                                     : operand);
    if (x_.is(Opcode::broadcast))
      return b_.broadcast(operands[0], x_.shape().extents(), x_.dimensions());
    if (x_.is(Opcode::reshape)) return b_.reshape(operands[0], x_.shape().extents());
    return b_.make(x_.opcode(), operands, x_.attrs());
  }

  const Instr& x_;
  Builder& b_;
};

bool is_zero(const Instr* x) {
  const Literal* value = constant_of(x);
  if (!value) return false;
  const std::vector<char> zeros(static_cast<size_t>(value->bytes()), 0);
  return std::memcmp(value->data(), zeros.data(), zeros.size()) == 0;
}

// Whether parts of a moved value are already separate or read separately; else it moves whole.
bool has_parts(const Instr* x) {
  const auto& operands = x->operands();
  const auto& users = x->users();
  return std::any_of(operands.begin(), operands.end(),
                     [](const Instr* operand) { return operand->is(Opcode::complex); }) ||
         std::any_of(users.begin(), users.end(), [](const Instr* user) {
           return user->is(Opcode::real) || user->is(Opcode::imag);
         });
}

// Operators on complex arrays, or comparing them or taking their modulus.
bool can_split(const Instr* x) {
  if (!are_static_arrays(x) || x->operands().empty()) return false;
  switch (x->opcode()) {
    case Opcode::abs:
      return is_complex_array(x->operand(0)->shape());
    case Opcode::compare: {
      const hlo::Direction direction = x->attrs_as<hlo::CompareAttrs>().direction;
      return is_complex_array(x->operand(0)->shape()) &&
             (direction == hlo::Direction::eq || direction == hlo::Direction::ne);
    }
    case Opcode::reduce:
      return is_complex_array(x->shape()) && x->operands().size() == 2 &&
             hlo::combiner_of(*x->called()[0]) == Opcode::add && is_zero(x->operand(1));
    case Opcode::add:
    case Opcode::subtract:
    case Opcode::negate:
    case Opcode::multiply:
    case Opcode::divide:
    case Opcode::exponential:
    case Opcode::convert:
    case Opcode::select:
      return is_complex_array(x->shape());
    case Opcode::broadcast:
    case Opcode::concatenate:
    case Opcode::dynamic_slice:
    case Opcode::dynamic_update_slice:
    case Opcode::gather:
    case Opcode::pad:
    case Opcode::reshape:
    case Opcode::reverse:
    case Opcode::slice:
    case Opcode::transpose:
      return is_complex_array(x->shape()) && has_parts(x);
    default:
      return false;
  }
}

bool can_split_dot(const Instr* x) {
  return x->is(Opcode::dot) && are_static_arrays(x) && is_complex_array(x->shape()) &&
         x->operands().size() == 2 && x->operand(0)->shape().type() == x->shape().type() &&
         x->operand(1)->shape().type() == x->shape().type();
}

Rewriter::Proposal by_parts(Instr* instr, Builder& b) {
  return {Splitter(instr, b).split(), "arithmetic"};
}

// --- Loops: a complex element of the state becomes two. ---

class LoopSplitter {
 public:
  explicit LoopSplitter(const Loop& loop) : loop_(loop), shapes_(loop.instr->shape().elements()) {
    const size_t count = shapes_.size();
    for (size_t i = 0; i < count; ++i) {
      if (!is_complex_array(shapes_[i])) continue;
      const Shape part = Shape::array(part_type(shapes_[i].type()), shapes_[i].extents());
      imaginary_.emplace_back(static_cast<int64_t>(i), static_cast<int64_t>(shapes_.size()));
      shapes_[i] = part;
      shapes_.push_back(part);
    }
  }
  bool is_needed() const { return !imaginary_.empty(); }

  void split() {
    Instr* old = loop_.instr;
    Computation* parent = old->parent();
    Builder outside(parent), inside(loop_.body), asks(loop_.condition);
    std::vector<Instr*> init, results = loop_.body->root()->operands();
    for (int64_t i = 0; i < std::ssize(results); ++i)
      init.push_back(outside.get_tuple_element(old->operand(0), i));
    take_apart(&init, outside);
    take_apart(&results, inside);
    const Shape shape = Shape::make_tuple(shapes_);
    for (Instr* state : {loop_.state(), loop_.condition->parameters()[0]}) state->set_shape(shape);
    put_together(loop_.state(), loop_.state(), inside);
    put_together(loop_.condition->parameters()[0], loop_.condition->parameters()[0], asks);
    for (size_t i = 0; i < results.size(); ++i) results[i] = replaced(results[i]);
    loop_.body->set_root(loop_.body->add(Opcode::tuple, shape, results));
    Instr* made = outside.while_loop(loop_.condition, loop_.body, outside.tuple(init));
    made->copy_notes(*old);
    put_together(old, made, outside);
    parent->remove(old);
    outside.check();
    inside.check();
    asks.check();
    for (Computation* each : {parent, loop_.body, loop_.condition}) each->sort();
  }

 private:
  void take_apart(std::vector<Instr*>* values, Builder& b) const {
    for (const auto& [re, im] : imaginary_) {
      Instr* z = (*values)[static_cast<size_t>(re)];
      (*values)[static_cast<size_t>(re)] = b.unary(Opcode::real, z);
      values->push_back(b.unary(Opcode::imag, z));
    }
  }

  // Redirects readers of elements of `old` to elements of `made`.
  void put_together(Instr* old, Instr* made, Builder& b) {
    Computation* computation = old->parent();
    for (Instr* user : std::vector<Instr*>(old->users())) {
      const int64_t index = user->tuple_index();
      int64_t other = -1;
      for (const auto& [re, im] : imaginary_)
        if (re == index) other = im;
      if (other < 0 && old == made) continue;
      Instr* value = b.get_tuple_element(made, index);
      if (other >= 0) value = b.make(Opcode::complex, {value, b.get_tuple_element(made, other)});
      computation->replace_all_uses(user, value);
      replaced_.emplace_back(user, value);
      computation->remove(user);
    }
  }
  // An element passed on unchanged to the next state.
  Instr* replaced(Instr* value) const {
    for (const auto& [from, to] : replaced_)
      if (from == value) return to;
    return value;
  }

  const Loop& loop_;
  std::vector<Shape> shapes_;
  std::vector<std::pair<int64_t, int64_t>> imaginary_;  // elements: real part, imaginary part
  std::vector<std::pair<Instr*, Instr*>> replaced_;
};

}  // namespace

Result<bool> split_complex(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  for (const Loop& loop : loops_of_own_state(module)) {
    LoopSplitter splitter(loop);
    if (!splitter.is_needed() || !context.allow("split_complex", "loop")) continue;
    splitter.split();
    changed = true;
  }
  return rewrite_module(module, context, "split_complex", by_parts, can_split) || changed;
}

Result<bool> split_complex_dots(hlo::Module& module, const PassContext& context) {
  return rewrite_module(module, context, "split_complex_dots", by_parts, can_split_dot);
}

}  // namespace heddle::opt
