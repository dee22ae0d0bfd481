#include "hlo/shape_inference.h"

#include "hlo/shape_rules.h"

namespace heddle::hlo {
namespace {

// The rule of every opcode; opcodes that are not listed are elementwise with one or two operands.
ShapeRule rule_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::compare:
      return compare_shape;
    case Opcode::select:
      return select_shape;
    case Opcode::clamp:
      return clamp_shape;
    case Opcode::map:
      return map_shape;
    case Opcode::convert:
      return convert_shape;
    case Opcode::stochastic_convert:
      return stochastic_convert_shape;
    case Opcode::bitcast_convert:
      return bitcast_convert_shape;

    case Opcode::bitcast:
      return bitcast_shape;
    case Opcode::broadcast:
      return broadcast_shape;
    case Opcode::concatenate:
      return concatenate_shape;
    case Opcode::reshape:
      return reshape_shape;
    case Opcode::dynamic_reshape:
      return dynamic_reshape_shape;
    case Opcode::transpose:
      return transpose_shape;
    case Opcode::reverse:
      return reverse_shape;
    case Opcode::iota:
      return iota_shape;
    case Opcode::get_dimension_size:
      return get_dimension_size_shape;
    case Opcode::set_dimension_size:
      return set_dimension_size_shape;

    case Opcode::slice:
      return slice_shape;
    case Opcode::pad:
      return pad_shape;
    case Opcode::dynamic_slice:
      return dynamic_slice_shape;
    case Opcode::dynamic_update_slice:
      return dynamic_update_slice_shape;
    case Opcode::gather:
      return gather_shape;
    case Opcode::scatter:
      return scatter_shape;

    case Opcode::reduce:
      return reduce_shape;
    case Opcode::reduce_window:
      return reduce_window_shape;
    case Opcode::select_and_scatter:
      return select_and_scatter_shape;
    case Opcode::scan:
      return scan_shape;
    case Opcode::sort:
      return sort_shape;
    case Opcode::topk:
      return topk_shape;

    case Opcode::dot:
      return dot_shape;
    case Opcode::scaled_dot:
      return scaled_dot_shape;
    case Opcode::ragged_dot:
      return ragged_dot_shape;
    case Opcode::convolution:
      return convolution_shape;
    case Opcode::batch_norm_grad:
    case Opcode::batch_norm_inference:
    case Opcode::batch_norm_training:
      return batch_norm_shape;
    case Opcode::cholesky:
      return cholesky_shape;
    case Opcode::triangular_solve:
      return triangular_solve_shape;
    case Opcode::fft:
      return fft_shape;

    case Opcode::call:
    case Opcode::conditional:
    case Opcode::fusion:
    case Opcode::while_:
      return called_result_shape;
    case Opcode::constant:
      return constant_shape;
    case Opcode::parameter:
      return parameter_shape;
    case Opcode::tuple:
      return tuple_shape;
    case Opcode::get_tuple_element:
      return get_tuple_element_shape;
    case Opcode::copy:
    case Opcode::domain:
    case Opcode::opt_barrier:
      return same_as_operand_shape;
    case Opcode::async_start:
    case Opcode::async_update:
    case Opcode::async_done:
      return async_shape;
    case Opcode::copy_start:
    case Opcode::copy_done:
      return copy_async_shape;
    case Opcode::after_all:
    case Opcode::add_dependency:
    case Opcode::infeed:
    case Opcode::outfeed:
      return token_shape;
    case Opcode::rng:
      return rng_shape;
    case Opcode::rng_bit_generator:
    case Opcode::rng_get_and_update_state:
      return rng_bits_shape;
    case Opcode::custom_call:
      return declared_shape;

    case Opcode::all_gather:
    case Opcode::all_reduce:
    case Opcode::all_to_all:
    case Opcode::collective_broadcast:
    case Opcode::collective_permute:
    case Opcode::ragged_all_to_all:
    case Opcode::reduce_scatter:
    case Opcode::all_gather_start:
    case Opcode::all_gather_done:
    case Opcode::all_reduce_start:
    case Opcode::all_reduce_done:
    case Opcode::collective_permute_start:
    case Opcode::collective_permute_done:
      return collective_shape;
    case Opcode::partition_id:
    case Opcode::replica_id:
      return device_id_shape;
    case Opcode::send:
    case Opcode::send_done:
    case Opcode::recv:
    case Opcode::recv_done:
      return send_recv_shape;

    default:
      HEDDLE_CHECK(has_trait(opcode, Trait::elementwise), "no shape rule for {}",
                   opcode_text(opcode));
      return opcode_info(opcode).least_operands == 1 ? unary_shape : binary_shape;
  }
}

}  // namespace

Status check_operand_count(const ShapeQuery& q) {
  const OpcodeInfo& info = opcode_info(q.opcode);
  const int count = static_cast<int>(q.count());
  if (count >= info.least_operands && (info.most_operands < 0 || count <= info.most_operands))
    return {};
  const bool exact = info.least_operands == info.most_operands;
  return shape_error(q, "{} operands, {}{} wanted", count, exact ? "" : "at least ",
                     info.least_operands);
}

Result<Shape> infer_shape(Opcode opcode, std::span<const Shape* const> operands, const Attrs& attrs,
                          std::span<Computation* const> called, const Shape* declared) {
  const int row = opcode_info(opcode).attrs_index;
  Attrs defaults;
  const bool left_out = attrs.index() == 0 && row != 0;
  if (left_out) defaults = default_attrs(row);
  const ShapeQuery q{opcode, operands, left_out ? defaults : attrs, called, declared};
  HEDDLE_CHECK(static_cast<int>(q.attrs.index()) == row, "{} wants other attributes",
               opcode_text(opcode));
  HEDDLE_RETURN_IF_ERROR(check_operand_count(q));
  HEDDLE_RETURN_IF_ERROR(check_called(q));
  HEDDLE_ASSIGN_OR_RETURN(Shape inferred, rule_of(opcode)(q));
  if (declared) {
    if (!declared_fits(*declared, inferred))
      return shape_error(q, "declared {}, but its operands give {}", text(*declared),
                         text(inferred));
    inferred = *declared;
  }
  HEDDLE_RETURN_IF_ERROR(want_countable(q, inferred));
  return inferred;
}

bool shape_is_declared(Opcode opcode) {
  switch (opcode) {
    case Opcode::bitcast:
    case Opcode::bitcast_convert:
    case Opcode::broadcast:
    case Opcode::constant:
    case Opcode::convert:
    case Opcode::stochastic_convert:
    case Opcode::reduce_precision:
    case Opcode::custom_call:
    case Opcode::fusion:
    case Opcode::infeed:
    case Opcode::outfeed:
    case Opcode::iota:
    case Opcode::parameter:
    case Opcode::reshape:
    case Opcode::dynamic_reshape:
    case Opcode::dynamic_slice:
    case Opcode::dynamic_update_slice:
    case Opcode::slice:
    case Opcode::rng:
    case Opcode::rng_bit_generator:
    case Opcode::rng_get_and_update_state:
    case Opcode::async_start:
    case Opcode::async_update:
    case Opcode::async_done:
    case Opcode::copy_start:
    case Opcode::copy_done:
    case Opcode::send:
    case Opcode::send_done:
    case Opcode::recv:
    case Opcode::recv_done:
      return true;
    default:
      return has_trait(opcode, Trait::collective);
  }
}

}  // namespace heddle::hlo
