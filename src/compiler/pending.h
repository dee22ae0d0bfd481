// Private to compiler: kernels that are built but not named yet.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/compile_options.h"
#include "hlo/module.h"
#include "lower/share_extents.h"
#include "plan/plan.h"
#include "stitch/stitch.h"

namespace heddle::compiler {

// A kernel without a name.
struct Pending {
  const hlo::Instr* fusion;
  stitch::Stitched stitched;
  std::string schedule, text;  // the text of a kernel without a name
  std::vector<int64_t> dims;
  double predicted_ns = 0;
  bool waits_for_memory = false;          // a memory-bound kernel of rows: its extents may be dims
  bool shares_extents = false;            // the kernel is one for several extents
  bool refused = false;                   // no kernel: the host computes it
  std::vector<const hlo::Instr*> equals;  // fusions that are equal to this one, with one kernel
  std::string strategies;                 // those tried, one per line
};

// The common part of its launches, from its name, the name of its code, and its text.
plan::KernelUse use_of(const Pending& pending, const std::string& name, const std::string& code,
                       const std::string& text, bool gpu);
// Aborts if the kernel is not valid.
void check(const Pending& pending);
// Runs one pass over a finished kernel under the options; a change is counted, and dumped for its
// fusion. Without a fusion it is a trial, neither counted nor dumped. True: it changed the kernel.
using RunPass = std::function<bool(kernel::Kernel* kernel, std::string_view pass,
                                   const lower::Context& context, const hlo::Instr* fusion)>;
RunPass run_pass_of(const Options& options, const target::Target& target,
                    std::vector<std::string>* changes, Status* dump_failure);
// The pass open_extents, run by `run`.
lower::OpenPass open_pass(const RunPass& run, const hlo::Instr* fusion);
// Compiles one kernel for all that differ only in where they begin to read, if there are at least
// three (at O0, which is for a short compilation, two).
void share_alike(std::vector<Pending>* all, const RunPass& run, Level level);
// The same for kernels of rows that differ only in their extents.
void share_extents_of(std::vector<Pending>* all, const RunPass& run, Level level);

}  // namespace heddle::compiler
