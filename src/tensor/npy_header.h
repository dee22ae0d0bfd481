// The header of a .npy array, versions 1 to 3: the bytes before the elements.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tensor/type.h"

namespace heddle::tensor {

struct NpyHeader {
  Type type = Type::f32;
  bool text = false;  // strings of dims.back() code points, padded with zeros: u32
  bool fortran_order = false;
  std::vector<int64_t> dims;
  int64_t data_bytes = 0;    // product of dims times the element's bytes; does not overflow
  int64_t header_bytes = 0;  // offset of the elements
};

// Bytes at the start of the file that hold the header's length; and the whole header's size, from
// them.
constexpr int64_t kNpyPrefixBytes = 12;
Result<int64_t> npy_header_bytes(std::string_view prefix);
// `text`: the whole header.
Result<NpyHeader> parse_npy_header(std::string_view text);
// Version 1.0, row-major, padded to a multiple of 64 bytes. Error: not an array type. `text`: u32,
// whose last dimension is a string's code points.
Result<std::string> make_npy_header(Type type, const std::vector<int64_t>& dims, bool text = false);

}  // namespace heddle::tensor
