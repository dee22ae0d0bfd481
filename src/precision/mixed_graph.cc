#include "precision/mixed_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "hlo/join.h"
#include "hlo/views.h"
#include "precision/gradient_flow.h"
#include "schedule/bounded_rows.h"
#include "schedule/gemm_tiles.h"

namespace heddle::precision {
namespace {

using hlo::Computation;
using hlo::Instr;
using hlo::Narrowing;
using hlo::Opcode;
using tensor::Type;

using Values = std::vector<int>;  // by leaf of an instruction's result

// The elements of a tuple root, or the root.
std::vector<const Instr*> leaves_of(const Instr* root) {
  if (!root->is(Opcode::tuple)) return {root};
  return {root->operands().begin(), root->operands().end()};
}

bool moves_elements(const Instr* x) {
  return x->is(Opcode::reshape) || x->is(Opcode::transpose) || x->is(Opcode::bitcast) ||
         x->is(Opcode::copy) || x->is(Opcode::broadcast) || x->is(Opcode::slice);
}

// Empty if the result of `x` may be stored in fewer bits, otherwise the reason why not.
std::string why_wide(const Instr* x, int depth = 0) {
  constexpr int kDeep = 16;
  if (depth > kDeep) return "unknown";
  switch (hlo::opcode_info(x->opcode()).narrowing) {
    case Narrowing::product:
    case Narrowing::plain:
      return "";
    case Narrowing::exact:
      for (const Instr* operand : x->operands())
        if (operand->shape().type() == Type::f32)
          if (std::string why = why_wide(operand, depth + 1); !why.empty()) return why;
      return "";
    case Narrowing::sums: {
      if (!x->is(Opcode::reduce) && !x->is(Opcode::reduce_window)) return "sums";
      const Opcode opcode = x->called().at(0)->root()->opcode();
      const bool chooses = opcode == Opcode::maximum || opcode == Opcode::minimum;
      return chooses ? why_wide(x->operand(0), depth + 1) : "sums";
    }
    case Narrowing::wide:
      return "wide";
    case Narrowing::none:
      break;
  }
  return x->is(Opcode::parameter) ? "" : "unknown";
}

// f16 holds at most 65504; whether `x` is known to be far below that, independent of data.
bool is_bounded(const Instr* x, int depth = 0) {
  constexpr int kDeep = 8;
  if (depth > kDeep) return false;
  if (x->is(Opcode::tanh) || x->is(Opcode::logistic) || x->is(Opcode::erf)) return true;
  if (moves_elements(x)) return is_bounded(x->operand(0), depth + 1);
  return false;
}

class Collector {
 public:
  Collector(const target::Target& target, Type low, const MixedHints& hints)
      : target_(target), low_(low), hints_(hints) {}

  MixedGraph run(const hlo::Module& module) {
    const Computation& entry = *module.entry();
    std::vector<Values> parameters;
    for (const Instr* parameter : entry.parameters()) {
      const int value = add(parameter, "input");
      graph_.values[static_cast<size_t>(value)].is_input = true;
      parameters.push_back({value});
    }
    const std::vector<const Instr*> roots = leaves_of(entry.root());
    for (const auto& alias : module.input_output_alias)
      kept_.insert(alias.output_index.empty()
                       ? entry.root()
                       : roots.at(static_cast<size_t>(alias.output_index[0])));
    for (int value : visit(entry, parameters)) fix(value, "output");
    return std::move(graph_);
  }

 private:
  int add(const Instr* made_by, std::string fixed) {
    StoredValue value;
    value.name = made_by->name();
    value.opcode = made_by->opcode();
    if (made_by->shape().is_array() && made_by->shape().is_static()) {
      value.extents = made_by->shape().extents();
      value.bytes = made_by->shape().bytes();
    }
    if (fixed.empty() && (value.bytes == 0 || made_by->shape().type() != Type::f32)) fixed = "type";
    if (fixed.empty() && made_by->shape().elems() == 1) fixed = "scalar";
    const ValueRange* seen = record_of(made_by);
    value.leaves_f16 = seen && overflows_f16(*seen);
    if (fixed.empty() && value.leaves_f16) fixed = "range";
    value.fixed = std::move(fixed);
    graph_.values.push_back(std::move(value));
    return static_cast<int>(graph_.values.size()) - 1;
  }
  // Null: its range is unknown, or irrelevant.
  const ValueRange* record_of(const Instr* x) const {
    if (low_ != Type::f16 || hints_.guarded || !hints_.ranges) return nullptr;
    const auto found = hints_.ranges->find(same_value(*x));
    return found == hints_.ranges->end() ? nullptr : &found->second;
  }
  // For weights and operands of products (`leaves_f16`) only the largest value matters: small
  // values contribute little to sums.
  bool may_leave_f16(const Instr* x, bool constant) const {
    if (low_ != Type::f16 || hints_.guarded) return false;
    if (const ValueRange* seen = record_of(x))
      return constant ? overflows_f16(*seen) : !fits_f16(*seen);
    return !is_bounded(x);
  }
  void fix(int value, const char* why) {
    std::string& fixed = graph_.values[static_cast<size_t>(value)].fixed;
    if (fixed.empty()) fixed = why;
  }
  bool is_constant(const Values& values) const {
    return std::all_of(values.begin(), values.end(), [&](int value) {
      return graph_.values[static_cast<size_t>(value)].is_constant;
    });
  }

