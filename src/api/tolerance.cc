#include "api/tolerance.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <unordered_map>

namespace heddle::api {
namespace {

using hlo::Instr;
using hlo::Opcode;
using tensor::Shape;
using tensor::Type;

constexpr double kTripCount = 128;  // assumed for loops: their trip count is unknown

// Accumulated roundings of a value, in units of 1.
struct Roundings {
  double relative = 0;  // roundings relative to the value itself
  double variance = 0;  // sum of squares of roundings relative to the largest value
  bool operator==(const Roundings&) const = default;
};

Roundings larger(const Roundings& a, const Roundings& b) {
  return {std::max(a.relative, b.relative), std::max(a.variance, b.variance)};
}

// The first array type inside; pred if there is none.
Type leaf_type(const Shape& shape) {
  if (shape.is_tuple())
    return shape.elements().empty() ? Type::pred : leaf_type(shape.elements()[0]);
  return shape.is_array() ? shape.type() : Type::pred;
}

double unit_roundoff(Type type) {
  if (tensor::is_complex(type)) type = tensor::complex_component(type);
  return tensor::is_float(type) ? tensor::float_format(type).unit_roundoff : 0;
}

double elems_of(const Shape& shape) {
  if (shape.is_tuple()) return shape.elements().empty() ? 0 : elems_of(shape.elements()[0]);
  return shape.is_array() ? static_cast<double>(std::max<int64_t>(shape.elems(), 1)) : 1;
}

// The largest number of terms added in one element of the result, if adds_up().
double reduction_length(const Instr& instr) {
  switch (instr.opcode()) {
    case Opcode::dot: {
      double length = 1;
      for (int64_t d : instr.attrs_as<hlo::DotAttrs>().lhs_contracting_dims)
        length *= static_cast<double>(instr.operand(0)->shape().dim(d));
      return length;
    }
    case Opcode::convolution: {
      const auto& attrs = instr.attrs_as<hlo::ConvolutionAttrs>();
      const Shape& kernel = instr.operand(1)->shape();
      return elems_of(kernel) / static_cast<double>(std::max<int64_t>(
                                    kernel.dim(attrs.dims.kernel_output_feature), 1));
    }
    case Opcode::reduce_window:
    case Opcode::select_and_scatter: {
      double length = 1;
      for (const auto& dim : instr.attrs_as<hlo::WindowAttrs>().window.dims)
        length *= static_cast<double>(dim.size);
      return length;
    }
    case Opcode::scatter:
      return 1 + elems_of(instr.operand(instr.operands().size() - 1)->shape());
    default:
      break;
  }
  if (instr.operands().empty()) return 1;
  const double in = elems_of(instr.operand(0)->shape());
  return instr.is(Opcode::reduce) ? std::max(1.0, in / elems_of(instr.shape())) : in;
}

bool only_selects(const hlo::Computation& body) {
  const Instr* root = body.root();
  return root->is(Opcode::maximum) || root->is(Opcode::minimum) || root->is(Opcode::and_) ||
         root->is(Opcode::or_);
}

// Whether an element of the result is a sum over others.
bool adds_up(const Instr& instr) {
  switch (hlo::opcode_info(instr.opcode()).stage) {
    case hlo::StageKind::reduce:
    case hlo::StageKind::scan:
    case hlo::StageKind::scatter:
      return instr.called().empty() || !only_selects(*instr.called()[0]);
    case hlo::StageKind::dot:
    case hlo::StageKind::conv:
      return true;
    case hlo::StageKind::opaque:
      return !instr.is(Opcode::sort) && !instr.is(Opcode::topk);
    default:
      return false;
  }
}

// The rounding of one elementwise operator. Exact operators add none.
Roundings elementwise_roundings(const Instr& instr, double unit) {
  switch (instr.opcode()) {
    case Opcode::abs:
    case Opcode::negate:
    case Opcode::maximum:
    case Opcode::minimum:
    case Opcode::select:
    case Opcode::clamp:
    case Opcode::copy:
    case Opcode::sign:
    case Opcode::floor:
    case Opcode::ceil:
    case Opcode::real:
    case Opcode::imag:
    case Opcode::complex:
      return {};
    case Opcode::add:
    case Opcode::subtract:
      return {unit, unit * unit};  // terms may cancel
    case Opcode::convert:
    case Opcode::multiply:
      return {unit, 0};
    default:
      return {4 * unit, unit * unit};
  }
}

class Analysis {
 public:
  explicit Analysis(const hlo::Module& module) {
    for (const hlo::Computation* computation : module.post_order()) {
      for (const Instr* instr : computation->instrs()) at_[instr] = visit(*instr);
      if (computation->root() != nullptr) results_[computation] = at_[computation->root()];
    }
  }

