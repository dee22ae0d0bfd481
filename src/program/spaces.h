// Which side of a device with a memory of its own commands work on (Program::own_memory).
#pragma once

#include "program/program.h"

namespace heddle::program {

// Whether a command leaves the device alone: its result is on the host, and no copy from the
// device.
bool is_on_host(const Program& program, const Copy& copy);
bool is_on_host(const Program& program, const Update& update);
bool is_on_host(const Program& program, const Concatenate& concatenate);

// Whether a command reads or writes one of its views on the host.
bool is_read_by_host(const Program& program, const Command& command, const View& view);

// Between the two, one way or the other; a constant is on both sides.
bool goes_to_device(const Program& program, const Copy& copy);
bool goes_to_host(const Program& program, const Copy& copy);

// Of a run: copies between the two and their bytes, each once however often a loop does it.
struct Crossings {
  int64_t to_device = 0, to_host = 0;
  int64_t to_device_bytes = 0, to_host_bytes = 0;
  int64_t in_loops = 0;  // of both: those that a loop does again and again
  int64_t host_calls = 0;
};
Crossings count_crossings(const Program& program);

}  // namespace heddle::program
