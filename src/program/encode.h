// The `meta` section of a program file: everything except the object and the bytes of constants.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "program/program.h"
#include "program/saved.h"

namespace heddle::program {

std::vector<uint8_t> encode(const Program& program);

struct Decoded {
  Program program;                             // no object, constants empty
  std::vector<tensor::Shape> constant_shapes;  // by buffer; only of `constant` buffers
};
// Accepts any bytes: invalid ones are a user error, and memory use is proportional to the input.
Result<Decoded> decode(std::span<const uint8_t> bytes);

// The same for the whole contents of a file.
struct DecodedSaved {
  Saved saved;                                              // as in Decoded
  std::vector<std::vector<tensor::Shape>> constant_shapes;  // by variant
  std::vector<int64_t> object_bytes;                        // by variant
};
std::vector<uint8_t> encode(const Saved& saved);
Result<DecodedSaved> decode_saved(std::span<const uint8_t> bytes);

}  // namespace heddle::program
