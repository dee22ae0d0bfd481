// The operation tree of MLIR for StableHLO files: operations with operands, attributes and regions.
// Independent of dialects and file formats: the reader of text (mlir_parser.h) makes it, and
// stablehlo.h translates it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hlo/attrs.h"
#include "tensor/literal.h"

namespace heddle::import {

// A uniformly quantised element type: value = (stored - zero point) * scale.
struct Quantization {
  tensor::Type expressed = tensor::Type::f32;
  int64_t minimum = 0, maximum = 0;  // of stored values
  int64_t axis = -1;                 // the dimension of the scales; -1: one scale for all
  std::vector<double> scales;
  std::vector<int64_t> zero_points;
  std::string blocks;  // sub-channel block sizes as written; empty: none
  bool operator==(const Quantization&) const = default;
};

struct MlirType {
  enum class Kind : uint8_t { none, tensor, scalar, tuple, token, function, future, other };
  static constexpr int64_t kDynamic = -1;

  Kind kind = Kind::none;
  tensor::Type element = tensor::Type::f32;  // tensor, scalar; the storage type if quantised
  std::vector<int64_t> dims;                 // tensor; kDynamic: `?`
  std::vector<int64_t> bounds;               // one per dimension, kDynamic: none; empty: no bounds
  std::shared_ptr<const Quantization> quantization;
  std::vector<MlirType> elements, results;  // tuple, future; inputs and results of a function
  std::string text;                         // other: as written

  bool is_tensor() const { return kind == Kind::tensor; }
  bool is_static() const;  // recursively
};
std::string to_string(const MlirType& type);

struct MlirAttr {
  // dialect: `#name<...>`, with its fields (`a = 1`) and words (elements) if its body has that
  // form. other: kept as text.
  enum class Kind : uint8_t {
    unit,
    boolean,
    integer,
    floating,
    string,
    array,
    dictionary,
    dense,
    type,
    symbol,
    dialect,
    other
  };
  Kind kind = Kind::unit;
  int64_t integer = 0;  // boolean, too
  double floating = 0;
  std::string text;  // string; name of a symbol or a dialect's attribute
  std::vector<MlirAttr> elements;
  std::vector<std::pair<std::string, MlirAttr>> fields;
  MlirType type;  // of a number or a dense value; the type itself
  // dense: all elements in order, or a single one (rank 0) if they are all equal.
  std::shared_ptr<const tensor::Literal> literal;

  MlirAttr();  // defined in mlir.cc: clang needs it while the class is incomplete

  const MlirAttr* field(std::string_view name) const;  // or null
  bool is(Kind wanted) const { return kind == wanted; }
};

inline MlirAttr::MlirAttr() = default;

// A value of each kind with only the given part set.
MlirType type_of(MlirType::Kind kind, std::string text = {});
MlirType scalar_type(tensor::Type element);
MlirAttr attr_of(MlirAttr::Kind kind, std::string text = {});
MlirAttr integer_attr(int64_t value);

// Number of a value in MlirModule::values.
using MlirValue = int32_t;
struct MlirRegion;

struct MlirOp {
  std::string name;  // with its dialect: "stablehlo.add"
  std::vector<MlirValue> operands, results;
  std::vector<std::pair<std::string, MlirAttr>> attrs;  // inherent and discardable ones
  std::vector<MlirRegion> regions;
  std::string location;  // the name in `loc("name"...)`, or "#loc1"; may be empty
  // Position in a text. In bytecode the line is 0, and the column is the byte offset in the file.
  int32_t line = 0, column = 0;

  const MlirAttr* attr(std::string_view name) const;  // or null
};

struct MlirBlock {
  std::vector<MlirValue> arguments;
  std::vector<MlirOp> ops;
};

struct MlirRegion {
  std::vector<MlirBlock> blocks;
};

struct MlirModule {
  std::string name;
  std::vector<std::pair<std::string, MlirAttr>> attrs;
  MlirBlock body;
  std::vector<MlirType> values;  // the type of each value
  // Named locations: maps "#loc1" to its name.
  std::vector<std::pair<std::string, std::string>> locations;
};

// "line:column", or "byte N".
std::string place_of(const MlirOp& op);
// Replaces a module that holds a single builtin.module by that inner module.
MlirModule unwrap_module(MlirModule module);
// Integers of `array<i64: 1, 2>`, `[1, 2]`, `dense<[1, 2]>` or one integer; a splat is expanded to
// its type's size. False: another form, or more than `most` elements.
bool integers_of(const MlirAttr& attr, hlo::Ints* values, int64_t most = 1 << 16);
// A dense value, expanded. Errors (user): too large for the memory.
Result<tensor::Literal> literal_of(const MlirAttr& attr);

}  // namespace heddle::import
