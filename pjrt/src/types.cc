#include "types.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "error.h"

namespace heddle::pjrt {
namespace {

constexpr size_t kMostRank = 1024;

constexpr std::pair<PJRT_Buffer_Type, heddle_type> kTypes[] = {
    {PJRT_Buffer_Type_PRED, HEDDLE_PRED},
    {PJRT_Buffer_Type_S2, HEDDLE_S2},
    {PJRT_Buffer_Type_S4, HEDDLE_S4},
    {PJRT_Buffer_Type_S8, HEDDLE_S8},
    {PJRT_Buffer_Type_S16, HEDDLE_S16},
    {PJRT_Buffer_Type_S32, HEDDLE_S32},
    {PJRT_Buffer_Type_S64, HEDDLE_S64},
    {PJRT_Buffer_Type_U2, HEDDLE_U2},
    {PJRT_Buffer_Type_U4, HEDDLE_U4},
    {PJRT_Buffer_Type_U8, HEDDLE_U8},
    {PJRT_Buffer_Type_U16, HEDDLE_U16},
    {PJRT_Buffer_Type_U32, HEDDLE_U32},
    {PJRT_Buffer_Type_U64, HEDDLE_U64},
    {PJRT_Buffer_Type_F16, HEDDLE_F16},
    {PJRT_Buffer_Type_BF16, HEDDLE_BF16},
    {PJRT_Buffer_Type_F32, HEDDLE_F32},
    {PJRT_Buffer_Type_F64, HEDDLE_F64},
    {PJRT_Buffer_Type_C64, HEDDLE_C64},
    {PJRT_Buffer_Type_C128, HEDDLE_C128},
    {PJRT_Buffer_Type_F8E5M2, HEDDLE_F8E5M2},
    {PJRT_Buffer_Type_F8E4M3, HEDDLE_F8E4M3},
    {PJRT_Buffer_Type_F8E4M3FN, HEDDLE_F8E4M3FN},
    {PJRT_Buffer_Type_F8E4M3B11FNUZ, HEDDLE_F8E4M3B11FNUZ},
    {PJRT_Buffer_Type_F8E5M2FNUZ, HEDDLE_F8E5M2FNUZ},
    {PJRT_Buffer_Type_F8E4M3FNUZ, HEDDLE_F8E4M3FNUZ},
    {PJRT_Buffer_Type_F8E3M4, HEDDLE_F8E3M4},
    {PJRT_Buffer_Type_F8E8M0FNU, HEDDLE_F8E8M0FNU},
    {PJRT_Buffer_Type_F4E2M1FN, HEDDLE_F4E2M1FN},
    {PJRT_Buffer_Type_TOKEN, HEDDLE_TOKEN},
};

// Dimensions from the outermost inwards, one loop each; the innermost that both sides have dense
// is one copy.
void copy_dims(const ArrayShape& shape, size_t dim, const char* from, const int64_t* from_strides,
               char* to, const int64_t* to_strides) {
  if (dim == shape.dims.size()) {
    std::memcpy(to, from, static_cast<size_t>(shape.element_bytes));
    return;
  }
  const int64_t extent = shape.dims[dim];
  if (dim + 1 == shape.dims.size() && from_strides[dim] == shape.element_bytes &&
      to_strides[dim] == shape.element_bytes) {
    std::memcpy(to, from, static_cast<size_t>(extent * shape.element_bytes));
    return;
  }
  for (int64_t i = 0; i < extent; ++i)
    copy_dims(shape, dim + 1, from + i * from_strides[dim], from_strides, to + i * to_strides[dim],
              to_strides);
}

}  // namespace

PJRT_Buffer_Type pjrt_type(heddle_type type) {
  for (const auto& [pjrt, heddle] : kTypes)
    if (heddle == type) return pjrt;
  return PJRT_Buffer_Type_INVALID;
}

heddle_type heddle_type_of(PJRT_Buffer_Type type) {
  for (const auto& [pjrt, heddle] : kTypes)
    if (pjrt == type) return heddle;
  unimplemented("heddle has no arrays of PJRT_Buffer_Type " + std::to_string(type));
}

ArrayShape::ArrayShape(PJRT_Buffer_Type type, const int64_t* extents, size_t rank) : type(type) {
  if (rank > kMostRank) invalid("an array of " + std::to_string(rank) + " dimensions");
  if (rank > 0) given(extents, "dims");
  dims.assign(extents, extents + rank);
  element_bytes = heddle_type_bytes(heddle_type_of(type));
  bytes = element_bytes;
  for (const int64_t extent : dims) {
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes))
      invalid("an array of dimensions that are negative or too large: " + to_string(*this));
  }
}

