#include "cost/code_size.h"

#include <algorithm>

#include "stage/gemm_axis.h"

namespace heddle::cost {

namespace {

// The back end accepts 32,768 instructions per phase; there are several variants of a tile (two
// heights, a narrow last panel, a convolution's edges), and the products themselves.
constexpr int64_t kMostOfTile = 4096;

// Vector instructions of one operator, roughly: the longest code that emit/llvm makes.
int64_t instructions(const stage::Node& node) {
  if (node.kind == stage::Node::Kind::load) return 2;
  if (node.kind != stage::Node::Kind::op) return 0;
  if (node.opcode == hlo::Opcode::convert) return 8;
  switch (opcode_info(node.opcode).cost) {
    case hlo::CostClass::call:
      return 96;
    case hlo::CostClass::function:
      return 32;
    case hlo::CostClass::divide:
      return 8;
    default:
      return 2;
  }
}

// A load at a position that the stage computes: the position is computed lane by lane, and with it
// all that it depends on, of which all of the stage is a bound.
int64_t of_computed_positions(const stage::Stage& stage, int lanes) {
  const auto computed = [](const stage::Load& load) {
    return std::ranges::any_of(load.coordinates,
                               [](const index::Expr& x) { return x.uses_runtime(); });
  };
  return std::ranges::any_of(stage.loads, computed) ? lanes * std::ssize(stage.nodes) : 0;
}

// Unrolled rows of a tile; results of fragments are finished in a loop over the rows in scratch.
int64_t rows_written_out(const stage::Gemm& gemm) { return gemm.tile ? 1 : gemm.mr; }

}  // namespace

int64_t code_of_tile(const stage::StageGraph& graph, const std::vector<stage::StageId>& joined,
                     const stage::Gemm& gemm) {
  int64_t total = 0;
  for (size_t i = 1; i < joined.size(); ++i) {
    const stage::Stage& stage = graph.stage(joined[i]);
    for (const stage::Node& node : stage.nodes) total += instructions(node);
    total += of_computed_positions(stage, gemm.lanes);
  }
  return total * rows_written_out(gemm) * gemm.nv;
}

Decision fits_in_code(const stage::StageGraph& graph, const std::vector<stage::StageId>& joined,
                      const stage::Gemm& gemm) {
  const int64_t total = code_of_tile(graph, joined, gemm);
  if (total > kMostOfTile)
    return Decision::no("gemm-epilogue", "about {} instructions for a tile of {}x{}, only {} fit",
                        total, gemm.mr, gemm.nv, kMostOfTile);
  return Decision::yes();
}

int64_t code_of_tiles(const stage::StageGraph& graph, const std::vector<stage::StageId>& joined,
                      const stage::Gemm& gemm, const stage::GemmShape& shape) {
  const stage::Stage& stage = graph.stage(joined[0]);
  int64_t tiles = 0, segments = 0;
  if (copies_lines(gemm, shape)) return 2 * code_of_tile(graph, joined, gemm);
  for (const stage::AxisPart& lines : line_parts(gemm, shape, stage))
    for (const stage::AxisPart& rows : row_parts(gemm, shape, stage)) {
      tiles += static_cast<int64_t>(lines.runs.size() * rows.runs.size());
      for (const stage::Run& line : lines.runs)
        for (const stage::Run& row : rows.runs)
          segments += std::max<int64_t>(line.segments.size(), 1) *
                      std::max<int64_t>(row.segments.size(), 1);
    }
  const int64_t width = int64_t{gemm.nv} * gemm.lanes;
  const int64_t rest = (shape.n_extent % width + gemm.lanes - 1) / gemm.lanes;
  const int64_t vectors = (shape.n_extent >= width ? gemm.nv : 0) + rest;  // of both panels
  const int64_t registers = gemm.my * rows_written_out(gemm) * gemm.nv;
  const int64_t each = (code_of_tile(graph, joined, gemm) * gemm.my + 8 * registers) * tiles +
                       3 * registers * gemm.ku * segments;
  return each * vectors / gemm.nv;
}

Decision fits_in_code(const stage::StageGraph& graph, const std::vector<stage::StageId>& joined,
                      const stage::Gemm& gemm, const stage::GemmShape& shape) {
  if (Decision fits = fits_in_code(graph, joined, gemm); !fits) return fits;
  const int64_t total = code_of_tiles(graph, joined, gemm, shape);
  if (total > kMostOfKernel)
    return Decision::no("gemm-epilogue", "about {} instructions for all tiles, only {} fit", total,
                        kMostOfKernel);
  return Decision::yes();
}

}  // namespace heddle::cost
