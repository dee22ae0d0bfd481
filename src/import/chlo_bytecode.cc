// Bytecode of the dialects that a portable artifact may contain besides vhlo if its writer allows
// it: chlo, whose encodings have no compatibility guarantee, and sdy, which is ignored here.
#include "import/vhlo.h"

namespace heddle::import {
namespace {

// Comparisons have the numbers 0 and 1 here, and vhlo's values.
MlirAttr chlo_attribute(BytecodeEntry& in) {
  constexpr uint64_t kFirst = 3;
  const uint64_t code = in.bytes.varint();
  if (code > 1) in.bytes.fail("attribute {} of chlo is not known", code);
  return vhlo_attribute(in, code + kFirst);
}

MlirType chlo_type(BytecodeEntry& in) { in.bytes.fail("a type of chlo"); }

std::optional<std::string> chlo_properties(std::string_view op) {
  if (op == "top_k") return "is_stable? k";
  if (op == "constant" || op == "constant_like") return "value";
  if (op == "broadcast_compare") return "broadcast_dimensions? compare_type? comparison_direction";
  if (op.starts_with("broadcast_")) return "broadcast_dimensions?";
  return std::nullopt;
}

MlirAttr sharding_attribute(BytecodeEntry& in) {
  in.bytes.take(in.bytes.left());
  MlirAttr attr;
  attr.kind = MlirAttr::Kind::other;
  attr.text = "sdy";
  return attr;
}

MlirType sharding_type(BytecodeEntry& in) { in.bytes.fail("a type of sdy"); }

}  // namespace

const BytecodeDialect& chlo_bytecode() {
  static constexpr BytecodeDialect kDialect = {"chlo", chlo_attribute, chlo_type, chlo_properties};
  return kDialect;
}

const BytecodeDialect& sdy_bytecode() {
  static constexpr BytecodeDialect kDialect = {"sdy", sharding_attribute, sharding_type, nullptr};
  return kDialect;
}

}  // namespace heddle::import
