// VHLO: attributes by their numbers in bytecode (stablehlo/dialect/VhloBytecode.cpp).
#include <array>
#include <span>

#include "import/vhlo.h"

namespace heddle::import {
namespace {

using Kind = MlirAttr::Kind;

enum Code : uint8_t {
  kArray = 1,
  kBoolean = 2,
  kApiVersion = 5,
  kDictionary = 6,
  kFloat = 8,
  kInteger = 9,
  kAlias = 10,
  kString = 14,
  kTensor = 15,
  kType = 17,
  kExtensions = 18,
  kAccuracy = 20,
  kSubAxis = 21,
  kAxis = 22,
  kMeshAxes = 23,
  kMeshAxis = 24,
  kMesh = 25
};

// #stablehlo<name WORD>
struct Enumeration {
  uint8_t code;
  std::string_view name;
  std::array<std::string_view, 6> words;  // by value
};
constexpr std::array kEnumerations = {
    Enumeration{3, "comparison_direction", {"EQ", "NE", "GE", "GT", "LE", "LT"}},
    Enumeration{4, "comparison_type", {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"}},
    Enumeration{7, "fft_type", {"FFT", "IFFT", "RFFT", "IRFFT"}},
    Enumeration{11, "precision", {"DEFAULT", "HIGH", "HIGHEST"}},
    Enumeration{12, "rng_algorithm", {"DEFAULT", "THREE_FRY", "PHILOX"}},
    Enumeration{13, "rng_distribution", {"", "UNIFORM", "NORMAL"}},
    Enumeration{16, "transpose", {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}},
    Enumeration{19, "result_accuracy_mode", {"DEFAULT", "HIGHEST", "TOLERANCE"}},
};

MlirAttr integers(BytecodeEntry& in) {
  MlirAttr attr = attr_of(Kind::array);
  for (const int64_t value : in.signed_varints(1 << 16))
    attr.elements.push_back(integer_attr(value));
  return attr;
}

MlirAttr real(ByteReader& bytes) {
  MlirAttr attr = attr_of(Kind::floating);
  attr.type.kind = MlirType::Kind::scalar;
  attr.type.element = tensor::Type::f64;
  attr.floating = tensor::float_from_bits(tensor::Type::f64, bytes.number(64));
  return attr;
}

// A word of an enumeration, by its value.
std::string_view word_of(ByteReader& bytes, const Enumeration& row) {
  const uint64_t value = bytes.varint();
  if (value >= row.words.size() || row.words[value].empty())
    bytes.fail("{} {} of vhlo is not known", row.name, value);
  return row.words[value];
}

// Attributes with fixed fields, as #stablehlo.name<field = value, ...>.
MlirAttr with_fields(BytecodeEntry& in, uint64_t code) {
  MlirAttr attr = attr_of(Kind::dialect);
  const auto add = [&](std::string_view name, MlirAttr value) {
    attr.fields.emplace_back(name, std::move(value));
  };
  const auto number = [&] { return integer_attr(in.bytes.signed_varint()); };
  switch (code) {
    case kAlias:
      attr.text = "output_operand_alias";
      add("output_tuple_indices", integers(in));
      add("operand_index", number());
      add("operand_tuple_indices", integers(in));
      break;
    case kExtensions:
      attr.text = "type_extensions";
      add("bounds", integers(in));
      break;
    case kAccuracy:
      attr.text = "result_accuracy";
      add("atol", real(in.bytes));
      add("rtol", real(in.bytes));
      add("ulps", number());
      add("mode", in.attribute());
      break;
    case kSubAxis:
      attr.text = "sub_axis_info";
      add("pre_size", number());
      add("size", number());
      break;
    case kAxis:
      attr.text = "axis_ref";
      add("name", in.attribute());
      if (in.bytes.varint() != 0) add("sub_axis_info", in.attribute());
      break;
    case kMeshAxes: {
      attr.text = "replica_group_mesh_axes";
      MlirAttr mesh = in.attribute();
      if (mesh.is(Kind::string)) mesh.kind = Kind::symbol;
      add("mesh", std::move(mesh));
      add("axes", in.attribute());
      break;
    }
    case kMeshAxis:
      attr.text = "mesh_axis";
      add("name", in.attribute());
      add("size", number());
      break;
    case kMesh:
      attr.text = "mesh";
      add("axes", in.attribute());
      if (std::optional<MlirAttr> ids = in.optional_attribute()) add("device_ids", std::move(*ids));
      break;
    default:
      in.bytes.fail("attribute {} of vhlo is not known", code);
  }
  return attr;
}

}  // namespace

MlirAttr vhlo_attribute(BytecodeEntry& in) { return vhlo_attribute(in, in.bytes.varint()); }

MlirAttr vhlo_attribute(BytecodeEntry& in, uint64_t code) {
  for (const Enumeration& row : kEnumerations) {
    if (row.code != code) continue;
    MlirAttr attr = attr_of(Kind::dialect, std::string(row.name));
    attr.elements.push_back(attr_of(Kind::string, std::string(word_of(in.bytes, row))));
    return attr;
  }
  MlirAttr attr;
  switch (code) {
    case kArray:
      attr.kind = Kind::array;
      attr.elements = in.attributes();
      return attr;
    case kBoolean:
      attr.kind = Kind::boolean;
      attr.integer = in.bytes.varint() != 0 ? 1 : 0;
      return attr;
    case kApiVersion:  // text has its number
      attr = integer_attr(static_cast<int64_t>(in.bytes.varint()));
      attr.type.kind = MlirType::Kind::scalar;
      attr.type.element = tensor::Type::s32;
      return attr;
    case kDictionary:
      return dictionary_attribute(in);
    case kFloat:
      return floating_of(in.type(), in.bytes);
    case kInteger:
      return integer_of(in.type(), in.bytes);
    case kString:
      return attr_of(Kind::string, in.string());
    case kTensor: {
      const MlirType type = in.type();
      return dense_of(type, in.bytes.blob(), in.bytes);
    }
    case kType:
      attr.kind = Kind::type;
      attr.type = in.type();
      return attr;
    default:
      return with_fields(in, code);
  }
}

}  // namespace heddle::import
