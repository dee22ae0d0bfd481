#include "stage/stage_graph.h"

#include <algorithm>

#include "hlo/combiner.h"
#include "hlo/dim_classes.h"
#include "hlo/in_place.h"
#include "hlo/top_k_part.h"
#include "stage/stage_builder.h"

namespace heddle::stage {

std::vector<int64_t> Stage::out_extents() const {
  std::vector<int64_t> result;
  for (const Digit& digit : out) result.push_back(digit.extent);
  return result;
}

std::vector<int64_t> Stage::extents() const {
  std::vector<int64_t> result = out_extents();
  for (const Digit& digit : red) result.push_back(digit.extent);
  return result;
}

int64_t Stage::out_elems() const {
  int64_t product = 1;
  for (const Digit& digit : out) product *= digit.extent;
  return product;
}

int64_t Stage::red_elems() const {
  int64_t product = 1;
  for (const Digit& digit : red) product *= digit.extent;
  return product;
}

int64_t StageGraph::stored_bytes(const Output& output) const {
  return output.array < 0
             ? output.shape.bytes()
             : stage(output.stage).out_elems() * tensor::type_bytes(output.shape.type());
}

namespace {

const tensor::Shape& first_leaf(const tensor::Shape& shape) {
  return shape.is_tuple() ? shape.elements().at(0) : shape;
}

// The neutral element of a sum or product; none where the initial value will do, which takes part
// anyway (can_stage refuses windows over padding with any other combine).
std::optional<tensor::Literal> window_padding(const Instr& instr) {
  const Instr* root = instr.called().at(0)->root();
  if (!root->is(Opcode::add) && !root->is(Opcode::multiply)) return std::nullopt;
  tensor::Literal value(tensor::Shape::scalar(instr.shape().type()));
  value.set_f64(0, root->is(Opcode::multiply) ? 1 : 0);
  return value;
}

// Fills one stage from its instruction.
class Filler {
 public:
  Filler(const Members& members, const std::unordered_map<const Instr*, StageId>& stages,
         bool scans, Stage* stage)
      : stage_(*stage), builder_(members, stages, stage), scans_(scans) {}

  Decision fill(const Instr* instr) {
    stage_.name = instr->name();
    stage_.instr = instr;
    stage_.kind = opcode_info(instr->opcode()).stage;
    if (stage_.kind == hlo::StageKind::scatter || stage_.kind == hlo::StageKind::copy ||
        stage_.kind == hlo::StageKind::none)
      stage_.kind = hlo::StageKind::map;
    add_out_digits(first_leaf(instr->shape()));
    switch (instr->opcode()) {
      case Opcode::reduce:
        reduce(instr);
        break;
      case Opcode::reduce_window:
        reduce_window(instr);
        break;
      case Opcode::dot:
        dot(instr);
        break;
      case Opcode::convolution:
        convolution(instr);
        break;
      case Opcode::custom_call:
        if (hlo::top_k_part(*instr)) {
          top_k(instr);
          break;
        }
        [[fallthrough]];
      default:
        stage_.values.push_back({instr->shape().type(), builder_.expand(instr, position_, {})});
    }
    return builder_.decision;
  }

  // The elements of the box alone.
  Decision fill_box(const Instr* update) {
    const Instr* box = update->operand(1);
    stage_.name = update->name();
    stage_.instr = update;
    stage_.kind = hlo::StageKind::map;
    add_out_digits(box->shape());
    stage_.position = index::linearize(position_, update->shape().extents());
    stage_.values.push_back({box->shape().type(), builder_.value(box, position_, {})});
    return builder_.decision;
  }

 private:
  void add_out_digits(const tensor::Shape& shape) {
    for (int64_t i = 0; i < shape.rank(); ++i) {
      if (shape.dim(i) == 1) {
        position_.push_back(Expr(0));
        continue;
      }
      position_.push_back(Expr::digit(static_cast<int>(stage_.out.size())));
      stage_.out.push_back({fmt::format("d{}", i), shape.dim(i)});
    }
    stage_.position = index::linearize(position_, shape.extents());
  }

