#include "interp/walk.h"

#include <complex>
#include <cstring>

#include "base/check.h"

namespace heddle::interp {
namespace {

template <typename T>
void copy_typed(std::span<const int64_t> dims, void* to, const Region& to_region, const void* from,
                const Region& from_region) {
  T* target = static_cast<T*>(to) + to_region.start;
  const T* source = static_cast<const T*>(from) + from_region.start;
  if (dims.empty()) {
    *target = *source;
    return;
  }
  const size_t last = dims.size() - 1;
  const int64_t n = dims[last];
  const int64_t to_step = to_region.strides[last], from_step = from_region.strides[last];
  std::span<const int64_t> to_outer(to_region.strides.data(), last);
  std::span<const int64_t> from_outer(from_region.strides.data(), last);
  if (n <= 0) return;
  for (Walk walk(dims.first(last)); !walk.done(); walk.next()) {
    T* t = target + walk.offset(to_outer);
    const T* s = source + walk.offset(from_outer);
    if (to_step == 1 && from_step == 1) {
      std::memcpy(static_cast<void*>(t), s, static_cast<size_t>(n) * sizeof(T));
    } else {
      for (int64_t i = 0; i < n; ++i) t[i * to_step] = s[i * from_step];
    }
  }
}

}  // namespace

Ints row_major_strides(std::span<const int64_t> dims) {
  Ints strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return strides;
}

int64_t product(std::span<const int64_t> dims) {
  int64_t result = 1;
  for (int64_t dim : dims) result *= dim;
  return result;
}

void copy_box(std::span<const int64_t> dims, int64_t elem_bytes, void* to, const Region& to_region,
              const void* from, const Region& from_region) {
  switch (elem_bytes) {
    case 1:
      return copy_typed<uint8_t>(dims, to, to_region, from, from_region);
    case 2:
      return copy_typed<uint16_t>(dims, to, to_region, from, from_region);
    case 4:
      return copy_typed<uint32_t>(dims, to, to_region, from, from_region);
    case 8:
      return copy_typed<uint64_t>(dims, to, to_region, from, from_region);
    case 16:
      return copy_typed<std::complex<double>>(dims, to, to_region, from, from_region);
    default:
      HEDDLE_UNREACHABLE("elements of {} bytes", elem_bytes);
  }
}

}  // namespace heddle::interp
