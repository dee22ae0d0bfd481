// Tensors and ports of heddle.hpp, which includes this header.
#ifndef HEDDLE_API_HEDDLE_TENSOR_HPP
#define HEDDLE_API_HEDDLE_TENSOR_HPP

#include <complex>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <map>
#include <new>
#include <type_traits>

#include "heddle_error.hpp"
#include "heddle_span.hpp"

namespace heddle {
inline namespace HEDDLE_INLINE_NAMESPACE {

// The element types; the names are those of HLO text. Types of less than a byte take one byte.
enum class Type : heddle_type {
  pred = HEDDLE_PRED,  // bool
  s1 = HEDDLE_S1,
  s2 = HEDDLE_S2,
  s4 = HEDDLE_S4,
  s8 = HEDDLE_S8,
  s16 = HEDDLE_S16,
  s32 = HEDDLE_S32,
  s64 = HEDDLE_S64,
  u1 = HEDDLE_U1,
  u2 = HEDDLE_U2,
  u4 = HEDDLE_U4,
  u8 = HEDDLE_U8,
  u16 = HEDDLE_U16,
  u32 = HEDDLE_U32,
  u64 = HEDDLE_U64,
  f16 = HEDDLE_F16,
  bf16 = HEDDLE_BF16,
  f32 = HEDDLE_F32,
  f64 = HEDDLE_F64,
  f8e5m2 = HEDDLE_F8E5M2,
  f8e4m3 = HEDDLE_F8E4M3,
  f8e4m3fn = HEDDLE_F8E4M3FN,
  f8e4m3b11fnuz = HEDDLE_F8E4M3B11FNUZ,
  f8e3m4 = HEDDLE_F8E3M4,
  f8e5m2fnuz = HEDDLE_F8E5M2FNUZ,
  f8e4m3fnuz = HEDDLE_F8E4M3FNUZ,
  f8e8m0fnu = HEDDLE_F8E8M0FNU,
  f6e3m2fn = HEDDLE_F6E3M2FN,
  f6e2m3fn = HEDDLE_F6E2M3FN,
  f4e2m1fn = HEDDLE_F4E2M1FN,
  c64 = HEDDLE_C64,
  c128 = HEDDLE_C128,
  opaque = HEDDLE_OPAQUE,
  token = HEDDLE_TOKEN,
};
inline const char* name_of(Type type) { return heddle_type_name(static_cast<heddle_type>(type)); }
inline std::int64_t bytes_of(Type type) {
  return heddle_type_bytes(static_cast<heddle_type>(type));
}

// Elements of these types as bits: there is no arithmetic on them here.
struct Float16 {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

// The element type of a C++ type; Type::opaque: there is none.
template <typename T>
constexpr Type type_of() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, bool>)
    return Type::pred;
  else if constexpr (std::is_same_v<U, float>)
    return Type::f32;
  else if constexpr (std::is_same_v<U, double>)
    return Type::f64;
  else if constexpr (std::is_same_v<U, Float16>)
    return Type::f16;
  else if constexpr (std::is_same_v<U, BFloat16>)
    return Type::bf16;
  else if constexpr (std::is_same_v<U, std::complex<float>>)
    return Type::c64;
  else if constexpr (std::is_same_v<U, std::complex<double>>)
    return Type::c128;
  else if constexpr (!std::is_integral_v<U>)
    return Type::opaque;
  else if constexpr (sizeof(U) == 1)
    return std::is_signed_v<U> ? Type::s8 : Type::u8;
  else if constexpr (sizeof(U) == 2)
    return std::is_signed_v<U> ? Type::s16 : Type::u16;
  else if constexpr (sizeof(U) == 4)
    return std::is_signed_v<U> ? Type::s32 : Type::u32;
  else
    return std::is_signed_v<U> ? Type::s64 : Type::u64;
}

using Shape = std::vector<std::int64_t>;

// "f32[2,3]"
inline std::string to_string(Type type, const Shape& shape) {
  std::string text = std::string(name_of(type)) + "[";
  for (std::size_t d = 0; d < shape.size(); ++d)
    text += (d > 0 ? "," : "") + std::to_string(shape[d]);
  return text + "]";
}

// A dense, row-major array in its own memory (64-byte aligned, so that programs use it without a
// copy) or the caller's. Copies of a Tensor share the memory; clone() does not. Different Tensors
// may be used from different threads.
class Tensor {
 public:
  Tensor() = default;  // f32[0]

