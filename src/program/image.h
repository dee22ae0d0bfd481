// A program as bytes in memory, without the weights of its model: the format of the compile cache.
// For files see file.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "program/program.h"
#include "tensor/literal.h"

namespace heddle::program {

// Constants in the memory of one of `weights` (arrays) are stored as references to it, others with
// their bytes. No value: these exceed `most_bytes` in total.
std::optional<std::vector<uint8_t>> to_image(const Program& program,
                                             std::span<const tensor::Literal> weights,
                                             int64_t most_bytes);
// `weights`: equal to those given to to_image(), in the same order; the program's constants share
// their memory. Error (user): invalid bytes. The program is not verified.
Result<Program> from_image(std::span<const uint8_t> bytes,
                           std::span<const tensor::Literal> weights);

}  // namespace heddle::program
