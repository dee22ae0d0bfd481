// Private to the checker.
#pragma once

#include "base/error.h"
#include "program/program.h"

namespace heddle::program {

// What can be seen without playing the commands: buffers, kernels, ports, memory numbers.
Status verify_parts(const Program& program);

// Every view lies in the space where its command works. Its ids are in range.
Status verify_spaces(const Program& program);

bool is_plain(const tensor::Shape& shape);  // an array, static and row-major
bool is_number(const View& view);           // a plain integer scalar
// The shapes fit one another.
bool fits(const Update& update);
bool fits(const Concatenate& concatenate);

}  // namespace heddle::program
