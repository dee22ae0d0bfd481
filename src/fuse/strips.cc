#include "fuse/strips.h"

#include <algorithm>

#include "cost/step_cost.h"
#include "fuse/overwritten.h"
#include "hlo/builder.h"
#include "hlo/loop_trips.h"
#include "schedule/place.h"

namespace heddle::fuse {

namespace {

using hlo::Builder;
using hlo::Ints;
using tensor::Shape;

constexpr int64_t kLeastRows = 8, kEnoughRows = 64;      // of a strip
constexpr size_t kMostStarts = 8;                        // leaves and dimensions that are followed
constexpr int64_t kMostStripBytes = int64_t{512} << 10;  // of its state and of a step's values

// Rows of a strip: a divisor with the least predicted time for all cores; of equal ones the
// smallest. 0: none.
int64_t choose_rows(int64_t rows, int cores) {
  int64_t best = 0, best_time = 0;
  for (int64_t strip = rows / 2; strip >= kLeastRows; --strip) {
    if (rows % strip != 0) continue;
    const int64_t turns = (rows / strip + cores - 1) / cores;
    const int64_t time = turns * std::max(strip, kEnoughRows);
    if (best == 0 || time <= best_time) {
      best = strip;
      best_time = time;
    }
  }
  return best;
}

class StripCutter {
 public:
  StripCutter(Instr* loop, const std::vector<int64_t>& read, const target::Target& target)
      : loop_(loop),
        body_(loop->called()[1]),
        condition_(loop->called()[0]),
        leaves_(static_cast<int64_t>(loop->shape().elements().size())),
        read_(read),
        target_(target) {}

  Decision run(Strips* strips) {
    own_computations();
    Decision decision = find_rows();
    if (decision) decision = check();
    if (!decision) return decision;
    for (int64_t i = 0; i < leaves_; ++i)
      unread_.push_back(flow_->use_of(i) == LeafUse::whole && !hlo::is_invariant_leaf(loop_, i) &&
                        is_overwritten(loop_, i));
    shrink();
    if (decision = check_kernels(); !decision) return decision;
    strips->loop = build();
    for (int64_t i = 0; i < leaves_; ++i) strips->uses.push_back(flow_->use_of(i));
    strips->step_ns = step_ns_;
    return Decision::yes();
  }

 private:
  void own_computations() {
    for (Instr* instr : std::vector<Instr*>(body_->instrs()))
      if (instr->is(Opcode::fusion))
        body_->set_called(instr, 0, body_->module()->clone_computation(*instr->called()[0]));
  }

  bool is_read(int64_t leaf) const {
    return std::find(read_.begin(), read_.end(), leaf) != read_.end();
  }

  // Finds the longest dimension of the state along which the steps are independent.
  Decision find_rows() {
    std::vector<std::pair<int64_t, int64_t>> starts;
    for (int64_t i = 0; i < leaves_; ++i)
      if (!hlo::is_invariant_leaf(loop_, i))
        for (int64_t d = 0; d < leaf_shape(i).rank(); ++d) starts.emplace_back(i, d);
    auto extent = [&](const auto& start) { return leaf_shape(start.first).dim(start.second); };
    std::stable_sort(starts.begin(), starts.end(),
                     [&](const auto& a, const auto& b) { return extent(a) > extent(b); });
    if (starts.size() > kMostStarts) starts.resize(kMostStarts);
    Decision decision = Decision::no("loop-rows", "its state has no rows");
    for (const auto& [leaf, dim] : starts) {
      rows_ = choose_rows(leaf_shape(leaf).dim(dim), target_.cores);
      if (rows_ == 0) continue;
      flow_.emplace(loop_);
      decision = flow_->follow(leaf, dim);
      if (decision) {
        count_ = flow_->rows() / rows_;
        return decision;
      }
    }
    return decision;
  }

  const Shape& leaf_shape(int64_t leaf) const {
    return loop_->shape().elements()[static_cast<size_t>(leaf)];
  }

