// choose_layout: convolutions (and pools not reached from one) take their features last
// (activations [N,spatial…,C], filters [spatial…,I,O]), and the consumers of their results keep
// that order: elementwise operators, windows, broadcasts, reductions, slices, concatenations,
// reshapes that keep dimensions whole. A network in NCHW ends up with one transpose of its inputs
// and one of its outputs, unless even these merge with others. Only instructions reachable from a
// convolution or a pool are changed. No sum changes its order.
//
// One walk in order; each instruction is rebuilt at most once, so it ends. A second run finds every
// convolution in this layout and changes nothing.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "opt/follow_layout.h"
#include "opt/passes.h"
#include "opt/pull_layout.h"
#include "opt/rules.h"

namespace heddle::opt {
namespace {

Ints channels_last(int64_t batch, const Ints& spatial, int64_t feature) {
  Ints order{batch};
  order.insert(order.end(), spatial.begin(), spatial.end());
  order.push_back(feature);
  return order;
}

// A window as large as its stride on whole patches: convolution_to_dot cuts the patches out of the
// input in its present layout, and that is the only data movement.
bool is_patches(const Instr* x) {
  const auto& attrs = x->attrs_as<hlo::ConvolutionAttrs>();
  if (attrs.feature_group_count != 1) return false;
  bool larger = false;
  for (size_t i = 0; i < attrs.window.dims.size(); ++i) {
    const hlo::WindowDim& d = attrs.window.dims[i];
    if (d.size != d.stride || d.pad_low != 0 || d.pad_high != 0 || d.lhs_dilate != 1 ||
        d.rhs_dilate != 1 || x->operand(0)->shape().dim(attrs.dims.input_spatial[i]) % d.size != 0)
      return false;
    larger |= d.size > 1;
  }
  return larger;
}

bool is_pointwise(const hlo::Window& window) {
  return std::all_of(window.dims.begin(), window.dims.end(),
                     [](const hlo::WindowDim& d) { return d.size == 1; });
}

// A pool over an image with the features second: its windows include the last dimension, so vector
// lanes would lie across the windows.
bool is_pool_of_features(const Instr* x) {
  constexpr int64_t kLeastFeatures = 8, kLeastWindow = 3, kLeastElems = 4096;
  if (!x->is(Opcode::reduce_window) || x->operands().size() != 2 || !are_static_arrays(x) ||
      x->shape().rank() < 3 || x->operand(0)->shape().elems() < kLeastElems ||
      x->shape().dim(1) < kLeastFeatures)
    return false;
  const auto& dims = x->attrs_as<hlo::WindowAttrs>().window.dims;
  int64_t seen = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (d < 2 &&
        (dims[d].size != 1 || dims[d].stride != 1 || dims[d].pad_low != 0 || dims[d].pad_high != 0))
      return false;
    seen *= dims[d].size;
  }
  return seen >= kLeastWindow && dims.back().size > 1;
}

class Layouts {
 public:
  Layouts(Computation* computation, const PassContext& context)
      : computation_(computation), context_(context), b_(computation) {
    store_as_ = [this](Instr* value, const Ints& order) { return stored(value, order); };
    is_free_ = [this](Instr* value, const Ints& order) {
      const auto kept = kept_.find(value);
      return kept == kept_.end() ? is_free(value, order) : kept->second.order == order;
    };
  }

  bool run() {
    const std::vector<Instr*> all = computation_->instrs();
    for (size_t i = 0; i < all.size(); ++i) {
      places_.emplace(all[i], place_ = i);
      visit(all[i]);
    }
    if (!changed_) return false;
    Instr* root = computation_->root();
    if (kept_.count(root)) computation_->set_root(logical(root));
    b_.check();
    computation_->remove_dead();
    keep_order();
    return true;
  }

 private:
  // Puts each rebuilt instruction at the position of its original, and any other new instruction
  // before its first user: which of two branches a kernel fuses depends on the order, and must not
  // depend on the layout.
  void keep_order() {
    std::vector<Instr*> order = computation_->instrs();
    std::vector<std::pair<size_t, size_t>> keys(order.size());  // position, and index in `order`
    std::unordered_map<const Instr*, size_t> numbers;
    for (size_t i = order.size(); i-- > 0;) {
      numbers.emplace(order[i], i);
      const auto known = places_.find(order[i]);
      keys[i] = {known != places_.end() ? known->second : place_, i};
      if (known != places_.end()) continue;
      for (const Instr* user : order[i]->users())
        keys[i].first = std::min(keys[i].first, keys[numbers.at(user)].first);
    }
    std::sort(keys.begin(), keys.end());
    std::vector<Instr*> kept;
    for (const auto& [place, number] : keys) kept.push_back(order[number]);
    computation_->reorder(std::move(kept));
  }

