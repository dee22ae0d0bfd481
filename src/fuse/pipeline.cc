#include "fuse/pipeline.h"

#include "fuse/fuse.h"
#include "fuse/runner.h"

namespace heddle::fuse {

namespace {

// Memory is measured before the merges that may be undone because they extend live ranges. Chains
// before siblings: a kernel with a product is no sibling any more.
constexpr char kChains[] =
    ",measure_memory,merge_pools,merge_chains,merge_siblings,merge_scalars,limit_memory";

}  // namespace

// split_top_k and fuse_scatters come first: their results are operators with separate kernels. The
// passes after the cover combine kernels that no schedule joins: form_loops first, because it takes
// a loop's kernels as they are; put_boxes_in_place before tables and composites, which check what
// is overwritten; tables before composites, which hold few kernels.
std::string pipeline_for(Mode mode, target::DeviceKind kind) {
  if (mode == Mode::off) return "split_top_k,open_cover,make_kernels";
  if (mode == Mode::xla) return "split_top_k,open_cover,xla_producers,xla_siblings,make_kernels";
  const bool cpu = kind == target::DeviceKind::cpu, chains = mode >= Mode::chains;
  std::string text = cpu ? "split_top_k,fuse_scatters," : "split_top_k,";
  text += "open_cover,join_producers,merge_turns";
  if (chains) text += kChains;
  if (mode == Mode::stitch) text += ",search_cover";
  text += ",make_kernels";
  if (cpu && chains) text += ",form_loops";
  if (cpu) text += ",put_boxes_in_place";
  if (cpu && chains) text += ",form_tables,form_composites";
  return text;
}

// Operands get their types and their order before their panels are chosen; filters for Winograd's
// algorithm have none.
std::string packing_pipeline(bool relaxed) {
  return relaxed ? "widen_products,turn_products,transform_filters,pack_panels"
                 : "widen_products,turn_products,pack_panels";
}

Result<pass::RunReport> run(Covers& covers, std::string_view pipeline, const Context& context,
                            const pass::RunOptions& options) {
  static const pass::PassTableOf<Covers, Context> kTable(passes<Context>());
  HEDDLE_ASSIGN_OR_RETURN(const pass::Pipeline parsed, pass::parse_pipeline(pipeline));
  return pass::run_passes(covers, parsed, kTable, options, context);
}

namespace {

Result<pass::RunReport> run_all(hlo::Module* module, const std::string& pipeline,
                                const Context& context) {
  Covers covers(module);
  pass::RunOptions options;
  options.reproduce = false;  // the caller has the module
  return run(covers, pipeline, context, options);
}

}  // namespace

Result<bool> fuse(hlo::Module* module, const target::Target& target, Mode mode,
                  std::vector<Refusal>* refusals, const SearchOptions& options,
                  SearchReport* report) {
  Context context;
  context.target = &target;
  context.refusals = refusals;
  context.any_chain = mode == Mode::chains;
  context.search = options;
  context.search_report = report;
  HEDDLE_ASSIGN_OR_RETURN(const pass::RunReport done,
                          run_all(module, pipeline_for(mode, target.kind), context));
  return done.changed;
}

Result<bool> pack_weights(hlo::Module* module, const target::Target& target, bool relaxed,
                          std::vector<std::string>* notes, std::vector<Refusal>* refusals) {
  Context context;
  context.target = &target;
  context.refusals = refusals;
  HEDDLE_ASSIGN_OR_RETURN(const pass::RunReport done,
                          run_all(module, packing_pipeline(relaxed), context));
  if (notes) notes->insert(notes->end(), done.notes.begin(), done.notes.end());
  return done.changed;
}

}  // namespace heddle::fuse
