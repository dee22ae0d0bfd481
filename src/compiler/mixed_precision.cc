#include "compiler/mixed_precision.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <unordered_set>

#include "compiler/compiler.h"
#include "compiler/kernel_fusions.h"
#include "compiler/options.h"
#include "compiler/passes.h"
#include "fuse/pipeline.h"
#include "opt/pipeline.h"
#include "precision/gradient_flow.h"
#include "precision/loss_scale.h"
#include "precision/mixed_rewrite.h"

namespace heddle::compiler {

namespace {

using hlo::Opcode;
using tensor::Type;

bool is_mixed(const Options& options) {
  return options.amp != Amp::off || options.precision != "f32";
}

Type small_type(const Options& options, const target::Target& target) {
  if (options.precision != "f32") return options.precision == "f16" ? Type::f16 : Type::bf16;
  if (options.amp == Amp::f16) return Type::f16;
  return options.amp == Amp::bf16 ? Type::bf16 : precision::fastest_small_float(target);
}

}  // namespace

Result<std::unique_ptr<hlo::Module>> fused_copy(const hlo::Module& module, const Options& options,
                                                const target::Target& target) {
  std::unique_ptr<hlo::Module> copy = module.clone();
  fuse::Covers covers(copy.get());
  Context context;
  context.target = &target;
  context.any_chain = options.any_chain;
  pass::RunOptions run = fusing_pass_options(options, 0);
  run.dump_directory.clear();
  run.bisect_limit = -1;
  run.disabled.emplace_back(
      "merge_chains");  // in 16 bits most products are faster in kernels of their own
  const std::string pipeline =
      "count_trips," + fuse::pipeline_for(fuse_mode(options), target.kind) + ",inline_kept_calls";
  HEDDLE_ASSIGN_OR_RETURN([[maybe_unused]] const pass::RunReport done,
                          compiler::run(covers, pipeline, context, run));
  return copy;
}

namespace {

int count_casts(const hlo::Module& module, Type low) {
  int casts = 0;
  for (const hlo::Computation* computation : module.post_order())
    for (const hlo::Instr* x : computation->instrs())
      if (x->is(Opcode::convert) &&
          (x->shape().type() == low || x->operand(0)->shape().type() == low))
        ++casts;
  return casts;
}

bool is_cast(const hlo::Instr* x) {
  return x->is(Opcode::convert) && tensor::is_float(x->shape().type()) &&
         tensor::is_float(x->operand(0)->shape().type());
}

// Nothing is computed or transposed, something is converted.
bool only_converts(const hlo::Computation& computation) {
  bool converts = false;
  for (const hlo::Instr* x : computation.instrs()) {
    converts = converts || is_cast(x);
    const bool is_view = x->is(Opcode::parameter) || x->is(Opcode::reshape) ||
                         x->is(Opcode::bitcast) || x->is(Opcode::tuple);
    if (!is_view && !is_cast(x)) return false;
  }
  return converts;
}

bool is_constant(const hlo::Instr* x) {
  std::unordered_set<const hlo::Instr*> seen{x};
  std::vector<const hlo::Instr*> left{x};
  while (!left.empty()) {
    const hlo::Instr* at = left.back();
    left.pop_back();
    if (at->is(Opcode::parameter)) return false;
    for (const hlo::Instr* operand : at->operands())
      if (seen.insert(operand).second) left.push_back(operand);
  }
  return true;
}

std::string ranges_note(const precision::MixedGraph& graph, const precision::ValueRanges& ranges) {
  size_t known = 0;
  for (const precision::StoredValue& value : graph.values)
    known += ranges.contains(precision::same_value(value)) ? 1 : 0;
  if (known == 0)
    return fmt::format(
        "ranges: none of the {} records is of a value here; record them again, with "
        "this model, target and level",
        ranges.size());
  return fmt::format("ranges: known for {} of {} values", known, graph.values.size());
}

}  // namespace

int count_cast_kernels(const hlo::Module& fused) {
  int count = 0;
  for (const hlo::Instr* fusion : kernel_fusions(fused))
    if (only_converts(*fusion->called().at(0)) && !is_constant(fusion)) ++count;
  return count;
}

namespace {

// Runs the clean-up passes.
Status simplify(hlo::Module* module, const Options& options) {
  pass::RunOptions run = pass_options(options);
  run.dump_directory.clear();
  run.stop_after.clear();
  HEDDLE_ASSIGN_OR_RETURN([[maybe_unused]] const pass::RunReport done,
                          pass::run(*module, opt::cleanup_pipeline(), graph_passes(), run));
  return {};
}

// Nullopt: not a power of two, or out of range.
std::optional<double> power_of_two(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  int exponent = 0;
  if (read.ec != std::errc() || read.ptr != end || std::frexp(value, &exponent) != 0.5)
    return std::nullopt;
  return exponent > -100 && exponent < 100 ? std::optional(value) : std::nullopt;
}

// Scales the loss if the options say so. True: gradients that are not finite are detected.
Result<bool> add_loss_scale(hlo::Module* module, const Options& options, bool is_f16,
                            std::vector<std::string>* notes) {
  const std::string& asked = options.loss_scale;
  if (asked == "none" || (asked.empty() && !is_f16)) return false;
  precision::LossScale scale;
  scale.is_automatic = asked.empty() || asked == "auto";
  scale.scale = power_of_two(asked).value_or(1);
  const precision::LossScaleCounts counts = precision::scale_loss(scale, module);
  if (counts.gradients == 0 && asked.empty()) return false;
  if (counts.gradients == 0)
    return user_error(
        "--loss-scale {}: {} is not a training step: wanted outputs that alias inputs "
        "(input_output_alias), a loss that does not, and products between them",
        asked, module->name());
  notes->push_back(fmt::format("loss scale {}: {} gradients, inserted at {} values, carried by {}",
                               scale.is_automatic ? "automatic" : asked, counts.gradients,
                               counts.starts, counts.carriers));
  HEDDLE_RETURN_IF_ERROR(simplify(module, options));
  return scale.is_automatic;
}

precision::MixedHints hints_of(const hlo::Module& module, const Options& options, bool guarded) {
  precision::MixedHints hints;
  hints.guarded = guarded;
  hints.ranges = options.value_ranges;
  const precision::GradientFlow flow = precision::find_gradients(module);
  if (flow.gradients.empty()) return hints;
  hints.update.emplace();
  for (const hlo::Instr* x : flow.update) hints.update->insert(precision::same_value(*x));
  return hints;
}

}  // namespace

Status check_precision(const Options& options) {
  if (place_of_word(options.precision, "f32|bf16|f16") < 0)
    return user_error("--precision {}: wanted f32, bf16 or f16", options.precision);
  const std::string& asked = options.loss_scale;
  if (asked.empty() || asked == "none" || asked == "auto" || power_of_two(asked)) return {};
  return user_error("--loss-scale {}: wanted none, auto or a power of two, such as 1024", asked);
}

namespace {

// Writes the plan into the module.
Status apply_plan(const precision::MixedPlan& plan, const Options& options, hlo::Module* module,
                  MixedReport* mixed) {
  const precision::MixedCounts counts = precision::apply_mixed(plan, module);
  mixed->values = counts.values;
  mixed->products = counts.products;
  mixed->casts_made = counts.casts;
  HEDDLE_RETURN_IF_ERROR(simplify(module, options));
  mixed->casts_kept = count_casts(*module, plan.low);
  return {};
}

// Resets the report to a plan without small values.
void drop_plan(MixedReport* mixed) {
  mixed->values = mixed->products = mixed->casts_made = mixed->casts_kept = 0;
  mixed->mixed_ns = mixed->f32_ns;
  for (precision::MixedChoice& choice : mixed->choices)
    if (choice.low) {
      choice.low = false;
      choice.why = "gain";
    }
}

std::string in_us(double ns) { return fmt::format("{:.3g} us", ns / 1000); }

std::string mixed_note(const MixedReport& mixed) {
  if (mixed.run && !mixed.run->pays)
    return fmt::format("amp: all in f32: a run {} {} and {} in {}",
                       mixed.run->measured ? "was measured as faster in f32; predicted were"
                                           : "is predicted to take",
                       in_us(mixed.run->f32_ns), in_us(mixed.run->mixed_ns), mixed.type);
  return fmt::format("amp: {} products and {} values in {}, {} predicted for {} in f32",
                     mixed.products, mixed.values, mixed.type,
                     in_us(mixed.run ? mixed.run->mixed_ns : mixed.mixed_ns),
                     in_us(mixed.run ? mixed.run->f32_ns : mixed.f32_ns));
}

// By cost: a plan that gains too little is dropped, first by its own prediction, then by comparing
// both programs.
Result<std::optional<FusedModule>> apply_by_cost(const precision::MixedPlan& plan,
                                                 const Options& options,
                                                 const target::Target& target,
                                                 std::unique_ptr<hlo::Module>* module,
                                                 MixedReport* mixed) {
  std::optional<FusedModule> result;
  if (plan.mixed_ns > (1 - kLeastMixedGain) * plan.f32_ns) {
    drop_plan(mixed);
    return result;
  }
  std::unique_ptr<hlo::Module> narrow = (*module)->clone();
  HEDDLE_RETURN_IF_ERROR(apply_plan(plan, options, narrow.get(), mixed));
  if (mixed->products + mixed->values == 0) return result;
  HEDDLE_ASSIGN_OR_RETURN(MixedVerdict verdict,
                          compare_runs(**module, *narrow, mixed->type, options, target));
  mixed->run = std::move(verdict.times);
  result = std::move(verdict.fused);
  if (mixed->run->pays)
    *module = std::move(narrow);
  else
    drop_plan(mixed);
  return result;
}

}  // namespace

Result<std::optional<FusedModule>> mix_precision(std::unique_ptr<hlo::Module>* owned,
                                                 const Options& options,
                                                 const target::Target& target,
                                                 std::vector<std::string>* notes, Report* report) {
  hlo::Module* module = owned->get();
  const Type low = small_type(options, target);
  HEDDLE_ASSIGN_OR_RETURN(
      const bool guarded,
      add_loss_scale(module, options, is_mixed(options) && low == Type::f16, notes));
  std::optional<FusedModule> result;
  if (!is_mixed(options)) return result;
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<hlo::Module> fused,
                          fused_copy(*module, options, target));
  const precision::MixedGraph graph =
      precision::mixed_graph(*fused, target, low, hints_of(*module, options, guarded));
  if (options.value_ranges && low == Type::f16)
    notes->push_back(ranges_note(graph, *options.value_ranges));
  const bool all = options.amp == Amp::propagate || options.precision != "f32";
  const auto rule = all ? precision::MixedRule::propagate : precision::MixedRule::cost;
  precision::MixedPlan plan = precision::plan_mixed(graph, target, low, rule);
  MixedReport mixed;
  mixed.type = tensor::type_name(low);
  mixed.f32_ns = plan.f32_ns;
  mixed.mixed_ns = plan.mixed_ns;
  mixed.choices = plan.choices;
  if (all || options.amp != Amp::automatic) {
    HEDDLE_RETURN_IF_ERROR(apply_plan(plan, options, module, &mixed));
  } else {
    HEDDLE_ASSIGN_OR_RETURN(result, apply_by_cost(plan, options, target, owned, &mixed));
  }
  if (mixed.products + mixed.values == 0) mixed.mixed_ns = mixed.f32_ns;
  notes->push_back(mixed_note(mixed));
  if (report) report->mixed = std::move(mixed);
  return result;
}

}  // namespace heddle::compiler
