// The default pipelines, in order, with the reason for each place that matters.
#include "opt/pipeline.h"

namespace heddle::opt {
namespace {

// What every later step counts on: primitives of logical arrays, in as few computations as can be.
//  dynamic_outermost first: bounded dimensions are followed through the operators of the model.
//  (mask_padding is run where a bucket is made, for it adds an input: api/buckets.cc.)
//  thread_random_state next: numbers are drawn in the order of the model's instructions, and
//  inlining loses that.
//  drop_layouts before the rest: other passes compare shapes, and only it knows what a bitcast
//  means.
//  inline_lazily before expand_map: a map's body may call.
//  batch_groups_to_features among them: kernels have no groups of images.
//  remove_identities before fold_tuples: barriers and asynchronous pairs stand between a tuple and
//  its elements.
constexpr char kToPrimitives[] =
    "dynamic_outermost,pack_rows,thread_random_state,drop_layouts,inline_lazily,expand_map,"
    "expand_batch_norm,expand_select_and_scatter,"
    "batch_groups_to_features,{remove_identities,fold_tuples}*";

// Each makes work for the others. dce comes last in a round: it takes away the readers that rules
// for single readers trip over. fold_constants before algebraic: rules know constants by sight.
// `contractions` come behind sink_movement: a bias next to its dot, reshapes out of the way.
// hoist_invariant behind sink_movement: movement stays in the loop, what is computed leaves it.
// Bounded: what has not converged after these rounds is a waste of compile time, not an error.
std::string simplify(const std::string& contractions) {
  return "{fold_tuples,simplify_control,fold_constants,algebraic,sink_movement,hoist_invariant," +
         contractions + "cse,dce}*";
}

// Last: other passes know a counted loop by its condition.
constexpr char kRotate[] = ",rotate_loops,{fold_tuples,fold_constants,algebraic,cse,dce}*";

}  // namespace

std::string pipeline_for(Level level, target::DeviceKind kind, const std::string& on_primitives) {
  const std::string primitives = kToPrimitives;
  // Convolutions with their features last, and those of 1x1 as products: fewer kernels, and shorter
  // ones, as each would else turn its rows and results in registers. Filters are turned at once.
  if (level == Level::O0)
    return primitives + ",choose_layout,convolution_to_dot,fold_constants,cse,dce";
  // Simplified first: unused branches and constant operands decide what a convolution is, and a
  // dot's dimensions are merged once, not while reshapes around it still move.
  // split_complex in front of it all: no kernel has complex numbers.
  // narrow_indices behind it: index arithmetic is recognised in its simplest form.
  // reroll behind it too: steps are alike when shape arithmetic is gone, and before dots are
  // merged.
  const std::string start = primitives + ",split_complex,split_complex_dots," +
                            (level == Level::O2 ? on_primitives : "") + simplify("") +
                            ",narrow_indices,reroll,";
  if (level == Level::O1)
    return start + "choose_layout,split_input_dilation,convolution_to_dot," +
           simplify("canonicalize_dot,") + kRotate;
  // Scales are recognised where the rest has left them: per channel, right behind the contraction;
  // once before filters are turned and convolutions become dots, and behind every dot.
  // choose_layout before convolution_to_dot: with the features last a 1x1 convolution is one dot
  // over all pixels.
  // split_input_dilation between them: a phase may well be a 1x1 convolution.
  // merge_convolutions behind it: what stood between the branches is then a bias.
  // split_cumulative before choose_layout, which turns its windows as it does a pool's. CPUs have
  // scans (stitch/scan.cc).
  // online_softmax at the end: products and softmax stand there in one form.
  // fourier_products before all that looks at products: its are products, too.
  return start +
         "fourier_products,short_powers,{algebraic,cse,dce}*,fold_scale_into_weights,merge_"
         "convolutions," +
         (kind == target::DeviceKind::gpu ? "split_cumulative," : "") +
         "choose_layout,split_input_dilation,convolution_to_dot," +
         simplify(
             "permute_weights,canonicalize_dot,fold_scale_into_weights,merge_dots,gemv_to_gemm,"
             "online_softmax,") +
         kRotate;
}

std::string cleanup_pipeline() { return simplify("canonicalize_dot,"); }

bool is_lowered(hlo::Opcode opcode) {
  using enum hlo::Opcode;
  switch (opcode) {
    case call:
    case fusion:
    case batch_norm_grad:
    case batch_norm_inference:
    case batch_norm_training:
    case bitcast:
    case copy:
    case copy_done:
    case copy_start:
    case domain:
    case opt_barrier:
    case rng:
    case rng_get_and_update_state:
      return true;
    default:
      return false;
  }
}

}  // namespace heddle::opt
