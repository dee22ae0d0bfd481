#include "hlo/builder.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "hlo/shape_inference.h"

namespace heddle::hlo {

using tensor::Dim;

void Builder::check() const { HEDDLE_CHECK(status_, "{}", status_ ? "" : status_.error().message); }

Instr* Builder::poison() {
  if (!poison_) {
    Instr* zero = computation_->add(Opcode::constant, Shape::scalar(Type::f32), {},
                                    ConstantAttrs{Literal(Shape::scalar(Type::f32))}, {}, "poison");
    poison_ = computation_->add(Opcode::broadcast, Shape::array(Type::f32, Ints(8, 1)), {zero},
                                DimensionsAttrs{}, {}, "poison");
  }
  return poison_;
}

Instr* Builder::fail(Error error) {
  if (status_) status_ = tl::unexpected<Error>(std::move(error));
  return poison();
}

Instr* Builder::make(Opcode opcode, std::vector<Instr*> operands, Attrs attrs,
                     std::vector<Computation*> called, const Shape* declared) {
  if (!status_) return poison();
  std::vector<const Shape*> shapes;
  shapes.reserve(operands.size());
  for (const Instr* operand : operands) shapes.push_back(&operand->shape());
  Result<Shape> shape = infer_shape(opcode, shapes, attrs, called, declared);
  if (!shape) return fail(std::move(shape).error());
  std::string name;
  if (!name_.empty()) name = name_ + "." + std::string(opcode_text(opcode));
  return computation_->add(opcode, *std::move(shape), std::move(operands), std::move(attrs),
                           std::move(called), name);
}

Instr* Builder::parameter(int64_t number, const Shape& shape, std::string_view name) {
  Instr* instr = make(Opcode::parameter, {}, ParameterAttrs{number}, {}, &shape);
  if (status_ && !name.empty()) computation_->rename(instr, name);
  return instr;
}

Instr* Builder::constant(Literal value) {
  return make(Opcode::constant, {}, ConstantAttrs{std::move(value)});
}

Instr* Builder::scalar(Type type, double value) {
  if (!status_) return poison();
  Literal literal(Shape::scalar(type));
  if (tensor::is_complex(type)) {
    literal.set_complex(0, value);
  } else {
    literal.set_f64(0, value);
  }
  return constant(std::move(literal));
}

Instr* Builder::full(const Shape& shape, double value) {
  if (!status_) return poison();
  if (!shape.is_array()) return fail({ErrorKind::user, "full: wanted an array shape"});
  Instr* x = scalar(shape.type(), value);
  return shape.rank() == 0 ? x : make(Opcode::broadcast, {x}, DimensionsAttrs{}, {}, &shape);
}

Instr* Builder::unary(Opcode opcode, Instr* x) { return make(opcode, {x}); }

Instr* Builder::binary(Opcode opcode, Instr* a, Instr* b) { return make(opcode, {a, b}); }

Instr* Builder::compare(Direction direction, Instr* a, Instr* b) {
  return make(Opcode::compare, {a, b}, CompareAttrs{direction, CompareType::by_type});
}

Instr* Builder::select(Instr* predicate, Instr* on_true, Instr* on_false) {
  return make(Opcode::select, {predicate, on_true, on_false});
}

Instr* Builder::clamp(Instr* low, Instr* x, Instr* high) {
  return make(Opcode::clamp, {low, x, high});
}

Instr* Builder::convert(Instr* x, Type type) {
  if (!status_) return poison();
  if (!x->shape().is_array()) return make(Opcode::convert, {x});  // reports the error
  if (x->shape().type() == type) return x;
  const Shape shape(type, x->shape().dims());
  return make(Opcode::convert, {x}, NoAttrs{}, {}, &shape);
}

Instr* Builder::bitcast_convert(Instr* x, const Shape& shape) {
  return make(Opcode::bitcast_convert, {x}, NoAttrs{}, {}, &shape);
}

Instr* Builder::transpose(Instr* x, const Ints& permutation) {
  return make(Opcode::transpose, {x}, DimensionsAttrs{permutation});
}

Instr* Builder::slice(Instr* x, const Ints& starts, const Ints& limits, const Ints& strides) {
  return make(Opcode::slice, {x},
              SliceAttrs{starts, limits, strides.empty() ? Ints(starts.size(), 1) : strides});
}

Instr* Builder::pad(Instr* x, Instr* value, const Ints& low, const Ints& high,
                    const Ints& interior) {
  return make(Opcode::pad, {x, value},
              PadAttrs{low, high, interior.empty() ? Ints(low.size(), 0) : interior});
}

Instr* Builder::concatenate(const std::vector<Instr*>& parts, int64_t dimension) {
  return make(Opcode::concatenate, parts, DimensionsAttrs{{dimension}});
}

Instr* Builder::reverse(Instr* x, const Ints& dimensions) {
  return make(Opcode::reverse, {x}, DimensionsAttrs{dimensions});
}

Instr* Builder::iota(const Shape& shape, int64_t dimension) {
  return make(Opcode::iota, {}, DimensionAttrs{dimension}, {}, &shape);
}

Instr* Builder::gather(Instr* x, Instr* indices, GatherAttrs attrs) {
  return make(Opcode::gather, {x, indices}, std::move(attrs));
}

Instr* Builder::take(Instr* x, Instr* indices, int64_t axis) {
  if (!status_) return poison();
  const Shape& shape = x->shape();
  const int64_t rank = shape.is_array() ? shape.rank() : 0;
  if (axis < -rank || axis >= rank || !indices->shape().is_array())
    return fail({ErrorKind::user,
                 fmt::format("take: axis {} of {} by {}", axis, tensor::to_string(shape, false),
                             tensor::to_string(indices->shape(), false))});
  if (axis < 0) axis += rank;
  const int64_t index_rank = indices->shape().rank();
  GatherAttrs attrs;
  for (int64_t d = 0; d < rank; ++d) {
    attrs.slice_sizes.push_back(d == axis ? 1 : shape.dims()[d].size);
    if (d != axis) attrs.offset_dims.push_back(d < axis ? d : d - 1 + index_rank);
  }
  attrs.collapsed_slice_dims = {axis};
  attrs.start_index_map = {axis};
  attrs.index_vector_dim = index_rank;
  return gather(x, indices, std::move(attrs));
}

Instr* Builder::dynamic_slice(Instr* x, const std::vector<Instr*>& starts, const Ints& sizes) {
  std::vector<Instr*> operands{x};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return make(Opcode::dynamic_slice, std::move(operands), DynamicSliceAttrs{sizes});
}

Instr* Builder::dynamic_update_slice(Instr* x, Instr* update, const std::vector<Instr*>& starts) {
  std::vector<Instr*> operands{x, update};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return make(Opcode::dynamic_update_slice, std::move(operands));
}

Instr* Builder::reduce(Opcode opcode, Instr* x, const Ints& dimensions) {
  if (!status_) return poison();
  if (!x->shape().is_array()) return fail({ErrorKind::user, "reduce: operand 0 is not an array"});
  const Type type = x->shape().type();
  return reduce({x}, {constant(neutral_value(opcode, type))}, dimensions,
                scalar_computation(opcode, type));
}

Instr* Builder::reduce(const std::vector<Instr*>& operands, const std::vector<Instr*>& inits,
                       const Ints& dimensions, Computation* to_apply) {
  std::vector<Instr*> all = operands;
  all.insert(all.end(), inits.begin(), inits.end());
  return make(Opcode::reduce, std::move(all), DimensionsAttrs{dimensions}, {to_apply});
}

Instr* Builder::reduce_window(Opcode opcode, Instr* x, Instr* init, const Window& window) {
  if (!status_) return poison();
  if (!x->shape().is_array())
    return fail({ErrorKind::user, "reduce-window: operand 0 is not an array"});
  return make(Opcode::reduce_window, {x, init}, WindowAttrs{window},
              {scalar_computation(opcode, x->shape().type())});
}

Instr* Builder::dot(Instr* a, Instr* b, DotAttrs attrs) {
  return make(Opcode::dot, {a, b}, std::move(attrs));
}

Instr* Builder::convolution(Instr* x, Instr* kernel, ConvolutionAttrs attrs) {
  return make(Opcode::convolution, {x, kernel}, std::move(attrs));
}

Instr* Builder::sort(const std::vector<Instr*>& operands, int64_t dimension, bool stable,
                     Computation* compare) {
  return make(Opcode::sort, operands, SortAttrs{dimension, stable}, {compare});
}

Instr* Builder::tuple(const std::vector<Instr*>& elements) { return make(Opcode::tuple, elements); }

Instr* Builder::get_tuple_element(Instr* x, int64_t index) {
  return make(Opcode::get_tuple_element, {x}, TupleIndexAttrs{index});
}

Instr* Builder::call(Computation* computation, const std::vector<Instr*>& operands) {
  return make(Opcode::call, operands, CallAttrs{}, {computation});
}

Instr* Builder::while_loop(Computation* condition, Computation* body, Instr* init) {
  return make(Opcode::while_, {init}, NoAttrs{}, {condition, body});
}

Instr* Builder::conditional(Instr* predicate, Instr* true_operand, Computation* on_true,
                            Instr* false_operand, Computation* on_false) {
  return make(Opcode::conditional, {predicate, true_operand, false_operand}, NoAttrs{},
              {on_true, on_false});
}

namespace {

bool is_scalar_function(const Computation& c, Opcode opcode, Type type) {
  return c.parameters().size() == 2 && c.instrs().size() == 3 && c.root()->is(opcode) &&
         c.parameters()[0]->shape() == Shape::scalar(type) &&
         c.root()->operands() == c.parameters();
}

}  // namespace

Computation* Builder::scalar_computation(Opcode opcode, Type type) {
  const std::string stem =
      fmt::format("scalar_{}_{}", opcode_text(opcode), tensor::type_name(type));
  // The name may already belong to a different computation.
  std::string name = stem;
  for (int i = 1; const Computation* found = module()->find(name); ++i) {
    if (is_scalar_function(*found, opcode, type)) return module()->find(name);
    name = fmt::format("{}.{}", stem, i);
  }
  Computation* computation = module()->add_computation(name);
  Builder builder(computation);
  Instr* a = builder.parameter(0, Shape::scalar(type), "a");
  Instr* b = builder.parameter(1, Shape::scalar(type), "b");
  computation->set_root(builder.binary(opcode, a, b));
  if (!builder.status()) fail(builder.status().error());
  return computation;
}

namespace {

// The largest value of a type, or with `negative` the smallest.
Literal extreme(Type type, bool negative) {
  Literal value(Shape::scalar(type));
  if (tensor::is_float(type)) {
    const tensor::FloatFormat& format = tensor::float_format(type);
    double x = format.has_infinity ? std::numeric_limits<double>::infinity() : format.max_finite;
    if (negative) x = format.has_sign ? -x : format.has_zero ? 0 : std::ldexp(1.0, -format.bias);
    value.set_f64(0, x);
  } else if (type == Type::pred) {
    value.set_s64(0, !negative);
  } else if (tensor::is_unsigned_integer(type)) {
    value.set_s64(0, negative ? 0 : -1);
  } else {
    const uint64_t lowest = uint64_t{1} << (tensor::type_bits(type) - 1);
    value.set_s64(0, static_cast<int64_t>(negative ? lowest : lowest - 1));
  }
  return value;
}

}  // namespace

Literal neutral_value(Opcode opcode, Type type) {
  Literal value(Shape::scalar(type));
  switch (opcode) {
    case Opcode::multiply:
      if (tensor::is_complex(type)) {
        value.set_complex(0, 1);
      } else {
        value.set_f64(0, 1);
      }
      return value;
    case Opcode::and_:
      value.set_s64(0, type == Type::pred ? 1 : -1);
      return value;
    case Opcode::maximum:
      return extreme(type, /*negative=*/true);
    case Opcode::minimum:
      return extreme(type, /*negative=*/false);
    case Opcode::add:
    case Opcode::or_:
    case Opcode::xor_:
      return value;  // zeros
    default:
      HEDDLE_UNREACHABLE("{} has no neutral value", opcode_text(opcode));
  }
}

}  // namespace heddle::hlo
