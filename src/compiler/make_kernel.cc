#include "compiler/make_kernel.h"

#include "lower/pipeline.h"
#include "schedule/place_gpu_rows.h"

namespace heddle::compiler {

void roll_products(stage::PlacedFusion* placed) {
  for (stage::ScheduleNode& node : placed->schedule.nodes) {
    auto* row = std::get_if<stage::Row>(&node);
    auto* tile = row ? std::get_if<stage::GemmTile>(&row->kind) : nullptr;
    if (tile == nullptr) continue;
    tile->record.ku = 1;
    tile->record.prefetch = 0;
  }
}

Result<stitch::Stitched> make_kernel(const stage::PlacedFusion& placed, const std::string& name,
                                     const target::Target& target,
                                     const std::vector<bool>& streamed,
                                     const pass::RunOptions& options,
                                     std::vector<std::string>* changes) {
  stitch::Stitched result = stitch::stitch(placed, name, target, streamed);
  lower::Context context;
  context.nests = result.nests;
  context.target = &target;
  target::Target view;
  if (target.kind == target::DeviceKind::gpu) {
    context.lanes = placed.schedule.phases.at(0).at(0).lanes;
    view = schedule::view_of_threads(target, context.lanes);
    context.target = &view;
  }
  HEDDLE_ASSIGN_OR_RETURN(
      const pass::RunReport report,
      lower::run(result.kernel, lower::pipeline_for(target.kind), context, options));
  if (changes) changes->insert(changes->end(), report.changes.begin(), report.changes.end());
  return result;
}

}  // namespace heddle::compiler
