// Private to compiler: kernels between their making and their names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hlo/module.h"
#include "stitch/stitch.h"

namespace heddle::compiler {

// A kernel on the way to its name.
struct Pending {
  const hlo::Instr* fusion;
  stitch::Stitched stitched;
  std::string schedule, text;  // the text of a kernel without a name
  std::vector<int64_t> dims;
  double predicted_ns = 0;
  bool waits_for_memory = false;  // a kernel of rows: its extents may be dims
  bool shares_extents = false;    // the kernel is one for several extents
  bool refused = false;           // it has no kernel: the host does it
};

// Aborts where the kernel is not a valid one.
void check(const Pending& pending);
// Where several kernels differ in where they begin to read only, one is compiled for all.
void share_alike(std::vector<Pending>* all);
// Where several kernels of rows differ in their extents only, one is compiled for all.
void share_extents_of(std::vector<Pending>* all);

}  // namespace heddle::compiler