  // Nested computations (loops, branches, calls) are disturbed by their own instructions.
  interp::Disturbance::Amounts amounts(const Instr& instr) const {
    const double unit = unit_roundoff(leaf_type(instr.shape()));
    if (hlo::has_trait(instr.opcode(), hlo::elementwise))
      return {0, elementwise_roundings(instr, unit).relative};
    if (instr.is(Opcode::while_) || instr.is(Opcode::conditional) || instr.is(Opcode::call) ||
        instr.is(Opcode::fusion))
      return {};
    const Roundings own = own_roundings(instr);
    const double sum = std::sqrt(own.variance);
    return {adds_up(instr) ? sum : 0, own.relative + sum};
  }

  void add_leaves(const Instr& instr, std::vector<tensor::Tolerance>& tolerances) const {
    add_leaves(instr.shape(), &instr, at_.at(&instr), tolerances);
  }

 private:
  Roundings visit(const Instr& instr) const {
    Roundings sum;
    for (const Instr* operand : instr.operands()) sum = larger(sum, at_.at(operand));
    const Roundings own = own_roundings(instr);
    return {sum.relative + own.relative, sum.variance + own.variance};
  }

  Roundings own_roundings(const Instr& instr) const {
    const double unit = unit_roundoff(leaf_type(instr.shape()));
    if (hlo::has_trait(instr.opcode(), hlo::elementwise)) return elementwise_roundings(instr, unit);
    Roundings body;
    for (const hlo::Computation* called : instr.called())
      if (auto found = results_.find(called); found != results_.end())
        body = larger(body, found->second);
    if (!adds_up(instr)) {
      const double times = instr.is(Opcode::while_) ? kTripCount : 1;
      return {body.relative * times, body.variance * times};
    }
    if (unit == 0) return {};
    // Sums of narrow types are kept in f32 and rounded at the end.
    const double accumulator = std::min(unit, unit_roundoff(Type::f32));
    const double length = reduction_length(instr);
    return {2 * unit, (length - 1) * accumulator * accumulator};
  }

  // Follows tuples as far as they are written as tuple instructions.
  void add_leaves(const Shape& shape, const Instr* instr, const Roundings& all,
                  std::vector<tensor::Tolerance>& tolerances) const {
    if (!shape.is_tuple()) {
      tolerances.push_back(tolerance(leaf_type(shape), all));
      return;
    }
    const bool known = instr != nullptr && instr->is(Opcode::tuple);
    for (size_t i = 0; i < shape.elements().size(); ++i) {
      const Instr* element = known ? instr->operand(i) : nullptr;
      add_leaves(shape.elements()[i], element, known ? at_.at(element) : all, tolerances);
    }
  }

  static tensor::Tolerance tolerance(Type type, const Roundings& all) {
    const double unit = unit_roundoff(type);
    tensor::Tolerance result;
    if (unit == 0) return result;
    // Two sides, each with its own roundings.
    const double spread = 8 * std::sqrt(all.variance);
    result.relative = 4 * unit + 2 * all.relative + spread;
    result.relative_to_max = spread;
    const Type component = tensor::is_complex(type) ? tensor::complex_component(type) : type;
    result.absolute = tensor::derived_tolerance(component, 1).absolute;
    return result;
  }

  std::unordered_map<const Instr*, Roundings> at_;
  std::unordered_map<const hlo::Computation*, Roundings> results_;
};

}  // namespace

std::vector<tensor::Tolerance> derive_tolerances(const hlo::Module& module) {
  std::vector<tensor::Tolerance> tolerances;
  Analysis(module).add_leaves(*module.entry()->root(), tolerances);
  return tolerances;
}

std::function<interp::Disturbance::Amounts(const hlo::Instr&)> rounding_amounts(
    const hlo::Module& module) {
  return [analysis = std::make_shared<const Analysis>(module)](const Instr& instr) {
    return analysis->amounts(instr);
  };
}

tensor::Tolerance measured_tolerance(const tensor::Tolerance& derived, const tensor::Literal& plain,
                                     std::span<const tensor::Literal> others) {
  constexpr double kFloor = 0x1p-10, kTimes = 8;
  const Type type = plain.type();
  if (!tensor::is_float(type) && !tensor::is_complex(type)) return derived;
  const auto value = [&](const tensor::Literal& x, int64_t i) {
    return tensor::is_complex(type) ? x.get_complex(i) : std::complex<double>(x.get_f64(i));
  };
  double lost = 0, moved = 0;
  for (const tensor::Literal& other : others) {
    double largest = 0;
    for (int64_t i = 0; i < other.elems(); ++i) {
      const double size = std::abs(value(other, i));
      if (std::isfinite(size)) largest = std::max(largest, size);
    }
    for (int64_t i = 0; i < other.elems(); ++i) {
      const std::complex<double> a = value(plain, i), b = value(other, i);
      const double error = std::abs(a - b), scale = std::max(std::abs(b), largest * kFloor);
      if (!std::isfinite(error)) continue;
      if (error < scale)
        lost = std::max(lost, scale > 0 ? error / scale : 0);
      else
        moved = std::max(moved, error);
    }
  }
  tensor::Tolerance result = derived;
  result.relative += kTimes * lost;
  result.relative_to_max += kTimes * lost * kFloor;
  result.absolute += kTimes * moved;
  return result;
}

}  // namespace heddle::api
