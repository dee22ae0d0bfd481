// Opcode and its table row (ops.def).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace heddle::hlo {

enum class Opcode : uint8_t {
#define HEDDLE_OP(name, text, least, most, attrs, traits, stage) name,
#include "hlo/ops.def"
};

#define HEDDLE_OP(...) +1
inline constexpr int kOpcodeCount = 0
#include "hlo/ops.def"
    ;

// Trait bits of a row.
enum Trait : uint8_t {
  pure = 1,         // no effect: may be removed, duplicated, merged with its equal
  elementwise = 2,  // output element i depends on element i of each operand only
  calls = 4,        // has called computations
  effect = 8,       // has an effect, or its result differs from call to call
  collective = 16,  // talks to other replicas
};

// What an operator becomes in a stage graph (stages §1).
enum class StageKind : uint8_t { map, reduce, scan, dot, conv, copy, scatter, opaque, loop, none };

struct OpcodeInfo {
  std::string_view text;
  int least_operands, most_operands;  // most: -1 is any number
  uint8_t traits;
  StageKind stage;
  int attrs_index;  // index of the attribute struct in Attrs (attrs.h)
};

const OpcodeInfo& opcode_info(Opcode opcode);
inline std::string_view opcode_text(Opcode opcode) { return opcode_info(opcode).text; }
std::optional<Opcode> opcode_from_text(std::string_view text);
inline bool has_trait(Opcode opcode, Trait trait) { return opcode_info(opcode).traits & trait; }

}  // namespace heddle::hlo
