// Streams for the commands of a list: which may run side by side, what waits for what, and whether
// it pays. Nothing of it is stored: it follows from the program, as side_by_side.h does.
//
// Two commands depend on each other where one writes bytes that the other touches, at the places of
// the memory plan: so a plan that gives bytes again adds dependences of its own. Of these the
// transitive reduction is kept, a maximum matching of it makes chains with the fewest edges between
// them, and chains share streams where there are more of them. Vector clocks then leave out every
// wait that follows from another.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "program/program.h"

namespace heddle::program {

struct StreamOptions {
  int64_t most_streams = 4;
  double wait_ns = 0;        // what waiting for an event costs
  double least_gain = 0.05;  // of the time on one stream; less: one stream
};

struct StreamPlan {
  int64_t streams = 1;
  std::vector<int64_t> stream;             // by command; loops, branches, host calls: 0
  std::vector<std::vector<size_t>> waits;  // by command: for these commands of other streams
  std::vector<bool> recorded;              // by command: one waits for it
  // Loops, branches and calls of the host or of a library: all before them has run, and they have
  // run before all behind them.
  std::vector<bool> alone;
  int64_t dependences = 0, reduced = 0, crossing = 0, events = 0;
  double serial_ns = 0, ns = 0;  // on one stream, and as planned
};

// What each command takes beside the others, roughly: by the bytes that it moves and what it
// computes.
std::vector<double> rough_ns(const Program& program, const std::vector<Command>& commands);

// On as few streams as take no longer than more of them would. `command_ns`: what each command
// takes, by command.
StreamPlan plan_streams(const Program& program, const std::vector<Command>& commands,
                        const std::vector<double>& command_ns, const StreamOptions& options = {});

}  // namespace heddle::program
