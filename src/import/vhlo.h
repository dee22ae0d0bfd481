// VHLO, the dialect of StableHLO's portable bytecode, to the operations of stablehlo and func as in
// their text: every version of an operation (`vhlo.gather_v1`, `_v2`) becomes the current one
// (`stablehlo.gather`), attributes get the form of the text, and attributes that VHLO always writes
// but that have their default are left out.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "import/mlir_bytecode.h"

namespace heddle::import {

constexpr std::string_view kNewestVhlo = "1.20.0";

const BytecodeDialect& vhlo_bytecode();
// For dialects in mixed files: chlo_bytecode.cc.
const BytecodeDialect& chlo_bytecode();
const BytecodeDialect& sdy_bytecode();
MlirAttr vhlo_attribute(BytecodeEntry& entry);                 // vhlo_attrs.cc
MlirAttr vhlo_attribute(BytecodeEntry& entry, uint64_t code);  // after its number was read
MlirType vhlo_type(BytecodeEntry& entry);                      // vhlo_types.cc

// `op` is an operation of vhlo; nested operations stay unchanged. `in_function`: it is directly in
// a function's block. Throws Failure.
void upgrade_vhlo(MlirOp& op, bool in_function);
// Parses a portable artifact. Throws Failure: "SECTION, byte N: …"; if the file's version is newer
// than supported, with both versions.
MlirModule parse_vhlo(std::string_view bytes);

}  // namespace heddle::import