  Expr add_red(const std::string& name, int64_t extent) {
    if (extent == 1) return Expr(0);
    stage_.red.push_back({name, extent});
    return Expr::digit(static_cast<int>(stage_.out.size() + stage_.red.size() - 1));
  }

  int init_node(const Instr* init) { return builder_.value(init, {}, {}); }

  void reduce(const Instr* instr) {
    size_t count = instr->operands().size() / 2;
    const tensor::Shape& operand = instr->operand(0)->shape();
    Coordinates at;
    size_t next = 0;
    for (int64_t i = 0; i < operand.rank(); ++i) {
      bool reduced = std::find(instr->dimensions().begin(), instr->dimensions().end(), i) !=
                     instr->dimensions().end();
      at.push_back(reduced ? add_red(fmt::format("r{}", i), operand.dim(i)) : position_[next++]);
    }
    for (size_t i = 0; i < count; ++i) {
      stage_.values.push_back({instr->operand(i)->shape().type(),
                               builder_.value(instr->operand(i), at, {}),
                               init_node(instr->operand(count + i))});
    }
    stage_.combine = instr->called().at(0);
  }

  // The list's place is no digit of the element that goes into it.
  void top_k(const Instr* instr) {
    stage_.kind = hlo::StageKind::reduce;
    Coordinates at = position_;
    at.back() = add_red("r", instr->operand(0)->shape().dim(-1));
    Node place;
    place.kind = Node::Kind::index;
    place.type = Type::s32;
    place.index = at.back();
    const int value = builder_.value(instr->operand(0), at, {});
    stage_.values.push_back({instr->operand(0)->shape().type(), value});
    stage_.values.push_back({Type::s32, builder_.add(std::move(place))});
  }

  // Coordinate `stride·o + dilation·k - pad` of an input dilated by `base`, with its guards.
  Expr window_coordinate(const Expr& o, const hlo::WindowDim& dim, int64_t input, size_t i,
                         std::vector<Guard>* guards) {
    Expr k = add_red(fmt::format("w{}", i), dim.size);
    if (dim.reversal) k = Expr(dim.size - 1) - k;
    Expr x = o * dim.stride + k * dim.rhs_dilate - Expr(dim.pad_low);
    std::vector<int64_t> box = stage_.extents();
    int64_t span = (input - 1) * dim.lhs_dilate + 1;
    index::Range range = bounds(x, box);
    if (range.low < 0 || range.high >= span) guards->push_back({x, 0, span});
    if (dim.lhs_dilate > 1) guards->push_back({mod(x, dim.lhs_dilate, box), 0, 1});
    return floor_div(x, dim.lhs_dilate, box);
  }

  // Where a window leaves the input: the neutral start for a reduce-window, zero for a convolution.
  int guarded_value(const Instr* operand, const Coordinates& at, const std::vector<Guard>& guards,
                    int outside) {
    int inside = builder_.value(operand, at, guards);
    if (guards.empty()) return inside;
    Node guard;
    guard.kind = Node::Kind::guard;
    guard.type = Type::pred;
    guard.guards = guards;
    Node select;
    select.kind = Node::Kind::op;
    select.type = operand->shape().type();
    select.opcode = Opcode::select;
    int condition = builder_.add(std::move(guard));
    select.operands = {condition, inside, outside};
    return builder_.add(std::move(select));
  }

