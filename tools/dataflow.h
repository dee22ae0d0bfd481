// Which command of a run hands what to which: from the buffers that they read and write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "program/program.h"

namespace heddle::tools {

struct Flow {
  size_t from = 0, to = 0;  // numbers of commands; from >= to: in the next trip of a loop
  program::BufferId buffer;
  int64_t bytes = 0;  // that are read
};

struct Dataflow {
  std::vector<Flow> flows;  // by `to`; one for each pair and buffer
  // By command, of buffers that no command of the run writes first: inputs, constants, once.
  std::vector<std::vector<program::BufferId>> given;
  // By number of the buffer: the last command that writes it; -1: none.
  std::vector<int64_t> last_writer;
};

Dataflow dataflow_of(const program::Program& program);

// By number of the buffer: of each that the once section makes, the constants behind it.
std::vector<std::vector<program::BufferId>> sources_of_once(const program::Program& program);

}  // namespace heddle::tools
