#include "import/onnx_tensor.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <protozero/exception.hpp>
#include <protozero/varint.hpp>

#include "import/failure.h"

namespace heddle::import {
namespace {

using proto::Numbers;
using tensor::Literal;
using tensor::Shape;
using tensor::Type;

struct DataType {
  const char* name;
  std::optional<Type> type;
};

// TensorProto.DataType in numerical order.
constexpr DataType kDataTypes[] = {
    {"undefined", {}},
    {"float", Type::f32},
    {"uint8", Type::u8},
    {"int8", Type::s8},
    {"uint16", Type::u16},
    {"int16", Type::s16},
    {"int32", Type::s32},
    {"int64", Type::s64},
    {"string", {}},
    {"bool", Type::pred},
    {"float16", Type::f16},
    {"double", Type::f64},
    {"uint32", Type::u32},
    {"uint64", Type::u64},
    {"complex64", Type::c64},
    {"complex128", Type::c128},
    {"bfloat16", Type::bf16},
    {"float8e4m3fn", Type::f8e4m3fn},
    {"float8e4m3fnuz", Type::f8e4m3fnuz},
    {"float8e5m2", Type::f8e5m2},
    {"float8e5m2fnuz", Type::f8e5m2fnuz},
    {"uint4", Type::u4},
    {"int4", Type::s4},
    {"float4e2m1", Type::f4e2m1fn},
    {"float8e8m0", Type::f8e8m0fnu},
    {"uint2", Type::u2},
    {"int2", Type::s2},
};

// Bits per element in a file: 4-bit and 2-bit types are packed, booleans take a byte.
int64_t file_bits(Type type) {
  return type == Type::pred ? 8 : static_cast<int64_t>(tensor::type_bits(type));
}

int64_t file_bytes(Type type, int64_t elems) { return (elems * file_bits(type) + 7) / 8; }

// Unpacks elements smaller than a byte, lowest bits first, to a byte each.
Literal unpack(const Shape& shape, std::string_view packed) {
  Literal literal = value_or_throw(Literal::make(shape));
  const int64_t bits = file_bits(shape.type());
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  for (int64_t i = 0, n = shape.elems(); i < n; ++i) {
    const auto byte = static_cast<unsigned char>(packed[static_cast<size_t>(i * bits / 8)]);
    const uint64_t value = (byte >> (i * bits % 8)) & mask;
    if (tensor::is_float(shape.type())) {
      literal.set_bits(i, value);
    } else {
      literal.set_s64(i, static_cast<int64_t>(value));  // extends the sign
    }
  }
  return literal;
}

// Keeps part of a file mapped; its pages may leave memory once the last owner is gone.
std::shared_ptr<const void> part_of(const std::shared_ptr<const MappedFile>& file,
                                    std::string_view part) {
  return {part.data(), [file, part](const void*) { file->forget(part); }};
}

Literal from_raw(const Shape& shape, std::string_view raw, const std::shared_ptr<const void>& owner,
                 const std::shared_ptr<const MappedFile>& file) {
  if (file_bits(shape.type()) < 8) return unpack(shape, raw);
  if (shape.type() == Type::pred &&
      !std::all_of(raw.begin(), raw.end(), [](char c) { return c == 0 || c == 1; })) {
    Literal literal = value_or_throw(Literal::make(shape));
    for (size_t i = 0; i < raw.size(); ++i)
      literal.set_bits(static_cast<int64_t>(i), raw[i] != 0 ? 1 : 0);
    return literal;
  }
  return Literal::view(shape, raw.data(), file != nullptr ? part_of(file, raw) : owner);
}

// Calls take(bits) for every number of a repeated field; `width`: bytes of a packed number, 0 for
// varints. Stops after `most`, and returns the number found (`most` + 1: more).
template <typename Take>
int64_t for_each_number(const Numbers& numbers, size_t width, int64_t most, Take take) {
  int64_t count = 0;
  const auto one = [&](uint64_t bits) {
    if (count++ < most) take(bits);
    return count <= most;
  };
  for (std::string_view piece : numbers.packed) {
    const char* at = piece.data();
    const char* const end = at + piece.size();
    while (at < end) {
      uint64_t bits = 0;
      if (width == 0) {
        bits = protozero::decode_varint(&at, end);
      } else {
        if (static_cast<size_t>(end - at) < width) return most + 1;
        std::memcpy(&bits, at, width);
        at += width;
      }
      if (!one(bits)) return count;
    }
  }
  for (uint64_t bits : numbers.loose) {
    if (!one(bits)) return count;
  }
  return count;
}

struct TypedField {
  const Numbers* numbers = nullptr;
  size_t width = 0;  // bytes of a packed number; 0: varints
  const char* name = "";
};

// The field that holds a type's values, by onnx.proto.
TypedField typed_field(const proto::Tensor& tensor, Type type) {
  switch (type) {
    case Type::f32:
    case Type::c64:
      return {&tensor.float_data, 4, "float_data"};
    case Type::f64:
    case Type::c128:
      return {&tensor.double_data, 8, "double_data"};
    case Type::s64:
      return {&tensor.int64_data, 0, "int64_data"};
    case Type::u32:
    case Type::u64:
      return {&tensor.uint64_data, 0, "uint64_data"};
    default:
      return {&tensor.int32_data, 0, "int32_data"};
  }
}

Literal from_numbers(const Shape& shape, const TypedField& field, std::string_view what) {
  const Type type = shape.type();
  const int64_t elems = shape.elems();
  const int64_t bits = file_bits(type);
  const int64_t numbers = tensor::is_complex(type) ? 2 * elems
                          : bits < 8               ? file_bytes(type, elems)
                                                   : elems;
  std::string packed;  // elements smaller than a byte, as in raw_data
  Literal literal = value_or_throw(Literal::make(shape));
  auto* bytes = static_cast<char*>(literal.mutable_data());
  const auto width = static_cast<size_t>(tensor::is_complex(type) ? bits / 16 : bits / 8);
  int64_t at = 0;
  const int64_t count = for_each_number(*field.numbers, field.width, numbers, [&](uint64_t value) {
    if (bits < 8) {
      packed += static_cast<char>(value);
    } else {
      if (type == Type::pred) value = value != 0 ? 1 : 0;
      std::memcpy(bytes + at * static_cast<int64_t>(width), &value, width);
    }
    ++at;
  });
  if (count != numbers)
    fail("{}: {} has {}{} numbers, shape {} wants {}", what, field.name,
         count > numbers ? "more than " : "", std::min(count, numbers), to_string(shape), numbers);
  return bits < 8 ? unpack(shape, packed) : literal;
}

int64_t parse_number(std::string_view text, std::string_view key, std::string_view what) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0)
    fail("{}: external data {} is {}, wanted a number of bytes", what, key, quoted(text));
  return value;
}

