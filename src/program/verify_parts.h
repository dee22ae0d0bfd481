// Private to the checker.
#pragma once

#include "base/error.h"
#include "program/program.h"

namespace heddle::program {

// Checks that need no replay: buffers, kernels, ports, memory numbers.
Status verify_parts(const Program& program);

// Whether every view is in the space where its command works. Ids must be in range.
Status verify_spaces(const Program& program);

bool is_plain(const tensor::Shape& shape);  // a static, row-major array
bool is_number(const View& view);           // a plain integer scalar
// Whether the shapes match.
bool fits(const Update& update);
bool fits(const Concatenate& concatenate);

}  // namespace heddle::program
