// complex_to_parts: complex numbers as two arrays of real ones, for no kernel holds complex ones.
// Movement and arithmetic act on the parts; Fourier transforms are products with matrices of roots
// of unity (fourier.cc). Where something else reads a complex value, the parts are joined there.
// Parts that come from an operator which stays complex are taken by real and imag; transforms from
// or to such stay as they are.
// It ends: each operator is split once, and what is made has no complex operands but of
// real and imag, nor a complex result but of complex.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "opt/fourier.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

using hlo::Builder;

bool is_complex(const Instr* x) {
  return x->shape().is_array() && tensor::is_complex(x->shape().type());
}

Type part_of(Type type) { return type == Type::c64 ? Type::f32 : Type::f64; }

class Splitter {
 public:
  Splitter(Computation* computation, Builder& b) : computation_(computation), b_(b) {}

  // Whether anything was split.
  bool run() {
    bool changed = false;
    const std::vector<Instr*> all = computation_->instrs();
    for (Instr* instr : all) {
      if (Instr* real = real_of(instr)) {
        computation_->replace_all_uses(instr, real);
        changed = true;
      } else if (is_complex(instr) && is_static_array(instr) && split(instr)) {
        changed |= !instr->is(Opcode::complex);
      }
    }
    for (Instr* instr : all) changed |= join(instr);
    return changed;
  }
  bool has_transformed() const { return has_transformed_; }

 private:
  // What real, imag or a transform to real numbers is of parts; null where it is none of these.
  Instr* real_of(Instr* x) {
    if (x->is(Opcode::real) || x->is(Opcode::imag)) {
      const auto found = parts_.find(x->operand(0));
      if (found == parts_.end()) return nullptr;
      return x->is(Opcode::real) ? found->second.re : imaginary(found->second);
    }
    if (!x->is(Opcode::fft) || is_complex(x) || !transforms(x)) return nullptr;
    return transform(x).re;
  }

  Instr* imaginary(const Parts& z) { return z.im != nullptr ? z.im : b_.full(z.re->shape(), 0); }

  Parts parts(Instr* x) {
    if (!is_complex(x)) return {x, nullptr};
    const auto found = parts_.find(x);
    if (found != parts_.end()) return found->second;
    if (x->is(Opcode::constant)) return parts_[x] = constant(x->literal());
    return parts_[x] = {b_.unary(Opcode::real, x), b_.unary(Opcode::imag, x)};
  }

  bool split(Instr* x) {
    const Parts z = split_of(x);
    if (z.re == nullptr) return false;
    parts_[x] = z;
    was_split_.insert(x);
    return true;
  }

  Parts split_of(Instr* x) {
    switch (x->opcode()) {
      case Opcode::complex:
        return {x->operand(0), is_splat(x->operand(1), 0) ? nullptr : x->operand(1)};
      case Opcode::convert:
        return convert(x);
      case Opcode::fft:
        return transforms(x) ? transform(x) : Parts{};
      case Opcode::add:
      case Opcode::subtract:
      case Opcode::negate:
      case Opcode::concatenate:
      case Opcode::transpose:
      case Opcode::reshape:
      case Opcode::broadcast:
      case Opcode::slice:
      case Opcode::reverse:
        return each(x);
      case Opcode::multiply:
        return product(parts(x->operand(0)), parts(x->operand(1)));
      default:
        return {};
    }
  }

  // A transform of parts that are at hand, to parts. To take complex numbers apart and to join
  // them, one by one, costs more than to transform them as they are.
  bool transforms(const Instr* x) {
    if (!can_transform(*x)) return false;
    const Instr* from = x->operand(0);
    if (is_complex(from) && !was_split_.contains(from)) return false;
    const auto takes_parts = [](const Instr* user) {
      return user->is(Opcode::real) || user->is(Opcode::imag) || is_complex(user) ||
             user->is(Opcode::fft);
    };
    return !is_complex(x) || std::any_of(x->users().begin(), x->users().end(), takes_parts);
  }

