#include "stitch/for_threads.h"

#include <algorithm>

#include "schedule/place_gpu_rows.h"

namespace heddle::stitch {

using kernel::Group;
using kernel::Kernel;
using kernel::StmtKind;

namespace {

// Whether a global store is uniform: one lane overwrites an element that all lanes of the subgroup
// read.
bool stores_uniformly(const Kernel& kernel, const Block& body) {
  return std::any_of(body.begin(), body.end(), [&](const Stmt& stmt) {
    if (stmt.kind == StmtKind::loop && stmt.loop == LoopKind::vector) return false;
    const bool here =
        stmt.kind == StmtKind::store && kernel.buffer(stmt.buffer).space == kernel::Space::global;
    return here || stores_uniformly(kernel, stmt.body) || stores_uniformly(kernel, stmt.otherwise);
  });
}

// Threads of a block may read elements that another thread overwrites, except in elementwise maps.
bool may_be_in_place(const Kernel& kernel, const stage::StageGraph& graph) {
  if (graph.stages.size() > 1) return false;
  for (const kernel::Phase& phase : kernel.phases)
    for (const Group& group : phase.groups)
      if (stores_uniformly(kernel, group.body)) return false;
  return true;
}

}  // namespace

Stitched stitch_for_threads(const stage::PlacedFusion& placed, const std::string& name,
                            const target::Target& target) {
  stage::PlacedFusion plain = placed;
  plain.schedule = schedule::without_threads(placed.schedule);
  const int lanes = placed.schedule.phases.at(0).at(0).lanes;
  const target::Target view = schedule::view_of_threads(target, lanes);
  Stitched result = Stitcher(plain, name, view, {}).run();
  if (!may_be_in_place(result.kernel, placed.graph)) {
    for (size_t o = 0; o < result.in_place.size(); ++o)
      if (!result.in_part[o]) result.in_place[o] = -1;
    result.may_overwrite.clear();
  }
  for (kernel::Buffer& buffer : result.kernel.buffers)  // as all memory of a device is
    if (buffer.space == kernel::Space::global) buffer.aligned_bytes = 64;
  result.kernel.schedule = stage::to_string(placed.schedule, placed.graph);
  return result;
}

}  // namespace heddle::stitch