  // Whether it reads or updates slices of an array that all strips share.
  bool takes_start(const Instr* instr) const {
    return (instr->is(Opcode::dynamic_slice) || instr->is(Opcode::dynamic_update_slice)) &&
           flow_->is_whole(instr->operand(0));
  }
  static size_t first_index(const Instr* instr) { return instr->is(Opcode::dynamic_slice) ? 1 : 2; }

  Decision check() {
    for (int64_t i = 0; i < leaves_; ++i) {
      const LeafUse use = flow_->use_of(i);
      const bool changes = !hlo::is_invariant_leaf(loop_, i);
      if (use == LeafUse::counted && is_read(i))
        return Decision::no("loop-rows", "leaf {} is the same in every strip", i);
      if ((use == LeafUse::summed || (use == LeafUse::whole && changes)) && !is_read(i))
        return Decision::no("loop-rows", "nothing reads leaf {}", i);
      if (use != LeafUse::shared && use != LeafUse::counted)
        for (const Instr* instr : condition_->instrs())
          if (instr->is(Opcode::get_tuple_element) && instr->tuple_index() == i)
            return Decision::no("loop-rows", "its end depends on leaf {}", i);
    }
    bool any = false;
    for (const Instr* instr : flow_->instrs()) {
      if (!takes_start(instr)) continue;
      const tensor::Type type = instr->operand(first_index(instr))->shape().type();
      if (type != index_type_ && any)
        return Decision::no("loop-rows", "boxes are located by indices of two types");
      index_type_ = type;
      any = true;
    }
    return Decision::yes();
  }

  Shape of_strip(const Shape& shape, RowPlace place) const {
    Ints extents = shape.extents();
    extents[static_cast<size_t>(place.dim)] = rows_ * place.unit;
    return Shape::array(shape.type(), extents);
  }

  // Turns the body into that of one strip: values with rows have as many as a strip; slices of
  // shared arrays begin at its first row.
  void shrink() {
    Instr* state = body_->parameters()[0];
    first_row_ = body_->add(Opcode::get_tuple_element, Shape::scalar(index_type_), {state},
                            hlo::TupleIndexAttrs{leaves_}, {}, "first_row");
    std::unordered_map<Computation*, Instr*> starts;  // of fusions' computations
    for (Instr* instr : flow_->instrs()) {
      const std::optional<RowPlace> place = flow_->place_of(instr);
      if (takes_start(instr)) {
        Computation* parent = instr->parent();
        Instr*& start = starts[parent];
        if (!start && parent == body_) start = first_row_;
        if (!start) {
          const auto number = static_cast<int64_t>(parent->parameters().size());
          start = parent->add(Opcode::parameter, Shape::scalar(index_type_), {},
                              hlo::ParameterAttrs{number}, {}, "first_row");
        }
        const auto dim = static_cast<size_t>(flow_->place_of(instr->operand(0))->dim);
        parent->replace_operand(instr, first_index(instr) + dim, start);
      }
      if (!place || flow_->is_whole(instr)) continue;
      const auto dim = static_cast<size_t>(place->dim);
      instr->set_shape(of_strip(instr->shape(), *place));
      if (instr->is(Opcode::slice))
        instr->mutable_attrs_as<hlo::SliceAttrs>().limits[dim] = rows_ * place->unit;
      if (instr->is(Opcode::dynamic_slice))
        instr->mutable_attrs_as<hlo::DynamicSliceAttrs>().slice_sizes[dim] = rows_ * place->unit;
    }
    for (Instr* instr : std::vector<Instr*>(body_->instrs())) {
      if (!instr->is(Opcode::fusion)) continue;
      Computation* inner = instr->called()[0];
      retype(inner->root());
      instr->set_shape(inner->root()->shape());
      if (!starts.count(inner)) continue;
      std::vector<Instr*> operands = instr->operands();
      operands.push_back(first_row_);
      Instr* made = body_->add(Opcode::fusion, instr->shape(), operands, instr->attrs(), {inner},
                               instr->name());
      body_->replace_all_uses(instr, made);
      body_->remove(instr);
    }
    std::vector<Instr*> next = body_->root()->operands();
    next.push_back(first_row_);
    std::vector<Shape> shapes;
    for (const Instr* leaf : next) shapes.push_back(leaf->shape());
    state_shape_ = Shape::make_tuple(shapes);
    body_->set_root(body_->add(Opcode::tuple, state_shape_, next));
    state->set_shape(state_shape_);
    condition_->parameters()[0]->set_shape(state_shape_);
    body_->remove_dead();
    body_->sort();
  }