Literal from_external(const proto::Tensor& tensor, const Shape& shape, TensorSource& source,
                      std::string_view what) {
  std::string_view location;
  int64_t offset = 0, length = -1;
  for (const auto& [key, value] : tensor.external_data) {
    if (key == "location") location = value;
    if (key == "offset") offset = parse_number(value, key, what);
    if (key == "length") length = parse_number(value, key, what);
  }
  Result<std::shared_ptr<const MappedFile>> opened = source.external->open(location);
  if (!opened) throw Failure{error_in(std::string(what), opened.error()).value(), nullptr};
  const MappedFile& file = **opened;
  const int64_t wanted = file_bytes(shape.type(), shape.elems());
  const auto size = static_cast<int64_t>(file.bytes().size());
  if (length >= 0 && length != wanted)
    fail("{}: external data has length {}, shape {} wants {} bytes", what, length, to_string(shape),
         wanted);
  if (offset > size || wanted > size - offset)
    fail("{}: external data {} has {} bytes, wanted {} at offset {}", what, quoted(location), size,
         wanted, offset);
  const std::string_view raw =
      file.bytes().substr(static_cast<size_t>(offset), static_cast<size_t>(wanted));
  return from_raw(shape, raw, *opened, *opened);
}

Shape tensor_shape(const proto::Tensor& tensor, TensorSource& source, std::string_view what) {
  const bool text = tensor.data_type == kStringType && source.vocabulary != nullptr;
  const Type type = text ? tensor::kTextType : element_type(tensor.data_type, what);
  if (static_cast<int64_t>(tensor.dims.size()) > kMaxRank)
    fail("{}: rank {}, at most {} is supported", what, tensor.dims.size(), kMaxRank);
  // A shape with elements is bounded by its data; an empty one could claim anything.
  const std::optional<int64_t> elems = tensor::checked_product(tensor.dims);
  const int64_t most = elems == 0 ? source.max_elems : source.bytes_left;
  if (!elems || !sensible_extents(tensor.dims, most))
    fail("{}: shape [{}]; dimensions must be 0 or more and their product at most {}", what,
         fmt::join(tensor.dims, ","), most);
  source.bytes_left -= *elems * tensor::type_bytes(type);
  if (source.bytes_left < 0) fail("{}: the model's constants are larger than the limit", what);
  return Shape::array(type, tensor.dims);
}

