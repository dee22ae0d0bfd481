// Operators whose result's shape depends on values: they are evaluated here if those values are
// known. Otherwise the count that the shape depends on is decided in a stage (Op::decide), or the
// whole input is.
#include <algorithm>
#include <map>
#include <numeric>

#include "hlo/select_boxes.h"
#include "import/onnx_emit.h"
#include "import/onnx_ops.h"
#include "tensor/box_selection.h"

namespace heddle::import {
namespace {

constexpr int64_t kMostElems = int64_t{1} << 24;  // limit for evaluation here

const Literal& known(Op& op, size_t input, const char* what) {
  const Literal& literal = op.known_or_fail(input, what);
  if (literal.elems() > kMostElems || tensor::is_complex(literal.type()))
    op.fail("input {} ({}) is {}", input, what, to_string(literal.shape()));
  return literal;
}

hlo::Computation* replacing(Op& op, Type type) {
  hlo::Computation* replace = op.b.module()->add_computation("replace");
  hlo::Builder inner(replace);
  inner.parameter(0, Shape::scalar(type), "old");
  replace->set_root(inner.parameter(1, Shape::scalar(type), "new"));
  return replace;
}

// The positions in a row of conditions at which they hold, in order.
Instr* positions_of(Op& op, Instr* holds, const Count& many) {
  const int64_t elems = holds->shape().elems(), count = many.extent;
  Instr* place = binary(op, Opcode::subtract,
                        running(op, Opcode::add, op.b.convert(holds, Type::s64), 0, false), 1);
  place = select(op, holds, place, op.b.full(place->shape(), -1));  // which scatters skip
  hlo::ScatterAttrs attrs;
  attrs.inserted_window_dims = attrs.scatter_dims_to_operand_dims = {0};
  attrs.index_vector_dim = 1;
  Instr* found = op.b.make(Opcode::scatter,
                           {op.b.full(Shape::array(Type::s64, {count}), 0),
                            reshape(op, place, {elems, 1}), iota(op, Type::s64, {elems}, 0)},
                           std::move(attrs), {replacing(op, Type::s64)});
  return op.first_rows(found, many);
}

// How many of a row of conditions hold.
Instr* number_that_hold(Op& op, Instr* holds) {
  return op.b.reduce(Opcode::add, op.b.convert(holds, Type::s64), {0});
}

// By place in a row of all elements of an array: what is at `at` along each of its dimensions.
// Arithmetic on places would have extents in it, which may be others another time.
std::vector<Instr*> looked_up(Op& op, Instr* holds, Instr* at) {
  const Ints extents = holds->shape().extents();
  std::vector<Instr*> rows;
  for (int64_t d = 0; d < holds->shape().rank(); ++d) {
    Instr* along = select(op, holds, iota(op, Type::s64, extents, d),
                          op.b.full(Shape::array(Type::s64, extents), 0));
    along = op.b.take(reshape(op, along, {product(extents)}), at, 0);
    rows.push_back(reshape(op, along, {1, at->shape().elems()}));
  }
  return rows;
}

// What an array repeats along its last dimensions, as a mask over rows does for all of their
// elements; null: it does not.
Instr* repeated_behind(Instr* x) {
  if (!x->is(Opcode::broadcast)) return nullptr;
  const Ints& dims = x->dimensions();
  Instr* source = x->operand(0);
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d] != static_cast<int64_t>(d)) return nullptr;
  if (dims.empty()) return nullptr;
  for (Instr* of = source; of->is(Opcode::reshape);) {
    of = of->operand(0);
    if (of->shape() == source->shape()) source = of;
  }
  return source;
}

std::vector<Instr*> coordinates(Op& op, Instr* x);

