// fold_constants: evaluates expressions of constants with the interpreter if the result is small
// and the work is bounded. Larger results stay expressions: they become the program's `once`
// section. Broadcasts and iotas are kept as such, and a constant whose elements are all equal
// becomes a broadcast: rules see through it, and it costs no memory.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "hlo/places.h"
#include "interp/interp.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

// Results made of iotas and splats alone are cheaper to recompute than to load, unless small.
constexpr int64_t kMaxGeneratedElems = 1024;

bool all_elements_equal(const Literal& literal) {
  const auto* data = static_cast<const char*>(literal.data());
  const auto bytes = static_cast<size_t>(literal.bytes());
  const auto element = static_cast<size_t>(tensor::type_bytes(literal.type()));
  return bytes > element && std::memcmp(data, data + element, bytes - element) == 0;
}

Literal first_element(const Literal& literal) {
  Literal result(Shape::scalar(literal.type()));
  std::memcpy(result.mutable_data(), literal.data(),
              static_cast<size_t>(tensor::type_bytes(literal.type())));
  return result;
}

// Operators that may be evaluated: pure, bounded, and defined to the last bit.
bool is_foldable(const Instr* instr) {
  switch (instr->opcode()) {
    case Opcode::constant:
    case Opcode::broadcast:
    case Opcode::iota:
    case Opcode::tuple:
    case Opcode::get_tuple_element:
    case Opcode::while_:
    case Opcode::conditional:
    case Opcode::call:
    case Opcode::fusion:
    case Opcode::custom_call:
    case Opcode::rng_bit_generator:
    case Opcode::add_dependency:
    case Opcode::after_all:
    case Opcode::set_dimension_size:
    case Opcode::get_dimension_size:
    case Opcode::dynamic_reshape:
      return false;
    default:
      break;
  }
  return hlo::has_trait(instr->opcode(), hlo::Trait::pure) && is_removable(*instr) &&
         !instr->operands().empty() && are_static_arrays(instr);
}

// Index values (hlo/places.h) that are read only by broadcasts and further index arithmetic:
// unrolling a loop over them makes each one a known constant.
bool stays_counted(const Instr* x) {
  return x->shape().is_array() && x->shape().rank() == 1 && hlo::counts_places(x) &&
         !x->users().empty() &&
         std::all_of(x->users().begin(), x->users().end(), [](const Instr* user) {
           return user->is(Opcode::broadcast) || hlo::counts_places(user);
         });
}

// Approximate number of scalar operations; an upper bound for operators with inner loops.
double work_of(const Instr* instr) {
  double work = static_cast<double>(instr->shape().elems());
  for (const Instr* operand : instr->operands())
    if (!instr->is(Opcode::slice) && !instr->is(Opcode::dynamic_slice) &&
        !instr->is(Opcode::gather))
      work += static_cast<double>(operand->shape().elems());
  const double elems = static_cast<double>(instr->shape().elems());
  switch (instr->opcode()) {
    case Opcode::dot:
    case Opcode::scaled_dot:
    case Opcode::ragged_dot:
    case Opcode::convolution:  // as if every output read the whole kernel or operand
      return work + elems * static_cast<double>(instr->operand(1)->shape().elems());
    case Opcode::reduce_window:
    case Opcode::select_and_scatter: {
      double window = 1;
      for (const auto& dim : instr->attrs_as<hlo::WindowAttrs>().window.dims)
        window *= static_cast<double>(dim.size);
      return work * window;
    }
    case Opcode::sort:
    case Opcode::topk:
      return work * 32;
    case Opcode::cholesky:
    case Opcode::triangular_solve:
    case Opcode::fft:
      return work * static_cast<double>(instr->operand(0)->shape().dim(-1));
    case Opcode::scan:
    case Opcode::reduce:
    case Opcode::scatter:
    case Opcode::map:
      return work * static_cast<double>(1 + instr->called()[0]->instrs().size());
    default:
      return work;
  }
}

class Folder {
 public:
  explicit Folder(const PassContext& context)
      : context_(context), work_left_(static_cast<double>(context.fold_limit_ops)) {}

  Rewriter::Proposal visit(Instr* instr, hlo::Builder& b) {
    if (const Literal* value = constant_of(instr)) {
      if (value->elems() < 2 || !all_elements_equal(*value)) return {};
      return {splat(*value, b), "splat"};
    }
    if (!is_foldable(instr) || instr->shape().bytes() > context_.fold_limit_bytes ||
        stays_counted(instr))
      return {};
    bool generated = true;
    for (const Instr* operand : instr->operands())
      if (!is_known(operand, generated)) return {};
    if (generated && instr->shape().elems() > kMaxGeneratedElems) return {};
    return fold(instr, b);
  }

 private:
  static Instr* splat(const Literal& value, hlo::Builder& b) {
    Instr* scalar = b.constant(first_element(value));
    const Shape& shape = value.shape();
    return shape.rank() == 0
               ? scalar
               : b.make(Opcode::broadcast, {scalar}, hlo::DimensionsAttrs{}, {}, &shape);
  }

  // A constant, or an iota or broadcast of one that is small enough to materialise. `generated`
  // becomes false at a constant with more than one element.
  bool is_known(const Instr* x, bool& generated) const {
    if (!is_static_array(x)) return false;
    if (const Literal* value = constant_of(x)) {
      generated = generated && value->elems() == 1;
      return true;
    }
    const bool made =
        x->is(Opcode::iota) || (x->is(Opcode::broadcast) && constant_of(x->operand(0)));
    if (!made || x->shape().bytes() > context_.fold_limit_bytes) return false;
    if (x->is(Opcode::broadcast)) generated = generated && x->operand(0)->shape().elems() == 1;
    return true;
  }

  Result<Literal> value_of(const Instr* x) const {
    if (const Literal* value = constant_of(x)) return *value;
    std::vector<Literal> operands;
    for (const Instr* operand : x->operands()) operands.push_back(operand->literal());
    return interp::evaluate_instr(*x, operands);
  }

  Rewriter::Proposal fold(Instr* instr, hlo::Builder& b) {
    const double work = work_of(instr);
    if (work > work_left_) return {};
    work_left_ -= work;
    std::vector<Literal> operands;
    for (const Instr* operand : instr->operands()) {
      Result<Literal> value = value_of(operand);
      if (!value) return {};
      operands.push_back(std::move(*value));
    }
    interp::Options options;
    options.max_steps = context_.fold_limit_ops;
    Result<Literal> value = interp::evaluate_instr(*instr, operands, options);
    if (!value) return {};
    if (value->elems() > 1 && all_elements_equal(*value)) return {splat(*value, b), "evaluate"};
    return {b.constant(std::move(*value)), "evaluate"};
  }

  const PassContext& context_;
  double work_left_;
};

}  // namespace

Result<bool> fold_constants(hlo::Module& module, const PassContext& context) {
  Folder folder(context);
  return rewrite_module(module, context, "fold_constants",
                        [&](Instr* instr, hlo::Builder& b) { return folder.visit(instr, b); });
}

}  // namespace heddle::opt