  void visit(Instr* x) {
    if (x->is(Opcode::convolution) && convolve(x)) return;
    if (is_pool_of_features(x) && !kept_.count(x->operand(0)) && pool(x)) return;
    std::optional<size_t> lead = leading_operand(x);
    if (lead && worth_following(x, *lead)) {
      const Stored kept = kept_.at(x->operand(*lead));
      if (std::optional<Stored> made = follow_layout(x, *lead, kept, store_as_, b_)) {
        keep(x, *made);
        return;
      }
    }
    for (size_t i = 0; i < x->operands().size(); ++i)
      if (kept_.count(x->operand(i))) computation_->replace_operand(x, i, logical(x->operand(i)));
  }

  bool convolve(Instr* x) {
    const auto& attrs = x->attrs_as<hlo::ConvolutionAttrs>();
    if (attrs.batch_group_count != 1 || attrs.window.dims.empty() || !are_static_arrays(x))
      return false;
    const hlo::ConvolutionDims& dims = attrs.dims;
    Instr *input = x->operand(0), *filter = x->operand(1);
    Ints in = channels_last(dims.input_batch, dims.input_spatial, dims.input_feature);
    const bool cut = is_patches(x) && !kept_.count(input) && !is_free(input, in);
    if (cut) in = counting(input->shape().rank());
    const Ints out = channels_last(dims.output_batch, dims.output_spatial, dims.output_feature);
    // A matrix keeps its order: the dot that it becomes takes either one.
    Ints weights = counting(filter->shape().rank());
    if (!cut && !is_pointwise(attrs.window)) {
      weights = dims.kernel_spatial;
      weights.push_back(dims.kernel_input_feature);
      weights.push_back(dims.kernel_output_feature);
    }
    const bool in_place = is_counting(in) && is_counting(out) && is_counting(weights);
    if (in_place || !context_.allow("choose_layout", "convolution")) return false;
    auto moved = attrs;
    const Ints in_back = inverted(in), out_back = inverted(out), weights_back = inverted(weights);
    auto at = [](const Ints& back, int64_t* d) { *d = back[static_cast<size_t>(*d)]; };
    at(in_back, &moved.dims.input_batch);
    at(in_back, &moved.dims.input_feature);
    for (int64_t& d : moved.dims.input_spatial) at(in_back, &d);
    at(out_back, &moved.dims.output_batch);
    at(out_back, &moved.dims.output_feature);
    for (int64_t& d : moved.dims.output_spatial) at(out_back, &d);
    at(weights_back, &moved.dims.kernel_input_feature);
    at(weights_back, &moved.dims.kernel_output_feature);
    for (int64_t& d : moved.dims.kernel_spatial) at(weights_back, &d);
    const Shape shape = Shape::array(x->shape().type(), permuted(x->shape().extents(), out));
    Instr* made = b_.make(Opcode::convolution, {stored(input, in), stored(filter, weights)},
                          std::move(moved), {}, &shape);
    keep(x, {out, made});
    return true;
  }

  bool pool(Instr* x) {
    Ints order = counting(x->shape().rank());
    order.erase(order.begin() + 1);
    order.push_back(1);
    Instr* input = x->operand(0);
    if (moves_nothing(order, input->shape().extents()) || !context_.allow("choose_layout", "pool"))
      return false;
    const std::optional<Stored> made =
        follow_layout(x, 0, {order, stored(input, order)}, store_as_, b_);
    if (made) keep(x, *made);
    return made.has_value();
  }

  // Records `made` as the replacement of x.
  void keep(Instr* x, const Stored& made) {
    b_.check();
    changed_ = true;
    made.instr->add_notes(*x);
    places_.emplace(made.instr, place_);
    if (!moves_nothing(made.order, x->shape().extents())) {
      kept_.emplace(x, made);
      return;
    }
    Instr* whole = made.instr;
    if (whole->shape().extents() != x->shape().extents())
      whole = b_.reshape(whole, x->shape().extents());
    computation_->replace_all_uses(x, whole);
  }

  // The largest operand that is stored in another order.
  std::optional<size_t> leading_operand(const Instr* x) const {
    std::optional<size_t> lead;
    if (!x->shape().is_array() || !x->shape().is_static()) return lead;
    for (size_t i = 0; i < x->operands().size(); ++i) {
      const Instr* operand = x->operand(i);
      if (!kept_.count(operand)) continue;
      if (!lead || operand->shape().elems() > x->operand(*lead)->shape().elems()) lead = i;
    }
    return lead;
  }