Literal from_strings(const proto::Tensor& tensor, const Shape& shape, TensorSource& source,
                     std::string_view what) {
  if (tensor.external || tensor.has_raw_data) fail("{}: strings stand in string_data only", what);
  if (static_cast<int64_t>(tensor.strings.size()) != shape.elems())
    fail("{}: string_data has {} strings, shape {} wants {}", what, tensor.strings.size(),
         to_string(shape), shape.elems());
  Literal ids = value_or_throw(Literal::make(shape));
  for (int64_t i = 0; i < shape.elems(); ++i)
    ids.set_s64(i, source.vocabulary->id(tensor.strings[static_cast<size_t>(i)]));
  return ids;
}

}  // namespace

bool sensible_extents(const std::vector<int64_t>& extents, int64_t most) {
  int64_t product = 1;
  for (int64_t extent : extents) {
    if (extent < 0 || __builtin_mul_overflow(product, std::max<int64_t>(extent, 1), &product))
      return false;
  }
  return product <= most;
}

Type element_type(int64_t data_type, std::string_view what) {
  const bool known = data_type >= 0 && data_type < static_cast<int64_t>(std::size(kDataTypes));
  if (!known || !kDataTypes[data_type].type)
    fail_as(ErrorKind::unsupported, "{}: element type {} ({}) is not supported", what, data_type,
            known ? kDataTypes[data_type].name : "unknown");
  return *kDataTypes[data_type].type;
}

std::optional<int64_t> data_type_number(Type type) {
  for (size_t i = 0; i < std::size(kDataTypes); ++i)
    if (kDataTypes[i].type == type) return static_cast<int64_t>(i);
  return std::nullopt;
}

Literal to_literal(const proto::Tensor& tensor, TensorSource& source, std::string_view what) {
  const Shape shape = tensor_shape(tensor, source, what);
  if (tensor.has_segment) fail("{}: data in segments is not supported", what);
  if (tensor.data_type == kStringType) return from_strings(tensor, shape, source, what);
  if (!tensor.strings.empty()) fail("{}: strings where numbers are wanted", what);
  const Numbers* fields[] = {&tensor.float_data, &tensor.int32_data, &tensor.int64_data,
                             &tensor.double_data, &tensor.uint64_data};
  const bool typed = std::any_of(std::begin(fields), std::end(fields),
                                 [](const Numbers* n) { return !n->empty(); });
  if (tensor.external) {
    if (tensor.has_raw_data || typed) fail("{}: both external and inline data", what);
    return from_external(tensor, shape, source, what);
  }
  if (tensor.has_raw_data && !tensor.raw_data.empty() && typed)
    fail("{}: both raw_data and typed data", what);
  if (tensor.has_raw_data && !typed) {
    const int64_t wanted = file_bytes(shape.type(), shape.elems());
    if (static_cast<int64_t>(tensor.raw_data.size()) != wanted)
      fail("{}: raw_data has {} bytes, shape {} wants {}", what, tensor.raw_data.size(),
           to_string(shape), wanted);
    return from_raw(shape, tensor.raw_data, source.owner, source.file);
  }
  const TypedField field = typed_field(tensor, shape.type());
  // A shape may claim more than the file can hold: check against the file before allocating.
  int64_t present = static_cast<int64_t>(field.numbers->loose.size());
  for (std::string_view piece : field.numbers->packed)
    present += static_cast<int64_t>(piece.size());
  if (shape.elems() > 2 * present + 8)
    fail("{}: {} holds at most {} numbers, shape {} wants {}", what, field.name, present,
         to_string(shape), shape.elems());
  try {
    return from_numbers(shape, field, what);
  } catch (const protozero::exception&) {
    fail("{}: {} is damaged", what, field.name);
  }
}

Literal reshaped(const Literal& literal, const std::vector<int64_t>& extents) {
  const auto owner = std::make_shared<Literal>(literal);
  return Literal::view(Shape::array(literal.type(), extents), owner->data(), owner);
}

}  // namespace heddle::import
