// Shapes of collectives, send and recv. The size of a replica group is not known here: an extent
// that grows or shrinks by it must only be a multiple.
#include "hlo/shape_rules.h"

namespace heddle::hlo {
namespace {

Shape operands_as_one(const ShapeQuery& q) {
  if (q.count() == 1) return q.operand(0);
  std::vector<Shape> shapes;
  for (const Shape* operand : q.operands) shapes.push_back(*operand);
  return Shape::make_tuple(std::move(shapes));
}

// `large` is `small` with its extent along `axis` multiplied.
bool grown(const Shape& large, const Shape& small, int64_t axis) {
  if (!large.is_array() || !small.is_array() || large.type() != small.type() ||
      large.rank() != small.rank())
    return false;
  for (int64_t d = 0; d < large.rank(); ++d) {
    const Dim &a = large.dims()[d], &b = small.dims()[d];
    if (d != axis
            ? !agree(a, b)
            : !unbounded(a) && !unbounded(b) && (b.size == 0 ? a.size != 0 : a.size % b.size != 0))
      return false;
  }
  return true;
}

// all-gather (the result is the larger) and reduce-scatter (the operand is).
Status check_scaled(const ShapeQuery& q, const Shape& result) {
  const Ints& dims = q.attrs_as<CollectiveAttrs>().dimensions;
  if (dims.size() != 1) return shape_error(q, "dimensions={} must name one dimension", text(dims));
  const bool grows = q.opcode != Opcode::reduce_scatter;
  const size_t results = result.is_tuple() ? result.elements().size() : 1;
  if (results != q.count()) return shape_error(q, "{} operands for {}", q.count(), text(result));
  for (size_t i = 0; i < q.count(); ++i) {
    HEDDLE_RETURN_IF_ERROR(want_array(q, i));
    HEDDLE_RETURN_IF_ERROR(want_dim(q, dims[0], q.operand(i).rank(), "dimensions"));
    const Shape& x = q.operand(i);
    const Shape& out = result.is_tuple() ? result.elements()[i] : result;
    if (!(grows ? grown(out, x, dims[0]) : grown(x, out, dims[0])))
      return shape_error(q, "declared {} for operand {} of {}: only axis {} may {}", text(out), i,
                         text(x), dims[0], grows ? "grow, to a multiple" : "shrink, by a divisor");
  }
  return {};
}

Status want_start_tuple(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_declared(q));
  if (q.declared->is_tuple() && q.declared->elements().size() >= 2) return {};
  return shape_error(q, "declared {}, wanted a tuple of operands and results", text(*q.declared));
}

Result<Shape> second_element(const ShapeQuery& q) {
  if (!q.operand(0).is_tuple() || q.operand(0).elements().size() < 2)
    return shape_error(q, "operand 0 is {}, wanted the tuple of its start", text(q.operand(0)));
  return q.operand(0).elements()[1];
}

}  // namespace

Result<Shape> collective_shape(const ShapeQuery& q) {
  switch (q.opcode) {
    case Opcode::all_gather:
    case Opcode::reduce_scatter:
      HEDDLE_RETURN_IF_ERROR(want_declared(q));
      HEDDLE_RETURN_IF_ERROR(check_scaled(q, *q.declared));
      return *q.declared;
    case Opcode::all_gather_start:
      HEDDLE_RETURN_IF_ERROR(want_start_tuple(q));
      HEDDLE_RETURN_IF_ERROR(check_scaled(q, q.declared->elements()[1]));
      return *q.declared;
    case Opcode::collective_permute_start:
      HEDDLE_RETURN_IF_ERROR(want_start_tuple(q));
      return *q.declared;
    case Opcode::all_gather_done:
    case Opcode::collective_permute_done:
      return second_element(q);
    case Opcode::all_reduce_done:
      return q.operand(0);
    case Opcode::all_to_all: {
      // With a dimension, one array is split along it; without, the operands are exchanged.
      const Ints& dims = q.attrs_as<CollectiveAttrs>().dimensions;
      if (!dims.empty()) {
        HEDDLE_RETURN_IF_ERROR(want_array(q, 0));
        HEDDLE_RETURN_IF_ERROR(want_dim(q, dims[0], q.operand(0).rank(), "dimensions"));
        if (q.count() == 1) return q.operand(0);
      }
      if (q.count() == 1 && q.declared && q.declared->is_tuple())
        return Shape::make_tuple({q.operand(0)});
      return operands_as_one(q);
    }
    case Opcode::collective_permute:
      // Four operands: the second is written in place, the others are offsets.
      if (q.count() == 4) return q.operand(1);
      return operands_as_one(q);
    case Opcode::ragged_all_to_all:
      if (q.count() != 6)
        return shape_error(
            q, "{} operands; wanted input, output and four arrays of offsets and sizes", q.count());
      for (size_t i = 2; i < 6; ++i) HEDDLE_RETURN_IF_ERROR(want_type(q, i, kInteger));
      HEDDLE_RETURN_IF_ERROR(want_same_type(q, 1, 0));
      return q.operand(1);
    default:  // all-reduce, all-reduce-start, collective-broadcast
      return operands_as_one(q);
  }
}

Result<Shape> device_id_shape(const ShapeQuery&) { return Shape::scalar(Type::u32); }

// send: (data, context, token) from operands data and token; recv: the same from a token. send-done
// gives the token, recv-done (data, token).
Result<Shape> send_recv_shape(const ShapeQuery& q) {
  const Shape context = Shape::scalar(Type::u32), token = Shape::make_token();
  switch (q.opcode) {
    case Opcode::send:
      if (q.declared) {
        const auto& parts = q.declared->elements();
        if (!q.declared->is_tuple() || parts.size() < 2 || !declared_fits(parts[0], q.operand(0)))
          return shape_error(q, "declared {} for operand 0 of {}", text(*q.declared),
                             text(q.operand(0)));
        return *q.declared;
      }
      return Shape::make_tuple({q.operand(0), context, token});
    case Opcode::recv:
      HEDDLE_RETURN_IF_ERROR(want_declared(q));
      if (!q.declared->is_tuple() || q.declared->elements().size() < 2)
        return shape_error(q, "declared {}, wanted (data, u32[], token[])", text(*q.declared));
      return *q.declared;
    case Opcode::send_done:
      return q.declared ? *q.declared : token;
    default:  // recv-done
      if (!q.operand(0).is_tuple() || q.operand(0).elements().empty())
        return shape_error(q, "operand 0 is {}, wanted the tuple of recv", text(q.operand(0)));
      if (q.declared) return *q.declared;
      return Shape::make_tuple({q.operand(0).elements()[0], token});
  }
}

}  // namespace heddle::hlo
