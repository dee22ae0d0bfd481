// Requirements of operators on the computations they call (invariant 8).
#include <algorithm>

#include "hlo/shape_rules.h"

namespace heddle::hlo {
namespace {

std::string signature(const Computation& c) {
  std::string out = "(";
  for (const Instr* p : c.parameters()) out += (out.size() > 1 ? ", " : "") + text(p->shape());
  return out + ") -> " + text(c.root()->shape());
}

// Parameters and result of called computation `i`, in order.
Status want_signature(const ShapeQuery& q, size_t i, const std::vector<Shape>& parameters,
                      const std::vector<Shape>& results, bool always_tuple = false) {
  const Computation& c = *q.called[i];
  bool fits = c.parameters().size() == parameters.size();
  for (size_t p = 0; fits && p < parameters.size(); ++p)
    fits = declared_fits(c.parameters()[p]->shape(), parameters[p]);
  const Shape& root = c.root()->shape();
  if (results.size() == 1 && !always_tuple) {
    fits = fits && declared_fits(root, results[0]);
  } else {
    fits = fits && declared_fits(root, Shape::make_tuple(results));
  }
  if (fits) return {};
  std::string wanted;
  for (const Shape& p : parameters) wanted += (wanted.empty() ? "" : ", ") + text(p);
  const Shape result =
      results.size() == 1 && !always_tuple ? results[0] : Shape::make_tuple(results);
  return shape_error(q, "{} is {}, wanted ({}) -> {}", c.name(), signature(c), wanted,
                     text(result));
}

std::vector<Shape> scalars_of(const ShapeQuery& q, size_t first, size_t count) {
  std::vector<Shape> scalars;
  for (size_t i = first; i < first + count && i < q.count(); ++i)
    scalars.push_back(Shape::scalar(q.operand(i).type()));
  return scalars;
}

// Operators that apply a function of scalars to the elements of arrays.
bool on_scalars(Opcode opcode) {
  switch (opcode) {
    case Opcode::map:
    case Opcode::reduce:
    case Opcode::reduce_window:
    case Opcode::scatter:
    case Opcode::select_and_scatter:
    case Opcode::sort:
      return true;
    default:
      return false;
  }
}

std::vector<Shape> twice(const std::vector<Shape>& list) {
  std::vector<Shape> result = list;
  result.insert(result.end(), list.begin(), list.end());
  return result;
}

std::vector<Shape> operand_shapes(const ShapeQuery& q) {
  std::vector<Shape> shapes;
  for (const Shape* shape : q.operands) shapes.push_back(*shape);
  return shapes;
}

// One function of two scalars for all operands, or one function of 2n scalars.
Status check_collective(const ShapeQuery& q) {
  const Computation& c = *q.called[0];
  const size_t count = c.parameters().size();
  bool fits = count == 2 || count == 2 * q.count();
  for (const Instr* p : c.parameters()) fits = fits && p->shape().is_scalar();
  if (fits) return {};
  return shape_error(q, "{} is {}, wanted a function of two scalars", c.name(), signature(c));
}

Status check_conditional(const ShapeQuery& q) {
  const Shape& selector = q.operand(0);
  const size_t branches = q.called.size();
  const bool by_pred = selector.is_scalar() && selector.type() == Type::pred && branches == 2;
  const bool by_number = selector.is_scalar() && selector.type() == Type::s32;
  if (!by_pred && !by_number)
    return shape_error(q, "operand 0 is {} for {} branches; pred[] and two, or s32[]",
                       text(selector), branches);
  if (q.count() != branches + 1)
    return shape_error(q, "{} operands, wanted the selector and one for each of {} branches",
                       q.count(), branches);
  for (size_t i = 0; i < branches; ++i)
    HEDDLE_RETURN_IF_ERROR(
        want_signature(q, i, {q.operand(i + 1)}, {q.called[0]->root()->shape()}));
  return {};
}

// Parameters: a slice of each array, without the scanned dimension, and the carries; results: the
// slices of the outputs and the carries.
Status check_scan(const ShapeQuery& q) {
  const auto& a = q.attrs_as<ScanAttrs>();
  const int64_t count = static_cast<int64_t>(q.count());
  if (a.num_carries < 0 || a.num_carries >= count)
    return shape_error(q, "num_carries {} of {} operands leaves no array to scan", a.num_carries,
                       count);
  std::vector<Shape> parameters;
  for (int64_t i = 0; i < count; ++i) {
    Shape shape = q.operand(i);
    if (i < count - a.num_carries && shape.is_array() && a.dimension >= 0 &&
        a.dimension < shape.rank()) {
      std::vector<Dim> dims = shape.dims();
      dims.erase(dims.begin() + a.dimension);
      shape = Shape(shape.type(), std::move(dims));
    }
    parameters.push_back(std::move(shape));
  }
  const Shape& root = q.called[0]->root()->shape();
  std::vector<Shape> results = root.is_tuple() ? root.elements() : std::vector<Shape>{root};
  const int64_t carries_at = static_cast<int64_t>(results.size()) - a.num_carries;
  if (carries_at < 0)
    return shape_error(q, "{} is {}, wanted {} carries in its result", q.called[0]->name(),
                       signature(*q.called[0]), a.num_carries);
  for (int64_t i = 0; i < a.num_carries; ++i)
    results[carries_at + i] = parameters[count - a.num_carries + i];
  return want_signature(q, 0, parameters, results, root.is_tuple());
}

struct Range {
  size_t least, most;
};

Range called_count(Opcode opcode) {
  constexpr size_t kAny = SIZE_MAX;
  switch (opcode) {
    case Opcode::while_:
    case Opcode::select_and_scatter:
      return {2, 2};
    case Opcode::conditional:
      return {1, kAny};
    case Opcode::custom_call:
      return {0, kAny};
    case Opcode::async_update:  // may repeat the computation of the start
    case Opcode::async_done:
      return {0, 1};
    default:
      return has_trait(opcode, Trait::calls) ? Range{1, 1} : Range{0, 0};
  }
}

}  // namespace

Status check_called_count(const ShapeQuery& q) {
  const Range range = called_count(q.opcode);
  if (q.called.size() < range.least || q.called.size() > range.most)
    return shape_error(q, "{} called computations, wanted {}", q.called.size(), range.least);
  return {};
}

Status check_called(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(check_called_count(q));
  for (const Computation* c : q.called)
    if (!c->root()) return shape_error(q, "{} has no root", c->name());
  const std::vector<Shape> pred{Shape::scalar(Type::pred)};
  if (on_scalars(q.opcode)) HEDDLE_RETURN_IF_ERROR(want_arrays(q));
  switch (q.opcode) {
    case Opcode::map: {
      const std::vector<Shape> scalars = scalars_of(q, 0, q.count());
      const Shape& root = q.called[0]->root()->shape();
      return want_signature(q, 0, scalars,
                            {Shape::scalar(root.is_array() ? root.type() : q.operand(0).type())});
    }
    case Opcode::reduce:
    case Opcode::reduce_window: {
      const std::vector<Shape> scalars = scalars_of(q, 0, q.count() / 2);
      return want_signature(q, 0, twice(scalars), scalars);
    }
    case Opcode::scatter: {
      const std::vector<Shape> scalars = scalars_of(q, 0, q.count() / 2);
      return want_signature(q, 0, twice(scalars), scalars);
    }
    case Opcode::select_and_scatter: {
      const std::vector<Shape> scalar = scalars_of(q, 0, 1);
      HEDDLE_RETURN_IF_ERROR(want_signature(q, 0, twice(scalar), pred));
      return want_signature(q, 1, twice(scalar), scalar);
    }
    case Opcode::sort: {
      std::vector<Shape> pairs;  // a and b of each operand in turn
      for (const Shape& scalar : scalars_of(q, 0, q.count())) {
        pairs.push_back(scalar);
        pairs.push_back(scalar);
      }
      return want_signature(q, 0, pairs, pred);
    }
    case Opcode::scan:
      return check_scan(q);
    case Opcode::call:
    case Opcode::fusion:
    case Opcode::async_start:
      return want_signature(q, 0, operand_shapes(q), {q.called[0]->root()->shape()});
    case Opcode::while_:
      HEDDLE_RETURN_IF_ERROR(want_signature(q, 0, operand_shapes(q), pred));
      return want_signature(q, 1, operand_shapes(q), operand_shapes(q));
    case Opcode::conditional:
      return check_conditional(q);
    case Opcode::all_reduce:
    case Opcode::reduce_scatter:
    case Opcode::all_reduce_start:
      return check_collective(q);
    default:
      return {};
  }
}

}  // namespace heddle::hlo
