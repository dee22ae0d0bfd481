#include "stage/partials.h"

#include <cmath>
#include <cstring>

#include "hlo/combiner.h"

namespace heddle::stage {

using index::Expr;

namespace {

void substitute_in(Stage* stage, const std::vector<Expr>& with) {
  const std::vector<int64_t> box = stage->extents();
  auto moved = [&](Expr& x) { x = substitute(x, with, box); };
  for (Load& load : stage->loads) {
    for (Expr& x : load.coordinates) moved(x);
    for (index::Guard& guard : load.guards) moved(guard.value);
  }
  for (Node& node : stage->nodes) {
    moved(node.index);
    for (index::Guard& guard : node.guards) moved(guard.value);
  }
}

// Turns the value into a partial result that starts from the neutral element.
void start_at(Stage* stage, Type type, uint64_t neutral) {
  Value& value = stage->values[0];
  Node start;
  start.type = type;
  start.bits = neutral;
  stage->nodes.push_back(start);
  value.init = static_cast<int>(stage->nodes.size() - 1);
  value.type = type;
  value.output = -1;
  stage->position =
      index::linearize(index::identity(stage->out_extents()).results, stage->out_extents());
}

// Elements past the end of the dimension are neutral.
void guard(Stage* stage, const index::Guard& inside, Type type) {
  Value& value = stage->values[0];
  auto add = [&](Node node) {
    stage->nodes.push_back(std::move(node));
    return static_cast<int>(stage->nodes.size() - 1);
  };
  Node holds;
  holds.kind = Node::Kind::guard;
  holds.type = Type::pred;
  holds.guards = {inside};
  const int condition = add(std::move(holds));
  int element = value.result;
  if (stage->nodes[static_cast<size_t>(element)].type != type) {
    Node convert;
    convert.kind = Node::Kind::op;
    convert.type = type;
    convert.opcode = hlo::Opcode::convert;
    convert.operands = {element};
    element = add(std::move(convert));
  }
  Node select;
  select.kind = Node::Kind::op;
  select.type = type;
  select.opcode = hlo::Opcode::select;
  select.operands = {condition, element, value.init};
  value.result = add(std::move(select));
}

}  // namespace

std::optional<uint64_t> neutral_bits(const Stage& stage, Type type) {
  const hlo::Instr* root = stage.combine->root();
  if (root->operands().size() != 2 || root->operand(0) == root->operand(1)) return std::nullopt;
  for (const hlo::Instr* operand : root->operands())
    if (!operand->is(hlo::Opcode::parameter)) return std::nullopt;
  const bool is_float = tensor::is_float(type);
  const int bits = static_cast<int>(8 * tensor::type_bytes(type));
  const uint64_t all = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  tensor::Literal value(tensor::Shape::scalar(type));
  auto as_bits = [&](double x) {
    value.set_f64(0, x);
    uint64_t result = 0;
    std::memcpy(&result, value.data(), static_cast<size_t>(tensor::type_bytes(type)));
    return result;
  };
  const bool is_signed =
      type == Type::s8 || type == Type::s16 || type == Type::s32 || type == Type::s64;
  switch (root->opcode()) {
    case hlo::Opcode::add:
      return as_bits(0);
    case hlo::Opcode::multiply:
      return as_bits(1);
    case hlo::Opcode::or_:
      return 0;
    case hlo::Opcode::and_:
      return type == Type::pred ? 1 : all;
    case hlo::Opcode::maximum:
      if (is_float) return as_bits(-INFINITY);
      return is_signed ? uint64_t{1} << (bits - 1) : 0;
    case hlo::Opcode::minimum:
      if (is_float) return as_bits(INFINITY);
      return type == Type::pred ? 1 : is_signed ? all >> 1 : all;
    default:
      return std::nullopt;
  }
}

Type partial_type(Type type) { return type == Type::f16 || type == Type::bf16 ? Type::f32 : type; }

Stage row_sum(Stage stage, int digit, Type type, uint64_t neutral) {
  std::vector<Expr> with;
  for (int d = 0; d < static_cast<int>(stage.extents().size()); ++d)
    with.push_back(Expr::digit(d == digit ? 0 : d < digit ? d + 1 : d));
  const auto red = stage.red.begin() + (digit - static_cast<int64_t>(stage.out.size()));
  stage.out.insert(stage.out.begin(), *red);
  stage.red.erase(red);
  stage.name += ".row";
  substitute_in(&stage, with);
  start_at(&stage, type, neutral);
  return stage;
}

Stage combining(const Stage& stage, Type type, const Digit& rest) {
  Stage combine;
  combine.name = stage.name;
  combine.kind = hlo::StageKind::reduce;
  combine.instr = stage.instr;
  combine.out = stage.out;
  combine.red = {rest};
  combine.combine = stage.combine;
  combine.position = stage.position;
  Load load;
  const auto out = static_cast<int>(stage.out.size());
  load.coordinates.push_back(Expr::digit(out));
  for (int d = 0; d < out; ++d) load.coordinates.push_back(Expr::digit(d));
  combine.loads.push_back(std::move(load));
  Node node;
  node.kind = Node::Kind::load;
  node.type = type;
  node.load = 0;
  combine.nodes = {node, stage.nodes[static_cast<size_t>(stage.values[0].init)]};
  Value value = stage.values[0];
  value.result = 0;
  value.init = 1;
  combine.values = {value};
  return combine;
}

Stage partial_sum(Stage stage, int digit, const Strips& strips, Type type, uint64_t neutral) {
  std::vector<Expr> with;
  const auto digits = static_cast<int>(stage.extents().size());
  for (int d = 0; d < digits; ++d)
    with.push_back(d == digit ? Expr::digit(0) * strips.strip + Expr::digit(d + 1)
                              : Expr::digit(d + 1));
  const size_t red = static_cast<size_t>(digit) - stage.out.size();
  stage.red[red].extent = strips.strip;
  stage.out.insert(stage.out.begin(), Digit{"p", strips.parts});
  stage.name += ".partial";
  substitute_in(&stage, with);
  const index::Guard inside{with[static_cast<size_t>(digit)], 0, strips.extent};
  for (Load& load : stage.loads) {
    const bool along = std::any_of(load.coordinates.begin(), load.coordinates.end(),
                                   [&](const Expr& x) { return x.uses(0); });
    if (strips.is_ragged() && along) load.guards.push_back(inside);
  }
  start_at(&stage, type, neutral);
  if (strips.is_ragged()) guard(&stage, inside, type);
  return stage;
}

bool starts_neutral(const Stage& stage) {
  const hlo::Instr* init = stage.instr->operand(stage.values.size());
  if (stage.values.size() != 1 || !init->is(hlo::Opcode::constant)) return false;
  // One operator on the two elements: a sum of squares by its combine is no sum of its parts.
  const std::optional<hlo::Opcode> combiner = hlo::combiner_of(*stage.combine);
  const double value = init->literal().get_f64(0);
  return (combiner == hlo::Opcode::add && value == 0) ||
         (combiner == hlo::Opcode::multiply && value == 1) ||
         (combiner == hlo::Opcode::maximum && value == -INFINITY) ||
         (combiner == hlo::Opcode::minimum && value == INFINITY);
}

}  // namespace heddle::stage