  static void retype(Instr* root) {
    if (!root->is(Opcode::tuple)) return;
    std::vector<Shape> shapes;
    for (const Instr* element : root->operands()) shapes.push_back(element->shape());
    root->set_shape(Shape::make_tuple(shapes));
  }

  Decision check_kernels() {
    std::vector<const Instr*> kernels;
    int64_t bytes = 0;
    auto count = [&](const Shape& shape) {
      if (shape.is_array()) bytes += shape.bytes();
    };
    for (const Instr* instr : body_->instrs()) {
      if (instr->is(Opcode::dynamic_update_slice) || instr->is(Opcode::fusion))
        kernels.push_back(instr);
      if (!instr->is(Opcode::fusion)) continue;
      count(instr->shape());
      if (instr->shape().is_tuple())
        for (const Shape& shape : instr->shape().elements()) count(shape);
      const Decision placed = schedule::place(*instr->called()[0], target_).decision;
      if (!placed) return placed;
    }
    for (int64_t i = 0; i < leaves_; ++i)
      if (flow_->use_of(i) == LeafUse::carried || flow_->use_of(i) == LeafUse::summed)
        count(state_shape_.elements()[static_cast<size_t>(i)]);
    if (bytes > kMostStripBytes)
      return Decision::no("loop-state", "a strip of {} rows has {} bytes", rows_, bytes);
    const int64_t turns = (count_ + target_.cores - 1) / target_.cores;
    step_ns_ = static_cast<double>(turns) * cost::cost_of_step(kernels, target_).alone_ns;
    return Decision::yes();
  }

  // Builds the loop over strips, beside the original loop.
  Instr* build() {
    Computation* around = loop_->parent();
    hlo::Module* module = around->module();
    Builder outside(around), inside(module->add_computation(body_->name() + ".strips")),
        asks(module->add_computation(condition_->name() + ".strips"));
    Instr* all = outside.tuple(state_before(&outside));

    Instr* state = inside.parameter(0, all->shape(), "state");
    std::vector<Instr*> now;
    for (int64_t i = 0; i < leaves_ + kStripLeaves; ++i)
      now.push_back(inside.get_tuple_element(state, i));
    none_ = inside.constant(number(0));
    Instr* steps = inside.while_loop(condition_, body_, inside.tuple(first_of_strip(now, &inside)));
    hlo::set_trips(steps, *hlo::known_trips(loop_));
    inside.computation()->set_root(inside.tuple(after_strip(now, steps, &inside)));

    Instr* asked = asks.get_tuple_element(asks.parameter(0, all->shape(), "state"), 0);
    asks.computation()->set_root(
        asks.compare(hlo::Direction::lt, asked, asks.constant(number(count_))));
    Instr* strips = outside.while_loop(asks.computation(), inside.computation(), all);
    hlo::set_trips(strips, count_);
    hlo::set_strips(strips);
    outside.check();
    inside.check();
    asks.check();
    return strips;
  }

  // The number of the strip, its first row, then the loop's leaves; a summed leaf has an entry for
  // each strip.
  std::vector<Instr*> state_before(Builder* b) const {
    const Instr* init = loop_->operand(0);
    std::vector<Instr*> begin{b->constant(number(0)), b->constant(number(0))};
    for (int64_t i = 0; i < leaves_; ++i) {
      Instr* leaf = init->operand(static_cast<size_t>(i));
      if (flow_->use_of(i) == LeafUse::summed) {
        Ints extents = leaf->shape().extents();
        extents.insert(extents.begin(), count_);
        leaf = b->full(Shape::array(leaf->shape().type(), extents), 0);
      } else if (unread_[static_cast<size_t>(i)]) {
        leaf = b->full(leaf->shape(), 0);
        hlo::set_unread(leaf);
      }
      begin.push_back(leaf);
    }
    return begin;
  }