  // The one dimension along which the window is over all that stands up to an element, or from it
  // on, under an operator whose operands may change places; -1: it is another window.
  int64_t find_scan(const Instr* instr) {
    if (!scans_ || !hlo::combiner_of(*instr->called().at(0))) return -1;
    const auto& dims = instr->attrs_as<hlo::WindowAttrs>().window.dims;
    int64_t found = -1;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] == hlo::WindowDim()) continue;
      hlo::WindowDim mirrored = dims[i];
      std::swap(mirrored.pad_low, mirrored.pad_high);
      const int64_t extent = instr->shape().dim(static_cast<int64_t>(i));
      stage_.down = hlo::runs_up(mirrored, extent);
      if (found >= 0 || extent == 1 || (!stage_.down && !hlo::runs_up(dims[i], extent))) return -1;
      found = static_cast<int64_t>(i);
    }
    return found;
  }

  void scan(const Instr* instr, int64_t dimension) {
    int number = 0;
    while (!(position_[static_cast<size_t>(dimension)] == Expr::digit(number))) ++number;
    stage_.kind = hlo::StageKind::scan;
    stage_.scan = number;
    stage_.combine = instr->called().at(0);
    const Type type = instr->shape().type();
    const Instr* root = stage_.combine->root();
    stage_.exact = tensor::is_float(type) && (root->is(Opcode::add) || root->is(Opcode::multiply));
    stage_.values.push_back(
        {type, builder_.value(instr->operand(0), position_, {}), init_node(instr->operand(1))});
  }

  void reduce_window(const Instr* instr) {
    if (const int64_t dimension = find_scan(instr); dimension >= 0) return scan(instr, dimension);
    const auto& window = instr->attrs_as<hlo::WindowAttrs>().window;
    std::vector<Guard> guards;
    Coordinates at;
    for (size_t i = 0; i < window.dims.size(); ++i)
      at.push_back(window_coordinate(position_[i], window.dims[i],
                                     instr->operand(0)->shape().dim(i), i, &guards));
    int init = init_node(instr->operand(1));
    // Padding does not take part: what the combine does not notice stands there.
    std::optional<tensor::Literal> value = window_padding(*instr);
    int outside = value ? builder_.constant(*value) : init;
    stage_.values.push_back(
        {instr->shape().type(), guarded_value(instr->operand(0), at, guards, outside), init});
    stage_.combine = instr->called().at(0);
    stage_.kind = hlo::StageKind::reduce;
  }

  void product(int a, int b, const Instr* instr) {
    // The product's own type: both sides are converted to the result's type first.
    Type type = instr->shape().type();
    auto converted = [&](int node) {
      if (stage_.nodes[node].type == type) return node;
      Node convert;
      convert.kind = Node::Kind::op;
      convert.type = type;
      convert.opcode = Opcode::convert;
      convert.operands = {node};
      return builder_.add(std::move(convert));
    };
    a = converted(a);
    b = converted(b);
    stage_.values.push_back({type, builder_.multiply(a, b, type)});
  }

  void dot(const Instr* instr) {
    const auto& attrs = instr->attrs_as<hlo::DotAttrs>();
    const tensor::Shape& lhs = instr->operand(0)->shape();
    const tensor::Shape& rhs = instr->operand(1)->shape();
    Coordinates a(lhs.rank()), b(rhs.rank());
    size_t next = 0;
    std::vector<bool> a_done(lhs.rank()), b_done(rhs.rank());
    for (size_t i = 0; i < attrs.lhs_batch_dims.size(); ++i) {
      a[attrs.lhs_batch_dims[i]] = b[attrs.rhs_batch_dims[i]] = position_[next++];
      a_done[attrs.lhs_batch_dims[i]] = b_done[attrs.rhs_batch_dims[i]] = true;
    }
    for (size_t i = 0; i < attrs.lhs_contracting_dims.size(); ++i) {
      int64_t l = attrs.lhs_contracting_dims[i], r = attrs.rhs_contracting_dims[i];
      a[l] = b[r] = add_red(fmt::format("k{}", i), lhs.dim(l));
      a_done[l] = b_done[r] = true;
    }
    for (int64_t i = 0; i < lhs.rank(); ++i)
      if (!a_done[i]) a[i] = position_[next++];
    for (int64_t i = 0; i < rhs.rank(); ++i)
      if (!b_done[i]) b[i] = position_[next++];
    int left = builder_.value(instr->operand(0), a, {});
    int right = builder_.value(instr->operand(1), b, {});
    product(left, right, instr);
  }

  void convolution(const Instr* instr) {
    const auto& attrs = instr->attrs_as<hlo::ConvolutionAttrs>();
    const tensor::Shape& input = instr->operand(0)->shape();
    const tensor::Shape& kernel = instr->operand(1)->shape();
    int64_t in_per_group = kernel.dim(attrs.dims.kernel_input_feature);
    int64_t out_per_group =
        kernel.dim(attrs.dims.kernel_output_feature) / attrs.feature_group_count;
    Coordinates x(input.rank()), w(kernel.rank());
    std::vector<Guard> guards;
    Expr channel = add_red("ci", in_per_group);
    Expr out_channel = position_[attrs.dims.output_feature];
    x[attrs.dims.input_batch] = position_[attrs.dims.output_batch];
    x[attrs.dims.input_feature] =
        channel + floor_div(out_channel, out_per_group, stage_.extents()) * in_per_group;
    w[attrs.dims.kernel_input_feature] = channel;
    w[attrs.dims.kernel_output_feature] = out_channel;
    for (size_t i = 0; i < attrs.window.dims.size(); ++i) {
      const hlo::WindowDim& dim = attrs.window.dims[i];
      size_t before = stage_.out.size() + stage_.red.size();
      int64_t spatial = attrs.dims.input_spatial[i];
      x[spatial] = window_coordinate(position_[attrs.dims.output_spatial[i]], dim,
                                     input.dim(spatial), i, &guards);
      w[attrs.dims.kernel_spatial[i]] =
          dim.size == 1 ? Expr(0) : Expr::digit(static_cast<int>(before));
    }
    Node zero;
    zero.type = instr->operand(0)->shape().type();
    int outside = builder_.add(std::move(zero));
    int left = guarded_value(instr->operand(0), x, guards, outside);
    int right = builder_.value(instr->operand(1), w, {});
    product(left, right, instr);
  }

  Stage& stage_;
  StageBuilder builder_;
  Coordinates position_;
  const bool scans_;
};

