// An array of the caller's, as heddle wants it: dense, row-major, of a known type. Where the
// caller's memory is like that it is read in place.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "heddle.h"

namespace heddle::python {

class Input {
 public:
  static constexpr int kMostRank = 64;

  Input() = default;
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  ~Input() { release(); }

  // Anything that is an array: a buffer (numpy), DLPack (PyTorch, JAX), __array__, numbers and
  // lists of them, which become arrays of type `wanted`. Throws what such an object throws.
  void read(nanobind::handle value, heddle_type wanted);
  // The same, of memory to be written: no copy will do.
  void read_writable(nanobind::handle value);
  void release();

  heddle_type type() const { return type_; }
  int rank() const { return rank_; }
  const int64_t* dims() const { return dims_; }
  const void* data() const { return view_.buf; }

 private:
  bool take(nanobind::handle value, int flags);
  void take_dense(const nanobind::object& dense, int flags);

  Py_buffer view_{};
  heddle_type type_ = -1;
  int rank_ = 0;
  int64_t dims_[kMostRank];
};

}  // namespace heddle::python
