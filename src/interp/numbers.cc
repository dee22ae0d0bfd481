#include "interp/numbers.h"

#include <array>
#include <bit>
#include <cmath>

namespace heddle::interp {
namespace {

// The 256 values of a type of at most 8 bits: decoding them arithmetically would dominate.
struct FloatTable {
  explicit FloatTable(Type type) {
    for (size_t bits = 0; bits < 256; ++bits) values[bits] = tensor::float_from_bits(type, bits);
  }
  std::array<double, 256> values;
};

const FloatTable& float_table(Type type) {
  static const std::vector<FloatTable>& tables = *new std::vector<FloatTable>([] {
    std::vector<FloatTable> result;
    for (int t = static_cast<int>(Type::f8e5m2); t <= static_cast<int>(Type::f4e2m1fn); ++t)
      result.emplace_back(static_cast<Type>(t));
    return result;
  }());
  return tables[static_cast<size_t>(type) - static_cast<size_t>(Type::f8e5m2)];
}

// Calls fn(i, value) with value of type double, int64_t, uint64_t or Complex, by the type's domain.
template <typename Fn>
void for_each_value(Type type, const void* data, int64_t begin, int64_t n, Fn fn) {
  auto each = [&]<typename T, typename To>(T, To) {
    const T* p = static_cast<const T*>(data) + begin;
    for (int64_t i = 0; i < n; ++i) fn(i, static_cast<To>(p[i]));
  };
  switch (type) {
    case Type::pred:
    case Type::u1:
    case Type::u2:
    case Type::u4:
    case Type::u8:
      return each(uint8_t{}, uint64_t{});
    case Type::u16:
      return each(uint16_t{}, uint64_t{});
    case Type::u32:
      return each(uint32_t{}, uint64_t{});
    case Type::u64:
      return each(uint64_t{}, uint64_t{});
    case Type::s1:
    case Type::s2:
    case Type::s4:
    case Type::s8:
      return each(int8_t{}, int64_t{});
    case Type::s16:
      return each(int16_t{}, int64_t{});
    case Type::s32:
      return each(int32_t{}, int64_t{});
    case Type::s64:
      return each(int64_t{}, int64_t{});
    case Type::f32:
      return each(float{}, double{});
    case Type::f64:
      return each(double{}, double{});
    case Type::c64:
      return each(std::complex<float>{}, Complex{});
    case Type::c128:
      return each(Complex{}, Complex{});
    case Type::f16:
    case Type::bf16: {
      const uint16_t* p = static_cast<const uint16_t*>(data) + begin;
      auto to_float = type == Type::f16 ? tensor::f16_to_f32 : tensor::bf16_to_f32;
      for (int64_t i = 0; i < n; ++i) fn(i, static_cast<double>(to_float(p[i])));
      return;
    }
    default: {
      const uint8_t* p = static_cast<const uint8_t*>(data) + begin;
      const auto& values = float_table(type).values;
      for (int64_t i = 0; i < n; ++i) fn(i, values[p[i]]);
    }
  }
}

void set(Cell& cell, double v) { cell.f = v; }
void set(Cell& cell, int64_t v) { cell.s = v; }
void set(Cell& cell, uint64_t v) { cell.u = v; }
void set(Cell& cell, Complex v) { cell.z = {v.real(), v.imag()}; }

std::complex<float> to_c64(Complex v) {
  return {static_cast<float>(v.real()), static_cast<float>(v.imag())};
}

// Wraps the low bits to an integer of `type`, extended to 64 bits.
uint64_t wrap(Type type, uint64_t bits) {
  int unused = 64 - tensor::type_bits(type);
  bits <<= unused;
  return tensor::is_signed_integer(type)
             ? static_cast<uint64_t>(static_cast<int64_t>(bits) >> unused)
             : bits >> unused;
}

// Writes value(i), a uint64_t, as integers of the type's storage.
template <typename Fn>
void store_integers(Type type, void* data, int64_t begin, int64_t n, Fn value) {
  auto each = [&]<typename T>(T) {
    T* p = static_cast<T*>(data) + begin;
    if (tensor::type_bits(type) < 8) {
      for (int64_t i = 0; i < n; ++i) p[i] = static_cast<T>(wrap(type, value(i)));
    } else {
      for (int64_t i = 0; i < n; ++i) p[i] = static_cast<T>(value(i));
    }
  };
  switch (tensor::type_bytes(type)) {
    case 1:
      return each(uint8_t{});
    case 2:
      return each(uint16_t{});
    case 4:
      return each(uint32_t{});
    default:
      return each(uint64_t{});
  }
}

// Writes value(i), a double, rounded once.
template <typename Fn>
void store_floats(Type type, void* data, int64_t begin, int64_t n, Fn value) {
  if (type == Type::f64) {
    double* p = static_cast<double*>(data) + begin;
    for (int64_t i = 0; i < n; ++i) p[i] = value(i);
  } else if (type == Type::f32) {
    float* p = static_cast<float*>(data) + begin;
    for (int64_t i = 0; i < n; ++i) p[i] = static_cast<float>(value(i));
  } else if (tensor::type_bytes(type) == 2) {
    uint16_t* p = static_cast<uint16_t*>(data) + begin;
    for (int64_t i = 0; i < n; ++i)
      p[i] = static_cast<uint16_t>(tensor::float_to_bits(type, value(i)));
  } else {
    uint8_t* p = static_cast<uint8_t*>(data) + begin;
    for (int64_t i = 0; i < n; ++i)
      p[i] = static_cast<uint8_t>(tensor::float_to_bits(type, value(i)));
  }
}

template <typename Fn>
void store_complex(Type type, void* data, int64_t begin, int64_t n, Fn value) {
  if (type == Type::c128) {
    Complex* p = static_cast<Complex*>(data) + begin;
    for (int64_t i = 0; i < n; ++i) p[i] = value(i);
  } else {
    auto* p = static_cast<std::complex<float>*>(data) + begin;
    for (int64_t i = 0; i < n; ++i) p[i] = to_c64(value(i));
  }
}

}  // namespace

Domain domain_of(Type type) {
  if (tensor::is_float(type)) return Domain::floating;
  if (tensor::is_signed_integer(type)) return Domain::is_signed;
  if (tensor::is_unsigned_integer(type)) return Domain::is_unsigned;
  if (tensor::is_complex(type)) return Domain::complex;
  HEDDLE_CHECK(type == Type::pred, "{} has no domain", tensor::type_name(type));
  return Domain::pred;
}

void load_cells(Type type, const void* data, int64_t begin, int64_t n, Cell* cells) {
  for_each_value(type, data, begin, n, [&](int64_t i, auto value) { set(cells[i], value); });
}

void store_cells(Type type, void* data, int64_t begin, int64_t n, const Cell* cells) {
  switch (domain_of(type)) {
    case Domain::pred:
    case Domain::is_signed:
    case Domain::is_unsigned:
      return store_integers(type, data, begin, n, [&](int64_t i) { return cells[i].u; });
    case Domain::floating:
      return store_floats(type, data, begin, n, [&](int64_t i) { return cells[i].f; });
    case Domain::complex:
      return store_complex(type, data, begin, n, [&](int64_t i) { return to_complex(cells[i]); });
  }
}

double round_to(Type type, double value) {
  if (type == Type::f64) return value;
  if (type == Type::f32) return static_cast<double>(static_cast<float>(value));
  return tensor::float_from_bits(type, tensor::float_to_bits(type, value));
}

void round_cells(Type type, int64_t n, Cell* cells) {
  switch (domain_of(type)) {
    case Domain::pred:
      return;
    case Domain::is_signed:
    case Domain::is_unsigned:
      for (int64_t i = 0; i < n; ++i) cells[i].u = wrap(type, cells[i].u);
      return;
    case Domain::floating:
      if (type == Type::f64) return;
      for (int64_t i = 0; i < n; ++i) cells[i].f = round_to(type, cells[i].f);
      return;
    case Domain::complex:
      if (type == Type::c128) return;
      for (int64_t i = 0; i < n; ++i) {
        cells[i].z = {static_cast<double>(static_cast<float>(cells[i].z.re)),
                      static_cast<double>(static_cast<float>(cells[i].z.im))};
      }
      return;
  }
}

int bitcast_bits(Type type) { return type == Type::pred ? 8 : tensor::type_bits(type); }

uint64_t cell_to_bits(Type type, Cell cell) {
  if (tensor::is_float(type)) return tensor::float_to_bits(type, cell.f);
  HEDDLE_CHECK(!tensor::is_complex(type), "bits of {}", tensor::type_name(type));
  int unused = 64 - tensor::type_bits(type);
  return cell.u << unused >> unused;
}

Cell cell_from_bits(Type type, uint64_t bits) {
  if (tensor::is_float(type)) return {.f = tensor::float_from_bits(type, bits)};
  HEDDLE_CHECK(!tensor::is_complex(type), "bits of {}", tensor::type_name(type));
  return {.u = type == Type::pred ? bits != 0 : wrap(type, bits)};
}

template <typename T>
std::vector<T> values_as(const Literal& x) {
  std::vector<T> result(static_cast<size_t>(x.elems()));
  for_each_value(x.type(), x.data(), 0, x.elems(), [&]<typename From>(int64_t i, From value) {
    if constexpr (std::is_same_v<T, Complex> || !std::is_same_v<From, Complex>) {
      result[static_cast<size_t>(i)] = static_cast<T>(value);
    } else {
      HEDDLE_UNREACHABLE("real numbers of a complex literal");
    }
  });
  return result;
}
template std::vector<double> values_as(const Literal&);
template std::vector<float> values_as(const Literal&);
template std::vector<int64_t> values_as(const Literal&);
template std::vector<Complex> values_as(const Literal&);

template <typename T>
void set_values(Literal& x, const std::vector<T>& values) {
  HEDDLE_CHECK(static_cast<int64_t>(values.size()) == x.elems());
  void* data = x.mutable_data();
  auto value = [&](int64_t i) { return values[static_cast<size_t>(i)]; };
  if constexpr (std::is_same_v<T, double>) {
    store_floats(x.type(), data, 0, x.elems(), value);
  } else if constexpr (std::is_same_v<T, Complex>) {
    store_complex(x.type(), data, 0, x.elems(), value);
  } else {
    store_integers(x.type(), data, 0, x.elems(),
                   [&](int64_t i) { return static_cast<uint64_t>(value(i)); });
  }
}
template void set_values(Literal&, const std::vector<double>&);
template void set_values(Literal&, const std::vector<int64_t>&);
template void set_values(Literal&, const std::vector<Complex>&);

int64_t index_at(const Literal& x, int64_t i) {
  int64_t value = x.get_s64(i);
  return value < 0 && x.type() == Type::u64 ? INT64_MAX : value;
}

double odd_from_u64(uint64_t value) {
  if (value < uint64_t{1} << 53) return static_cast<double>(value);
  // The low bits beyond 53 only decide on which side of a tie the value is: one sticky bit
  // suffices.
  int drop = 11 - std::countl_zero(value);
  uint64_t kept = value >> drop;
  if (kept << drop != value) kept |= 1;
  return std::ldexp(static_cast<double>(kept), drop);
}

double odd_from_s64(int64_t value) {
  return value < 0 ? -odd_from_u64(-static_cast<uint64_t>(value))
                   : odd_from_u64(static_cast<uint64_t>(value));
}

Type wide_type(Type type) {
  if (type == Type::f16 || type == Type::bf16 || type == Type::f32) return Type::f64;
  return type == Type::c64 ? Type::c128 : type;
}

Result<Shape> static_shape(const Shape& shape) {
  if (shape.is_tuple()) {
    std::vector<Shape> elements;
    for (const Shape& element : shape.elements()) {
      HEDDLE_ASSIGN_OR_RETURN(Shape made, static_shape(element));
      elements.push_back(std::move(made));
    }
    return Shape::make_tuple(std::move(elements));
  }
  if (!shape.is_array()) return shape.without_layout();
  for (const tensor::Dim& dim : shape.dims()) {
    if (dim.size < 0)
      return user_error("{}: an unbounded dimension; give it a size", tensor::to_string(shape));
  }
  return Shape::array(shape.type(), shape.extents());
}

Shape wide_shape(const Shape& shape) {
  Shape result = shape;
  if (shape.is_tuple()) {
    for (Shape& element : result.mutable_elements()) element = wide_shape(element);
  } else {
    result.set_type(wide_type(shape.type()));
  }
  return result;
}

Result<Literal> convert_floats(const Literal& x, const Shape& shape) {
  if (x.shape().is_tuple()) {
    std::vector<Literal> elements;
    for (size_t i = 0; i < x.elements().size(); ++i) {
      HEDDLE_ASSIGN_OR_RETURN(Literal element,
                              convert_floats(x.elements()[i], shape.elements()[i]));
      elements.push_back(std::move(element));
    }
    return Literal::tuple(std::move(elements));
  }
  if (x.type() == shape.type() || !x.shape().is_array()) return x;
  HEDDLE_CHECK(domain_of(x.type()) == domain_of(shape.type()));
  HEDDLE_ASSIGN_OR_RETURN(Literal result, Literal::make(shape));
  constexpr int64_t kBlock = 1024;
  Cell cells[kBlock];
  void* data = result.mutable_data();
  for (int64_t begin = 0; begin < x.elems(); begin += kBlock) {
    int64_t n = std::min(kBlock, x.elems() - begin);
    load_cells(x.type(), x.data(), begin, n, cells);
    store_cells(shape.type(), data, begin, n, cells);
  }
  return result;
}

}  // namespace heddle::interp
