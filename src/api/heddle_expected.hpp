// heddle::expected of heddle.hpp, which includes this header if HEDDLE_EXPECTED is defined:
// std::expected, or, before C++23, its commonly used part.
#ifndef HEDDLE_API_HEDDLE_EXPECTED_HPP
#define HEDDLE_API_HEDDLE_EXPECTED_HPP

#if __cplusplus >= 202002L
#include <version>
#endif

#if defined(__cpp_lib_expected)
#include <expected>

namespace heddle {
using std::expected;
using std::unexpected;
}  // namespace heddle

#else
#include <optional>
#include <utility>
#include <variant>

namespace heddle {
inline namespace before_23 {

template <typename E>
class unexpected {
 public:
  explicit unexpected(E error) : error_(std::move(error)) {}
  const E& error() const& { return error_; }
  E&& error() && { return std::move(error_); }

 private:
  E error_;
};

// Reading the value of an error is undefined.
template <typename T, typename E>
class expected {
 public:
  using value_type = T;
  using error_type = E;

  expected(T value) : held_(std::in_place_index<0>, std::move(value)) {}
  expected(unexpected<E> error) : held_(std::in_place_index<1>, std::move(error).error()) {}

  bool has_value() const { return held_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& operator*() & { return *std::get_if<0>(&held_); }
  const T& operator*() const& { return *std::get_if<0>(&held_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&held_)); }
  T* operator->() { return std::get_if<0>(&held_); }
  const T* operator->() const { return std::get_if<0>(&held_); }
  T& value() & { return **this; }
  const T& value() const& { return **this; }
  T&& value() && { return std::move(**this); }
  E& error() & { return *std::get_if<1>(&held_); }
  const E& error() const& { return *std::get_if<1>(&held_); }
  E&& error() && { return std::move(*std::get_if<1>(&held_)); }
  template <typename U>
  T value_or(U&& otherwise) const& {
    return has_value() ? **this : static_cast<T>(std::forward<U>(otherwise));
  }

 private:
  std::variant<T, E> held_;
};

template <typename E>
class expected<void, E> {
 public:
  using value_type = void;
  using error_type = E;

  expected() = default;
  expected(unexpected<E> error) : error_(std::move(error).error()) {}

  bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  void operator*() const {}
  void value() const {}
  E& error() & { return *error_; }
  const E& error() const& { return *error_; }
  E&& error() && { return *std::move(error_); }

 private:
  std::optional<E> error_;
};

}  // namespace before_23
}  // namespace heddle
#endif

#endif  // HEDDLE_API_HEDDLE_EXPECTED_HPP