// Of each row that is found, and of all its elements, which are `source` alike.
std::vector<Instr*> coordinates_behind(Op& op, Instr* source, const Ints& extents) {
  std::vector<Instr*> rows = coordinates(op, source);
  const int64_t rank = std::ssize(rows), count = rows[0]->shape().dim(1);
  Ints each = {count};
  each.insert(each.end(), extents.begin() + rank, extents.end());
  for (Instr*& row : rows) row = op.b.broadcast(reshape(op, row, {count}), each, {0});
  for (int64_t d = 1; d < std::ssize(each); ++d) rows.push_back(iota(op, Type::s64, each, d));
  for (Instr*& row : rows) row = reshape(op, row, {1, product(each)});
  return rows;
}

std::vector<Instr*> coordinates_in(Op& op, Instr* array) {
  const Ints extents = array->shape().extents();
  Instr* holds = reshape(op, array, {product(extents)});
  const Count many =
      op.count(number_that_hold(op, holds), holds->shape().elems(), "number of nonzero elements");
  Instr* at = positions_of(op, holds, many);
  std::vector<Instr*> rows;
  const bool look_up = op.limits().same_for_all_extents && extents.size() > 1;
  if (look_up) rows = looked_up(op, array, at);
  for (size_t d = look_up ? 0 : extents.size(); d-- > 0;) {
    const auto extent = static_cast<double>(std::max<int64_t>(extents[d], 1));
    // Of the outermost one the quotient is below its extent, which thus need not be known.
    Instr* place = d == 0 ? at : binary(op, Opcode::remainder, at, extent);
    rows.insert(rows.begin(), reshape(op, place, {1, many.extent}));
    if (d > 0) at = binary(op, Opcode::divide, at, extent);
  }
  if (rows.empty()) rows.push_back(op.b.full(Shape::array(Type::s64, {0, many.extent}), 0));
  return rows;
}

// Coordinates of the elements of x that are not 0: [1, how many] for each dimension. Those of one
// array are found once, as their number would be two counts otherwise.
std::vector<Instr*> coordinates(Op& op, Instr* x) {
  Decisions* decisions = op.limits().decisions;
  if (decisions != nullptr)
    if (const auto known = decisions->nonzero.find(x); known != decisions->nonzero.end())
      return known->second;
  Instr* source = repeated_behind(x);
  const std::vector<Instr*> rows =
      source != nullptr                 ? coordinates_behind(op, source, x->shape().extents())
      : x->shape().type() == Type::pred ? coordinates_in(op, x)
                                        : coordinates_in(op, compare(op, Direction::ne, x, 0));
  if (decisions != nullptr) decisions->nonzero.emplace(x, rows);
  return rows;
}

Outputs computed_non_zero(Op& op) {
  const std::vector<Instr*> rows = coordinates(op, op.in(0));
  return {rows.size() == 1 ? rows[0] : op.b.concatenate(rows, 0)};
}

Outputs non_zero(Op& op) {
  if (op.known(0) == nullptr) return computed_non_zero(op);
  const Literal& x = known(op, 0, "X");
  const int64_t rank = x.shape().rank();
  Ints found;
  for (int64_t i = 0; i < x.elems(); ++i) {
    if (tensor::is_float(x.type()) ? x.get_f64(i) != 0 : x.get_s64(i) != 0) found.push_back(i);
  }
  const auto count = static_cast<int64_t>(found.size());
  Literal result(Shape::array(Type::s64, {rank, count}));
  for (int64_t k = 0; k < count; ++k) {
    int64_t rest = found[static_cast<size_t>(k)];
    for (int64_t d = rank; d-- > 0;) {
      result.set_s64(d * count + k, rest % x.shape().dim(d));
      rest /= x.shape().dim(d);
    }
  }
  return {result};
}

