// Ways to make a module smaller, for `heddle reduce`. Each works on a clone that may be thrown away
// and says whether it did something; the result may have a broken shape, which the verifier finds.
// Instructions and computations are named by their ids, which clones keep.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hlo/module.h"

namespace heddle::tools {

// What reducing makes less, the most important first.
struct ModuleSize {
  int64_t operators = 0;       // of all computations; tuples, parameters and constants do not count
  int64_t extras = 0;          // annotations, aliases, control edges
  int64_t constant_elems = 0;  // of arrays with more than one
  int64_t instructions = 0;
  int64_t outputs = 0;
  int64_t opcodes = 0;  // how many are not the plainest of their kind
  int64_t elems = 0;    // of all values
  auto operator<=>(const ModuleSize&) const = default;
};
ModuleSize size_of(const hlo::Module& module);

// Instructions that drop_instrs may name, in order.
std::vector<int64_t> droppable(const hlo::Computation& computation);
std::vector<int64_t> large_constants(const hlo::Module& module);
// The extents above 1 in the module, largest first.
std::vector<int64_t> extents_of(const hlo::Module& module);

// Takes them out: what others read of them becomes parameters (in computations that are called:
// ones and false). Outputs among them are outputs no more; with `cut`, and where no output is left,
// what they read becomes output.
bool drop_instrs(hlo::Module& module, int64_t computation, const std::vector<int64_t>& ids,
                 bool cut);
// Its operand number `operand`, of the same shape, stands for it.
bool bypass(hlo::Module& module, int64_t computation, int64_t id, size_t operand);
// Constants become parameters.
bool free_constants(hlo::Module& module, const std::vector<int64_t>& ids);
// A while becomes one trip of its body, a conditional its branch `number`, as a call.
bool take_region(hlo::Module& module, int64_t computation, int64_t id, size_t number);
// The plainest operator with the same operands: negate, add; reductions sum.
bool plainest(hlo::Module& module, int64_t computation, int64_t id);
// Every extent `from` becomes `to`; with `multiples`, multiples of it become those of `to`.
bool shrink_extent(hlo::Module& module, int64_t from, int64_t to, bool multiples);
// Metadata, aliases, layouts of the entry, control edges.
bool drop_extras(hlo::Module& module);
// Input `number` (of leaves) gets this value for good. False: it is a leaf of a tuple.
bool fix_input(hlo::Module& module, int64_t parameter, const tensor::Literal& value);

// Removes what nothing needs: instructions, parameters, computations.
void clean(hlo::Module& module);

}  // namespace heddle::tools
