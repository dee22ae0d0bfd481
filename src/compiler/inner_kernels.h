// Private to compiler: the inner kernels of a table, by the kernels that they replace.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/pending.h"

namespace heddle::compiler {

// Kernels that differ only in their extents share one, which takes these as run-time dimensions.
class InnerKernels {
 public:
  // Adds them to `to`; `run`: for the pass open_extents. Both must outlive this.
  InnerKernels(kernel::Kernel* to, const RunPass& run) : to_(*to), run_(run) {}

  // The kernel of a fusion.
  void add(const kernel::Kernel& kernel, const hlo::Instr* fusion);
  // To be called after all kernels are added.
  void finish();

  struct Use {
    int inner = -1;
    std::vector<int64_t> dims;
  };
  const Use& of(const kernel::Kernel& kernel) const;

 private:
  struct Form {
    kernel::Kernel open;
    std::vector<kernel::Kernel> kernels;
    std::vector<const hlo::Instr*> fusions;
    std::vector<std::vector<int64_t>> values;
  };
  void push(kernel::Kernel kernel);

  kernel::Kernel& to_;
  const RunPass& run_;
  std::map<std::string, Form> forms_;  // by opened text
  std::map<std::string, Use> seen_;    // by text
};

}  // namespace heddle::compiler
