// Operators whose result's shape depends on values: they run here, where those values are known.
// Elsewhere the shape would be dynamic, which is refused.
#include <algorithm>
#include <map>
#include <numeric>

#include "import/onnx_emit.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

constexpr int64_t kMostElems = int64_t{1} << 24;  // that are worked on here

const Literal& known(Op& op, size_t input, const char* what) {
  const Literal& literal = op.known_or_fail(input, what);
  if (literal.elems() > kMostElems || tensor::is_complex(literal.type()))
    op.fail("input {} ({}) is {}", input, what, to_string(literal.shape()));
  return literal;
}

Outputs non_zero(Op& op) {
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

// Only the condition has to be known.
Outputs compress(Op& op) {
  const Literal& condition = known(op, 1, "condition");
  if (condition.type() != Type::pred || condition.shape().rank() != 1)
    op.fail("condition is {}, wanted bool of rank 1", to_string(condition.shape()));
  Instr* x = op.in(0);
  int64_t axis = 0;
  if (op.has_attr("axis")) {
    axis = op.axis_attr(0, op.rank(0));
  } else {
    x = reshape(op, x, {op.shape(0).elems()});
  }
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

Outputs unique(Op& op) {
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
  Ints places = range(0, static_cast<int64_t>(groups.size()));  // of the results, in groups
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

struct Box {
  double top, left, bottom, right;
  double area() const { return (bottom - top) * (right - left); }
};

Box read_box(const Literal& boxes, int64_t at, bool centre) {
  double v[4];
  for (int64_t i = 0; i < 4; ++i) v[i] = boxes.get_f64(at * 4 + i);
  if (centre) return {v[1] - v[3] / 2, v[0] - v[2] / 2, v[1] + v[3] / 2, v[0] + v[2] / 2};
  return {std::min(v[0], v[2]), std::min(v[1], v[3]), std::max(v[0], v[2]), std::max(v[1], v[3])};
}

double overlap(const Box& a, const Box& b) {
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (!(height > 0) || !(width > 0) || !(a.area() > 0) || !(b.area() > 0)) return 0;
  const double shared = height * width;
  return shared / (a.area() + b.area() - shared);
}

Outputs non_max_suppression(Op& op) {
  const bool centre = op.int_attr("center_point_box", 0) != 0;
  const Literal &boxes = known(op, 0, "boxes"), &scores = known(op, 1, "scores");
  const Ints b = boxes.shape().extents(), s = scores.shape().extents();
  if (b.size() != 3 || s.size() != 3 || b[0] != s[0] || b[1] != s[2] || b[2] != 4 ||
      !tensor::is_float(boxes.type()) || !tensor::is_float(scores.type()))
    op.fail("boxes is {}, scores {}: wanted [batch,boxes,4] and [batch,classes,boxes]",
            to_string(boxes.shape()), to_string(scores.shape()));
  const int64_t most =
      op.has(2) ? std::max<int64_t>(op.known_int(2, "max_output_boxes_per_class"), 0) : 0;
  const double iou = op.has(3) ? op.known_float(3, "iou_threshold") : 0;
  constexpr int64_t kMostBoxes = 1 << 13;  // the work is their square
  if (b[1] > kMostBoxes || s[0] * s[1] > kMostBoxes) op.fail("{} boxes", b[1]);
  Ints selected;
  for (int64_t group = 0; group < s[0] * s[1]; ++group) {
    const int64_t batch = group / s[1];
    const auto score = [&](int64_t i) { return scores.get_f64(group * b[1] + i); };
    Ints order;
    for (int64_t i = 0; i < b[1]; ++i) {
      if (!op.has(4) || score(i) > op.known_float(4, "score_threshold")) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t i, int64_t j) { return score(i) > score(j); });
    std::vector<Box> kept;
    for (int64_t i : order) {
      if (static_cast<int64_t>(kept.size()) >= most) break;
      const Box box = read_box(boxes, batch * b[1] + i, centre);
      if (std::any_of(kept.begin(), kept.end(),
                      [&](const Box& other) { return overlap(box, other) > iou; }))
        continue;
      kept.push_back(box);
      selected.insert(selected.end(), {batch, group % s[1], i});
    }
  }
  Literal result(Shape::array(Type::s64, {static_cast<int64_t>(selected.size() / 3), 3}));
  for (size_t i = 0; i < selected.size(); ++i) result.set_s64(static_cast<int64_t>(i), selected[i]);
  return {result};
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
