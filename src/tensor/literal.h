// Literal: a value. An array's elements lie row-major and dense (whole bytes for sub-byte types,
// pred one byte of 0 or 1, s1..s4 sign-extended to their byte), 64-byte aligned; a tuple holds
// literals. Copies share memory until one of them is written. Distinct literals may be used from
// different threads, also while they share memory.
#pragma once

#include <complex>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "tensor/shape.h"

namespace heddle::tensor {

class Literal {
 public:
  Literal() = default;                   // the empty tuple
  explicit Literal(const Shape& shape);  // zeros; static shapes only, layout dropped
  // The same for shapes from outside: an error if the value does not fit in memory.
  static Result<Literal> make(const Shape& shape);
  static Literal tuple(std::vector<Literal> elements);
  // Shares memory that `owner` keeps alive; a write copies first. Large views may be unaligned
  // (unaligned.h).
  static Literal view(const Shape& shape, const void* data, std::shared_ptr<const void> owner);
  template <typename T>
  static Literal from(const Shape& shape, std::span<const T> values) {
    Literal literal(shape);
    HEDDLE_CHECK(static_cast<int64_t>(values.size() * sizeof(T)) == literal.bytes());
    if (!values.empty()) std::memcpy(literal.mutable_data(), values.data(), values.size_bytes());
    return literal;
  }

  const Shape& shape() const { return shape_; }
  Type type() const { return shape_.type(); }
  int64_t elems() const { return shape_.elems(); }
  int64_t bytes() const { return shape_.is_array() ? elems() * type_bytes(type()) : 0; }
  const void* data() const { return data_.get(); }
  void* mutable_data();  // copies first if the memory is shared
  template <typename T>
  std::span<const T> values() const {
    return {static_cast<const T*>(data()), static_cast<size_t>(elems())};
  }
  template <typename T>
  std::span<T> mutable_values() {
    return {static_cast<T*>(mutable_data()), static_cast<size_t>(elems())};
  }

  // One element by row-major linear index, exactly widened. Not for tuples; the index is not
  // checked.
  double get_f64(int64_t i) const;   // floats, integers (rounded beyond 2^53), pred
  int64_t get_s64(int64_t i) const;  // integers, pred; u64 bit for bit
  std::complex<double> get_complex(int64_t i) const;
  // Rounded to nearest even (floats), truncated modulo 2^n (integers).
  void set_f64(int64_t i, double value);
  void set_s64(int64_t i, int64_t value);
  void set_complex(int64_t i, std::complex<double> value);

  // The element's encoding, in the low bits. Not for complex types.
  uint64_t get_bits(int64_t i) const;
  void set_bits(int64_t i, uint64_t bits);

  const std::vector<Literal>& elements() const { return elements_; }
  std::vector<Literal>& mutable_elements() { return elements_; }

  // Same shape (ignoring layouts) and same bits.
  bool operator==(const Literal& other) const;

 private:
  Shape shape_;
  std::shared_ptr<const void> data_;
  bool writable_ = false;
  std::vector<Literal> elements_;
};

// HLO text of a value: "{ {1, 2}, {3, 4} }", "(1, {2})" for tuples; floats with the fewest digits
// that read back to the same bits. With `max_elems` >= 0 larger arrays print as "{...}".
std::string to_string(const Literal& literal, int64_t max_elems = -1);

}  // namespace heddle::tensor
