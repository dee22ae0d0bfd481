// Searches a cover of memory-bound operators, around the products' kernels (explore.h). The cover
// from which it was made is kept, and is built if the searched one has a cycle.
#include "fuse/explore.h"
#include "fuse/open_cover.h"

namespace heddle::fuse {

Result<bool> search_cover(OpenCover& cover, const Context& context) {
  if (!context.search.search || cover.searched) return false;
  const std::vector<Group*> kernels = cover.kernels();
  if (kernels.empty()) return false;
  const std::string before = cover.text();
  SearchOptions options = context.search;
  // On a CPU, tables and composites do the packing.
  options.remote &= context.target->kind == target::DeviceKind::gpu;
  const auto stays = [&](const Group& group) { return cover.stays(group) || group.once; };
  Explored found = explore({&cover.covered, kernels, cover.copies}, *context.target, &cover.facts,
                           stays, options);
  if (context.search_report) add_report(found.report, context.search_report);
  if (!found.decision) {
    const Instr* root = cover.computation()->root();
    cover.refusals.push_back({cover.computation()->name(), root->name(), found.decision.code(),
                              found.decision.reason()});
  }
  cover.searched = std::move(found);
  cover.is_settled = true;
  return cover.text() != before;
}

}  // namespace heddle::fuse