// Scalar arithmetic of inputs and constants.
bool is_scalar_code(const Instr* value, const Members& members) {
  if (!value->shape().is_scalar()) return false;
  if (members.is_input(value) || value->is(Opcode::constant)) return true;
  if (!has_trait(value->opcode(), hlo::elementwise) && !value->is(Opcode::reshape) &&
      !value->is(Opcode::bitcast))
    return false;
  return std::all_of(value->operands().begin(), value->operands().end(),
                     [&](const Instr* operand) { return is_scalar_code(operand, members); });
}

// The array is memory that the kernel changes and does not read.
Decision check_box(const Instr* update, const Members& members) {
  const Instr* array = update->operand(0);
  const bool is_output = members.is_output(update) && members.readers(update).empty();
  if (!is_output || !members.is_input(array) || members.is_output(array) ||
      members.readers(array).size() != 1)
    return Decision::no("in-place", "{} puts a box into what its kernel reads", update->name());
  for (size_t i = 2; i < update->operands().size(); ++i)
    if (!is_scalar_code(update->operand(i), members))
      return Decision::no("in-place-start", "the start of {} is more than scalar arithmetic",
                          update->name());
  return Decision::yes();
}

void add_box(const Instr* update, const Members& members, Output* output) {
  output->array = members.input_number(update->operand(0));
  const tensor::Shape &all = update->shape(), &box = update->operand(1)->shape();
  int64_t stride = 1;
  for (int64_t d = all.rank(); d-- > 0; stride *= all.dim(d))
    if (const int64_t limit = all.dim(d) - box.dim(d); limit > 0)
      output->starts.push_back({update->operand(static_cast<size_t>(2 + d)), limit, stride});
}

