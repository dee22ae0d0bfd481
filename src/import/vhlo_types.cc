// VHLO: types by their numbers in bytecode (stablehlo/dialect/VhloBytecode.cpp).
#include <array>

#include "import/mlir_parser.h"
#include "import/vhlo.h"

namespace heddle::import {
namespace {

using tensor::Type;

enum Code : uint8_t {
  kComplex = 1,
  kFunction = 8,
  kTensor = 20,
  kTensorWith = 21,
  kToken = 22,
  kTuple = 23,
  kQuantized = 24,
  kUnranked = 25,
  kWitness = 26,
  kQuantizedAxis = 30,
  kNone = 33,
  kBuffer = 41,
  kFuture = 42
};

struct Element {
  uint8_t code;
  std::string_view name;  // as in MLIR's text
};
constexpr std::array kElements = {
    Element{0, "i1"},          Element{2, "bf16"},        Element{3, "f16"},
    Element{4, "f32"},         Element{5, "f64"},         Element{6, "f8E4M3FN"},
    Element{7, "f8E5M2"},      Element{9, "index"},       Element{10, "i4"},
    Element{11, "i8"},         Element{12, "i16"},        Element{13, "i32"},
    Element{14, "i64"},        Element{15, "ui4"},        Element{16, "ui8"},
    Element{17, "ui16"},       Element{18, "ui32"},       Element{19, "ui64"},
    Element{27, "f8E4M3FNUZ"}, Element{28, "f8E5M2FNUZ"}, Element{29, "f8E4M3B11FNUZ"},
    Element{31, "i2"},         Element{32, "ui2"},        Element{34, "tf32"},
    Element{35, "f8E4M3"},     Element{36, "f8E3M4"},     Element{37, "f4E2M1FN"},
    Element{38, "f6E2M3FN"},   Element{39, "f6E3M2FN"},   Element{40, "f8E8M0FNU"},
};

double scale(ByteReader& bytes) { return tensor::float_from_bits(Type::f64, bytes.number(64)); }

// The storage type with the signedness given by the flags.
Type storage_type(const MlirType& type, bool is_signed, const ByteReader& bytes) {
  if (type.kind == MlirType::Kind::scalar && tensor::is_integer(type.element)) {
    const int bits = tensor::type_bits(type.element);
    const Type* found = find_mlir_element(fmt::format("{}i{}", is_signed ? "" : "u", bits));
    if (found != nullptr && bits <= 32) return *found;
  }
  bytes.fail("quantised storage type {} is not supported", to_string(type));
}

MlirType quantized(BytecodeEntry& in, bool by_axis) {
  constexpr uint64_t kSigned = 1;
  ByteReader& bytes = in.bytes;
  auto quantization = std::make_shared<Quantization>();
  const bool is_signed = (bytes.varint() & kSigned) != 0;
  MlirType type = scalar_type(storage_type(in.type(), is_signed, bytes));
  const MlirType expressed = in.type();
  if (expressed.kind != MlirType::Kind::scalar || !tensor::is_float(expressed.element))
    bytes.fail("quantised type of {}, wanted a floating-point type", to_string(expressed));
  quantization->expressed = expressed.element;
  if (by_axis) {
    quantization->axis = static_cast<int64_t>(bytes.varint() & INT32_MAX);
    quantization->minimum = bytes.signed_varint();
    quantization->maximum = bytes.signed_varint();
    for (size_t n = bytes.count("scales"); n > 0; --n) quantization->scales.push_back(scale(bytes));
    for (size_t n = bytes.count("zero points"); n > 0; --n)
      quantization->zero_points.push_back(bytes.signed_varint());
    if (quantization->zero_points.size() != quantization->scales.size())
      bytes.fail("{} scales, {} zero points", quantization->scales.size(),
                 quantization->zero_points.size());
  } else {
    quantization->scales.push_back(scale(bytes));
    quantization->zero_points.push_back(bytes.signed_varint());
    quantization->minimum = bytes.signed_varint();
    quantization->maximum = bytes.signed_varint();
  }
  type.quantization = std::move(quantization);
  return type;
}

// The encoding of a tensor: bounds of its dimensions, or other content, which is ignored.
MlirType tensor(BytecodeEntry& in, bool has_encoding) {
  MlirAttr encoding;
  if (has_encoding) encoding = in.attribute();
  std::vector<int64_t> dims = in.signed_varints(kMostDims);
  MlirType type = tensor_of(std::move(dims), in.type(), in.bytes);
  const MlirAttr* bounds = encoding.field("bounds");
  if (bounds == nullptr || encoding.text != "type_extensions") return type;
  for (const MlirAttr& bound : bounds->elements)
    type.bounds.push_back(bound.integer < 0 ? MlirType::kDynamic : bound.integer);
  if (!type.bounds.empty() && type.bounds.size() != type.dims.size())
    in.bytes.fail("{} bounds of {} dimensions", type.bounds.size(), type.dims.size());
  return type;
}

}  // namespace

MlirType vhlo_type(BytecodeEntry& in) {
  const uint64_t code = in.bytes.varint();
  for (const Element& element : kElements)
    if (element.code == code) return scalar_type(*find_mlir_element(element.name));
  MlirType type;
  switch (code) {
    case kComplex:
      type = in.type();
      if (type.kind != MlirType::Kind::scalar ||
          (type.element != Type::f32 && type.element != Type::f64))
        in.bytes.fail("complex: got parts {}, wanted f32 or f64", to_string(type));
      return scalar_type(type.element == Type::f32 ? Type::c64 : Type::c128);
    case kFunction:
      type.kind = MlirType::Kind::function;
      type.elements = in.types();
      type.results = in.types();
      return type;
    case kTensor:
    case kTensorWith:
      return tensor(in, code == kTensorWith);
    case kToken:
      return type_of(MlirType::Kind::token);
    case kTuple:
    case kFuture:
      type.kind = code == kTuple ? MlirType::Kind::tuple : MlirType::Kind::future;
      type.elements = in.types();
      return type;
    case kQuantized:
    case kQuantizedAxis:
      return quantized(in, code == kQuantizedAxis);
    case kUnranked:
      return type_of(MlirType::Kind::other, "tensor<*x" + to_string(in.type()) + ">");
    case kBuffer: {
      std::string text = "memref<";
      for (const int64_t dim : in.signed_varints(kMostDims)) text += fmt::format("{}x", dim);
      return type_of(MlirType::Kind::other, text + to_string(in.type()) + ">");
    }
    case kWitness:
      return type_of(MlirType::Kind::other, "witness");
    case kNone:
      return type;
    default:
      in.bytes.fail("type {} of vhlo is not known", code);
  }
}

}  // namespace heddle::import
