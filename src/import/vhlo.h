// VHLO, the dialect of StableHLO's portable bytecode, to the operations of stablehlo and func as
// their text has them: every version of an operation (`vhlo.gather_v1`, `_v2`) is the one of today
// (`stablehlo.gather`), attributes have the form of the text, and those that VHLO spells out though
// they say nothing are left out.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "import/mlir_bytecode.h"

namespace heddle::import {

constexpr std::string_view kNewestVhlo = "1.20.0";

const BytecodeDialect& vhlo_bytecode();
// What stays in files that mix dialects: chlo.cc.
const BytecodeDialect& chlo_bytecode();
const BytecodeDialect& sdy_bytecode();
MlirAttr vhlo_attribute(BytecodeEntry& entry);                 // vhlo_attrs.cc
MlirAttr vhlo_attribute(BytecodeEntry& entry, uint64_t code);  // its number is read
MlirType vhlo_type(BytecodeEntry& entry);                      // vhlo_types.cc

// `op` is an operation of vhlo; what is inside it is left as it is. `in_function`: it stands in a
// function's own block. Throws Failure.
void upgrade_vhlo(MlirOp& op, bool in_function);
// A portable artifact. Throws Failure: "SECTION, byte N: …"; where the file is of a version that is
// newer than what is read, with both versions.
MlirModule parse_vhlo(std::string_view bytes);

}  // namespace heddle::import
