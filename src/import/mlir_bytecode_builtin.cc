// MLIR's builtin dialect in bytecode: attributes, types, and values that other dialects use too.
#include <array>
#include <cstring>

#include "import/mlir_bytecode.h"
#include "import/mlir_parser.h"

namespace heddle::import {

using tensor::Literal;
using tensor::Shape;
using tensor::Type;

MlirAttr dictionary_attribute(BytecodeEntry& in) {
  MlirAttr attr = attr_of(MlirAttr::Kind::dictionary);
  for (size_t n = in.bytes.count("attributes"); n > 0; --n) {
    MlirAttr name = in.attribute();
    if (!name.is(MlirAttr::Kind::string)) in.bytes.fail("an attribute's name is no string");
    MlirAttr value = in.attribute();
    attr.fields.emplace_back(std::move(name.text), std::move(value));
  }
  return attr;
}

namespace {

using Kind = MlirAttr::Kind;

// The width, with the signedness in the two low bits: 0 signless, 1 signed, 2 unsigned.
MlirType integer_type(uint64_t encoded) {
  const uint64_t bits = encoded >> 2;
  const bool is_unsigned = (encoded & 3) == 2;
  const std::string name = fmt::format("{}i{}", is_unsigned ? "u" : "", bits);
  const Type* element = find_mlir_element(name);
  return element == nullptr ? type_of(MlirType::Kind::other, name) : scalar_type(*element);
}

MlirType complex_type(const MlirType& part, const ByteReader& bytes) {
  if (part.kind != MlirType::Kind::scalar ||
      (part.element != Type::f32 && part.element != Type::f64))
    bytes.fail("complex: got parts {}, wanted f32 or f64", to_string(part));
  return scalar_type(part.element == Type::f32 ? Type::c64 : Type::c128);
}

MlirType builtin_type(BytecodeEntry& in) {
  enum Code : uint8_t {
    kInteger,
    kIndex,
    kFunction,
    kBf16,
    kF16,
    kF32,
    kF64,
    kF80,
    kF128,
    kComplex,
    kMemref,
    kMemrefWith,
    kNone,
    kTensor,
    kTensorWith,
    kTuple
  };
  const uint64_t code = in.bytes.varint();
  MlirType type;
  switch (code) {
    case kInteger:
      return integer_type(in.bytes.varint());
    case kIndex:
      return scalar_type(Type::s64);
    case kFunction:
      type.kind = MlirType::Kind::function;
      type.elements = in.types();
      type.results = in.types();
      return type;
    case kBf16:
      return scalar_type(Type::bf16);
    case kF16:
      return scalar_type(Type::f16);
    case kF32:
      return scalar_type(Type::f32);
    case kF64:
      return scalar_type(Type::f64);
    case kComplex:
      return complex_type(in.type(), in.bytes);
    case kNone:
      return type;
    case kTensorWith:
      in.attribute();  // an encoding, which is ignored
      [[fallthrough]];
    case kTensor: {
      std::vector<int64_t> dims = in.signed_varints(kMostDims);
      return tensor_of(std::move(dims), in.type(), in.bytes);
    }
    case kTuple:
      type.kind = MlirType::Kind::tuple;
      type.elements = in.types();
      return type;
    default:  // memref, vector: not used by tensors
      in.bytes.take(in.bytes.left());
      return type_of(MlirType::Kind::other, fmt::format("builtin type {}", code));
  }
}

// array<i64: 1, 2>
MlirAttr dense_array(BytecodeEntry& in) {
  const MlirType element = in.type();
  const uint64_t count = in.bytes.varint();
  const std::string_view raw = in.bytes.blob();
  if (element.kind != MlirType::Kind::scalar || tensor::is_complex(element.element))
    in.bytes.fail("an array of {}, wanted numbers", to_string(element));
  const auto size = static_cast<uint64_t>(tensor::type_bytes(element.element));
  constexpr uint64_t kMost = 1 << 16;
  if (count > kMost || count * size != raw.size())
    in.bytes.fail("{} elements in {} bytes, wanted {} bytes each, and at most {}", count,
                  raw.size(), size, kMost);
  const MlirType list = tensor_of({static_cast<int64_t>(count)}, element, in.bytes);
  MlirAttr attr = attr_of(Kind::array);
  attr.type = element;
  if (count == 0) return attr;
  const MlirAttr dense = dense_of(list, raw, in.bytes);
  for (int64_t i = 0; i < dense.literal->elems(); ++i) {
    const bool is_float = tensor::is_float(element.element);
    MlirAttr& one = attr.elements.emplace_back();
    one.kind = is_float                        ? Kind::floating
               : element.element == Type::pred ? Kind::boolean
                                               : Kind::integer;
    one.type = element;
    if (is_float) {
      one.floating = dense.literal->get_f64(i);
    } else {
      one.integer = dense.literal->get_s64(i);
    }
  }
  return attr;
}

MlirAttr builtin_attribute(BytecodeEntry& in) {
  enum Code : uint8_t {
    kArray,
    kDictionary,
    kString,
    kStringWith,
    kSymbol,
    kSymbols,
    kType,
    kUnit,
    kInteger,
    kFloat,
    kResource = 16,
    kDenseArray,
    kDense
  };
  const uint64_t code = in.bytes.varint();
  MlirAttr attr;
  switch (code) {
    case kArray:
      attr.kind = Kind::array;
      attr.elements = in.attributes();
      return attr;
    case kDictionary:
      return dictionary_attribute(in);
    case kString:
      return attr_of(Kind::string, in.string());
    case kStringWith:
      attr = attr_of(Kind::string, in.string());
      attr.type = in.type();
      return attr;
    case kSymbol:
      return attr_of(Kind::symbol, in.attribute().text);
    case kSymbols:
      attr = attr_of(Kind::symbol, in.attribute().text);
      for (const MlirAttr& inner : in.attributes()) attr.text += "::" + inner.text;
      return attr;
    case kType:
      attr.kind = Kind::type;
      attr.type = in.type();
      return attr;
    case kUnit:
      return attr;
    case kInteger:
      return integer_of(in.type(), in.bytes);
    case kFloat:
      return floating_of(in.type(), in.bytes);
    case kResource: {
      const MlirType type = in.type();
      return dense_of(type, in.resource(), in.bytes);
    }
    case kDenseArray:
      return dense_array(in);
    case kDense: {
      const MlirType type = in.type();
      return dense_of(type, in.bytes.blob(), in.bytes);
    }
    default:  // locations, strings in tensors, sparse values
      in.bytes.take(in.bytes.left());
      return attr_of(Kind::other, fmt::format("builtin attribute {}", code));
  }
}

std::optional<std::string> builtin_properties(std::string_view op) {
  if (op == "module") return "sym_name? sym_visibility?";
  return std::nullopt;
}

// Booleans take a byte each, or (older and packed ones) a bit.
void read_booleans(std::string_view raw, Literal& literal, const ByteReader& bytes) {
  const auto count = static_cast<size_t>(literal.elems()), packed = (count + 7) / 8;
  const auto byte_at = [&](size_t i) { return static_cast<uint8_t>(raw[i]); };
  if (raw.size() != count && raw.size() != packed)
    bytes.fail("{} bytes of {} booleans", raw.size(), count);
  const bool bits = raw.size() == packed && raw.size() != count;
  for (size_t i = 0; i < count; ++i)
    literal.set_s64(static_cast<int64_t>(i),
                    bits ? byte_at(i / 8) >> (i % 8) & 1 : (byte_at(i) != 0 ? 1 : 0));
}

bool is_splat(Type element, std::string_view raw, int64_t count) {
  if (raw.size() != static_cast<size_t>(tensor::type_bytes(element)) || count == 1) return false;
  if (element != Type::pred || count > 8 || count == 0) return true;
  return raw[0] == '\xff' || raw[0] == '\0';  // other values are bits of up to 8 elements
}

}  // namespace

const BytecodeDialect& builtin_bytecode() {
  static constexpr BytecodeDialect kDialect = {"builtin", builtin_attribute, builtin_type,
                                               builtin_properties};
  return kDialect;
}

MlirType tensor_of(std::vector<int64_t> dims, const MlirType& element, const ByteReader& bytes) {
  if (element.kind != MlirType::Kind::scalar)
    bytes.fail("a tensor of {}, wanted an element type", to_string(element));
  MlirType type;
  type.kind = MlirType::Kind::tensor;
  type.element = element.element;
  type.quantization = element.quantization;
  type.dims = std::move(dims);
  for (int64_t& dim : type.dims)
    if (dim < 0) dim = MlirType::kDynamic;
  return type;
}

MlirAttr dense_of(const MlirType& type, std::string_view raw, const ByteReader& bytes) {
  if (!type.is_tensor() || !type.is_static())
    bytes.fail("dense values of type {}, wanted a tensor of known dimensions", to_string(type));
  const auto count = tensor::checked_product(type.dims);
  if (!count) bytes.fail("a value of type {} is too large", to_string(type));
  const bool splat = is_splat(type.element, raw, *count);
  const uint64_t stored = splat ? 1 : static_cast<uint64_t>(*count);
  const auto element_bytes = static_cast<uint64_t>(tensor::type_bytes(type.element));
  // Checked before any allocation; bits of booleans become bytes.
  if (type.element == Type::pred ? stored > raw.size() * 8 : stored > raw.size() / element_bytes)
    bytes.fail("{} bytes of {}", raw.size(), to_string(type));
  MlirAttr attr;
  attr.kind = Kind::dense;
  attr.type = type;
  Literal literal = value_or_throw(
      Literal::make(splat ? Shape::scalar(type.element) : Shape::array(type.element, type.dims)));
  if (type.element == Type::pred) {
    read_booleans(raw, literal, bytes);
  } else if (raw.size() != stored * element_bytes) {
    bytes.fail("{} bytes of {}", raw.size(), to_string(type));
  } else if (const int width = tensor::type_bits(type.element); width < 8) {
    for (size_t i = 0; i < raw.size(); ++i)
      literal.set_bits(static_cast<int64_t>(i), static_cast<uint8_t>(raw[i]) & ((1u << width) - 1));
  } else if (!raw.empty()) {
    std::memcpy(literal.mutable_data(), raw.data(), raw.size());
  }
  attr.literal = std::make_shared<const Literal>(std::move(literal));
  return attr;
}

MlirAttr integer_of(const MlirType& type, ByteReader& bytes) {
  const bool is_bool = type.kind == MlirType::Kind::scalar && type.element == Type::pred;
  if (!is_bool && (type.kind != MlirType::Kind::scalar || !tensor::is_integer(type.element)))
    bytes.fail("an integer of type {}", to_string(type));
  const int bits = tensor::type_bits(type.element);
  const uint64_t value = bytes.number(bits);
  MlirAttr attr;
  attr.kind = is_bool ? Kind::boolean : Kind::integer;
  attr.type = type;
  if (is_bool) {
    attr.integer = (value & 1) != 0 ? 1 : 0;
    attr.type = MlirType();
  } else if (tensor::is_signed_integer(type.element)) {
    const int unused = 64 - bits;
    attr.integer = static_cast<int64_t>(value << unused) >> unused;
  } else {
    attr.integer = static_cast<int64_t>(bits < 64 ? value & ((uint64_t{1} << bits) - 1) : value);
  }
  return attr;
}

MlirAttr floating_of(const MlirType& type, ByteReader& bytes) {
  if (type.kind != MlirType::Kind::scalar || !tensor::is_float(type.element))
    bytes.fail("a number of type {}", to_string(type));
  MlirAttr attr;
  attr.kind = Kind::floating;
  attr.type = type;
  const int bits = tensor::type_bits(type.element);
  const uint64_t value = bytes.number(bits);
  attr.floating =
      tensor::float_from_bits(type.element, bits < 8 ? value & ((1u << bits) - 1) : value);
  return attr;
}

}  // namespace heddle::import