// Only the number of true conditions has to be known.
Outputs compress(Op& op) {
  if (op.type(1) != Type::pred || op.rank(1) != 1)
    op.fail("condition is {}, wanted bool of rank 1", to_string(op.shape(1)));
  Instr* x = op.in(0);
  int64_t axis = 0;
  if (op.has_attr("axis")) {
    axis = op.axis_attr(0, op.rank(0));
  } else {
    x = reshape(op, x, {op.shape(0).elems()});
  }
  if (op.known(1) == nullptr) {
    const int64_t extent = x->shape().dim(axis), length = op.shape(1).dim(0);
    Instr* holds = op.in(1);
    if (length > extent) op.fail("{} conditions for a dimension of {}", length, extent);
    const Count many = op.count(number_that_hold(op, holds), length, "number of true conditions");
    return {op.b.take(x, positions_of(op, holds, many), axis)};
  }
  const Literal& condition = known(op, 1, "condition");
  Ints chosen;
  for (int64_t i = 0; i < condition.elems(); ++i) {
    if (condition.get_s64(i) != 0) chosen.push_back(i);
  }
  if (!chosen.empty() && chosen.back() >= x->shape().dim(axis))
    op.fail("condition chooses {} of a dimension of {}", chosen.back(), x->shape().dim(axis));
  return {op.b.take(x, op.b.constant(ints_literal(chosen)), axis)};
}

// Slices of x along an axis (or single elements) as rows of numbers.
struct Rows {
  int64_t count = 0, width = 0;
  std::vector<int64_t> at;  // element k of row r is at[r width + k]
};

Rows rows_of(const Literal& x, std::optional<int64_t> axis) {
  Rows rows;
  if (!axis) {
    rows.count = x.elems();
    rows.width = 1;
    rows.at.resize(static_cast<size_t>(rows.count));
    std::iota(rows.at.begin(), rows.at.end(), 0);
    return rows;
  }
  const Ints extents = x.shape().extents();
  rows.count = extents[static_cast<size_t>(*axis)];
  const int64_t before = product(extents, 0, *axis), after = product(extents, *axis + 1);
  rows.width = before * after;
  for (int64_t r = 0; r < rows.count; ++r) {
    for (int64_t i = 0; i < before; ++i) {
      for (int64_t k = 0; k < after; ++k) rows.at.push_back((i * rows.count + r) * after + k);
    }
  }
  return rows;
}

struct Group {
  int64_t first = 0, count = 0;
};

// The inverse of a permutation: for each number, its position.
Instr* inverse_of(Op& op, Instr* permutation, Instr* values) {
  const int64_t elems = permutation->shape().elems();
  hlo::ScatterAttrs attrs;
  attrs.inserted_window_dims = attrs.scatter_dims_to_operand_dims = {0};
  attrs.index_vector_dim = 1;
  return op.b.make(Opcode::scatter,
                   {op.b.full(Shape::array(Type::s64, {elems}), 0),
                    reshape(op, permutation, {elems, 1}), values},
                   std::move(attrs), {replacing(op, Type::s64)});
}

// {x, y, i, j} -> x before y; sorts by it are stable.
hlo::Computation* rising(Op& op, Type type) {
  hlo::Computation* before = op.b.module()->add_computation("before");
  hlo::Builder b(before);
  Instr* x = b.parameter(0, Shape::scalar(type), "x");
  Instr* y = b.parameter(1, Shape::scalar(type), "y");
  b.parameter(2, Shape::scalar(Type::s64), "i");
  b.parameter(3, Shape::scalar(Type::s64), "j");
  before->set_root(b.compare(Direction::lt, x, y));
  return before;
}

