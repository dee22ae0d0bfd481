// Tells on which side commands work, for a device with its own memory (Program::own_memory).
#pragma once

#include "program/program.h"

namespace heddle::program {

// Whether a command does not involve the device: its result is on the host, and it is not a copy
// from the device.
bool is_on_host(const Program& program, const Copy& copy);
bool is_on_host(const Program& program, const Update& update);
bool is_on_host(const Program& program, const Concatenate& concatenate);

// Whether the host reads or writes this view of the command.
bool is_read_by_host(const Program& program, const Command& command, const View& view);

// Whether it copies from one space to the other; a constant is on both sides.
bool goes_to_device(const Program& program, const Copy& copy);
bool goes_to_host(const Program& program, const Copy& copy);

// Counts for a run: copies between the spaces and their bytes; a copy in a loop counts once.
struct Crossings {
  int64_t to_device = 0, to_host = 0;
  int64_t to_device_bytes = 0, to_host_bytes = 0;
  int64_t in_loops = 0;  // in both directions: copies inside loops
  int64_t host_calls = 0;
};
Crossings count_crossings(const Program& program);

}  // namespace heddle::program