  Parts transform(Instr* x) {
    has_transformed_ = true;
    return transformed(x, parts(x->operand(0)), b_);
  }

  Parts constant(const Literal& z) {
    const Shape shape = Shape::array(part_of(z.type()), z.shape().extents());
    Literal re(shape), im(shape);
    for (int64_t i = 0; i < z.elems(); ++i) {
      re.set_f64(i, z.get_complex(i).real());
      im.set_f64(i, z.get_complex(i).imag());
    }
    return {b_.constant(std::move(re)), b_.constant(std::move(im))};
  }

  Parts convert(Instr* x) {
    const Type type = part_of(x->shape().type());
    const Parts z = parts(x->operand(0));
    return {b_.convert(z.re, type), z.im != nullptr ? b_.convert(z.im, type) : nullptr};
  }

  // The same operator on the real parts and on the imaginary parts.
  Parts each(Instr* x) {
    std::vector<Instr*> re, im;
    bool any = false;
    for (Instr* operand : x->operands()) {
      const Parts z = parts(operand);
      any |= z.im != nullptr;
      re.push_back(z.re);
      im.push_back(z.im);
    }
    const Shape shape = Shape::array(part_of(x->shape().type()), x->shape().extents());
    Instr* real = b_.make(x->opcode(), re, x->attrs(), {}, &shape);
    if (!any) return {real, nullptr};
    for (size_t i = 0; i < im.size(); ++i)
      if (im[i] == nullptr) im[i] = b_.full(re[i]->shape(), 0);
    return {real, b_.make(x->opcode(), im, x->attrs(), {}, &shape)};
  }

  Parts product(const Parts& a, const Parts& c) {
    const auto times = [&](Instr* p, Instr* q) { return b_.binary(Opcode::multiply, p, q); };
    if (a.im == nullptr && c.im == nullptr) return {times(a.re, c.re), nullptr};
    if (a.im == nullptr) return {times(a.re, c.re), times(a.re, c.im)};
    if (c.im == nullptr) return {times(a.re, c.re), times(a.im, c.re)};
    return {b_.binary(Opcode::subtract, times(a.re, c.re), times(a.im, c.im)),
            b_.binary(Opcode::add, times(a.re, c.im), times(a.im, c.re))};
  }

  // Whoever still reads a split value, or gives it back, gets the parts joined.
  bool join(Instr* x) {
    if (!was_split_.contains(x) || x->is(Opcode::complex)) return false;
    bool is_read = computation_->root() == x;
    for (const Instr* user : x->users()) is_read |= !was_split_.contains(user);
    if (!is_read) return false;
    const Parts& z = parts_.at(x);
    Instr* joined = b_.make(Opcode::complex, {z.re, imaginary(z)});
    computation_->replace_all_uses(x, joined);
    return true;
  }

  Computation* computation_;
  Builder& b_;
  std::unordered_map<const Instr*, Parts> parts_;  // also of what stays, where it is read
  std::unordered_set<const Instr*> was_split_;
  bool has_transformed_ = false;
};

}  // namespace

Result<bool> complex_to_parts(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  for (Computation* computation : module.post_order()) {
    const auto& all = computation->instrs();
    const bool any = std::any_of(all.begin(), all.end(), [](const Instr* x) {
      return (is_complex(x) && !x->is(Opcode::parameter)) || x->is(Opcode::fft);
    });
    if (!any || !context.allow("complex_to_parts", "parts")) continue;
    Builder b(computation);
    Splitter splitter(computation, b);
    if (!splitter.run()) continue;
    b.check();
    computation->remove_dead();
    changed = true;
    if (splitter.has_transformed())
      context.note("complex_to_parts: Fourier transforms are products (rounding differs)");
  }
  return changed;
}

}  // namespace heddle::opt
