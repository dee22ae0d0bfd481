// fold_scale_into_weights: (x · W) * a => x · (W * a) for constant W and `a` constant per output
// channel, also through constants added in between: the result of inference-mode batch
// normalisation and scaled projections after a convolution or a dot. The product W * a is a
// constant expression: folded here if small, computed at load time if not. Rounding changes (each
// weight is rounded once more; a pass of O2), so it is named in the notes.
#include <algorithm>

#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"
#include "opt/rules.h"

namespace heddle::opt {
namespace {

// A contraction with constant weights, and its output channels.
struct Contraction {
  Instr* instr = nullptr;
  size_t weights = 1;       // operand number
  int64_t weights_dim = 0;  // of the weights …
  int64_t channel_dim = 0;  // … and of the result
};

bool is_wide_float(const Instr* x) {
  return x->shape().type() == Type::f32 || x->shape().type() == Type::f64;
}

// Constant weights read only by their contraction `of`, and in its accumulation type: narrower ones
// would be rounded again.
bool is_own_constant(const Instr* x, const Instr* of) {
  return x->users().size() == 1 && x->shape().type() == of->shape().type() &&
         is_constant_expression(x);
}

// The result's dimension for the free dimension `d` of the dot's operand `side`.
int64_t result_dim(const Instr* dot, size_t side, int64_t d) {
  const auto& attrs = dot->attrs_as<hlo::DotAttrs>();
  const auto batch = static_cast<int64_t>(attrs.lhs_batch_dims.size());
  int64_t at = batch;
  if (side == 1)
    at = dot->shape().rank() - (dot->operand(1)->shape().rank() - batch -
                                static_cast<int64_t>(attrs.rhs_contracting_dims.size()));
  const Ints& used_batch = side == 0 ? attrs.lhs_batch_dims : attrs.rhs_batch_dims;
  const Ints& contracting = side == 0 ? attrs.lhs_contracting_dims : attrs.rhs_contracting_dims;
  for (int64_t i = 0; i < d; ++i)
    if (!contains(used_batch, i) && !contains(contracting, i)) ++at;
  return at;
}

std::optional<Contraction> contraction_of(Instr* x) {
  if (!are_static_arrays(x) || x->operands().size() != 2 || !is_wide_float(x)) return std::nullopt;
  if (x->is(Opcode::convolution)) {
    const auto& dims = x->attrs_as<hlo::ConvolutionAttrs>().dims;
    if (!is_own_constant(x->operand(1), x)) return std::nullopt;
    return Contraction{x, 1, dims.kernel_output_feature, dims.output_feature};
  }
  if (!x->is(Opcode::dot) || !x->attrs_as<hlo::DotAttrs>().rest.empty()) return std::nullopt;
  const auto& attrs = x->attrs_as<hlo::DotAttrs>();
  for (size_t side : {size_t{1}, size_t{0}}) {
    if (!is_own_constant(x->operand(side), x)) continue;
    const Ints& batch = side == 0 ? attrs.lhs_batch_dims : attrs.rhs_batch_dims;
    const Ints& contracting = side == 0 ? attrs.lhs_contracting_dims : attrs.rhs_contracting_dims;
    Ints free;
    for (int64_t d = 0; d < x->operand(side)->shape().rank(); ++d)
      if (!contains(batch, d) && !contains(contracting, d)) free.push_back(d);
    if (free.size() == 1) return Contraction{x, side, free[0], result_dim(x, side, free[0])};
  }
  return std::nullopt;
}

// A constant with one value, or with one value per channel.
bool is_channel_constant(const Instr* x, const Contraction& c) {
  if (splat_of(x)) return true;
  return x->is(Opcode::broadcast) && x->operand(0)->is(Opcode::constant) &&
         x->dimensions() == Ints{c.channel_dim};
}

class Chain {
 public:
  Chain(const Contraction& c, Builder& b)
      : c_(c), b_(b), channels_(c.instr->shape().dim(c.channel_dim)) {}

  // Follows the chain of sole readers; keeps the last step that multiplies.
  void follow() {
    Instr* at = c_.instr;
    std::vector<Step> steps;
    while (at->users().size() == 1) {
      Instr* user = at->users()[0];
      const bool left = user->operands().size() == 2 && user->operand(0) == at;
      const bool right = user->operands().size() == 2 && user->operand(1) == at;
      if (left == right || user->shape().type() != c_.instr->shape().type()) break;
      Instr* other = user->operand(left ? 1 : 0);
      if (!is_channel_constant(other, c_)) break;
      const Opcode opcode = user->opcode();
      const bool scales = opcode == Opcode::multiply || (opcode == Opcode::divide && left);
      const bool shifts = opcode == Opcode::add || (opcode == Opcode::subtract && left);
      if (!scales && !shifts) break;
      steps.push_back({opcode, other});
      if (scales) {
        last_ = user;
        steps_ = steps;
      }
      at = user;
    }
  }
  Instr* last() const { return last_; }

  // x · (W * scale) + shift, replacing last().
  Instr* build() {
    Instr *scale = nullptr, *shift = nullptr;
    for (const Step& step : steps_) {
      Instr* value = per_channel(step.constant);
      if (step.opcode == Opcode::multiply || step.opcode == Opcode::divide) {
        Instr* one = scale ? scale : b_.full(value->shape(), 1);
        scale = b_.binary(step.opcode, one, value);
        if (shift) shift = b_.binary(step.opcode, shift, value);
      } else {
        Instr* zero = shift ? shift : b_.full(value->shape(), 0);
        shift = b_.binary(step.opcode, zero, value);
      }
    }
    Instr* weights = c_.instr->operand(c_.weights);
    Instr* scaled = b_.binary(Opcode::multiply, weights,
                              b_.broadcast(scale, weights->shape().extents(), {c_.weights_dim}));
    std::vector<Instr*> operands = c_.instr->operands();
    operands[c_.weights] = scaled;
    const Shape shape = c_.instr->shape().without_layout();
    Instr* result = b_.make(c_.instr->opcode(), operands, c_.instr->attrs(), {}, &shape);
    if (!shift) return result;
    return b_.binary(Opcode::add, result, b_.broadcast(shift, shape.extents(), {c_.channel_dim}));
  }

 private:
  struct Step {
    Opcode opcode;
    Instr* constant;
  };
  Instr* per_channel(Instr* x) {
    if (splat_of(x)) return broadcast_scalar(scalar_of(x, b_), {channels_}, b_);
    return x->operand(0);
  }

  Contraction c_;
  Builder& b_;
  int64_t channels_;
  Instr* last_ = nullptr;
  std::vector<Step> steps_;
};

}  // namespace

Result<bool> fold_scale_into_weights(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  for (Computation* computation : module.post_order()) {
    Builder b(computation);
    const std::vector<Instr*> all = computation->instrs();
    for (Instr* instr : all) {
      // Only instructions that existed before are visited, and only downstream readers are removed
      // later (dce).
      const std::optional<Contraction> contraction = contraction_of(instr);
      if (!contraction) continue;
      Chain chain(*contraction, b);
      chain.follow();
      if (!chain.last() || !context.allow("fold_scale_into_weights", "scale")) continue;
      computation->replace_all_uses(chain.last(), chain.build());
      b.check();
      context.note(
          "fold_scale_into_weights: constant factors per channel were multiplied into "
          "constant weights (rounding differs)");
      changed = true;
    }
    // The replaced instructions are dead, but still count as readers of their weights.
    if (changed) computation->remove_dead();
  }
  return changed;
}

}  // namespace heddle::opt
