// The plan of a run's temporaries, for heddle explain: what lies where, and when.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "program/program.h"
#include "program/spaces.h"

namespace heddle::tools {

struct PlannedBuffer {
  std::string name;  // of the value, and the model's nodes of the command that makes it
  int64_t offset_bytes = 0, bytes = 0;
  int64_t first = 0, last = 0;  // commands of the run, from 0, inclusive
};

struct MemoryPlan {
  std::vector<PlannedBuffer> buffers;        // by offset
  std::vector<std::string> commands;         // names, and the model's nodes
  int64_t bytes = 0;                         // of the arena
  int64_t peak_command = 0, peak_bytes = 0;  // where most is alive
};

MemoryPlan memory_plan_of(const program::Program& program);
// A map of time (to the right) by address (upwards), and what is alive at the peak.
std::string text_of(const MemoryPlan& plan);
// What a program for a device with a memory of its own copies in a run, and the host's arena.
std::string crossings_text(const program::Crossings& crossings, const program::MemoryNumbers& host);
nlohmann::ordered_json crossings_json(const program::Crossings& crossings,
                                      const program::MemoryNumbers& host);

}  // namespace heddle::tools
