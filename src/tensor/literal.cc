#include "tensor/literal.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <new>

#include "tensor/limits.h"
#include "tensor/unaligned.h"

namespace heddle::tensor {
namespace {

constexpr size_t kAlignment = 64;

struct FreeBlock {
  void* block;
  void operator()(const void*) const { std::free(block); }
};

// Zeroed memory, 64-byte aligned; null if there is not enough. calloc returns pages that are zero
// already, so a large literal costs nothing until it is written. It also over-commits, which must
// not be discovered only on writing, hence the check.
std::shared_ptr<const void> allocate(int64_t bytes) {
  if (bytes > memory_limit_bytes()) return nullptr;
  size_t size = static_cast<size_t>(bytes) + kAlignment;
  void* block = std::calloc(size, 1);
  if (block == nullptr) return nullptr;
  void* data = block;
  std::align(kAlignment, static_cast<size_t>(bytes), data, size);
  return std::shared_ptr<const void>(data, FreeBlock{block});
}

// Alignment that the elements of a type need to be read in place.
size_t element_alignment(Type type) {
  return static_cast<size_t>(type_bytes(is_complex(type) ? complex_component(type) : type));
}

template <typename T>
T load(const void* data, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + i * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

template <typename T>
void store(void* data, int64_t i, T value) {
  std::memcpy(static_cast<char*>(data) + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

// An s64 as an f64 rounded to odd: rounding it once more, to any narrower format, gives the same as
// rounding the integer directly.
double to_odd(int64_t value) {
  auto result = static_cast<double>(value);
  if (result >= 0x1p63 || static_cast<int64_t>(result) != value) {
    auto bits = std::bit_cast<uint64_t>(result);
    if ((bits & 1) == 0) {
      // The nearest one was even; the other neighbour of `value` is odd.
      bool below = result < 0x1p63 && static_cast<int64_t>(result) < value;
      bool away_from_zero = below == (value > 0);
      bits += away_from_zero ? 1 : -1;
    }
    result = std::bit_cast<double>(bits);
  }
  return result;
}

// The processor's rounding, but NaNs as in float_to_bits.
float to_f32(double value) {
  return std::isnan(value)
             ? std::bit_cast<float>(static_cast<uint32_t>(float_to_bits(Type::f32, value)))
             : static_cast<float>(value);
}

// Truncated towards zero and then modulo 2^64; NaN is 0, values out of range saturate.
int64_t f64_to_s64(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p64) return -1;
  if (value >= 0x1p63) return static_cast<int64_t>(static_cast<uint64_t>(value));
  if (value < -0x1p63) return INT64_MIN;
  return static_cast<int64_t>(value);
}

}  // namespace

Literal::Literal(const Shape& shape) : shape_(shape.without_layout()) {
  HEDDLE_CHECK(shape_.is_static(), "literal of {}", to_string(shape));
  if (shape_.is_tuple()) {
    for (const Shape& element : shape_.elements()) elements_.emplace_back(element);
    return;
  }
  if (!shape_.is_array()) return;
  data_ = allocate(shape_.bytes());
  if (data_ == nullptr) throw std::bad_alloc();
  writable_ = true;
}

Result<Literal> Literal::make(const Shape& shape) {
  if (!shape.is_static()) return user_error("{}: a value needs a static shape", to_string(shape));
  Literal literal;
  literal.shape_ = shape.without_layout();
  for (const Shape& element : literal.shape_.elements()) {
    HEDDLE_ASSIGN_OR_RETURN(Literal made, make(element));
    literal.elements_.push_back(std::move(made));
  }
  if (!shape.is_array()) return literal;
  const int64_t bytes = shape.bytes();
  HEDDLE_RETURN_IF_ERROR(check_memory(to_string(shape, false), bytes));
  literal.data_ = allocate(bytes);
  if (literal.data_ == nullptr) {
    return error_of(ErrorKind::memory, "{}: no memory for {} bytes; use a smaller shape",
                    to_string(shape, false), bytes);
  }
  literal.writable_ = true;
  return literal;
}

Literal Literal::tuple(std::vector<Literal> elements) {
  std::vector<Shape> shapes;
  shapes.reserve(elements.size());
  for (const Literal& element : elements) shapes.push_back(element.shape_);
  Literal literal;
  literal.shape_ = Shape::make_tuple(std::move(shapes));
  literal.elements_ = std::move(elements);
  return literal;
}

Literal Literal::view(const Shape& shape, const void* data, std::shared_ptr<const void> owner) {
  HEDDLE_CHECK(shape.is_array() && shape.is_static(), "view of {}", to_string(shape));
  const bool aligned = reinterpret_cast<uintptr_t>(data) % element_alignment(shape.type()) == 0;
  if (!aligned && (is_complex(shape.type()) || shape.bytes() < kLeastUnalignedBytes)) {
    Literal copy(shape);
    if (copy.bytes() > 0) std::memcpy(copy.mutable_data(), data, static_cast<size_t>(copy.bytes()));
    return copy;
  }
  Literal literal;
  literal.shape_ = shape.without_layout();
  literal.data_ = std::shared_ptr<const void>(std::move(owner), data);
  return literal;
}

bool is_element_aligned(const Literal& literal) {
  for (const Literal& element : literal.elements())
    if (!is_element_aligned(element)) return false;
  return !literal.shape().is_array() ||
         reinterpret_cast<uintptr_t>(literal.data()) % element_alignment(literal.type()) == 0;
}

Literal element_aligned(const Literal& literal) {
  if (is_element_aligned(literal)) return literal;
  Literal copy(literal);
  if (literal.shape().is_array()) {
    (void)copy.mutable_data();  // copies if it is a view
  } else {
    for (Literal& element : copy.mutable_elements()) element = element_aligned(element);
  }
  return copy;
}

void* Literal::mutable_data() {
  if (!shape_.is_array()) return nullptr;
  if (writable_ && data_.use_count() == 1) {
    // The previous co-owner's reads must come before our writes: releasing an extra share of our
    // own acquires what its release published. (A fence would do, but ThreadSanitizer does not see
    // fences.)
    std::shared_ptr<const void>(data_).reset();
  } else {
    std::shared_ptr<const void> copy = allocate(bytes());
    if (copy == nullptr) throw std::bad_alloc();
    if (bytes() > 0) std::memcpy(const_cast<void*>(copy.get()), data(), bytes());
    data_ = std::move(copy);
    writable_ = true;
  }
  return const_cast<void*>(data_.get());
}

uint64_t Literal::get_bits(int64_t i) const {
  switch (type_bytes(type())) {
    case 1:
      return load<uint8_t>(data(), i);
    case 2:
      return load<uint16_t>(data(), i);
    case 4:
      return load<uint32_t>(data(), i);
    case 8:
      return load<uint64_t>(data(), i);
    default:
      HEDDLE_UNREACHABLE("{} has no single word", type_name(type()));
  }
}

void Literal::set_bits(int64_t i, uint64_t bits) {
  void* data = mutable_data();
  switch (type_bytes(type())) {
    case 1:
      return store(data, i, static_cast<uint8_t>(bits));
    case 2:
      return store(data, i, static_cast<uint16_t>(bits));
    case 4:
      return store(data, i, static_cast<uint32_t>(bits));
    case 8:
      return store(data, i, bits);
    default:
      HEDDLE_UNREACHABLE("{} has no single word", type_name(type()));
  }
}

double Literal::get_f64(int64_t i) const {
  Type t = type();
  switch (t) {  // the common types without going through bits
    case Type::f32:
      return static_cast<double>(load<float>(data(), i));
    case Type::f64:
      return load<double>(data(), i);
    case Type::f16:
      return static_cast<double>(f16_to_f32(load<uint16_t>(data(), i)));
    case Type::bf16:
      return static_cast<double>(bf16_to_f32(load<uint16_t>(data(), i)));
    case Type::s32:
      return load<int32_t>(data(), i);
    case Type::u64:
      return static_cast<double>(load<uint64_t>(data(), i));
    default:
      break;
  }
  if (is_float(t)) return float_from_bits(t, load<uint8_t>(data(), i));
  return static_cast<double>(get_s64(i));
}

int64_t Literal::get_s64(int64_t i) const {
  Type t = type();
  switch (t) {
    case Type::pred:
      return load<uint8_t>(data(), i) != 0;
    case Type::s8:
      return load<int8_t>(data(), i);
    case Type::s16:
      return load<int16_t>(data(), i);
    case Type::s32:
      return load<int32_t>(data(), i);
    case Type::s64:
      return load<int64_t>(data(), i);
    case Type::u8:
      return load<uint8_t>(data(), i);
    case Type::u16:
      return load<uint16_t>(data(), i);
    case Type::u32:
      return load<uint32_t>(data(), i);
    case Type::u64:
      return static_cast<int64_t>(load<uint64_t>(data(), i));
    default:
      break;
  }
  HEDDLE_CHECK(is_integer(t), "integer of a {}", type_name(t));
  uint64_t bits = load<uint8_t>(data(), i);
  int unused = 64 - type_bits(t);
  if (is_signed_integer(t)) return static_cast<int64_t>(bits << unused) >> unused;
  return static_cast<int64_t>(bits << unused >> unused);
}

std::complex<double> Literal::get_complex(int64_t i) const {
  if (type() == Type::c64) return std::complex<double>(load<std::complex<float>>(data(), i));
  if (type() == Type::c128) return load<std::complex<double>>(data(), i);
  return {get_f64(i), 0};
}

void Literal::set_f64(int64_t i, double value) {
  Type t = type();
  if (t == Type::f32) {
    store(mutable_data(), i, to_f32(value));
  } else if (t == Type::f64) {
    store(mutable_data(), i, value);
  } else if (is_float(t)) {
    set_bits(i, float_to_bits(t, value));
  } else if (is_complex(t)) {
    set_complex(i, value);
  } else if (t == Type::pred) {
    set_bits(i, value != 0);
  } else {
    set_s64(i, f64_to_s64(value));
  }
}

void Literal::set_s64(int64_t i, int64_t value) {
  Type t = type();
  if (t == Type::pred) return set_bits(i, value != 0);
  if (t == Type::f64) return set_bits(i, std::bit_cast<uint64_t>(static_cast<double>(value)));
  if (is_float(t)) return set_bits(i, float_to_bits(t, to_odd(value)));
  if (t == Type::c64) return set_complex(i, to_odd(value));
  if (t == Type::c128) return set_complex(i, static_cast<double>(value));
  // Narrow integers are stored extended to their byte, so that equal values have equal bytes.
  int unused = 64 - type_bits(t);
  auto bits = static_cast<uint64_t>(value) << unused;
  set_bits(i, is_signed_integer(t) ? static_cast<uint64_t>(static_cast<int64_t>(bits) >> unused)
                                   : bits >> unused);
}

void Literal::set_complex(int64_t i, std::complex<double> value) {
  if (type() == Type::c128) return store(mutable_data(), i, value);
  HEDDLE_CHECK(type() == Type::c64, "complex into {}", type_name(type()));
  store(mutable_data(), i, std::complex<float>(to_f32(value.real()), to_f32(value.imag())));
}

bool Literal::operator==(const Literal& other) const {
  if (!shape_.compatible(other.shape_) || elements_ != other.elements_) return false;
  return bytes() == 0 || data() == other.data() ||
         std::memcmp(data(), other.data(), static_cast<size_t>(bytes())) == 0;
}

}  // namespace heddle::tensor
