// Private to bounded: memory at the bounds for arrays that callers have dense at actual extents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <vector>

#include "base/parallel.h"

namespace heddle::api {

using Box = std::vector<int64_t>;  // extents

// As programs want their arrays; others they would copy.
template <typename T>
struct Aligned {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};
  T* allocate(size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), kAlignment));
  }
  void deallocate(T* memory, size_t) { ::operator delete(memory, kAlignment); }
  bool operator==(const Aligned&) const = default;
};
using Bytes = std::vector<char, Aligned<char>>;

// The first elements of one array, as many in each dimension as `box` says, to those of another
// one; without those that are in `but` (empty: with all), which differs from `box` in one dimension
// at most. `from` null: zeros.
void copy_box(const void* from, const Box& from_extents, void* to, const Box& to_extents,
              const Box& box, int64_t element_bytes, const Box& but = {});

// Whether dense arrays share memory.
bool overlap(const void* a, const Box& a_extents, int64_t a_element_bytes, const void* b,
             const Box& b_extents, int64_t b_element_bytes);

// copy(0) to copy(count - 1), in any order: with the workers (null: none) where the arrays, of so
// many bytes together, are large.
void copy_all(Workers* workers, size_t count, int64_t bytes,
              const std::function<void(size_t)>& copy);

// Of one run. Several may be between their steps.
struct Staging {
  Staging(size_t input_count, size_t output_count, size_t symbols)
      : inputs(input_count),
        filled(input_count),
        outputs(output_count),
        copied(output_count),
        extents(symbols) {}

  // An input: its elements, of extents `box`. The run makes it those of `after`, behind which it
  // has zeros; `clear`: and behind its own.
  void put_input(size_t i, const void* data, const Box& box, const Box& after, const Box& at_bounds,
                 int64_t element_bytes, bool clear);

  std::vector<Bytes> inputs;
  std::vector<Box> filled;  // by input: extents of what is not zero in it
  std::vector<Bytes> outputs;
  std::vector<Box> copied;  // by output: extents of what is in its place before the run
  std::vector<int32_t> extents;
};

}  // namespace heddle::api
