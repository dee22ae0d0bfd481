#include "tensor/index_check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/check.h"

namespace heddle::tensor {
namespace {

template <typename T>
int64_t element(const char* data, int64_t i) {
  T value;
  std::memcpy(&value, data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  // Values above the largest s64 are out of any range.
  if constexpr (std::is_same_v<T, uint64_t>)
    return static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX));
  return static_cast<int64_t>(value);
}

// Branch-free, and without 64-bit comparisons, which the oldest vector units lack: the sign of a
// difference is tested instead. (With low <= 0 <= high, differences that overflow never look
// positive.)
template <typename T>
bool all_within(const char* data, int64_t elems, const IndexRange& range) {
  uint64_t outside = 0;
  const auto add = [&](int64_t i) {
    const auto x = static_cast<uint64_t>(element<T>(data, i));
    outside |= (x - static_cast<uint64_t>(range.low)) | (static_cast<uint64_t>(range.high) - x);
  };
  constexpr int64_t kBlock = 16;  // a fixed number of vectors
  int64_t i = 0;
  for (; i + kBlock <= elems; i += kBlock)
    for (int64_t k = 0; k < kBlock; ++k) add(i + k);
  for (; i < elems; ++i) add(i);
  return static_cast<int64_t>(outside) >= 0;
}

template <typename T>
std::optional<int64_t> first_outside(const IndexCheck& check, const char* data, int64_t elems) {
  const auto count = static_cast<int64_t>(check.ranges.size());
  if (count == 1 && all_within<T>(data, elems, check.ranges[0])) return std::nullopt;
  for (int64_t i = 0; i < elems; ++i)
    if (!check.ranges[static_cast<size_t>(i % count)].contains(element<T>(data, i))) return i;
  return std::nullopt;
}

// Calls take(T()) with the C++ type of an integer type of whole bytes.
template <typename Take>
auto with_integer(Type type, const Take& take) {
  switch (type) {
    case Type::s8:
      return take(int8_t());
    case Type::s16:
      return take(int16_t());
    case Type::s32:
      return take(int32_t());
    case Type::u8:
      return take(uint8_t());
    case Type::u16:
      return take(uint16_t());
    case Type::u32:
      return take(uint32_t());
    case Type::u64:
      return take(uint64_t());
    default:
      HEDDLE_CHECK(type == Type::s64, "indices of type {}", type_name(type));
      return take(int64_t());
  }
}

// Calls visit(begin, elems) for each contiguous piece: the whole array, or the pieces of the slice.
template <typename Visit>
void for_each_piece(const IndexCheck& check, std::span<const int64_t> dims, const Visit& visit) {
  int64_t elems = 1;
  if (check.starts.empty()) {
    for (int64_t extent : dims) elems *= extent;
    return visit(0, elems);
  }
  const auto limit = [&](size_t d) { return check.limits[d] < 0 ? dims[d] : check.limits[d]; };
  // Whole dimensions merge into one piece with the next outer dimension.
  size_t outer = dims.size();
  int64_t stride = 1, begin = 0;
  bool whole = true;
  for (size_t d = dims.size(); d-- > 0; stride *= dims[d]) {
    begin += check.starts[d] * stride;
    if (whole) {
      elems *= limit(d) - check.starts[d];
      outer = d;
    }
    whole = whole && limit(d) - check.starts[d] == dims[d];
  }
  std::vector<int64_t> at(outer, 0);
  for (;;) {
    visit(begin, elems);
    int64_t step = 1;
    for (size_t d = outer; d < dims.size(); ++d) step *= dims[d];
    size_t d = outer;
    for (; d-- > 0; step *= dims[d]) {
      begin += step;
      if (++at[d] < limit(d) - check.starts[d]) break;
      begin -= at[d] * step;
      at[d] = 0;
    }
    if (d >= outer) return;
  }
}

std::string place_text(int64_t at, std::span<const int64_t> dims) {
  std::vector<int64_t> place(dims.size());
  for (size_t d = dims.size(); d-- > 0; at /= dims[d]) place[d] = at % dims[d];
  return place.empty() ? "" : fmt::format(" element [{}]", fmt::join(place, ","));
}

std::string wanted_text(const IndexCheck& check, const IndexRange& range) {
  return fmt::format("{} takes {} to {}", check.node, range.low, range.high);
}

}  // namespace

int64_t hidden_outputs(std::span<const IndexCheck> checks) {
  return std::count_if(checks.begin(), checks.end(),
                       [](const IndexCheck& check) { return check.input < 0; });
}

Shape hidden_shape(const IndexCheck& check) {
  const auto ranges = static_cast<int64_t>(check.ranges.size());
  return ranges == 1 ? Shape::scalar(Type::u64) : Shape::array(Type::u64, {ranges});
}

Status check_indices(const IndexCheck& check, std::string_view input, Type type,
                     std::span<const int64_t> dims, const void* data) {
  const auto* bytes = static_cast<const char*>(data);
  return with_integer(type, [&](auto zero) -> Status {
    using T = decltype(zero);
    Status status;
    for_each_piece(check, dims, [&](int64_t begin, int64_t elems) {
      const char* piece = bytes + begin * static_cast<int64_t>(sizeof(T));
      const std::optional<int64_t> at = first_outside<T>(check, piece, elems);
      if (!at || !status) return;
      const auto component = static_cast<size_t>(*at) % check.ranges.size();
      status = user_error("input '{}'{} is {}; {}; give indices in that range", input,
                          place_text(begin + *at, dims), element<T>(piece, *at),
                          wanted_text(check, check.ranges[component]));
    });
    return status;
  });
}

Status check_computed(const IndexCheck& check, const void* hidden) {
  for (size_t i = 0; i < check.ranges.size(); ++i) {
    const IndexRange& range = check.ranges[i];
    const auto low = static_cast<uint64_t>(range.low);
    uint64_t worst;
    std::memcpy(&worst, static_cast<const char*>(hidden) + i * sizeof(worst), sizeof(worst));
    if (worst <= static_cast<uint64_t>(range.high) - low) continue;
    return user_error("the model computes index {}; {}; give inputs that lead to such indices",
                      static_cast<int64_t>(worst + low), wanted_text(check, range));
  }
  return {};
}

}  // namespace heddle::tensor
