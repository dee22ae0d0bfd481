// Mixed precision by cost: which values a program keeps in 16 bits, and which products multiply
// 16-bit operands (sums stay f32). One minimum cut over both decides:
//
//   E = Σ values  moved(bytes of its type) · (1 + reads)
//     + Σ products  time in its type  +  what converting an operand of the other type takes
//
// Values and products between which nothing is gained stay f32, so that a small network, or a
// processor that multiplies 16-bit numbers no faster, keeps all of its arithmetic. Within kernels
// all but products is computed in f32, whatever is stored.
#pragma once

#include <string>
#include <vector>

#include "precision/mixed_graph.h"

namespace heddle::precision {

enum class MixedRule { cost, propagate };

// What was decided on one value or product.
struct MixedChoice {
  std::string name;  // with opcode and extents, as StoredValue has them
  hlo::Opcode opcode = hlo::Opcode::parameter;
  std::vector<int64_t> extents;
  bool is_product = false;
  bool low = false;
  std::string why;     // a code of mixed_graph.h, or "cost"; empty: low
  double gain_ns = 0;  // of being low, without what lies around it
};

struct MixedPlan {
  tensor::Type low = tensor::Type::bf16;
  std::vector<MixedChoice> choices;
  double f32_ns = 0, mixed_ns = 0;  // what is decided on takes so much
};

// `propagate`: every product that can, and all that stands between two of them or behind one, as
// published lists of operators decide; the baseline.
MixedPlan plan_mixed(const MixedGraph& graph, const target::Target& target, tensor::Type low,
                     MixedRule rule);

// The 16-bit type that a target gains most with.
tensor::Type fastest_small_float(const target::Target& target);

}  // namespace heddle::precision
