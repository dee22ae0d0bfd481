#include "schedule/chain_tuning.h"

#include <fmt/format.h>

#include "schedule/tuning.h"

namespace heddle::schedule {

namespace {

// The key of a link of rows: columns, operators per element and operators per row.
std::string rows_key(const Link& link, const StageGraph& graph) {
  int64_t columns = 0, scalars = 0;
  for (StageId id : link.joined) {
    const Stage& stage = graph.stage(id);
    int64_t operators = stage.is_reduction();
    for (const Node& node : stage.nodes) operators += node.kind == Node::Kind::op;
    const bool row = stage.red.empty() && stage.out.size() < graph.stage(link.base).out.size();
    (row ? scalars : columns) += operators;
  }
  return fmt::format("rows of {} by {}+{}", link.shape.n_extent, columns, scalars);
}

}  // namespace

std::string chain_key(const PlacedFusion& placed) {
  const Chain& chain = *placed.chain();
  const Link& first = first_product(chain);
  const Stage& stage = placed.graph.stage(first.base);
  const Load& a = stage.loads[static_cast<size_t>(first.shape.a_load)];
  const int64_t a_bytes =
      a.source.input >= 0 ? placed.graph.inputs[static_cast<size_t>(a.source.input)].shape.bytes()
                          : stage.out_elems() / first.shape.n_extent * first.shape.k_extent * 4;
  std::string key;
  for (const Link& link : chain.links) {
    if (!key.empty()) key += " then ";
    if (link.rows)
      key += rows_key(link, placed.graph);
    else
      key += &link == &first ? gemm_key(first.shape, stage, a_bytes)
                             : fmt::format("{}", link.shape.n_extent);
  }
  return key;
}

std::optional<bool> tuned_chain(const PlacedFusion& chain, const target::Target& target) {
  if (!target.records) return std::nullopt;
  const auto found = target.records->find(chain_key(chain));
  if (found == target.records->end()) return std::nullopt;
  if (found->second == kChainRecord) return true;
  if (found->second == kApartRecord) return false;
  return std::nullopt;
}

}  // namespace heddle::schedule