// In sorted order, equal elements are adjacent, the first occurrence first.
Outputs computed_unique(Op& op, bool sorted) {
  const int64_t elems = op.shape(0).elems();
  const Shape all = Shape::array(Type::s64, {elems});
  Instr* places = op.b.iota(all, 0);
  Instr* both =
      op.b.sort({reshape(op, op.in(0), {elems}), places}, 0, true, rising(op, op.type(0)));
  Instr* values = op.b.get_tuple_element(both, 0);
  Instr* from = op.b.get_tuple_element(both, 1);
  Instr* differs = op.b.compare(Direction::ne, op.b.slice(values, {1}, {elems}, {}),
                                op.b.slice(values, {0}, {elems - 1}, {}));
  Instr* begins = op.b.concatenate({op.b.full(Shape::array(Type::pred, {1}), 1), differs}, 0);
  const int64_t count = op.decide(number_that_hold(op, begins), "number of distinct values");
  Instr* group = binary(op, Opcode::subtract,
                        running(op, Opcode::add, op.b.convert(begins, Type::s64), 0, false), 1);
  Instr* first = positions_of(op, begins, {count, nullptr});
  Instr* end =
      op.b.concatenate({op.b.slice(first, {1}, {count}, {}),
                        op.b.full(Shape::array(Type::s64, {1}), static_cast<double>(elems))},
                       0);
  Instr* found = op.b.take(from, first, 0);
  Instr* counts = op.b.binary(Opcode::subtract, end, first);
  values = op.b.take(values, first, 0);
  if (!sorted) {  // in order of first occurrence
    Instr* numbers = op.b.iota(Shape::array(Type::s64, {count}), 0);
    Instr* turned = op.b.sort({found, numbers}, 0, true, rising(op, Type::s64));
    Instr* order = op.b.get_tuple_element(turned, 1);
    group = op.b.take(inverse_of(op, order, numbers), group, 0);
    found = op.b.get_tuple_element(turned, 0);
    counts = op.b.take(counts, order, 0);
    values = op.b.take(values, order, 0);
  }
  return {values, found, inverse_of(op, from, group), counts};
}

Outputs unique(Op& op) {
  if (op.known(0) == nullptr && !op.has_attr("axis") && op.shape(0).elems() > 0)
    return computed_unique(op, op.int_attr("sorted", 1) != 0);
  const Literal& x = known(op, 0, "X");
  const bool sorted = op.int_attr("sorted", 1) != 0;
  std::optional<int64_t> axis;
  if (op.has_attr("axis")) axis = op.axis_attr(0, x.shape().rank());
  const Rows rows = rows_of(x, axis);
  const bool real = tensor::is_float(x.type());
  const std::vector<std::string> texts =
      op.is_text(0) ? op.known_texts(0, "X") : std::vector<std::string>();
  const auto compare_at = [&](int64_t a, int64_t b) {
    if (!texts.empty()) {
      const int order = texts[static_cast<size_t>(a)].compare(texts[static_cast<size_t>(b)]);
      return order < 0 ? -1 : order > 0 ? 1 : 0;
    }
    if (real) {
      const double u = x.get_f64(a), v = x.get_f64(b);
      return u < v ? -1 : u > v ? 1 : 0;
    }
    const int64_t u = x.get_s64(a), v = x.get_s64(b);
    if (x.type() == Type::u64)
      return static_cast<uint64_t>(u) < static_cast<uint64_t>(v) ? -1 : u != v;
    return u < v ? -1 : u > v ? 1 : 0;
  };
  const auto compare_rows = [&](int64_t a, int64_t b) {
    for (int64_t k = 0; k < rows.width; ++k) {
      const int order = compare_at(rows.at[static_cast<size_t>(a * rows.width + k)],
                                   rows.at[static_cast<size_t>(b * rows.width + k)]);
      if (order != 0) return order;
    }
    return 0;
  };
  Ints order = range(0, rows.count);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return compare_rows(a, b) < 0; });
  std::vector<Group> groups;
  Ints group_of(order.size(), 0);
  for (int64_t row : order) {
    if (groups.empty() || compare_rows(groups.back().first, row) != 0) groups.push_back({row, 0});
    ++groups.back().count;
    group_of[static_cast<size_t>(row)] = static_cast<int64_t>(groups.size()) - 1;
  }
  Ints places = range(0, static_cast<int64_t>(groups.size()));  // of the results, in `groups`
  if (!sorted)
    std::sort(places.begin(), places.end(), [&](int64_t a, int64_t b) {
      return groups[static_cast<size_t>(a)].first < groups[static_cast<size_t>(b)].first;
    });
  Ints rank_of(places.size(), 0), firsts, counts, inverse;
  for (size_t i = 0; i < places.size(); ++i) {
    const Group& group = groups[static_cast<size_t>(places[i])];
    rank_of[static_cast<size_t>(places[i])] = static_cast<int64_t>(i);
    firsts.push_back(group.first);
    counts.push_back(group.count);
  }
  for (int64_t group : group_of) inverse.push_back(rank_of[static_cast<size_t>(group)]);
  const auto many = static_cast<int64_t>(firsts.size());
  Ints extents{many};
  if (axis) {
    extents = x.shape().extents();
    extents[static_cast<size_t>(*axis)] = many;
  }
  Literal values(Shape::array(x.type(), extents));
  const Rows to = rows_of(values, axis);
  for (int64_t r = 0; r < many; ++r) {
    for (int64_t k = 0; k < rows.width; ++k)
      values.set_bits(
          to.at[static_cast<size_t>(r * rows.width + k)],
          x.get_bits(
              rows.at[static_cast<size_t>(firsts[static_cast<size_t>(r)] * rows.width + k)]));
  }
  return {values, ints_literal(firsts), ints_literal(inverse), ints_literal(counts)};
}

