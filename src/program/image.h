// A program as bytes in memory, without the weights of the model that it was compiled from: what
// the compile cache keeps. For a file of its own see file.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "program/program.h"
#include "tensor/literal.h"

namespace heddle::program {

// Constants that share memory with one of `weights` (arrays) are named by it, others are kept whole
// where that is no more than `most_bytes` in all. None: it is more.
std::optional<std::vector<uint8_t>> to_image(const Program& program,
                                             std::span<const tensor::Literal> weights,
                                             int64_t most_bytes);
// `weights`: as they were, in content and order. Their memory is shared with the program's
// constants. Error (user): not such bytes. It is not verified.
Result<Program> from_image(std::span<const uint8_t> bytes,
                           std::span<const tensor::Literal> weights);

}  // namespace heddle::program
