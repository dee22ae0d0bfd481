// The program that measures one record of a task, built so that other shapes share its code.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/tune.h"

namespace heddle::compiler {

struct SampleProgram {
  std::unique_ptr<hlo::Module> module;
  // For Options::twins: the same with other rows. None where the code is of this shape alone.
  std::vector<std::shared_ptr<const hlo::Module>> twins;
  target::Target target;  // with the record, under the keys of all of them
  double scale = 1;       // the task's time over that of `module`, which has whole tiles only
};

// A product with packed weights takes its rows as a run-time dimension: they are rounded up to
// whole tiles, and its time is scaled by predicted cycles (at most a tile in kFewestTiles).
// Everything else, and a product of fewer tiles, is compiled as it is.
SampleProgram sample_program(const TuneTask& task, const std::string& record,
                             const target::Target& target);

}  // namespace heddle::compiler
