// Mixed precision by cost: which values a program keeps in 16 bits, and which products multiply
// 16-bit operands (sums stay f32). One minimum cut over both decides:
//
//   E = Σ values  moved(bytes of its type) · (1 + reads)
//     + Σ products  time in its type  +  time to convert operands of the other type
//
// Values and products stay f32 if 16 bits gain nothing, so that a small network, or one on a
// processor that multiplies 16-bit numbers no faster, keeps all of its arithmetic. Inside kernels
// everything but products is computed in f32, whatever types are stored.
#pragma once

#include <string>
#include <vector>

#include "precision/mixed_graph.h"

namespace heddle::precision {

enum class MixedRule { cost, propagate };

// The decision on one value or product.
struct MixedChoice {
  std::string name;  // as in StoredValue, with opcode and extents
  hlo::Opcode opcode = hlo::Opcode::parameter;
  std::vector<int64_t> extents;
  bool is_product = false;
  bool low = false;
  std::string why;     // a code of mixed_graph.h, or "cost"; empty: low
  double gain_ns = 0;  // of being low, without conversions next to it
};

struct MixedPlan {
  tensor::Type low = tensor::Type::bf16;
  std::vector<MixedChoice> choices;
  double f32_ns = 0, mixed_ns = 0;  // predicted time of all values and products
};

// `propagate`: every product that can be low, and everything between two low products or after one,
// as published lists of operators decide; the baseline.
MixedPlan plan_mixed(const MixedGraph& graph, const target::Target& target, tensor::Type low,
                     MixedRule rule);

// The 16-bit type that is fastest on a target.
tensor::Type fastest_small_float(const target::Target& target);

}  // namespace heddle::precision
