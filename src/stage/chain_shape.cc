#include "stage/chain_shape.h"

#include <algorithm>

#include "stage/gemm_axis.h"

namespace heddle::stage {

const Link& first_product(const Chain& chain) {
  return *std::find_if(chain.links.begin(), chain.links.end(),
                       [](const Link& link) { return !link.rows; });
}

int64_t row_pitch(const StageGraph& graph, const Kept& kept) {
  if (kept.column < 0) return 1;
  const Stage& stage = graph.stage(kept.stage);
  const int64_t bytes = tensor::type_bytes(stage.values[0].type), line = 64 / bytes;
  const int64_t columns = stage.out[static_cast<size_t>(kept.column)].extent;
  int64_t pitch = (columns + line - 1) / line * line;
  if (pitch * bytes % 1024 == 0) pitch += line;
  return pitch;
}

int64_t row_bytes(const StageGraph& graph, const Kept& kept) {
  return row_pitch(graph, kept) * tensor::type_bytes(graph.stage(kept.stage).values[0].type);
}

int64_t block_rows(const Chain& chain, const StageGraph& graph, const std::vector<Gemm>& records) {
  const Link& first = chain.links[0];
  const Stage& stage = graph.stage(first.base);
  int64_t rows = 0;
  for (const AxisPart& lines : line_parts(records[0], first.shape, stage))
    for (const AxisPart& part : row_parts(records[0], first.shape, stage))
      rows = std::max(rows, count_rows(lines) * count_rows(part));
  return rows;
}

int64_t resident_bytes(const Chain& chain, const StageGraph& graph,
                       const std::vector<Gemm>& records) {
  const int64_t rows = block_rows(chain, graph, records);
  int64_t bytes = 0;
  for (const Link& link : chain.links)
    for (const Kept& kept : link.kept)
      if (!kept.over.valid()) bytes += (rows * row_bytes(graph, kept) + 63) / 64 * 64;
  return bytes;
}

}  // namespace heddle::stage
