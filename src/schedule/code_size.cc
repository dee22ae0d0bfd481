#include "schedule/code_size.h"

namespace heddle::schedule {

namespace {

// The back end takes 32,768 instructions a phase; there are several variants of a tile (two
// heights, a narrow last panel, a convolution's edges), and the products themselves.
constexpr int64_t kMostOfTile = 4096;

// Vector instructions of one operator, roughly: what emit/llvm makes of it at its longest.
int64_t instructions(const Node& node) {
  if (node.kind == Node::Kind::load) return 2;
  if (node.kind != Node::Kind::op) return 0;
  switch (node.opcode) {
    using enum hlo::Opcode;
    case exponential:
    case logistic:
    case tanh:
    case log:
    case exponential_minus_one:
    case log_plus_one:
    case cbrt:
      return 32;
    case erf:
      return 48;
    case power:
    case sine:
    case cosine:
    case tan:
    case atan2:
    case remainder:
      return 96;
    case convert:
    case divide:
      return 8;
    default:
      return 2;
  }
}

}  // namespace

int64_t code_of_tile(const StageGraph& graph, const std::vector<StageId>& joined,
                     const Gemm& gemm) {
  int64_t total = 0;
  for (size_t i = 1; i < joined.size(); ++i)
    for (const Node& node : graph.stage(joined[i]).nodes) total += instructions(node);
  return total * gemm.mr * gemm.nv;
}

Decision fits_in_code(const StageGraph& graph, const std::vector<StageId>& joined,
                      const Gemm& gemm) {
  const int64_t total = code_of_tile(graph, joined, gemm);
  if (total > kMostOfTile)
    return Decision::no("gemm-epilogue", "about {} instructions for a tile of {}x{}, {} fit", total,
                        gemm.mr, gemm.nv, kMostOfTile);
  return Decision::yes();
}

}  // namespace heddle::schedule