  // The values of the root's leaves.
  Values visit(const Computation& computation, const std::vector<Values>& parameters) {
    std::unordered_map<const Instr*, Values> known;
    for (const Instr* x : computation.instrs()) known.emplace(x, values_of(x, known, parameters));
    return known.at(computation.root());
  }

  Values values_of(const Instr* x, const std::unordered_map<const Instr*, Values>& known,
                   const std::vector<Values>& parameters) {
    if (x->is(Opcode::parameter)) return parameters.at(static_cast<size_t>(x->parameter_number()));
    if (x->is(Opcode::get_tuple_element)) {
      const Values& all = known.at(x->operand(0));
      const auto at = static_cast<size_t>(x->tuple_index());
      return at < all.size() ? Values{all[at]} : all;
    }
    if (x->is(Opcode::tuple)) {
      Values all;
      for (const Instr* operand : x->operands()) {
        const Values& part = known.at(operand);
        all.insert(all.end(), part.begin(), part.end());
      }
      return all;
    }
    if (hlo::is_view(x)) return known.at(x->operand(0));
    Values read;
    std::vector<Values> operands;
    for (const Instr* operand : x->operands()) {
      operands.push_back(known.at(operand));
      read.insert(read.end(), operands.back().begin(), operands.back().end());
    }
    if (x->is(Opcode::fusion) && joins(x)) return visit(*x->called().at(0), operands);
    for (int value : read) ++graph_.values[static_cast<size_t>(value)].reads;
    const bool constant = !x->is(Opcode::rng) && is_constant(read);
    if (x->is(Opcode::fusion) && hlo::join_of(*x) == hlo::Join::none)
      return kernel(x, operands, constant);
    return other(x, read, constant);
  }

  static bool joins(const Instr* fusion) {
    return hlo::join_of(*fusion) == hlo::Join::phases || hlo::join_of(*fusion) == hlo::Join::table;
  }

  // Results not computed by a kernel: arrays that are copied into place, loops, branches. They read
  // and write f32, as otherwise a kernel would have to convert.
  Values other(const Instr* x, const Values& read, bool constant) {
    const bool calls = !x->called().empty() && !x->is(Opcode::reduce) &&
                       !x->is(Opcode::reduce_window) && !x->is(Opcode::sort);
    const char* why = calls ? "loop" : "copied";
    Values made;
    if (x->shape().is_array()) {
      made.push_back(add(x, constant ? "" : why));
    } else {
      for (size_t i = 0; i < x->shape().elements().size(); ++i) made.push_back(add(x, why));
    }
    for (int value : made) {
      graph_.values[static_cast<size_t>(value)].is_constant = constant;
      graph_.values[static_cast<size_t>(value)].is_copied = !constant;
    }
    for (int value : read) fix(value, why);
    return made;
  }

  Values kernel(const Instr* fusion, const std::vector<Values>& operands, bool constant) {
    const Computation& inside = *fusion->called().at(0);
    Values made;
    for (const Instr* leaf : leaves_of(inside.root())) {
      std::string fixed = why_wide(leaf);
      if (fixed.empty() && hints_.update && hints_.update->contains(same_value(*leaf)))
        fixed = "state";
      if (fixed.empty() && may_leave_f16(leaf, constant)) fixed = "range";
      const int value = add(leaf, std::move(fixed));
      graph_.values[static_cast<size_t>(value)].is_constant = constant;
      made.push_back(value);
    }
    if (!hints_.update && is_kept(fusion)) keep_state(inside, operands);
    for (const Instr* x : inside.instrs())
      if (is_product(x) && !constant) product(x, operands);
    return made;
  }

