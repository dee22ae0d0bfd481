// The default pipelines, in order, with the reason for each position that matters.
#include "opt/pipeline.h"

namespace heddle::opt {
namespace {

// What all later steps require: primitives on logical arrays, in as few computations as possible.
// dynamic_outermost first: it follows bounded dimensions through the model's own operators.
// (mask_padding runs when a bucket is made, because it adds an input: api/buckets.cc.)
// thread_random_state next: numbers are drawn in the order of the model's instructions, which
// inlining does not keep.
// drop_layouts before the rest: other passes compare shapes, and only it knows the meaning of a
// bitcast.
// inline_lazily before expand_map: a map's body may have calls.
// batch_groups_to_features here: kernels have no batch groups.
// remove_identities before fold_tuples: barriers and asynchronous pairs come between a tuple and
// its elements.
constexpr char kToPrimitives[] =
    "dynamic_outermost,pack_rows,thread_random_state,drop_layouts,inline_lazily,expand_map,"
    "expand_batch_norm,expand_select_and_scatter,"
    "batch_groups_to_features,{remove_identities,fold_tuples}*";

// Each pass makes work for the others. dce comes last in a round: it removes dead readers, which
// keep rules for single readers from matching. fold_constants before algebraic: its rules match
// only literal constants. `contractions` come after sink_movement: then a bias is next to its dot,
// with no reshapes in between. hoist_invariant after sink_movement: movement stays in the loop,
// computed values leave it. Bounded: failing to converge in these rounds wastes compile time but is
// not an error.
std::string simplify(const std::string& contractions) {
  return "{fold_tuples,simplify_control,fold_constants,algebraic,sink_movement,hoist_invariant," +
         contractions + "cse,dce}*";
}

// Last: other passes recognise a counted loop by its condition.
constexpr char kRotate[] = ",rotate_loops,{fold_tuples,fold_constants,algebraic,cse,dce}*";

}  // namespace

std::string pipeline_for(Level level, target::DeviceKind kind, const std::string& on_primitives) {
  const std::string primitives = kToPrimitives;
  // Convolutions with their features last, and 1x1 ones as products: fewer kernels, and shorter
  // ones, as each would otherwise transpose its rows and results in registers. Filters are
  // transposed here.
  if (level == Level::O0)
    return primitives + ",choose_layout,convolution_to_dot,fold_constants,cse,dce";
  // Simplified first: unused branches and constant operands decide the form of a convolution, and a
  // dot's dimensions are merged once, after the reshapes around it have settled. split_complex
  // before all of these: no kernel has complex numbers. narrow_indices after: index arithmetic is
  // recognised in its simplest form. reroll after, too: steps are identical only once shape
  // arithmetic is gone; and before dots are merged.
  const std::string start =
      primitives + ",split_complex,split_complex_dots," +
      (level == Level::O2 ? on_primitives : "") + simplify("") + ",narrow_indices," +
      (kind == target::DeviceKind::gpu ? "select_short_top_k" : "select_top_k") + ",reroll,";
  if (level == Level::O1)
    return start + "choose_layout,split_input_dilation,convolution_to_dot," +
           simplify("canonicalize_dot,") + kRotate;
  // Scales are recognised in simplified form, per channel, right after the contraction: once before
  // filters are transposed and convolutions become dots, and after every dot.
  // choose_layout before convolution_to_dot: with the features last a 1x1 convolution is one dot
  // over all pixels.
  // split_input_dilation between them: a phase may be a 1x1 convolution.
  // merge_convolutions after fold_scale_into_weights: normalisation between the branches is then a
  // bias.
  // split_cumulative and split_windows before choose_layout, which transposes windows. CPUs have
  // scans (stitch/scan.cc); split_windows was not measured on GPUs.
  // online_softmax at the end: products and softmax then have a single form.
  // fourier_products before all passes on products: it makes products, too. On GPUs all that it
  // can, since a host call copies its arrays from the device and back.
  return start + (kind == target::DeviceKind::gpu ? "" : "short_") +
         "fourier_products,short_powers,{algebraic,cse,dce}*,fold_scale_into_weights,merge_"
         "convolutions," +
         (kind == target::DeviceKind::gpu ? "split_cumulative," : "split_windows,") +
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
