#include "stage/fill.h"

#include <algorithm>

#include "hlo/combiner.h"
#include "hlo/dim_classes.h"
#include "hlo/in_place.h"
#include "hlo/top_k_part.h"
#include "stage/stage_builder.h"

namespace heddle::stage {

namespace {

const tensor::Shape& first_leaf(const tensor::Shape& shape) {
  return shape.is_tuple() ? shape.elements().at(0) : shape;
}

// The neutral element of a sum or product; none if the initial value will do, which takes part
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
      : members_(members), stage_(*stage), builder_(members, stages, stage), scans_(scans) {}

  Decision fill(const Instr* instr) {
    stage_.name = instr->name();
    stage_.instr = instr;
    stage_.kind = opcode_info(instr->opcode()).stage;
    if (instr->is(Opcode::scatter)) return scatter(instr);
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

  Decision fill_copy(const Instr* value) {
    stage_.name = value->name() + ".copy";
    stage_.instr = value;
    add_out_digits(value->shape());
    stage_.values.push_back({value->shape().type(), builder_.value(value, position_, {})});
    return builder_.decision;
  }

  // Operand `number` of a concatenation, which begins at `start` in the joined dimension.
  Decision fill_part(const Instr* joined, size_t number, int64_t start) {
    const Instr* part = joined->operand(number);
    stage_.name = fmt::format("{}.part{}", joined->name(), number);
    stage_.instr = joined;
    stage_.kind = hlo::StageKind::map;
    add_out_digits(part->shape());
    Coordinates at = position_;
    at[joined->dimensions()[0]] = at[joined->dimensions()[0]] + Expr(start);
    stage_.position = index::linearize(at, joined->shape().extents());
    stage_.values.push_back({part->shape().type(), builder_.value(part, position_, {})});
    return builder_.decision;
  }

  // Only the elements that the update writes.
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
  // `first`: the first dimension gets a digit whatever its extent.
  void add_out_digits(const tensor::Shape& shape, bool first = false) {
    for (int64_t i = 0; i < shape.rank(); ++i) {
      if (shape.dim(i) == 1 && !(first && i == 0)) {
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

  // The position in the list is not a digit of the elements that are compared.
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

  // The operand's value, or `outside` where the window leaves the input: a neutral value for a
  // reduce-window, zero for a convolution.
  int guarded_value(const Instr* operand, const Coordinates& at, const std::vector<Guard>& guards,
                    int outside) {
    const int inside = builder_.value(operand, at, guards);
    return builder_.guarded(guards, inside, outside, operand->shape().type());
  }

  // A row scatter (row_scatter.h). The last of several may be stored in place, over the first one's
  // table.
  Decision scatter(const Instr* instr) {
    const Instr *table = instr->operand(0), *indices = instr->operand(1);
    const Instr* updates = instr->operand(2);
    add_out_digits(instr->shape(), /*first=*/true);
    Coordinates index, update;
    const int64_t outer = updates->shape().rank() - (instr->shape().rank() - 1);
    for (int64_t d = 0; d < outer; ++d)
      index.push_back(add_red(fmt::format("u{}", d), updates->shape().dim(d)));
    update = index;
    update.insert(update.end(), position_.begin() + 1, position_.end());
    index.resize(static_cast<size_t>(indices->shape().rank()), Expr(0));
    Node row;
    row.kind = Node::Kind::op;
    row.type = Type::s64;
    row.opcode = Opcode::convert;
    row.operands = {builder_.value(indices, index, {})};
    stage_.scatter = builder_.add(std::move(row));
    stage_.values.push_back({instr->shape().type(), builder_.value(updates, update, {})});
    if (!keeps_table(instr)) stage_.values[0].init = builder_.value(table, position_, {});
    if (hlo::combiner_of(*instr->called().at(0))) stage_.combine = instr->called().at(0);
    return builder_.decision;
  }

  bool keeps_table(const Instr* scatter) const {
    if (!members_.is_input(scatter->operand(0))) return false;
    while (members_.readers(scatter).size() == 1) scatter = members_.readers(scatter)[0];
    return hlo::is_in_place(*scatter);
  }

  // The one dimension along which the window covers all elements up to the current one, or from it
  // on, under a commutative operator; -1: it is another kind of window.
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
    // Padding does not take part: it has a value that the combine ignores.
    std::optional<tensor::Literal> value = window_padding(*instr);
    int outside = value ? builder_.constant(*value) : init;
    stage_.values.push_back(
        {instr->shape().type(), guarded_value(instr->operand(0), at, guards, outside), init});
    stage_.combine = instr->called().at(0);
    stage_.kind = hlo::StageKind::reduce;
  }

  void product(int a, int b, const Instr* instr) {
    // Both operands are converted to the result's type first.
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

  const Members& members_;
  Stage& stage_;
  StageBuilder builder_;
  Coordinates position_;
  const bool scans_;
};

}  // namespace

Decision fill(const Members& members, const Stages& stages, bool scans, const Instr* instr,
              Stage* stage) {
  return Filler(members, stages, scans, stage).fill(instr);
}

Decision fill_box(const Members& members, const Stages& stages, const Instr* update, Stage* stage) {
  return Filler(members, stages, false, stage).fill_box(update);
}

Decision fill_copy(const Members& members, const Stages& stages, const Instr* value, Stage* stage) {
  return Filler(members, stages, false, stage).fill_copy(value);
}

Decision fill_part(const Members& members, const Stages& stages, const Instr* joined, size_t number,
                   int64_t start, Stage* stage) {
  return Filler(members, stages, false, stage).fill_part(joined, number, start);
}

}  // namespace heddle::stage