  // False if following would move more bytes than giving up.
  bool worth_following(Instr* x, size_t lead) {
    const Ints& order = kept_.at(x->operand(lead)).order;
    int64_t following = 0, giving_up = 0;
    for (Instr* operand : x->operands()) {
      if (operand->shape().rank() != static_cast<int64_t>(order.size())) continue;
      const auto kept = kept_.find(operand);
      if (kept == kept_.end()) {
        if (!is_free(operand, order)) following += operand->shape().bytes();
      } else {
        const Instr* instr = kept->second.instr;
        giving_up += instr->is(Opcode::broadcast) ? instr->operand(0)->shape().bytes()
                                                  : operand->shape().bytes();
      }
    }
    return following <= giving_up;
  }

  bool is_free(Instr* value, const Ints& order) {
    if (value->is(Opcode::constant) || moves_nothing(order, value->shape().extents())) return true;
    if (find_copy(value, order) || transpose_cheaply(value, order, b_, /*build=*/false))
      return true;
    return value->is(Opcode::transpose) && moves_nothing(permuted(value->dimensions(), order),
                                                         value->operand(0)->shape().extents());
  }

  Instr* find_copy(Instr* value, const Ints& order) const {
    const auto copies = copies_.find(value);
    if (copies == copies_.end()) return nullptr;
    for (const Stored& copy : copies->second)
      if (copy.order == order) return copy.instr;
    return nullptr;
  }

  Instr* logical(Instr* value) { return stored(value, counting(value->shape().rank())); }

  Instr* stored(Instr* value, const Ints& order) {
    const auto kept = kept_.find(value);
    const bool is_kept = kept != kept_.end();
    const Ints from = is_kept ? kept->second.order : counting(value->shape().rank());
    if (from == order) return is_kept ? kept->second.instr : value;
    if (Instr* copy = find_copy(value, order)) return copy;
    if (!is_kept) {
      if (Instr* made = pulled(value, order)) return made;
    }
    Instr* made = move(is_kept ? kept->second.instr : value, permuted(inverted(from), order));
    copies_[value].push_back({order, made});
    return made;
  }

  // The value computed in that order, if this removes the transposes at its start; else null.
  Instr* pulled(Instr* value, const Ints& order) {
    const auto known = region_.find(value);
    const bool begins = known == region_.end() || known->second != order;
    if (begins) {
      if (!region_.empty() || is_free(value, order)) return nullptr;
      std::optional<Region> region = pull_layout(value, order, is_free_);
      if (!region) return nullptr;
      region_ = std::move(*region);
    }
    const std::optional<Lead> lead = lead_for(value, order);
    const Stored start{lead->order, stored(value->operand(lead->operand), lead->order)};
    std::optional<Stored> made = follow_layout(value, lead->operand, start, store_as_, b_);
    if (begins) region_.clear();
    const Ints extents = value->shape().extents();
    if (!made || !same_dims(made->order, order, extents)) return nullptr;
    Instr* result =
        made->order == order ? made->instr : b_.reshape(made->instr, permuted(extents, order));
    result->add_notes(*value);
    copies_[value].push_back({order, result});
    return result;
  }

  // The same order, ignoring dimensions of extent 1.
  static bool same_dims(const Ints& a, const Ints& b, const Ints& extents) {
    auto wide = [&](const Ints& order) {
      Ints dims;
      for (int64_t d : order)
        if (extents[static_cast<size_t>(d)] != 1) dims.push_back(d);
      return dims;
    };
    return wide(a) == wide(b);
  }

  Instr* move(Instr* x, const Ints& order) {
    if (is_counting(order)) return x;
    const Ints extents = x->shape().extents();
    if (moves_nothing(order, extents)) return b_.reshape(x, permuted(extents, order));
    if (x->is(Opcode::transpose)) return move(x->operand(0), permuted(x->dimensions(), order));
    if (transpose_cheaply(x, order, b_, /*build=*/false))
      return transpose_cheaply(x, order, b_, /*build=*/true);
    return b_.transpose(x, order);
  }

  Computation* computation_;
  const PassContext& context_;
  hlo::Builder b_;
  StoreAs store_as_;
  IsFree is_free_;
  std::unordered_map<const Instr*, size_t> places_;  // of original and of rebuilt instructions
  size_t place_ = 0;                                 // of the instruction being visited
  Region region_;                                    // being computed in another order
  // Values stored in another order; and copies of values in the orders that other readers need.
  std::unordered_map<const Instr*, Stored> kept_;
  std::unordered_map<const Instr*, std::vector<Stored>> copies_;
  bool changed_ = false;
};

}  // namespace

Result<bool> choose_layout(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  for (Computation* computation : module.post_order()) {
    const std::vector<Instr*>& all = computation->instrs();
    if (std::none_of(all.begin(), all.end(), [](const Instr* instr) {
          return instr->is(Opcode::convolution) || is_pool_of_features(instr);
        }))
      continue;
    changed |= Layouts(computation, context).run();
  }
  return changed;
}

}  // namespace heddle::opt
