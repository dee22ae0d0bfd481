// The passes of this folder: one function each, `Result<bool> fetch_ahead(kernel::Kernel&, const
// Context&)`, in a file of its name, and the table of all. They follow the rules of pass/pass.h
// (report changes truthfully, leave a valid kernel, terminate, are deterministic), and refuse
// nothing: an error is a bug.
#pragma once

#include <span>
#include <vector>

#include "kernel/kernel.h"
#include "pass/pass.h"
#include "target/target.h"

namespace heddle::lower {

struct Trim;

constexpr int kSubgroup = 32;  // threads of a GPU's subgroup

// The inputs of a kernel pass besides the kernel. The caller owns the target.
struct Context : pass::PassContext {
  const target::Target* target = nullptr;
  // GPU: the number of threads that share a task: those of a subgroup or of a block.
  int lanes = 0;
  // By phase and group: whether it is a plain loop nest, to which passes over sweeps and rows
  // apply; products and windows arrange their memory accesses themselves. Empty: all are nests.
  std::vector<std::vector<bool>> nests;

  // trim: which loops run over dynamic dimensions (trim.h); null: none.
  Trim* trim = nullptr;
  // Output of passes that turn numbers into run-time dimensions: these numbers; may be null.
  std::vector<int64_t>* dims = nullptr;

  bool is_nest(size_t phase, size_t group) const {
    return nests.empty() || nests.at(phase).at(group);
  }
};

#define HEDDLE_KERNEL_PASS(name, required, summary) \
  Result<bool> name(kernel::Kernel& kernel, const Context& context);
#include "lower/passes.def"

using KernelPass = pass::PassInfoOf<kernel::Kernel, Context>;
using KernelPassTable = pass::PassTableOf<kernel::Kernel, Context>;
std::span<const KernelPass> kernel_passes();

// Calls function(&group) for each nest of the kernel; true if any call returned true.
template <typename Function>
bool for_each_nest(kernel::Kernel& kernel, const Context& context, Function&& function) {
  bool changed = false;
  for (size_t p = 0; p < kernel.phases.size(); ++p)
    for (size_t g = 0; g < kernel.phases[p].groups.size(); ++g)
      if (context.is_nest(p, g)) changed |= function(&kernel.phases[p].groups[g]);
  return changed;
}

}  // namespace heddle::lower