  // Whether a training step keeps one of its results.
  bool is_kept(const Instr* fusion) const {
    if (kept_.contains(fusion)) return true;
    return std::any_of(fusion->users().begin(), fusion->users().end(), [&](const Instr* user) {
      return hlo::is_view_or_element(user) && is_kept(user);
    });
  }

  // Fixes the values from which such a kernel's results are computed without a product.
  void keep_state(const Computation& inside, const std::vector<Values>& operands) {
    std::unordered_set<const Instr*> reached;
    std::vector<const Instr*> stack = leaves_of(inside.root());
    while (!stack.empty()) {
      const Instr* x = stack.back();
      stack.pop_back();
      if (!reached.insert(x).second || is_product(x)) continue;
      if (x->is(Opcode::parameter))
        for (int value : operands.at(static_cast<size_t>(x->parameter_number())))
          fix(value, "state");
      stack.insert(stack.end(), x->operands().begin(), x->operands().end());
    }
  }

  void product(const Instr* x, const std::vector<Values>& operands) {
    MixedProduct found;
    found.name = x->name();
    found.opcode = x->opcode();
    found.extents = x->shape().extents();
    bool right_constant = false;  // the last side decides
    bool leaves_f16 = false;
    for (size_t side : {size_t{0}, size_t{1}}) {
      const Instr* from = x->operand(side);
      while (moves_elements(from)) from = from->operand(0);
      if (from->is(Opcode::parameter))
        found.operands[side] = operands.at(static_cast<size_t>(from->parameter_number())).at(0);
      else if (!from->is(Opcode::constant))
        found.fixed = "chain";
      const int value = found.operands[side];
      leaves_f16 |= value >= 0 && graph_.values[static_cast<size_t>(value)].leaves_f16;
      right_constant = from->is(Opcode::constant) ||
                       (value >= 0 && graph_.values[static_cast<size_t>(value)].is_constant);
    }
    if (found.fixed.empty() && leaves_f16) found.fixed = "range";
    found.flops = flops_of(x);
    found.reads_narrow = is_depthwise(x);
    if (has_kernel(x, right_constant)) found.flops_per_ns = rate_of_kernel(x);
    if (found.fixed.empty() && found.flops_per_ns == 0) found.fixed = "no-kernel";
    found.rounds_right = !right_constant && rows_of(x) <= kFewRows;
    graph_.products.push_back(std::move(found));
  }

  static bool is_depthwise(const Instr* x) {
    if (!x->is(Opcode::convolution)) return false;
    const auto& attrs = x->attrs_as<hlo::ConvolutionAttrs>();
    return attrs.feature_group_count > 1 &&
           x->operand(1)->shape().dim(attrs.dims.kernel_input_feature) == 1;
  }

  // With more rows there are several blocks, each of which would round the right side again.
  static constexpr int64_t kFewRows = 2048;
  static int64_t rows_of(const Instr* x) {
    const tensor::Shape& right = x->operand(1)->shape();
    if (x->is(Opcode::convolution)) {
      const auto& dims = x->attrs_as<hlo::ConvolutionAttrs>().dims;
      return x->shape().elems() / std::max<int64_t>(1, x->shape().dim(dims.output_feature));
    }
    const auto& attrs = x->attrs_as<hlo::DotAttrs>();
    int64_t columns = right.elems();
    for (int64_t d : attrs.rhs_contracting_dims) columns /= std::max<int64_t>(1, right.dim(d));
    return x->shape().elems() / std::max<int64_t>(1, columns);  // per batch element
  }

  static double flops_of(const Instr* x) {
    double k = 1;
    if (x->is(Opcode::dot)) {
      for (int64_t d : x->attrs_as<hlo::DotAttrs>().lhs_contracting_dims)
        k *= static_cast<double>(x->operand(0)->shape().dim(d));
    } else {
      const auto& dims = x->attrs_as<hlo::ConvolutionAttrs>().dims;
      k = static_cast<double>(x->operand(1)->shape().elems()) /
          static_cast<double>(x->operand(1)->shape().dim(dims.kernel_output_feature));
    }
    return 2 * k * static_cast<double>(x->shape().elems());
  }

