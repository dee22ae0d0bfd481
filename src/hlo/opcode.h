// Opcode and its table row (ops.def).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace heddle::hlo {

enum class Opcode : uint8_t {
#define HEDDLE_OP(name, ...) name,
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

// What an operator becomes in a stage graph (stages.md §1).
enum class StageKind : uint8_t { map, reduce, scan, dot, conv, copy, scatter, opaque, loop, none };

// What it takes to compute an element, in ascending order.
enum class CostClass : uint8_t {
  none,      // has no elements of its own: structure, control flow, contractions, effects
  move,      // elements are moved, not computed
  cheap,     // one or two instructions
  divide,    // one instruction of many cycles: quotients, roots
  function,  // tens of instructions in line
  call,      // a hundred instructions and more, a function of its own
};

// How the dimensions of a result relate to those of the operands; index_map.h says it of each.
enum class Mapping : uint8_t {
  none,       // not at all: structure, control flow, effects
  same,       // dimension i of the result is dimension i of each operand that is no scalar
  broadcast,  // dimensions of the operand are some of the result's
  permute,    // the same dimensions in another order
  regroup,    // dimensions are split and merged: reshapes
  affine,     // offset, stride or reversed along each dimension: slice, pad, reverse
  join,       // operands side by side along one dimension
  reduce,     // some dimensions of the operand are gone
  window,     // windows over dimensions
  contract,   // batch, free and contracted dimensions of two operands
  runtime,    // positions are data: gather, dynamic slices
  generate,   // no operand with dimensions: constant, iota
  whole,      // an element may need all of every operand, for all that is known
};

// What becomes of it where values have fewer bits (mixed precision; src/precision). Whatever it is,
// it is computed in f32: the question is whether its result may be kept in 16 bits.
enum class Narrowing : uint8_t {
  none,     // says nothing of numbers, or nobody knows what it does: control flow, calls, integers
  product,  // operands in 16 bits, sums in f32
  exact,    // takes no harm: elements are moved or chosen, or are of such a type anyway
  plain,    // rounded once, and no worse than its operands were
  sums,     // sums many elements: in f32 inside, and what comes out decides over whole rows
  wide,     // the result's range or meaning is far from the operand's: never
};

struct OpcodeInfo {
  std::string_view text;
  int least_operands, most_operands;  // most: -1 is any number
  uint8_t traits;
  StageKind stage;
  std::string_view kernel_op;  // text of the operator in kernel/ops.def; empty: none
  CostClass cost;
  Mapping mapping;
  Narrowing narrowing;
  int attrs_index;  // index of the attribute struct in Attrs (attrs.h)
};

const OpcodeInfo& opcode_info(Opcode opcode);
inline std::string_view opcode_text(Opcode opcode) { return opcode_info(opcode).text; }
std::optional<Opcode> opcode_from_text(std::string_view text);
inline bool has_trait(Opcode opcode, Trait trait) { return opcode_info(opcode).traits & trait; }
// Many cycles an element: worth keeping rather than computing again.
inline bool is_costly(Opcode opcode) { return opcode_info(opcode).cost >= CostClass::divide; }

}  // namespace heddle::hlo