  std::vector<Instr*> starts(const Shape& shape, int64_t dim, Instr* start) const {
    std::vector<Instr*> result(static_cast<size_t>(shape.rank()), none_);
    result[static_cast<size_t>(dim)] = start;
    return result;
  }

  // The extents of one strip's entry of a summed leaf.
  static Ints box_of(const Instr* leaf) {
    Ints box = leaf->shape().extents();
    box[0] = 1;
    return box;
  }

  // The initial state of a strip's steps: its rows, its entry of the sums; the first row comes
  // last.
  std::vector<Instr*> first_of_strip(const std::vector<Instr*>& now, Builder* b) const {
    Instr *strip = now[0], *row = now[1];
    std::vector<Instr*> first;
    for (int64_t i = 0; i < leaves_; ++i) {
      Instr* leaf = now[static_cast<size_t>(i + kStripLeaves)];
      const LeafUse use = flow_->use_of(i);
      const Shape& shape = state_shape_.elements()[static_cast<size_t>(i)];
      if (use == LeafUse::carried || use == LeafUse::sliced)
        leaf =
            b->dynamic_slice(leaf, starts(shape, flow_->leaf_place(i)->dim, row), shape.extents());
      else if (use == LeafUse::summed)
        leaf = b->reshape(b->dynamic_slice(leaf, starts(leaf->shape(), 0, strip), box_of(leaf)),
                          shape.extents());
      first.push_back(leaf);
    }
    first.push_back(row);
    return first;
  }

  // The state after a strip, whose results are stored in their places.
  std::vector<Instr*> after_strip(const std::vector<Instr*>& now, Instr* steps, Builder* b) const {
    Instr *strip = now[0], *row = now[1];
    std::vector<Instr*> next{b->binary(Opcode::add, strip, b->constant(number(1))),
                             b->binary(Opcode::add, row, b->constant(number(rows_)))};
    for (int64_t i = 0; i < leaves_; ++i) {
      Instr* leaf = now[static_cast<size_t>(i + kStripLeaves)];
      const LeafUse use = flow_->use_of(i);
      auto result = [&] { return b->get_tuple_element(steps, i); };
      if (use == LeafUse::whole && !hlo::is_invariant_leaf(loop_, i))
        leaf = result();
      else if (use == LeafUse::carried && is_read(i))
        leaf = b->dynamic_update_slice(leaf, result(),
                                       starts(leaf->shape(), flow_->leaf_place(i)->dim, row));
      else if (use == LeafUse::summed)
        leaf = b->dynamic_update_slice(leaf, b->reshape(result(), box_of(leaf)),
                                       starts(leaf->shape(), 0, strip));
      next.push_back(leaf);
    }
    return next;
  }

  tensor::Literal number(int64_t value) const {
    tensor::Literal literal(Shape::scalar(index_type_));
    literal.set_s64(0, value);
    return literal;
  }

  Instr* loop_;
  Computation *body_, *condition_;
  Instr* none_ = nullptr;  // zero, in the body of the loop over strips
  const int64_t leaves_;
  const std::vector<int64_t>& read_;
  const target::Target& target_;
  std::optional<BatchFlow> flow_;
  int64_t rows_ = 0, count_ = 0;
  std::vector<bool> unread_;                     // by leaf: the value before the loop is not read
  tensor::Type index_type_ = tensor::Type::s32;  // of the starts of slices
  Instr* first_row_ = nullptr;
  Shape state_shape_;
  double step_ns_ = 0;
};

}  // namespace

Decision cut_into_strips(Instr* loop, const std::vector<int64_t>& read,
                         const target::Target& target, Strips* strips) {
  return StripCutter(loop, read, target).run(strips);
}

Instr* add_strips(Computation* parent, Instr* sums, Instr* before) {
  Builder made(parent->module()->add_computation("strips"));
  Instr* all = made.parameter(0, sums->shape().without_layout());
  Instr* first = made.parameter(1, before->shape().without_layout());
  made.computation()->set_root(made.binary(Opcode::add, first, made.reduce(Opcode::add, all, {0})));
  made.check();
  return parent->add(Opcode::fusion, made.computation()->root()->shape(), {sums, before},
                     hlo::FusionAttrs{}, {made.computation()});
}

}  // namespace heddle::fuse
