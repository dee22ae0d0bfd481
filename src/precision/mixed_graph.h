// What a fused module keeps in memory, and what it multiplies: the two things that mixed precision
// decides on. Between kernels values may be kept in 16 bits; inside of one everything is f32.
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
  // Of the instruction that makes it, as it was called before it was fused. Fusion may have given
  // the name to another one: opcode and extents tell them apart.
  std::string name;
  hlo::Opcode opcode = hlo::Opcode::parameter;
  std::vector<int64_t> extents;
  int64_t bytes = 0;         // in f32
  int reads = 0;             // by kernels
  bool is_constant = false;  // depends on constants alone: made once, in any type
  bool is_input = false;
  bool is_copied = false;   // no kernel makes it
  bool leaves_f16 = false;  // by its record
  std::string fixed;        // why it stays f32, a code; empty: it need not
};

struct MixedProduct {
  std::string name;  // and the rest as of a value
  hlo::Opcode opcode = hlo::Opcode::dot;
  std::vector<int64_t> extents;
  double flops = 0;
  double flops_per_ns = 0;     // in 16 bits, of all cores
  int operands[2] = {-1, -1};  // values; -1: its kernel makes it
  bool reads_narrow = false;   // in f32 it takes a 16-bit left side as it is
  bool rounds_right = false;   // an input in f32 is rounded as its panels are copied
  std::string fixed;
};

struct MixedGraph {
  std::vector<StoredValue> values;
  std::vector<MixedProduct> products;
};

// Codes of what is fixed:
//   type        not f32
//   scalar      one number: nothing is gained
//   input, output   of the module, whose types are its interface
//   sums, wide  as hlo::Narrowing has it; unknown: an operator of which nothing is known
//   loop        a loop's or a branch's, which other computations read
//   copied      made or read where no kernel is: arrays are copied into their places
//   state       the update of a training step computes it; where no gradients are found: it goes
//               into what a run keeps without a product between
//   range       f16 does not hold what it was (value_ranges.h) or, where nothing is known of it,
//               what it may be; of a product: what an operand was
//   no-kernel   the target multiplies this type no faster, or not these extents
//   chain       an operand stays inside of the product's kernel
// What is known of the module before it was fused.
struct MixedHints {
  // A step that meets what f16 does not hold is noticed and taken back (loss_scale.h): no value is
  // fixed for its range.
  bool guarded = false;
  // Of a step of training: what its update computes (gradient_flow.h), by same_value().
  std::optional<std::unordered_set<std::string>> update;
  std::shared_ptr<const ValueRanges> ranges;  // what values were; may be null
};
// A value before and after fusion: its name alone may be another's behind it.
std::string same_value(const hlo::Instr& instr);
std::string same_value(const StoredValue& value);  // of f32

MixedGraph mixed_graph(const hlo::Module& fused, const target::Target& target, tensor::Type low,
                       const MixedHints& hints = {});

}  // namespace heddle::precision