std::vector<int64_t> ArrayShape::strides() const {
  std::vector<int64_t> result(dims.size());
  int64_t stride = element_bytes;
  for (size_t i = dims.size(); i-- > 0;) {
    result[i] = stride;
    stride *= dims[i];
  }
  return result;
}

std::string to_string(const ArrayShape& shape) {
  std::string text = std::string(heddle_type_name(heddle_type_of(shape.type))) + "[";
  for (size_t i = 0; i < shape.dims.size(); ++i)
    text += (i > 0 ? "," : "") + std::to_string(shape.dims[i]);
  return text + "]";
}

std::vector<int64_t> strides_of(const ArrayShape& shape, const PJRT_Buffer_MemoryLayout* layout) {
  if (layout == nullptr) return shape.strides();
  const size_t rank = shape.dims.size();
  if (layout->type == PJRT_Buffer_MemoryLayout_Type_Strides) {
    const auto& strides = layout->strides;
    if (strides.num_byte_strides != rank)
      invalid("a layout of " + std::to_string(strides.num_byte_strides) + " strides for " +
              to_string(shape));
    return {strides.byte_strides, strides.byte_strides + rank};
  }
  const auto& tiled = layout->tiled;
  if (tiled.num_tiles > 0) unimplemented("layouts with tiles");
  if (tiled.minor_to_major_size != rank)
    invalid("a layout of " + std::to_string(tiled.minor_to_major_size) + " dimensions for " +
            to_string(shape));
  std::vector<int64_t> result(rank, -1);
  int64_t stride = shape.element_bytes;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t dim = tiled.minor_to_major[i];
    if (dim < 0 || dim >= static_cast<int64_t>(rank) || result[static_cast<size_t>(dim)] >= 0)
      invalid("minor_to_major is no permutation");
    result[static_cast<size_t>(dim)] = stride;
    stride *= shape.dims[static_cast<size_t>(dim)];
  }
  return result;
}

void check_row_major(const ArrayShape& shape, const PJRT_Buffer_MemoryLayout* layout) {
  const std::vector<int64_t> wanted = shape.strides(), got = strides_of(shape, layout);
  for (size_t i = 0; i < wanted.size(); ++i)
    if (shape.bytes > 0 && shape.dims[i] > 1 && got[i] != wanted[i])
      unimplemented("arrays on heddle's device are row-major; this layout of " + to_string(shape) +
                    " is another");
}

void copy_array(const ArrayShape& shape, const void* from, std::span<const int64_t> from_strides,
                void* to, std::span<const int64_t> to_strides) {
  if (shape.bytes == 0) return;
  const std::vector<int64_t> dense = shape.strides();
  const auto is_dense = [&](std::span<const int64_t> strides) {
    return std::equal(dense.begin(), dense.end(), strides.begin(), strides.end());
  };
  if (is_dense(from_strides) && is_dense(to_strides)) {
    std::memcpy(to, from, static_cast<size_t>(shape.bytes));
    return;
  }
  copy_dims(shape, 0, static_cast<const char*>(from), from_strides.data(), static_cast<char*>(to),
            to_strides.data());
}

}  // namespace heddle::pjrt
