// Memory of outputs, as programs want it: 64-byte aligned. Python's arrays over it keep it alive.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "failure.h"

namespace heddle::python {

class Memory {
 public:
  explicit Memory(int64_t bytes) : bytes_(bytes) {
    const size_t room = (static_cast<size_t>(bytes) + kAlignment) / kAlignment * kAlignment;
    data_ = std::aligned_alloc(kAlignment, room);
    if (data_ == nullptr)
      fail("OutOfMemory", "no memory for an output of " + std::to_string(bytes) + " bytes");
  }
  Memory(Memory&& other) noexcept : data_(other.data_), bytes_(other.bytes_) {
    other.data_ = nullptr;
  }
  Memory& operator=(Memory&&) = delete;
  ~Memory() { std::free(data_); }

  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kAlignment = 64;
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

void define_memory(nanobind::module_& module);

}  // namespace heddle::python
