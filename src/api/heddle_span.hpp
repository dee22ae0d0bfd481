// heddle::span of heddle.hpp, which includes this header: std::span, or, in C++17, its commonly
// used part.
#ifndef HEDDLE_API_HEDDLE_SPAN_HPP
#define HEDDLE_API_HEDDLE_SPAN_HPP

#if __cplusplus >= 202002L
#include <span>

namespace heddle {
using std::span;
}  // namespace heddle

#else
#include <cstddef>
#include <type_traits>

namespace heddle {
inline namespace before_20 {

template <typename T>
class span {
 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;

  constexpr span() = default;
  constexpr span(T* data, std::size_t size) : data_(data), size_(size) {}
  template <std::size_t N>
  constexpr span(T (&array)[N]) : data_(array), size_(N) {}
  // From a vector, an array, another span.
  template <typename Range,
            typename = std::enable_if_t<std::is_convertible_v<
                std::remove_pointer_t<decltype(std::declval<Range&>().data())> (*)[], T (*)[]> > >
  constexpr span(Range& range) : data_(range.data()), size_(range.size()) {}
  template <
      typename Range,
      typename = std::enable_if_t<std::is_convertible_v<
          std::remove_pointer_t<decltype(std::declval<const Range&>().data())> (*)[], T (*)[]> > >
  constexpr span(const Range& range) : data_(range.data()), size_(range.size()) {}

  constexpr T* data() const { return data_; }
  constexpr std::size_t size() const { return size_; }
  constexpr std::size_t size_bytes() const { return size_ * sizeof(T); }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T& operator[](std::size_t i) const { return data_[i]; }
  constexpr T& front() const { return data_[0]; }
  constexpr T& back() const { return data_[size_ - 1]; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace before_20
}  // namespace heddle
#endif

#endif  // HEDDLE_API_HEDDLE_SPAN_HPP