  // All zeros. Errors: a negative extent, too many bytes, a type that no array has; out of memory.
  static Result<Tensor> zeros(Type type, const Shape& shape) {
    HEDDLE_TRY(Tensor, made, uninitialised(type, shape));
    if (made.bytes_ > 0) std::memset(made.data_, 0, made.bytes_);
    return made;
  }
  template <typename T>
  static Result<Tensor> zeros(const Shape& shape) {
    return zeros(type_of<T>(), shape);
  }
  // The same with unspecified contents.
  static Result<Tensor> uninitialised(Type type, const Shape& shape) {
    HEDDLE_TRY(Tensor, made, described(type, shape));
    constexpr std::align_val_t kAlignment{64};
    void* const memory = ::operator new(made.bytes_ + 1, kAlignment, std::nothrow);
    if (memory == nullptr)
      return detail::failed<Tensor>(Error(ErrorKind::machine, ErrorCode::memory,
                                          heddle::to_string(type, shape) + ": out of memory for " +
                                              std::to_string(made.bytes_) + " bytes"));
    made.owner_ = std::shared_ptr<void>(
        memory, [](void* mine) { ::operator delete(mine, std::align_val_t{64}); });
    made.data_ = memory;
    return made;
  }
  // Copies these elements; their number must match the shape.
  template <typename T>
  static Result<Tensor> of(const Shape& shape, heddle::span<const T> elements) {
    HEDDLE_TRY(Tensor, made, uninitialised(type_of<T>(), shape));
    HEDDLE_TRY_VOID(Tensor, made.check_count(elements.size()));
    if (made.bytes_ > 0) std::memcpy(made.data_, elements.data(), made.bytes_);
    return made;
  }
  template <typename T>
  static Result<Tensor> of(const Shape& shape, std::initializer_list<T> elements) {
    return of<T>(shape, heddle::span<const T>(elements.begin(), elements.size()));
  }
  template <typename T>
  static Result<Tensor> of(const Shape& shape, const std::vector<T>& elements) {
    return of<T>(shape, heddle::span<const T>(elements.data(), elements.size()));
  }
  // A view of the caller's memory, which must outlive Tensors and bindings of it; const: read-only.
  template <typename T>
  static Result<Tensor> view(const Shape& shape, heddle::span<T> elements) {
    HEDDLE_TRY(Tensor, made, described(type_of<T>(), shape));
    HEDDLE_TRY_VOID(Tensor, made.check_count(elements.size()));
    made.data_ = const_cast<std::remove_cv_t<T>*>(elements.data());
    made.is_read_only_ = std::is_const_v<T>;
    return made;
  }
  template <typename T>
  static Result<Tensor> view(const Shape& shape, std::vector<T>& elements) {
    return view(shape, heddle::span<T>(elements.data(), elements.size()));
  }
  template <typename T>
  static Result<Tensor> view(const Shape& shape, const std::vector<T>& elements) {
    return view(shape, heddle::span<const T>(elements.data(), elements.size()));
  }
  Result<Tensor> clone() const {
    HEDDLE_TRY(Tensor, made, uninitialised(type_, shape_));
    if (bytes_ > 0) std::memcpy(made.data_, data_, bytes_);
    return made;
  }

  Type type() const { return type_; }
  const Shape& shape() const { return shape_; }
  std::size_t elements() const { return elements_; }
  std::size_t bytes() const { return bytes_; }
  bool is_read_only() const { return is_read_only_; }
  const void* data() const { return data_; }
  std::string to_string() const { return text(); }

  // The elements. Errors: they have another type; T is not const and the Tensor is read-only.
  template <typename T>
  Result<heddle::span<T>> span() const {
    constexpr Type kAsked = type_of<T>();
    static_assert(kAsked != Type::opaque, "no element type is like this C++ type");
    if (kAsked != type_)
      return detail::failed<heddle::span<T>>(
          detail::wrong("elements of " + text() + " as " + name_of(kAsked)));
    if (is_read_only_ && !std::is_const_v<T>)
      return detail::failed<heddle::span<T>>(
          detail::wrong("elements of " + text() + " to be written; it is a view of const memory"));
    return heddle::span<T>(static_cast<T*>(data_), elements_);
  }

 private:
  friend class Context;

  std::string text() const { return heddle::to_string(type_, shape_); }

  static Result<Tensor> described(Type type, const Shape& shape) {
    Tensor made;
    made.type_ = type;
    made.shape_ = shape;
    const std::int64_t each = bytes_of(type);
    if (each == 0)
      return detail::failed<Tensor>(
          detail::wrong(std::string("a tensor of type ") + name_of(type) + ": no array has it"));
    std::int64_t bytes = each;
    bool is_empty = false;
    for (const std::int64_t extent : shape) {
      if (extent < 0)
        return detail::failed<Tensor>(detail::wrong(
            heddle::to_string(type, shape) + " has a negative extent", ErrorCode::shape));
      if (extent == 0) is_empty = true;
      if (extent > 0 && bytes > std::numeric_limits<std::int64_t>::max() / 2 / extent)
        return detail::failed<Tensor>(
            detail::wrong(heddle::to_string(type, shape) + " has more bytes than can be counted",
                          ErrorCode::shape));
      if (extent > 0) bytes *= extent;
    }
    made.bytes_ = is_empty ? 0 : static_cast<std::size_t>(bytes);
    made.elements_ = made.bytes_ / static_cast<std::size_t>(each);
    return made;
  }
  Result<void> check_count(std::size_t count) const {
    if (count == elements_) return detail::done();
    return detail::failed<void>(detail::wrong(
        text() + " of " + std::to_string(count) + " elements; wanted " + std::to_string(elements_),
        ErrorCode::shape));
  }

  Type type_ = Type::f32;
  Shape shape_ = {0};
  std::size_t elements_ = 0, bytes_ = 0;
  void* data_ = nullptr;
  bool is_read_only_ = false;
  std::shared_ptr<void> owner_;  // null: the caller's memory
};

// By name of the input or output port.
using Tensors = std::map<std::string, Tensor>;

}  // namespace HEDDLE_INLINE_NAMESPACE
}  // namespace heddle

#endif  // HEDDLE_API_HEDDLE_TENSOR_HPP
