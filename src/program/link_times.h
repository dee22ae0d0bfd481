// Times of commands, roughly, where copies between host and device have a price of their own.
#pragma once

#include <functional>
#include <vector>

#include "program/program.h"

namespace heddle::program {

// As rough_ns() of streams.h. `link_bytes`: of a copy of so many bytes between host and device, the
// bytes of device memory that could be moved in the same time; empty: just as many.
std::vector<double> rough_ns(const Program& program, const std::vector<Command>& commands,
                             const std::function<double(double bytes)>& link_bytes);

}  // namespace heddle::program
