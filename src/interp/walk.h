// Iteration over slices of multi-dimensional arrays by strides, counted in elements.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heddle::interp {

using Ints = std::vector<int64_t>;

Ints row_major_strides(std::span<const int64_t> dims);
int64_t product(std::span<const int64_t> dims);

// Visits all indices in row-major order: for (Walk w(dims); !w.done(); w.next()) … w.index() …
// Without elements it is done at once; without dimensions it has one element.
class Walk {
 public:
  explicit Walk(std::span<const int64_t> dims) : dims_(dims.begin(), dims.end()) {
    index_.assign(dims.size(), 0);
    for (int64_t dim : dims) done_ = done_ || dim <= 0;
  }
  bool done() const { return done_; }
  const Ints& index() const { return index_; }
  int64_t operator[](size_t d) const { return index_[d]; }
  void next() {
    for (size_t d = dims_.size(); d-- > 0;) {
      if (++index_[d] < dims_[d]) return;
      index_[d] = 0;
    }
    done_ = true;
  }
  // The offset of the current index under `strides`.
  int64_t offset(std::span<const int64_t> strides) const {
    int64_t result = 0;
    for (size_t d = 0; d < index_.size(); ++d) result += index_[d] * strides[d];
    return result;
  }

 private:
  Ints dims_, index_;
  bool done_ = false;
};

// A part of an array: its start and the distance between elements along each dimension of the
// copied slice (0 broadcasts, negative runs backwards).
struct Region {
  int64_t start = 0;
  Ints strides;
};

// to[to.start + i * to.strides] = from[from.start + i * from.strides] for each index i in `dims`.
void copy_box(std::span<const int64_t> dims, int64_t elem_bytes, void* to, const Region& to_region,
              const void* from, const Region& from_region);

}  // namespace heddle::interp
