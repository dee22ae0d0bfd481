// plan: a fused module and its kernels become a program. Order, liveness, aliases, offsets.
//
// The module's entry holds parameters, constants, fusions (each with a kernel), views without work
// (bitcast, reshape of equal layout, get-tuple-element, tuple), copies, and instructions without a
// kernel, which become host calls.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "hlo/module.h"
#include "program/program.h"
#include "target/target.h"

namespace heddle::plan {

// What a fusion instruction launches. The kernel's global buffers are, in order: the fusion's
// operands (by parameter number), its output leaves, then `workspace_bytes` temporaries that live
// for this launch only.
struct KernelUse {
  program::Kernel kernel;  // equal names are one kernel
  std::vector<int64_t> workspace_bytes;
  // Output leaf i may overwrite operand in_place[i] where that dies here; -1: not.
  std::vector<int> in_place;
  // It is operand in_place[i] but for a part, which alone is stored: it must lie there. Where
  // missing: not.
  std::vector<bool> in_part;
  std::vector<int64_t> dims;  // its run-time dimensions here
};
using Kernels = std::unordered_map<const hlo::Instr*, KernelUse>;

// as_is: the module's own (O0, O1); cheapest: the one of all that needs the least memory.
enum class Order { as_is, bfs, dfs, list, beam, cheapest };

struct Options {
  Order order = Order::cheapest;
  bool keep_order = false;  // even where the limit is met by another one only
  // For how many streams memory is planned: 1: commands run one after another; more: bytes are
  // given again only where the order is sure, on as many of them as pay; 0: on any number (most
  // memory).
  int64_t most_streams = 1;
  bool static_memory = true;        // false: every temporary its own bytes, no sharing
  int64_t memory_limit_bytes = -1;  // an error before the run where the plan is above it
  bool own_memory = false;          // the device has a memory of its own (partition.h)
};

// `input_names`, `output_names`: one a leaf of the entry's parameters and of its root; where
// missing, arg<n> and out<n> by CLI.md. Instructions of the entry whose operands are all constant
// and that `once` lists go to the once section.
struct Names {
  std::vector<std::string> inputs, input_aliases, outputs;
};
Result<program::Program> plan(const hlo::Module& module, const Kernels& kernels, const Names& names,
                              const target::Target& target, const Options& options);

}  // namespace heddle::plan
