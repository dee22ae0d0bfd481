// The expression DAG of a stage: one function per kind of instruction.
#include <algorithm>
#include <optional>

#include "hlo/index_access.h"
#include "hlo/top_k_part.h"
#include "hlo/winograd_filter.h"
#include "stage/stage_builder.h"

namespace heddle::stage {

namespace {

constexpr size_t kMostRepeats = 3, kFewEvaluations = 32;

// The guards that can decide whether `at` is in bounds: run-time ones, and ones that share a
// variable with it.
std::vector<Guard> that_matter(const std::vector<Guard>& guards, const Coordinates& at,
                               size_t variables) {
  std::vector<Guard> result;
  for (const Guard& guard : guards) {
    bool matters = guard.value.uses_runtime();
    for (size_t v = 0; v < variables && !matters; ++v) {
      const int variable = static_cast<int>(v);
      matters = guard.value.uses(variable) && std::any_of(at.begin(), at.end(), [&](const Expr& x) {
                  return x.uses_runtime() || x.uses(variable);
                });
    }
    if (matters) result.push_back(guard);
  }
  return result;
}

}  // namespace

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

// Whether its element is an expression of its operands' elements.
bool has_map_body(const Instr* instr) {
  const hlo::StageKind kind = opcode_info(instr->opcode()).stage;
  return kind == hlo::StageKind::map && has_trait(instr->opcode(), hlo::elementwise);
}

}  // namespace

int StageBuilder::value(const Instr* instr, const Coordinates& at,
                        const std::vector<Guard>& guards) {
  if (!decision) return 0;
  if (const int input = members_.input_number(instr); input >= 0) {
    // Inputs are dense and row-major: one linear coordinate, so that digits merge where they may.
    return load({input, {}, 0}, {index::linearize(at, instr->shape().extents())}, guards,
                instr->shape().type());
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
  // An element of a map at a run-time offset is computed by the reader: its region is unknown.
  const bool moves =
      std::any_of(at.begin(), at.end(), [](const Expr& x) { return x.uses_runtime(); });
  if (moves && root == instr && stage != stages_.end() && has_map_body(instr))
    stage = stages_.end();
  if (stage != stages_.end()) {
    // Dimensions of extent 1 have no digit; split_digits() has not run yet: one digit per
    // dimension.
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
  int node = 0;
  switch (instr->opcode()) {
    case Opcode::get_tuple_element:
      node = value(instr, at, guards);
      break;
    case Opcode::constant:
      node = constant(instr->literal());
      break;
    case Opcode::iota: {
      Node iota;
      iota.kind = Node::Kind::index;
      iota.type = instr->shape().type();
      iota.index = at[instr->attrs_as<hlo::DimensionAttrs>().dimension];
      node = add(std::move(iota));
      break;
    }
    case Opcode::custom_call:
      node = winograd_filter(instr, at, guards);
      break;
    default:
      node = opcode_info(instr->opcode()).cost == hlo::CostClass::move
                 ? moved(instr, at, guards)
                 : elementwise(instr, at, guards);
      break;
  }
  memo.push_back({at, guards, node});
  return node;
}

int StageBuilder::elementwise(const Instr* instr, const Coordinates& at,
                              const std::vector<Guard>& guards) {
  Decision possible = can_stage(*instr);
  // An operator is duplicated for every position at which it is read: in a chain of shifted reads,
  // the number of copies doubles with each step.
  if (possible && ++evaluations_ > kMostRepeats * members_.instrs().size() + kFewEvaluations)
    possible = Decision::no("repeated", "{} operators would be written out more than {} times each",
                            members_.instrs().size(), kMostRepeats);
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
    // Scalar operands of clamp and select apply to every element.
    bool scalar = operand->shape().is_scalar() && !instr->shape().is_scalar();
    node.operands.push_back(value(operand, scalar ? Coordinates{} : at, guards));
  }
  return add(std::move(node));
}

// Element [i, j, c, f] is made from all points; the load reads the first one, in its panel.
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

// A concatenation that rotates one array: element i is element (i + by) mod n. Not along the last
// dimension, where the lanes are: they read two parts in two pieces.
std::optional<Roll> rolled(const Instr& concatenate, const Members& members) {
  if (!concatenate.is(Opcode::concatenate)) return std::nullopt;
  const int64_t dimension = concatenate.dimensions()[0];
  const tensor::Shape& shape = concatenate.shape();
  int64_t inside = 1;
  for (int64_t d = dimension + 1; d < shape.rank(); ++d) inside *= shape.dim(d);
  if (inside <= 1 || shape.elems() == 0) return std::nullopt;
  std::optional<Roll> roll;
  int64_t next = 0;
  for (const Instr* part : concatenate.operands()) {
    if (!part->is(Opcode::slice) || members.is_input(part)) return std::nullopt;
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

// An element of an operand, or of several that are adjacent or overlap.
int StageBuilder::moved(const Instr* instr, const Coordinates& at,
                        const std::vector<Guard>& guards) {
  const std::vector<int64_t> box = stage_.extents();
  if (const auto roll =
          rolled(*instr, members_)) {  // one read instead of one per part and a selection
    const int64_t dimension = instr->dimensions()[0];
    Coordinates inner = at;
    inner[dimension] = mod(at[dimension] + Expr(roll->by), instr->shape().dim(dimension), box);
    return value(roll->whole, inner, guards);
  }
  std::vector<std::pair<const Instr*, hlo::Access>> parts;
  for (size_t k : hlo::layers(*instr)) {
    hlo::Access access = hlo::access(*instr, k, at, box, [&](const hlo::DimLink& link) {
      return position(instr, link, at, guards);
    });
    if (!access.is_nowhere) parts.emplace_back(instr->operand(k), std::move(access));
  }
  int result = -1;
  for (const auto& [operand, access] : parts) {
    std::vector<Guard> all = guards;
    all.insert(all.end(), access.inside.begin(), access.inside.end());
    const int part = value(operand, access.at, that_matter(all, access.at, box.size()));
    result = result < 0 ? part : guarded(access.inside, part, result, instr->shape().type());
  }
  return std::max(result, 0);
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

// The run-time position of a link, for the element at `at`.
Expr StageBuilder::position(const Instr* instr, const hlo::DimLink& link, const Coordinates& at,
                            const std::vector<Guard>& guards) {
  const auto k = static_cast<size_t>(link.other);
  Coordinates where(instr->operand(k)->shape().rank(), Expr(link.other_dim));
  for (const hlo::DimLink& of : hlo::index_map(*instr, k).links)
    if (of.kind == hlo::DimKind::same) where[of.from] = at[of.to];
  const int start = runtime_start(instr->operand(k), where, link.limit, guards);
  return Expr::runtime(start, {0, link.limit});
}

}  // namespace heddle::stage
