// Private to compiler: kernels between their making and their names.
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

// A kernel on the way to its name.
struct Pending {
  const hlo::Instr* fusion;
  stitch::Stitched stitched;
  std::string schedule, text;  // the text of a kernel without a name
  std::vector<int64_t> dims;
  double predicted_ns = 0;
  bool waits_for_memory = false;          // a kernel of rows: its extents may be dims
  bool shares_extents = false;            // the kernel is one for several extents
  bool refused = false;                   // it has no kernel: the host does it
  std::vector<const hlo::Instr*> equals;  // fusions that are equal to this one, with one kernel
  std::string strategies;                 // that were asked, a line each
};

// What its launches have in common. Its name, that of its code, its text.
plan::KernelUse use_of(const Pending& pending, const std::string& name, const std::string& code,
                       const std::string& text, bool gpu);
// Aborts where the kernel is not a valid one.
void check(const Pending& pending);
// Runs a kernel pass by itself over a kernel that is made: as the options say, counted, and dumped
// for its fusion. Without one it is a try, neither counted nor dumped. True: it changed the kernel.
using RunPass = std::function<bool(kernel::Kernel* kernel, std::string_view pass,
                                   const lower::Context& context, const hlo::Instr* fusion)>;
RunPass run_pass_of(const Options& options, const target::Target& target,
                    std::vector<std::string>* changes, Status* dump_failure);
// The pass open_extents by it.
lower::OpenPass open_pass(const RunPass& run, const hlo::Instr* fusion);
// Where several kernels differ in where they begin to read only, one is compiled for all: at O0,
// which is for a short compilation, where two do.
void share_alike(std::vector<Pending>* all, const RunPass& run, Level level);
// The same of kernels of rows that differ in their extents only.
void share_extents_of(std::vector<Pending>* all, const RunPass& run, Level level);

}  // namespace heddle::compiler
