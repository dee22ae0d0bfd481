#include "api/staging.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace heddle::api {

namespace {

int64_t bytes_of_step(const Box& extents, size_t dimension, int64_t element_bytes) {
  int64_t result = element_bytes;
  for (size_t d = dimension + 1; d < extents.size(); ++d) result *= extents[d];
  return result;
}

}  // namespace

void copy_box(const void* from, const Box& from_extents, void* to, const Box& to_extents,
              const Box& box, int64_t element_bytes, const Box& but) {
  for (size_t d = 0; d < but.size(); ++d) {
    if (but[d] == box[d]) continue;
    Box rest = box;
    rest[d] -= but[d];
    const int64_t first = but[d] * bytes_of_step(from_extents, d, element_bytes);
    copy_box(from ? static_cast<const char*>(from) + first : nullptr, from_extents,
             static_cast<char*>(to) + but[d] * bytes_of_step(to_extents, d, element_bytes),
             to_extents, rest, element_bytes);
    return;
  }
  if (!but.empty()) return;
  // What is whole in both is one piece, with the dimension outside of it.
  size_t whole = box.size();
  int64_t bytes = element_bytes;
  while (whole > 0 && from_extents[whole - 1] == box[whole - 1] &&
         to_extents[whole - 1] == box[whole - 1])
    bytes *= box[--whole];
  if (whole > 0) bytes *= box[--whole];
  int64_t pieces = 1;
  for (size_t d = 0; d < whole; ++d) pieces *= box[d];
  if (bytes <= 0) return;
  int64_t inner_from = element_bytes, inner_to = element_bytes;
  for (size_t d = whole; d < box.size(); ++d) {
    inner_from *= from_extents[d];
    inner_to *= to_extents[d];
  }
  Box at(whole, 0);
  for (int64_t i = 0; i < pieces; ++i) {
    int64_t in_from = 0, in_to = 0;
    for (size_t d = 0; d < whole; ++d) {
      in_from = in_from * from_extents[d] + at[d];
      in_to = in_to * to_extents[d] + at[d];
    }
    char* place = static_cast<char*>(to) + in_to * inner_to;
    if (from)
      std::memcpy(place, static_cast<const char*>(from) + in_from * inner_from,
                  static_cast<size_t>(bytes));
    else
      std::memset(place, 0, static_cast<size_t>(bytes));
    for (size_t d = whole; d-- > 0 && ++at[d] == box[d];) at[d] = 0;
  }
}

bool overlap(const void* a, const Box& a_extents, int64_t a_element_bytes, const void* b,
             const Box& b_extents, int64_t b_element_bytes) {
  const auto range = [](const void* data, const Box& extents, int64_t bytes) {
    for (const int64_t extent : extents) bytes *= extent;
    const auto first = reinterpret_cast<uintptr_t>(data);
    return std::pair(first, first + static_cast<uintptr_t>(bytes));
  };
  const auto [first, end] = range(a, a_extents, a_element_bytes);
  const auto [other, other_end] = range(b, b_extents, b_element_bytes);
  return first < other_end && other < end;
}

void copy_all(Workers* workers, size_t count, int64_t bytes,
              const std::function<void(size_t)>& copy) {
  constexpr int64_t kLarge = 1 << 20;  // more time than workers take to wake up
  if (!workers || bytes < kLarge) {
    for (size_t i = 0; i < count; ++i) copy(i);
    return;
  }
  const auto part = [](void* context, int64_t begin, int64_t end, int) {
    const auto& one = *static_cast<const std::function<void(size_t)>*>(context);
    for (int64_t i = begin; i < end; ++i) one(static_cast<size_t>(i));
  };
  workers->parallel(static_cast<int64_t>(count), part,
                    const_cast<std::function<void(size_t)>*>(&copy));
}

void Staging::put_input(size_t i, const void* data, const Box& box, const Box& after,
                        const Box& at_bounds, int64_t element_bytes, bool clear) {
  Bytes& memory = inputs[i];
  Box& before = filled[i];
  int64_t bytes = element_bytes, shorter = 0;
  for (const int64_t extent : at_bounds) bytes *= extent;
  memory.resize(static_cast<size_t>(bytes));
  int64_t longer = 0;
  for (size_t d = 0; d < before.size(); ++d) {
    shorter += after[d] < before[d] ? 1 : 0;
    longer += after[d] > before[d] ? 1 : 0;
  }
  if (clear || (shorter > 0 && shorter + longer > 1))
    std::fill(memory.begin(), memory.end(), 0);
  else if (shorter == 1)
    copy_box(nullptr, at_bounds, memory.data(), at_bounds, before, element_bytes, after);
  before = after;
  copy_box(data, box, memory.data(), at_bounds, box, element_bytes);
}

}  // namespace heddle::api
