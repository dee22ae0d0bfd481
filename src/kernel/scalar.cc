#include "kernel/scalar.h"

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

namespace heddle::kernel {
namespace {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

template <typename T>
constexpr bool kIsPred = std::is_same_v<T, bool>;
template <typename T>
constexpr bool kIsFloat = std::is_floating_point_v<T>;
template <typename T>
constexpr bool kIsInt = std::is_integral_v<T> && !kIsPred<T>;

template <typename T>
T get(uint64_t bits) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(bits);
  } else {
    return static_cast<T>(bits);
  }
}

template <typename T>
uint64_t put(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<uint32_t>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<uint64_t>(value);
  } else {
    return static_cast<uint64_t>(value);  // signed types extend their sign
  }
}

enum TypeSet : unsigned { ints = 1, floats = 2, pred = 4 };

constexpr unsigned kTypes[] = {
#define HEDDLE_KERNEL_OP(name, operands, types, ...) types,
#include "kernel/ops.def"
};

constexpr unsigned types_of(Op op) { return kTypes[static_cast<size_t>(op)]; }

template <Op op, typename T>
constexpr bool kTakes = (types_of(op) & (kIsPred<T>    ? pred
                                         : kIsFloat<T> ? floats
                                                       : ints)) != 0;

// Functions are computed in double and rounded once.
template <Op op>
double function(double x);
#define HEDDLE_KERNEL_OP(name, operands, types, op_class, cuda, value) \
  template <>                                                          \
  [[maybe_unused]] double function<Op::name>(double x) {               \
    return value;                                                      \
  }
#include "kernel/ops.def"

template <Op op, typename T>
auto apply1(T a) {
  if constexpr (op == Op::neg) {
    if constexpr (kIsFloat<T>)
      return -a;
    else
      return static_cast<T>(0 - static_cast<uint64_t>(a));
  } else if constexpr (op == Op::abs) {
    if constexpr (kIsFloat<T>)
      return std::fabs(a);
    else
      return a < 0 ? static_cast<T>(0 - static_cast<uint64_t>(a)) : a;
  } else if constexpr (op == Op::sign) {
    if constexpr (kIsFloat<T>)
      return a > 0 ? T{1} : a < 0 ? T{-1} : a;  // NaN and zeros stay
    else
      return static_cast<T>((a > 0) - (a < 0));
  } else if constexpr (op == Op::not_) {
    if constexpr (kIsPred<T>)
      return !a;
    else
      return static_cast<T>(~a);
  } else if constexpr (op == Op::popcnt) {
    return static_cast<T>(std::popcount(static_cast<std::make_unsigned_t<T>>(a)));
  } else if constexpr (op == Op::clz) {
    return static_cast<T>(std::countl_zero(static_cast<std::make_unsigned_t<T>>(a)));
  } else if constexpr (op == Op::floor) {
    return std::floor(a);
  } else if constexpr (op == Op::ceil) {
    return std::ceil(a);
  } else if constexpr (op == Op::round_even) {
    return std::nearbyint(a);
  } else if constexpr (op == Op::round_away) {
    return std::round(a);
  } else if constexpr (op == Op::is_finite) {
    return static_cast<bool>(std::isfinite(a));
  } else if constexpr (op == Op::sqrt) {
    return std::sqrt(a);
  } else {
    return static_cast<T>(function<op>(a));
  }
}

template <Op op, typename T>
T integer_division(T a, T b) {
  if (b == 0) return op == Op::rem || op == Op::floor_mod ? a : static_cast<T>(-1);
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) {  // the quotient of the smallest number would not fit
      return op == Op::div || op == Op::floor_div ? static_cast<T>(0 - static_cast<uint64_t>(a))
                                                  : T{0};
    }
  }
  T quotient = static_cast<T>(a / b), rest = static_cast<T>(a % b);
  bool down = rest != 0 && (rest < 0) != (b < 0);
  if constexpr (op == Op::div) return quotient;
  if constexpr (op == Op::rem) return rest;
  if constexpr (op == Op::floor_div) return static_cast<T>(quotient - down);
  if constexpr (op == Op::floor_mod) return static_cast<T>(down ? rest + b : rest);
}

template <Op op, typename T>
T shift(T a, T b) {
  using U = std::make_unsigned_t<T>;
  constexpr unsigned kBits = sizeof(T) * 8;
  bool over = static_cast<U>(b) >= kBits;
  if constexpr (op == Op::shl) return over ? T{0} : static_cast<T>(static_cast<uint64_t>(a) << b);
  if constexpr (op == Op::shr_logical) return over ? T{0} : static_cast<T>(static_cast<U>(a) >> b);
  auto as_signed = static_cast<std::make_signed_t<T>>(a);
  return static_cast<T>(as_signed >> (over ? kBits - 1 : static_cast<unsigned>(b)));
}

