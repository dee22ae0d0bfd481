#include <algorithm>

#include "hlo/top_k_part.h"
#include "hlo/winograd_filter.h"
#include "stage/row_scatter.h"
#include "stage/stage_graph.h"
#include "stage/top_k.h"

namespace heddle::stage {

using hlo::Instr;
using hlo::Opcode;

namespace {

bool kernel_type(Type type) {
  switch (type) {
    case Type::pred:
    case Type::s8:
    case Type::s16:
    case Type::s32:
    case Type::s64:
    case Type::u8:
    case Type::u16:
    case Type::u32:
    case Type::u64:
    case Type::f16:
    case Type::bf16:
    case Type::f32:
    case Type::f64:
      return true;
    default:
      return false;
  }
}

bool all_array(const tensor::Shape& shape) {
  if (!shape.is_tuple()) return shape.is_array() && shape.is_static() && kernel_type(shape.type());
  return std::all_of(shape.elements().begin(), shape.elements().end(), all_array);
}

// Whether the kernel IR can express the operator, in a combine or a body.
bool kernel_opcode(const Instr& instr) {
  switch (instr.opcode()) {
    case Opcode::imag:
    case Opcode::real:
    case Opcode::complex:
    case Opcode::stochastic_convert:
    case Opcode::map:
      return false;
    case Opcode::bitcast_convert:
      return tensor::type_bytes(instr.shape().type()) ==
             tensor::type_bytes(instr.operand(0)->shape().type());
    case Opcode::power:
      return tensor::is_float(instr.shape().type());
    case Opcode::reduce_precision: {
      const auto& attrs = instr.attrs_as<hlo::ReducePrecisionAttrs>();
      bool bf16 = attrs.exponent_bits == 8 && attrs.mantissa_bits == 7;
      bool f16 = attrs.exponent_bits == 5 && attrs.mantissa_bits == 10;
      return instr.shape().type() == Type::f32 && (bf16 || f16);
    }
    case Opcode::compare:
      return instr.attrs_as<hlo::CompareAttrs>().type != hlo::CompareType::total_order;
    default:
      return has_trait(instr.opcode(), hlo::elementwise);
  }
}

bool scalar_body(const hlo::Computation& computation) {
  return std::all_of(computation.instrs().begin(), computation.instrs().end(), [](Instr* instr) {
    if (instr->is(Opcode::tuple)) return instr == instr->parent()->root();
    if (!instr->shape().is_scalar() || !kernel_type(instr->shape().type())) return false;
    return instr->is(Opcode::parameter) || instr->is(Opcode::constant) || kernel_opcode(*instr);
  });
}

// Padding does not take part in a window: kernels fill it with a neutral element, which they know
// for combines of one operator.
Decision padding_ok(const Instr& instr) {
  const auto& dims = instr.attrs_as<hlo::WindowAttrs>().window.dims;
  const bool padded = std::any_of(dims.begin(), dims.end(), [](const hlo::WindowDim& d) {
    return d.pad_low > 0 || d.pad_high > 0 || d.lhs_dilate > 1;
  });
  const hlo::Computation& combine = *instr.called().at(0);
  const Instr* root = combine.root();
  bool plain = root->operands().size() == 2 && root->operand(0) != root->operand(1);
  for (const Instr* operand : root->operands()) plain &= operand->is(Opcode::parameter);
  switch (root->opcode()) {
    case Opcode::add:
    case Opcode::multiply:
    case Opcode::maximum:
    case Opcode::minimum:
    case Opcode::and_:
    case Opcode::or_:
      if (plain) return Decision::yes();
      break;
    default:
      break;
  }
  if (!padded) return Decision::yes();
  return Decision::no("padded-window", "{}: padding has no neutral element under {}", instr.name(),
                      combine.name());
}

Decision combine_ok(const Instr& instr) {
  const hlo::Computation& combine = *instr.called().at(0);
  if (!scalar_body(combine))
    return Decision::no("opaque-combine", "{}: {} is more than scalar arithmetic", instr.name(),
                        combine.name());
  return Decision::yes();
}

// Operands and results must be arrays with elements, of types that kernels support.
Decision arrays_ok(const Instr& instr) {
  auto empty = [](const tensor::Shape& shape) { return shape.is_array() && shape.elems() == 0; };
  if (empty(instr.shape()) || std::any_of(instr.operands().begin(), instr.operands().end(),
                                          [&](const Instr* o) { return empty(o->shape()); }))
    return Decision::no("empty", "{} has no elements", instr.name());
  if (!all_array(instr.shape()))
    return Decision::no("type", "{}: no kernels for {}", instr.name(), to_string(instr.shape()));
  for (const Instr* operand : instr.operands()) {
    if (!all_array(operand->shape()))
      return Decision::no("type", "{}: no kernels for {}", instr.name(),
                          to_string(operand->shape()));
  }
  return Decision::yes();
}

}  // namespace

Decision can_stage(const Instr& instr) {
  if (Decision arrays = arrays_ok(instr); !arrays) return arrays;
  switch (instr.opcode()) {
    case Opcode::broadcast:
    case Opcode::reshape:
    case Opcode::transpose:
    case Opcode::slice:
    case Opcode::concatenate:
    case Opcode::pad:
    case Opcode::iota:
    case Opcode::reverse:
    case Opcode::copy:
    case Opcode::gather:
    case Opcode::dynamic_slice:
    case Opcode::dynamic_update_slice:
      return Decision::yes();
    case Opcode::bitcast:
      if (instr.shape().type() == instr.operand(0)->shape().type() &&
          instr.shape().elems() == instr.operand(0)->shape().elems())
        return Decision::yes();
      return Decision::no("bitcast", "{} changes the element type", instr.name());
    case Opcode::reduce:
      return combine_ok(instr);
    case Opcode::reduce_window:
      if (instr.operands().size() != 2)
        return Decision::no("variadic-window", "{} has several operands", instr.name());
      if (Decision padding = padding_ok(instr); !padding) return padding;
      return combine_ok(instr);
    case Opcode::convolution:
      if (instr.attrs_as<hlo::ConvolutionAttrs>().batch_group_count != 1)
        return Decision::no("batch-groups", "{} has batch groups", instr.name());
      return Decision::yes();
    case Opcode::scatter:
      if (is_row_scatter(instr)) return Decision::yes();
      return Decision::no("no-kernel",
                          "{}: scatters of whole rows of f32, s32 or s64 alone have a stage form",
                          instr.name());
    case Opcode::dot:
      if (instr.operands().size() != 2)
        return Decision::no("sparse-dot", "{} has more than two operands", instr.name());
      return Decision::yes();
    case Opcode::custom_call:
      if (hlo::winograd_filter(instr) > 0) return Decision::yes();
      if (const auto part = hlo::top_k_part(instr);
          part && has_top_k(instr.operand(0)->shape(), part->k))
        return Decision::yes();
      return Decision::no("no-kernel", "{}: a custom call has no stage form", instr.name());
    case Opcode::constant:
      if (instr.shape().is_scalar()) return Decision::yes();
      return Decision::no("constant", "{} is an array: an operand of the fusion", instr.name());
    default:
      if (kernel_opcode(instr)) return Decision::yes();
      return Decision::no("no-kernel", "{}: {} has no stage form", instr.name(),
                          hlo::opcode_text(instr.opcode()));
  }
}

}  // namespace heddle::stage