// A numeric input as a scalar of its type, or `otherwise`.
Instr* number_of(Op& op, size_t input, double otherwise) {
  return op.has(input) ? reshape(op, op.in(input), {}) : op.b.scalar(Type::f32, otherwise);
}

Outputs non_max_suppression(Op& op) {
  tensor::BoxSelection how;
  how.centred = op.int_attr("center_point_box", 0) != 0;
  const Ints b = op.shape(0).extents(), s = op.shape(1).extents();
  if (b.size() != 3 || s.size() != 3 || b[0] != s[0] || b[1] != s[2] || b[2] != 4 ||
      !tensor::is_float(op.type(0)) || !tensor::is_float(op.type(1)))
    op.fail("boxes is {}, scores {}: wanted [batch,boxes,4] and [batch,classes,boxes]",
            to_string(op.shape(0)), to_string(op.shape(1)));
  how.most = op.has(2) ? std::max<int64_t>(op.known_int(2, "max_output_boxes_per_class"), 0) : 0;
  how.has_least = op.has(4);
  const bool thresholds_known =
      (!op.has(3) || op.known(3) != nullptr) && (!op.has(4) || op.known(4) != nullptr);
  if (op.known(0) != nullptr && op.known(1) != nullptr && thresholds_known) {
    how.most_shared = op.has(3) ? op.known_float(3, "iou_threshold") : 0;
    how.least_score = op.has(4) ? op.known_float(4, "score_threshold") : 0;
    const Ints rows = value_or_throw(tensor::select_boxes(*op.known(0), *op.known(1), how));
    Literal result(Shape::array(Type::s64, {static_cast<int64_t>(rows.size() / 3), 3}));
    for (size_t i = 0; i < rows.size(); ++i) result.set_s64(static_cast<int64_t>(i), rows[i]);
    return {result};
  }
  const Ints most{s[0] * s[1] * std::min(how.most, b[1]), 3};
  op.check_extents(most);
  const Shape results =
      Shape::make_tuple({Shape::array(Type::s64, most), Shape::scalar(Type::s64)});
  Instr* both = op.b.make(
      Opcode::custom_call,
      {op.in(0), op.in(1),
       op.b.constant(ints_literal({how.most, how.centred ? 1 : 0, how.has_least ? 1 : 0})),
       number_of(op, 3, 0), number_of(op, 4, 0)},
      hlo::CustomCallAttrs{std::string(hlo::kSelectBoxes), false, {}, ""}, {}, &results);
  const Count count =
      op.count(op.b.get_tuple_element(both, 1), most[0], "number of boxes that are selected");
  Instr* rows = op.b.slice(op.b.get_tuple_element(both, 0), {0, 0}, {count.extent, 3}, {});
  return {op.first_rows(rows, count)};
}

constexpr OpEntry kOps[] = {
    {"Compress", 2, 2, compress, true, Text::passes},
    {"NonMaxSuppression", 2, 5, non_max_suppression},
    {"NonZero", 1, 1, non_zero},
    {"Unique", 1, 1, unique, true, Text::passes},
};

}  // namespace

std::span<const OpEntry> dynamic_ops() { return kOps; }

}  // namespace heddle::import