  // Number of rows that share one copy of a convolution's right side (schedule/gemm.cc): the two
  // innermost dimensions larger than 1, and others as long as every core has tasks.
  int64_t rows_of_copy(const Instr* x) const {
    const auto& dims = x->attrs_as<hlo::ConvolutionAttrs>().dims;
    int64_t rows = 1, taken = 0;
    std::vector<int64_t> order{dims.output_batch};
    order.insert(order.end(), dims.output_spatial.begin(), dims.output_spatial.end());
    for (size_t i = order.size(); i-- > 0 && taken < 2;) {
      rows *= x->shape().dim(order[i]);
      taken += x->shape().dim(order[i]) > 1 ? 1 : 0;
    }
    const int64_t all = x->shape().elems() / x->shape().dim(dims.output_feature);
    return std::max(rows, all / (4 * std::max(1, target_.cores)));
  }

  // Whether there is an instruction for words of this type, the sum consists of whole words, and a
  // right side that is not constant is used by enough rows to be copied into words.
  bool has_kernel(const Instr* x, bool constant) const {
    constexpr int64_t kRows = 16, kLanes = 16;
    const Type f32 = Type::f32;
    if (x->shape().type() != f32 || x->operand(0)->shape().type() != f32 ||
        x->operand(1)->shape().type() != f32 || x->operands().size() != 2)
      return false;
    const kernel::MmaDescriptor* mma = schedule::find_product(low_, low_, f32, target_);
    if (mma == kernel::plain_mma()) return false;
    if (x->is(Opcode::convolution)) {
      const auto& attrs = x->attrs_as<hlo::ConvolutionAttrs>();
      const int64_t inputs = x->operand(1)->shape().dim(attrs.dims.kernel_input_feature);
      const int64_t outputs = x->shape().dim(attrs.dims.output_feature) / attrs.feature_group_count;
      return inputs % mma->k == 0 && attrs.batch_group_count == 1 &&
             (attrs.feature_group_count == 1 || outputs >= kLanes || kLanes % outputs == 0) &&
             (constant || rows_of_copy(x) >= kRows);
    }
    const auto& attrs = x->attrs_as<hlo::DotAttrs>();
    if (!attrs.rest.empty() || attrs.lhs_contracting_dims.empty()) return false;
    const int64_t k = x->operand(0)->shape().dim(attrs.lhs_contracting_dims.back());
    int64_t rows = x->operand(0)->shape().elems();
    for (int64_t d : attrs.lhs_contracting_dims) rows /= x->operand(0)->shape().dim(d);
    for (int64_t d : attrs.lhs_batch_dims) rows /= x->operand(0)->shape().dim(d);
    return k % mma->k == 0 && (constant || rows >= kRows);
  }

  // Rate with tiles, if rows and sums are whole tiles; 0: words, no faster than f32.
  double rate_of_kernel(const Instr* x) const {
    const kernel::MmaDescriptor* mma = schedule::find_product(low_, low_, Type::f32, target_);
    if (const kernel::MmaDescriptor* tile = schedule::find_tile(*mma, target_)) {
      const bool conv = x->is(Opcode::convolution);
      const int64_t k = conv ? x->operand(1)->shape().dim(
                                   x->attrs_as<hlo::ConvolutionAttrs>().dims.kernel_input_feature)
                             : x->operand(0)->shape().dim(
                                   x->attrs_as<hlo::DotAttrs>().lhs_contracting_dims.back());
      if (k % tile->k == 0 && (conv || rows_of(x) >= tile->m) && !schedule::is_bounded(x))
        return target_.peak_flops_per_ns(tile->name);
    }
    const double words = target_.peak_flops_per_ns(low_);
    return words > target_.peak_flops_per_ns(Type::f32) ? words : 0;
  }

  const target::Target& target_;
  Type low_;
  const MixedHints& hints_;
  MixedGraph graph_;
  std::unordered_set<const Instr*> kept_;  // leaves of the module that alias an input
};

}  // namespace

std::string same_value(const Instr& instr) {
  return fmt::format("{} {} {}", instr.name(), hlo::opcode_text(instr.opcode()),
                     tensor::to_string(instr.shape(), false));
}

std::string same_value(const StoredValue& value) {
  return fmt::format("{} {} {}", value.name, hlo::opcode_text(value.opcode),
                     tensor::to_string(tensor::Shape::array(Type::f32, value.extents), false));
}

MixedGraph mixed_graph(const hlo::Module& fused, const target::Target& target, Type low,
                       const MixedHints& hints) {
  return Collector(target, low, hints).run(fused);
}

}  // namespace heddle::precision