// Outputs that are inputs, or a value that another leaf already stores, need a stage that
// copies; everything else is a value of its own stage.
Decision add_outputs(const Members& members,
                     const std::unordered_map<const Instr*, StageId>& stages, StageGraph* graph) {
  for (const Instr* leaf : members.outputs()) {
    const Instr* root = leaf->is(Opcode::get_tuple_element) ? leaf->operand(0) : leaf;
    int value = leaf->is(Opcode::get_tuple_element) ? static_cast<int>(leaf->tuple_index()) : 0;
    if (const auto part = hlo::top_k_part(*root)) value = part->places ? 1 : 0;
    auto found = stages.find(root);
    int values = leaf->shape().is_tuple() ? static_cast<int>(leaf->shape().elements().size()) : 1;
    for (int i = 0; i < values; ++i) {
      int number = static_cast<int>(graph->outputs.size());
      if (found != stages.end() &&
          graph->stages[found->second.index()].values[value + i].output < 0) {
        Stage& stage = graph->stages[found->second.index()];
        stage.values[value + i].output = number;
        graph->outputs.push_back(
            {found->second, value + i,
             (leaf->shape().is_tuple() ? leaf->shape().elements()[i] : leaf->shape())
                 .without_layout()});
        if (hlo::is_in_place(*leaf)) add_box(leaf, members, &graph->outputs.back());
        continue;
      }
      if (leaf->shape().is_tuple())
        return Decision::no("tuple-twice", "{} leaves the fusion twice", leaf->name());
      StageId id(graph->stages.size());
      graph->stages.emplace_back();
      Stage& stage = graph->stages.back();
      StageBuilder builder(members, stages, &stage);
      stage.name = leaf->name() + ".copy";
      stage.instr = leaf;
      Coordinates at;
      for (int64_t d = 0; d < leaf->shape().rank(); ++d) {
        at.push_back(leaf->shape().dim(d) == 1 ? Expr(0)
                                               : Expr::digit(static_cast<int>(stage.out.size())));
        if (leaf->shape().dim(d) != 1)
          stage.out.push_back({fmt::format("d{}", d), leaf->shape().dim(d)});
      }
      stage.position = index::linearize(at, leaf->shape().extents());
      stage.values.push_back({leaf->shape().type(), builder.value(leaf, at, {})});
      stage.values[0].output = number;
      if (!builder.decision) return builder.decision;
      graph->outputs.push_back({id, 0, leaf->shape().without_layout()});
    }
  }
  return Decision::yes();
}

// Another result of the same top-k, which has a stage already.
const Instr* twin_of(const Instr* instr, const Members& members,
                     const std::unordered_map<const Instr*, StageId>& stages) {
  const auto part = hlo::top_k_part(*instr);
  if (!part) return nullptr;
  for (const Instr* user : members.readers(instr->operand(0))) {
    const auto other = user == instr ? std::nullopt : hlo::top_k_part(*user);
    if (other && other->k == part->k && other->largest == part->largest && stages.count(user))
      return user;
  }
  return nullptr;
}

}  // namespace

StagedOrNot build_stage_graph(const Members& members, bool repeat_cheap, bool scans) {
  StagedOrNot result;
  StageGraph& graph = result.graph;
  graph.name = members.name();
  for (const Instr* input : members.inputs())
    graph.inputs.push_back({input->shape().without_layout()});
  std::unordered_set<const Instr*> roots = choose_sub_roots(members, repeat_cheap);
  std::unordered_map<const Instr*, StageId> stages;
  for (const Instr* instr : members.instrs()) {
    if (instr->is(Opcode::tuple) || instr->is(Opcode::get_tuple_element)) continue;
    if (Decision possible = can_stage(*instr); !possible) {
      result.decision = possible;
      return result;
    }
    if (!roots.count(instr)) continue;
    if (const Instr* twin = twin_of(instr, members, stages)) {
      stages.emplace(instr, stages.at(twin));
      continue;
    }
    StageId id(graph.stages.size());
    Stage stage;
    Filler filler(members, stages, scans, &stage);
    if (hlo::is_in_place(*instr)) {
      result.decision = check_box(instr, members);
      if (result.decision) result.decision = filler.fill_box(instr);
    } else {
      result.decision = filler.fill(instr);
    }
    if (!result.decision) return result;
    graph.stages.push_back(std::move(stage));
    stages.emplace(instr, id);
  }
  result.decision = add_outputs(members, stages, &graph);
  if (result.decision) split_digits(&graph);
  return result;
}

}  // namespace heddle::stage
