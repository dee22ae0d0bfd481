// Element types, shapes and layouts of arrays, between PJRT and heddle.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heddle/heddle.h"
#include "xla/pjrt/c/pjrt_c_api.h"

namespace heddle::pjrt {

// PJRT_Buffer_Type_INVALID: it has none.
PJRT_Buffer_Type pjrt_type(heddle_type type);
// Throws where heddle has no such type.
heddle_type heddle_type_of(PJRT_Buffer_Type type);

// An array as it lies in memory: dense, row-major.
struct ArrayShape {
  PJRT_Buffer_Type type = PJRT_Buffer_Type_INVALID;
  std::vector<int64_t> dims;
  int64_t element_bytes = 0, bytes = 0;

  ArrayShape() = default;
  // Throws: an unknown type, a negative extent, more bytes than there can be.
  ArrayShape(PJRT_Buffer_Type type, const int64_t* dims, size_t rank);
  std::vector<int64_t> strides() const;  // in bytes
  bool operator==(const ArrayShape&) const = default;
};
std::string to_string(const ArrayShape& shape);  // "f32[2,3]"

// Strides in bytes of an array with that layout; null: row-major. Throws where it has tiles.
std::vector<int64_t> strides_of(const ArrayShape& shape, const PJRT_Buffer_MemoryLayout* layout);
// Throws UNIMPLEMENTED where it is any but the dense, row-major one.
void check_row_major(const ArrayShape& shape, const PJRT_Buffer_MemoryLayout* layout);

// Copies every element; each side has its strides in bytes, which may be negative or zero.
void copy_array(const ArrayShape& shape, const void* from, std::span<const int64_t> from_strides,
                void* to, std::span<const int64_t> to_strides);

}  // namespace heddle::pjrt
