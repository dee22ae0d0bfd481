// Assigns the commands of a list to streams: which may run concurrently, which waits are needed,
// and whether several streams pay off. Nothing is stored: it is derived from the program, as in
// side_by_side.h.
//
// Two commands depend on each other if one writes bytes that the other touches, by the offsets of
// the memory plan: a plan that reuses bytes adds dependences. Their transitive reduction is kept; a
// maximum matching makes chains with the fewest edges between them, and chains share streams if
// there are more chains than streams. Vector clocks then drop every wait implied by another.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "program/program.h"

namespace heddle::program {

struct StreamOptions {
  int64_t most_streams = 4;
  double wait_ns = 0;        // cost of waiting for an event
  double least_gain = 0.05;  // as a fraction of the time on one stream; below it one stream is used
};

struct StreamPlan {
  int64_t streams = 1;
  std::vector<int64_t> stream;             // by command; loops, branches, host calls: 0
  std::vector<std::vector<size_t>> waits;  // by command: commands of other streams to wait for
  std::vector<bool> recorded;              // by command: some command waits for it
  // Commands that run alone (loops, branches, calls of the host or of a library): everything before
  // such a command has run when it starts, and it has run before any later command starts.
  std::vector<bool> alone;
  int64_t dependences = 0, reduced = 0, crossing = 0, events = 0;
  double serial_ns = 0, ns = 0;  // on one stream; as planned
};

// Rough times of the commands relative to each other, from bytes moved and arithmetic.
std::vector<double> rough_ns(const Program& program, const std::vector<Command>& commands);

// Chooses the smallest number of streams that takes no longer than more would. `command_ns`: time
// of each command.
StreamPlan plan_streams(const Program& program, const std::vector<Command>& commands,
                        const std::vector<double>& command_ns, const StreamOptions& options = {});

}  // namespace heddle::program
