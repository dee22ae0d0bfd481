// The expression DAG of a stage: one function per kind of instruction.
#include <algorithm>
#include <optional>

#include "hlo/top_k_part.h"
#include "hlo/winograd_filter.h"
#include "schedule/stage_builder.h"

namespace heddle::schedule {

int StageBuilder::add(Node node) {
  for (size_t i = 0; i < stage_.nodes.size(); ++i) {
    const Node& other = stage_.nodes[i];
    if (other.kind == node.kind && other.type == node.type && other.load == node.load &&
        other.bits == node.bits && other.index == node.index && other.guards == node.guards &&
        other.operands == node.operands &&
        (node.kind != Node::Kind::op ||
         (other.opcode == node.opcode &&
          (other.instr == node.instr ||
           (other.instr && node.instr && other.instr->attrs() == node.instr->attrs())))))
      return static_cast<int>(i);
  }
  stage_.nodes.push_back(std::move(node));
  return static_cast<int>(stage_.nodes.size() - 1);
}

int StageBuilder::load(Source source, Coordinates coordinates, const std::vector<Guard>& guards,
                       Type type) {
  Load load{source, std::move(coordinates), guards};
  auto found = std::find(stage_.loads.begin(), stage_.loads.end(), load);
  int number = static_cast<int>(found - stage_.loads.begin());
  if (found == stage_.loads.end()) stage_.loads.push_back(std::move(load));
  Node node;
  node.kind = Node::Kind::load;
  node.type = type;
  node.load = number;
  return add(std::move(node));
}

int StageBuilder::constant(const tensor::Literal& literal) {
  Node node;
  node.kind = Node::Kind::constant;
  node.type = literal.type();
  std::memcpy(&node.bits, literal.data(), tensor::type_bytes(literal.type()));
  return add(std::move(node));
}

int StageBuilder::integer(int64_t value, Type type) {
  Node node;
  node.type = type;
  node.bits = static_cast<uint64_t>(value);
  if (tensor::type_bytes(type) < 8)
    node.bits &= (uint64_t{1} << (8 * tensor::type_bytes(type))) - 1;
  return add(std::move(node));
}

int StageBuilder::multiply(int a, int b, Type type) {
  Node node;
  node.kind = Node::Kind::op;
  node.type = type;
  node.opcode = type == Type::pred ? Opcode::and_ : Opcode::multiply;
  node.operands = {a, b};
  return add(std::move(node));
}

int StageBuilder::guarded(const std::vector<Guard>& condition, int on_true, int on_false,
                          Type type) {
  if (condition.empty()) return on_true;
  Node guard;
  guard.kind = Node::Kind::guard;
  guard.type = Type::pred;
  guard.guards = condition;
  Node select;
  select.kind = Node::Kind::op;
  select.type = type;
  select.opcode = Opcode::select;
  select.operands = {add(std::move(guard)), on_true, on_false};
  return add(std::move(select));
}

namespace {

// Its element is an expression of elements of its operands.
bool has_map_body(const Instr* instr) {
  const hlo::StageKind kind = opcode_info(instr->opcode()).stage;
  return kind == hlo::StageKind::map && has_trait(instr->opcode(), hlo::elementwise);
}

}  // namespace

int StageBuilder::value(const Instr* instr, const Coordinates& at,
                        const std::vector<Guard>& guards) {
  if (!decision) return 0;
  if (instr->is(Opcode::parameter)) {
    // Inputs are dense and row-major: one linear coordinate, so that digits merge where they may.
    return load({static_cast<int>(instr->parameter_number()), {}, 0},
                {index::linearize(at, instr->shape().extents())}, guards, instr->shape().type());
  }
  int leaf = 0;
  const Instr* root = instr;
  if (instr->is(Opcode::get_tuple_element)) {
    leaf = static_cast<int>(instr->tuple_index());
    root = instr->operand(0);
  } else if (const auto part = hlo::top_k_part(*instr)) {
    leaf = part->places ? 1 : 0;
  }
  auto stage = stages_.find(root);
  // What a run-time offset asks of a map is made at that place: nobody knows where it would lie.
  const bool moves =
      std::any_of(at.begin(), at.end(), [](const Expr& x) { return x.uses_runtime(); });
  if (moves && root == instr && stage != stages_.end() && has_map_body(instr))
    stage = stages_.end();
  if (stage != stages_.end()) {
    // Dimensions of extent 1 have no digit; split_digits() has not run yet: one digit a dimension.
    Coordinates digits;
    const tensor::Shape& shape = instr->shape();
    for (int64_t i = 0; i < shape.rank(); ++i)
      if (shape.dim(i) != 1) digits.push_back(at[i]);
    return load({-1, stage->second, leaf}, digits, guards, shape.type());
  }
  return expand(instr, at, guards);
}

int StageBuilder::expand(const Instr* instr, const Coordinates& at,
                         const std::vector<Guard>& guards) {
  auto& memo = memo_[instr];
  for (const Memo& entry : memo)
    if (entry.at == at && entry.guards == guards) return entry.node;
  const std::vector<int64_t> box = stage_.extents();
  Coordinates inner;
  int node = 0;
  switch (instr->opcode()) {
    case Opcode::parameter:
    case Opcode::get_tuple_element:
      node = value(instr, at, guards);
      break;
    case Opcode::constant:
      node = constant(instr->literal());
      break;
    case Opcode::copy:
      node = value(instr->operand(0), at, guards);
      break;
    case Opcode::broadcast:
      for (int64_t i = 0; i < instr->operand(0)->shape().rank(); ++i)
        inner.push_back(instr->operand(0)->shape().dim(i) == 1 ? Expr(0)
                                                               : at[instr->dimensions()[i]]);
      node = value(instr->operand(0), inner, guards);
      break;
    case Opcode::transpose:
      inner.resize(at.size());
      for (size_t i = 0; i < at.size(); ++i) inner[instr->dimensions()[i]] = at[i];
      node = value(instr->operand(0), inner, guards);
      break;
    case Opcode::reshape:
    case Opcode::bitcast: {
      index::Map map =
          index::reshape(instr->shape().extents(), instr->operand(0)->shape().extents());
      for (const Expr& result : map.results) inner.push_back(substitute(result, at, box));
      node = value(instr->operand(0), inner, guards);
      break;
    }
    case Opcode::slice: {
      const auto& attrs = instr->attrs_as<hlo::SliceAttrs>();
      for (size_t i = 0; i < at.size(); ++i)
        inner.push_back(at[i] * attrs.strides[i] + Expr(attrs.starts[i]));
      node = value(instr->operand(0), inner, guards);
      break;
    }
    case Opcode::reverse:
      inner = at;
      for (int64_t d : instr->dimensions()) inner[d] = Expr(instr->shape().dim(d) - 1) - at[d];
      node = value(instr->operand(0), inner, guards);
      break;
    case Opcode::iota: {
      Node iota;
      iota.kind = Node::Kind::index;
      iota.type = instr->shape().type();
      iota.index = at[instr->attrs_as<hlo::DimensionAttrs>().dimension];
      node = add(std::move(iota));
      break;
    }
    case Opcode::concatenate:
      node = concatenate(instr, at, guards);
      break;
    case Opcode::pad:
      node = pad(instr, at, guards);
      break;
    case Opcode::gather:
      node = gather(instr, at, guards);
      break;
    case Opcode::dynamic_slice:
      node = dynamic_slice(instr, at, guards);
      break;
    case Opcode::dynamic_update_slice:
      node = dynamic_update_slice(instr, at, guards);
      break;
    case Opcode::custom_call:
      node = winograd_filter(instr, at, guards);
      break;
    default:
      node = elementwise(instr, at, guards);
      break;
  }
  memo.push_back({at, guards, node});
  return node;
}

int StageBuilder::elementwise(const Instr* instr, const Coordinates& at,
                              const std::vector<Guard>& guards) {
  Decision possible = can_stage(*instr);
  if (!possible) {
    decision = possible;
    return 0;
  }
  Node node;
  node.kind = Node::Kind::op;
  node.type = instr->shape().type();
  node.opcode = instr->opcode();
  node.instr = instr;
  for (const Instr* operand : instr->operands()) {
    // Scalars of clamp and select stand for every element.
    bool scalar = operand->shape().is_scalar() && !instr->shape().is_scalar();
    node.operands.push_back(value(operand, scalar ? Coordinates{} : at, guards));
  }
  return add(std::move(node));
}

// What stands at [i, j, c, f] is made of all points; the load is of the first, in its panel.
int StageBuilder::winograd_filter(const Instr* instr, const Coordinates& at,
                                  const std::vector<Guard>& guards) {
  if (Decision possible = can_stage(*instr); !possible) {
    decision = possible;
    return 0;
  }
  if (stage_.kind != hlo::StageKind::conv) {
    decision = Decision::no("winograd-filter", "{} is read by no convolution", instr->name());
    return 0;
  }
  const int64_t width = instr->operand(0)->shape().dim(4);
  const std::vector<int64_t> box = stage_.extents();
  stage_.winograd = static_cast<int>(hlo::winograd_filter(*instr));
  return value(instr->operand(0),
               {Expr(0), Expr(0), floor_div(at[3], width, box), at[2], mod(at[3], width, box)},
               guards);
}

namespace {

struct Roll {
  const Instr* whole;
  int64_t by;
};

// The parts of one array in another order that goes round: element i is element (i + by) mod n.
// Not along the last dimension, where lanes run: they read two parts in two pieces.
std::optional<Roll> rolled(const Instr& concatenate) {
  const int64_t dimension = concatenate.dimensions()[0];
  const tensor::Shape& shape = concatenate.shape();
  int64_t inside = 1;
  for (int64_t d = dimension + 1; d < shape.rank(); ++d) inside *= shape.dim(d);
  if (inside <= 1 || shape.elems() == 0) return std::nullopt;
  std::optional<Roll> roll;
  int64_t next = 0;
  for (const Instr* part : concatenate.operands()) {
    if (!part->is(Opcode::slice)) return std::nullopt;
    const Instr* whole = part->operand(0);
    const auto& attrs = part->attrs_as<hlo::SliceAttrs>();
    if (!roll) roll = {whole, next = attrs.starts[dimension]};
    if (whole != roll->whole || whole->shape().extents() != shape.extents()) return std::nullopt;
    for (int64_t d = 0; d < shape.rank(); ++d) {
      const bool all = part->shape().dim(d) == shape.dim(d);
      if (attrs.strides[d] != 1 || (d != dimension && !all)) return std::nullopt;
    }
    if (attrs.starts[dimension] != next) return std::nullopt;
    next = (next + part->shape().dim(dimension)) % shape.dim(dimension);
  }
  return roll;
}

}  // namespace

int StageBuilder::concatenate(const Instr* instr, const Coordinates& at,
                              const std::vector<Guard>& guards) {
  int64_t dimension = instr->dimensions().at(0);
  const std::vector<int64_t> box = stage_.extents();
  if (const auto roll = rolled(*instr)) {  // one read in place of one a part and a selection
    Coordinates inner = at;
    const int64_t extent = instr->shape().dim(dimension);
    inner[dimension] = mod(at[dimension] + Expr(roll->by), extent, box);
    return value(roll->whole, inner, guards);
  }
  index::Range range = bounds(at[dimension], box);
  int result = -1;
  int64_t end = instr->shape().dim(dimension);
  for (size_t i = instr->operands().size(); i-- > 0;) {
    const Instr* operand = instr->operand(i);
    int64_t begin = end - operand->shape().dim(dimension);
    if (begin < end && range.low < end && range.high >= begin) {
      Coordinates inner = at;
      inner[dimension] = at[dimension] - Expr(begin);
      std::vector<Guard> condition, all = guards;
      if (range.low < begin || range.high >= end) {
        condition.push_back({at[dimension], begin, end});
        all.push_back(condition[0]);
      }
      int part = value(operand, inner, all);
      result = result < 0 ? part : guarded(condition, part, result, instr->shape().type());
    }
    end = begin;
  }
  return std::max(result, 0);
}

int StageBuilder::pad(const Instr* instr, const Coordinates& at, const std::vector<Guard>& guards) {
  const auto& attrs = instr->attrs_as<hlo::PadAttrs>();
  const tensor::Shape& operand = instr->operand(0)->shape();
  const std::vector<int64_t> box = stage_.extents();
  Coordinates inner;
  std::vector<Guard> condition, all = guards;
  bool empty = false;
  for (size_t i = 0; i < at.size(); ++i) {
    Expr shifted = at[i] - Expr(attrs.low[i]);
    int64_t step = attrs.interior[i] + 1;
    int64_t span = (operand.dim(i) - 1) * step + 1;
    index::Range range = bounds(shifted, box);
    empty |= operand.dim(i) == 0;
    if (range.low < 0 || range.high >= span) condition.push_back({shifted, 0, span});
    if (step > 1) condition.push_back({mod(shifted, step, box), 0, 1});
    inner.push_back(floor_div(shifted, step, box));
  }
  int outside = value(instr->operand(1), {}, guards);
  if (empty) return outside;
  all.insert(all.end(), condition.begin(), condition.end());
  int inside = value(instr->operand(0), inner, all);
  return guarded(condition, inside, outside, instr->shape().type());
}

// A start index as an s64 node, clamped to [0, limit].
int StageBuilder::runtime_start(const Instr* indices, const Coordinates& at, int64_t limit,
                                const std::vector<Guard>& guards) {
  Node convert;
  convert.kind = Node::Kind::op;
  convert.type = Type::s64;
  convert.opcode = Opcode::convert;
  convert.operands = {value(indices, at, guards)};
  Node clamp;
  clamp.kind = Node::Kind::op;
  clamp.type = Type::s64;
  clamp.opcode = Opcode::clamp;
  clamp.operands = {integer(0, Type::s64), add(std::move(convert)), integer(limit, Type::s64)};
  return add(std::move(clamp));
}

Expr StageBuilder::runtime(int node, int64_t limit) {
  return limit == 0 ? Expr(0) : Expr::runtime(node, {0, limit});
}

int StageBuilder::gather(const Instr* instr, const Coordinates& at,
                         const std::vector<Guard>& guards) {
  const auto& attrs = instr->attrs_as<hlo::GatherAttrs>();
  const Instr* operand = instr->operand(0);
  const Instr* indices = instr->operand(1);
  auto in = [](const hlo::Ints& list, int64_t x) {
    return std::find(list.begin(), list.end(), x) != list.end();
  };
  Coordinates batch, offsets;
  for (size_t i = 0; i < at.size(); ++i)
    (in(attrs.offset_dims, static_cast<int64_t>(i)) ? offsets : batch).push_back(at[i]);
  Coordinates inner;
  size_t next_offset = 0;
  for (int64_t d = 0; d < operand->shape().rank(); ++d) {
    Expr coordinate;
    auto mapped = std::find(attrs.start_index_map.begin(), attrs.start_index_map.end(), d);
    if (mapped != attrs.start_index_map.end()) {
      Coordinates where = batch;
      if (attrs.index_vector_dim < indices->shape().rank())
        where.insert(where.begin() + attrs.index_vector_dim,
                     Expr(mapped - attrs.start_index_map.begin()));
      int64_t limit = operand->shape().dim(d) - attrs.slice_sizes[d];
      coordinate = runtime(runtime_start(indices, where, limit, guards), limit);
    }
    auto batching =
        std::find(attrs.operand_batching_dims.begin(), attrs.operand_batching_dims.end(), d);
    if (batching != attrs.operand_batching_dims.end()) {
      int64_t dim =
          attrs.start_indices_batching_dims[batching - attrs.operand_batching_dims.begin()];
      coordinate = batch[dim > attrs.index_vector_dim ? dim - 1 : dim];
    } else if (!in(attrs.collapsed_slice_dims, d)) {
      coordinate = coordinate + offsets[next_offset++];
    }
    inner.push_back(coordinate);
  }
  return value(operand, inner, guards);
}

int StageBuilder::dynamic_slice(const Instr* instr, const Coordinates& at,
                                const std::vector<Guard>& guards) {
  const Instr* operand = instr->operand(0);
  Coordinates inner;
  for (size_t i = 0; i < at.size(); ++i) {
    int64_t limit = operand->shape().dim(i) - instr->shape().dim(i);
    const Instr* start = instr->operand(instr->operands().size() == 2 && !at.empty() &&
                                                instr->operand(1)->shape().rank() == 1
                                            ? 1
                                            : 1 + i);
    Coordinates where;
    if (start->shape().rank() == 1) where.push_back(Expr(static_cast<int64_t>(i)));
    inner.push_back(
        limit == 0 ? at[i] : at[i] + runtime(runtime_start(start, where, limit, guards), limit));
  }
  return value(operand, inner, guards);
}

int StageBuilder::dynamic_update_slice(const Instr* instr, const Coordinates& at,
                                       const std::vector<Guard>& guards) {
  const Instr* update = instr->operand(1);
  Coordinates inner;
  std::vector<Guard> condition, all = guards;
  for (size_t i = 0; i < at.size(); ++i) {
    int64_t extent = update->shape().dim(i);
    int64_t limit = instr->shape().dim(i) - extent;
    Expr shifted = at[i];
    if (limit > 0) {
      shifted = at[i] - runtime(runtime_start(instr->operand(2 + i), {}, limit, guards), limit);
      condition.push_back({shifted, 0, extent});
    }
    inner.push_back(shifted);
  }
  int outside = value(instr->operand(0), at, guards);
  all.insert(all.end(), condition.begin(), condition.end());
  return guarded(condition, value(update, inner, all), outside, instr->shape().type());
}

}  // namespace heddle::schedule