template <typename T>
T high_product(T a, T b) {
  using Wide = std::conditional_t<std::is_signed_v<T>, Int128, Uint128>;
  return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> (sizeof(T) * 8));
}

template <Op op, typename T>
auto apply2(T a, T b) {
  using Word = std::conditional_t<kIsFloat<T>, T, uint64_t>;  // integers wrap
  if constexpr (op == Op::add) return static_cast<T>(static_cast<Word>(a) + static_cast<Word>(b));
  if constexpr (op == Op::sub) return static_cast<T>(static_cast<Word>(a) - static_cast<Word>(b));
  if constexpr (op == Op::mul) return static_cast<T>(static_cast<Word>(a) * static_cast<Word>(b));
  if constexpr (op == Op::div || op == Op::rem) {
    if constexpr (!kIsFloat<T>)
      return integer_division<op>(a, b);
    else if constexpr (op == Op::div)
      return a / b;
    else
      return std::fmod(a, b);
  }
  if constexpr (op == Op::floor_div || op == Op::floor_mod) return integer_division<op>(a, b);
  if constexpr (op == Op::min || op == Op::max) {
    if constexpr (kIsFloat<T>) {
      if (std::isnan(a) || std::isnan(b)) return a + b;
    }
    return op == Op::min ? (b < a ? b : a) : (a < b ? b : a);
  }
  if constexpr (op == Op::pow) return static_cast<T>(std::pow(double{a}, double{b}));
  if constexpr (op == Op::atan2) return static_cast<T>(std::atan2(double{a}, double{b}));
  if constexpr (op == Op::and_) return static_cast<T>(a & b);
  if constexpr (op == Op::or_) return static_cast<T>(a | b);
  if constexpr (op == Op::xor_) return static_cast<T>(a ^ b);
  if constexpr (op == Op::shl || op == Op::shr_logical || op == Op::shr_arithmetic) {
    return shift<op>(a, b);
  }
  if constexpr (op == Op::mulhi) return high_product(a, b);
  if constexpr (op == Op::eq) return a == b;
  if constexpr (op == Op::ne) return a != b;
  if constexpr (op == Op::lt) return a < b;
  if constexpr (op == Op::le) return a <= b;
  if constexpr (op == Op::gt) return a > b;
  if constexpr (op == Op::ge) return a >= b;
}

constexpr int kOperands[] = {
#define HEDDLE_KERNEL_OP(name, operands, ...) operands,
#include "kernel/ops.def"
};

template <Op op, typename T>
void run(const LaneArgs& x) {
  for (int i = 0; i < x.n; ++i) {
    T a = get<T>(x.a[i * x.a_step]);
    if constexpr (kOperands[static_cast<int>(op)] == 1) {
      x.d[i] = put(apply1<op, T>(a));
    } else {
      T b = get<T>(x.b[i * x.b_step]);
      if constexpr (op == Op::fma)
        x.d[i] = put(std::fma(a, b, get<T>(x.c[i * x.c_step])));
      else
        x.d[i] = put(apply2<op, T>(a, b));
    }
  }
}

void run_select(const LaneArgs& x) {
  for (int i = 0; i < x.n; ++i) {
    x.d[i] = x.a[i * x.a_step] ? x.b[i * x.b_step] : x.c[i * x.c_step];
  }
}

template <Op op, typename T>
LaneFunction runner() {
  constexpr bool kMoves =
      op == Op::select || op == Op::lane || op == Op::shuffle_xor || op == Op::dot;
  if constexpr (kTakes<op, T> && !kMoves)
    return &run<op, T>;
  else
    return nullptr;
}

template <Op op>
LaneFunction runner_of(Type type) {
  switch (type) {
    case Type::pred:
      return runner<op, bool>();
    case Type::s8:
      return runner<op, int8_t>();
    case Type::s16:
      return runner<op, int16_t>();
    case Type::s32:
      return runner<op, int32_t>();
    case Type::s64:
      return runner<op, int64_t>();
    case Type::u8:
      return runner<op, uint8_t>();
    case Type::u16:
      return runner<op, uint16_t>();
    case Type::u32:
      return runner<op, uint32_t>();
    case Type::u64:
      return runner<op, uint64_t>();
    case Type::f32:
      return runner<op, float>();
    case Type::f64:
      return runner<op, double>();
    default:
      return nullptr;
  }
}

