// The values that a fused module stores in memory, and its products: mixed precision decides on
// both. Values may be stored in 16 bits between kernels; inside a kernel everything is f32.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "hlo/module.h"
#include "precision/value_ranges.h"
#include "target/target.h"

namespace heddle::precision {

struct StoredValue {
  // Of the producing instruction before fusion. Fusion may have given the name to another one:
  // opcode and extents distinguish them.
  std::string name;
  hlo::Opcode opcode = hlo::Opcode::parameter;
  std::vector<int64_t> extents;
  int64_t bytes = 0;         // in f32
  int reads = 0;             // by kernels
  bool is_constant = false;  // depends on constants only: computed once, in any type
  bool is_input = false;
  bool is_copied = false;   // not computed by a kernel
  bool leaves_f16 = false;  // by its recorded range
  std::string fixed;        // code of the reason why it must be f32; empty: it need not
};

struct MixedProduct {
  std::string name;  // this and the following as for a value
  hlo::Opcode opcode = hlo::Opcode::dot;
  std::vector<int64_t> extents;
  double flops = 0;
  double flops_per_ns = 0;     // in 16 bits, on all cores
  int operands[2] = {-1, -1};  // values; -1: computed inside its kernel
  bool reads_narrow = false;   // in f32, it can read a 16-bit left side directly
  bool rounds_right = false;   // an f32 input is rounded as its panels are copied
  std::string fixed;
};

struct MixedGraph {
  std::vector<StoredValue> values;
  std::vector<MixedProduct> products;
};

// Codes of the reasons why a value or product must be f32:
//   type        it is not f32
//   scalar      one number: nothing is gained
//   input, output   a port of the module: its type is part of the interface
//   sums, wide  as in hlo::Narrowing; unknown: an operator without such information
//   loop        a value of a loop or a branch, which other computations read
//   copied      written or read by a command that is no kernel: arrays are copied into place
//   state       the update of a training step computes it; if no gradients are found: kept results
//               are computed from it without a product in between
//   range       f16 does not hold the range of its values (value_ranges.h) or, if that is unknown,
//               their possible range; of a product: the range of an operand
//   no-kernel   the target does not multiply this type faster, or not with these extents
//   chain       an operand is computed inside the product's kernel
// Facts about the module before fusion.
struct MixedHints {
  // Steps in which f16 overflows are detected and undone (loss_scale.h): no value is fixed for its
  // range.
  bool guarded = false;
  // Of a training step: the values that its update computes (gradient_flow.h), by same_value().
  std::optional<std::unordered_set<std::string>> update;
  std::shared_ptr<const ValueRanges> ranges;  // of recorded values; may be null
};
// Identifies a value before and after fusion: after it the name alone may refer to another one.
std::string same_value(const hlo::Instr& instr);
std::string same_value(const StoredValue& value);  // the value is f32

MixedGraph mixed_graph(const hlo::Module& fused, const target::Target& target, tensor::Type low,
                       const MixedHints& hints = {});

}  // namespace heddle::precision
