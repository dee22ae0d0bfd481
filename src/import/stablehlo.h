// StableHLO, as text or as portable bytecode (vhlo.h), to hlo::Module. The operations of stablehlo,
// chlo and check are translated one by one (stablehlo_ops.h); function calls are inlined.
//
// Shapes are static after import. A bounded dimension (`#stablehlo.bounds`) runs at its bound; an
// unbounded one of a parameter of @main is bound by Options ("arg0[1]", or --shape), else 1. If a
// shape depends on a parameter's value, that parameter becomes a constant: Options::hints or
// values, else 1. Notes report all of this.
//
// Quantised values are represented by their stored integers; an operation on them dequantises its
// operands, computes on real numbers and quantises the result.
//
// Assertions of the check dialect become outputs after those of @main: Imported::assertions.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "import/mlir.h"
#include "import/onnx.h"

namespace heddle::import {

// One part of a text with several (`// -----` lines), or a whole file of bytecode.
struct StablehloPart {
  std::string_view text;
  int line = 1;  // of its first line in the file
};
// All parts with more than comments.
std::vector<StablehloPart> split_stablehlo(std::string_view text);

// Parses one part. Errors (user): "line:column: …"; for bytecode "section of …, byte N: …".
Result<MlirModule> parse_stablehlo(const StablehloPart& part);
// Imports @main, or the only function, or the first one without callers.
Result<Imported> import_stablehlo(const MlirModule& module, const Options& options);
// Imports the part that Options::module_name names (optional if there is only one). A part's name
// is its module's, else its first function's.
Result<Imported> import_stablehlo_bytes(std::string_view text, const Options& options);
std::string name_of_module(const MlirModule& module);
// The error as FILE:line:column: …, or FILE: … if it has no position.
tl::unexpected<Error> error_in_file(const std::string& path, Error error);

}  // namespace heddle::import
