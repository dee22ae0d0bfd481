// Rough times of commands, with a separate cost for copies between host and device.
#pragma once

#include <functional>
#include <vector>

#include "program/program.h"

namespace heddle::program {

// As rough_ns() of streams.h. `link_bytes`: for a copy of so many bytes between host and device,
// the bytes of device memory that could be moved in the same time; empty: the same number.
std::vector<double> rough_ns(const Program& program, const std::vector<Command>& commands,
                             const std::function<double(double bytes)>& link_bytes);

}  // namespace heddle::program