// A float as an integer of `type`: truncated, clamped, NaN is 0.
uint64_t clamp_to_integer(Type type, double value) {
  if (std::isnan(value)) return 0;
  int bits = tensor::type_bits(type);
  bool is_signed = tensor::is_signed_integer(type);
  double top = std::ldexp(1.0, is_signed ? bits - 1 : bits);  // the first value that is too big
  if (is_signed) {
    if (value >= top) return (uint64_t{1} << (bits - 1)) - 1;
    if (value < -top) value = -top;
    return static_cast<uint64_t>(static_cast<int64_t>(value));
  }
  if (value >= top) return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  return value <= 0 ? 0 : static_cast<uint64_t>(value);
}

}  // namespace

bool is_arithmetic_type(Type type) {
  switch (type) {
    case Type::pred:
    case Type::s8:
    case Type::s16:
    case Type::s32:
    case Type::s64:
    case Type::u8:
    case Type::u16:
    case Type::u32:
    case Type::u64:
    case Type::f32:
    case Type::f64:
      return true;
    default:
      return false;
  }
}

bool is_storage_type(Type type) {
  return tensor::is_float(type) && !is_arithmetic_type(type) && tensor::type_bits(type) >= 8;
}

bool op_takes(Op op, Type type) {
  if (!is_arithmetic_type(type)) return false;
  unsigned set = type == Type::pred ? pred : tensor::is_float(type) ? floats : ints;
  return (types_of(op) & set) != 0;
}

bool can_convert(Type from, Type to) {
  return (is_arithmetic_type(from) || is_storage_type(from)) &&
         (is_arithmetic_type(to) || is_storage_type(to));
}

Type op_result(Op op, Type operand) {
  bool compares = op >= Op::eq && op <= Op::ge;
  return compares || op == Op::is_finite ? Type::pred : operand;
}

uint64_t canonical_bits(Type type, uint64_t bits) {
  if (type == Type::pred) return bits & 1;
  int width = tensor::type_bits(type);
  if (width <= 0 || width >= 64) return bits;
  if (tensor::is_signed_integer(type)) {
    return static_cast<uint64_t>(static_cast<int64_t>(bits << (64 - width)) >> (64 - width));
  }
  return bits & ((uint64_t{1} << width) - 1);
}

LaneFunction lane_function(Op op, Type type) {
  if (op == Op::select) return &run_select;
  LaneFunction result = nullptr;
  switch (op) {
#define HEDDLE_KERNEL_OP(name, ...)     \
  case Op::name:                        \
    result = runner_of<Op::name>(type); \
    break;
#include "kernel/ops.def"
  }
  HEDDLE_CHECK(result != nullptr, "{} of {}", op_text(op), tensor::type_name(type));
  return result;
}

uint64_t convert_bits(Type from, Type to, uint64_t bits) {
  HEDDLE_CHECK(can_convert(from, to), "{} to {}", tensor::type_name(from), tensor::type_name(to));
  if (from == to) return bits;
  if (tensor::is_float(from)) {
    double value = tensor::float_from_bits(from, bits);
    if (tensor::is_float(to)) return tensor::float_to_bits(to, value);
    if (to == Type::pred) return value != 0;
    return clamp_to_integer(to, value);
  }
  if (to == Type::pred) return bits != 0;
  if (!tensor::is_float(to)) return canonical_bits(to, bits);
  bool is_unsigned = from == Type::u64;
  if (to == Type::f32) {  // through double, large integers would be rounded twice
    return put(is_unsigned ? static_cast<float>(bits)
                           : static_cast<float>(static_cast<int64_t>(bits)));
  }
  double value =
      is_unsigned ? static_cast<double>(bits) : static_cast<double>(static_cast<int64_t>(bits));
  // Small floats are infinite or clamped long before double stops being exact, so double rounding
  // matters only for bf16 and e8m0, whose range is wide: an odd last bit avoids the false tie.
  if (to != Type::f64 && std::fabs(value) >= 9007199254740992.0) {
    Int128 exact = is_unsigned ? Int128{bits} : Int128{static_cast<int64_t>(bits)};
    auto rounded = static_cast<Int128>(value);
    auto word = std::bit_cast<uint64_t>(value);
    if (rounded != exact && (word & 1) == 0) {
      bool away = (rounded > exact) == (value > 0);  // magnitude grew
      word = away ? word - 1 : word + 1;             // the neighbour towards exact, odd
      value = std::bit_cast<double>(word);
    }
  }
  return tensor::float_to_bits(to, value);
}

uint64_t evaluate(Op op, Type type, uint64_t a, uint64_t b, uint64_t c) {
  uint64_t result = 0;
  lane_function(op, type)({&result, &a, &b, &c, 0, 0, 0, 1});
  return result;
}

}  // namespace heddle::kernel
