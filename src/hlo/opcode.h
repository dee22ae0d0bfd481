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

// Cost of computing an element, in ascending order.
enum class CostClass : uint8_t {
  none,      // has no elements of its own: structure, control flow, contractions, effects
  move,      // elements are moved, not computed
  cheap,     // one or two instructions
  divide,    // one instruction of many cycles: quotients, roots
  function,  // tens of instructions in line
  call,      // a hundred instructions or more, in a separate function
};

// How the dimensions of a result relate to those of the operands; index_map.h has the details.
enum class Mapping : uint8_t {
  none,       // not at all: structure, control flow, effects
  same,       // dimension i of the result is dimension i of each non-scalar operand
  broadcast,  // dimensions of the operand are some of the result's
  permute,    // the same dimensions in another order
  regroup,    // dimensions are split and merged: reshapes
  affine,     // offset, stride or reversed along each dimension: slice, pad, reverse
  join,       // operands side by side along one dimension
  reduce,     // some dimensions of the operand are reduced away
  window,     // windows over dimensions
  contract,   // batch, free and contracted dimensions of two operands
  runtime,    // positions are known at run time: gather, dynamic slices
  generate,   // no operand with dimensions: constant, iota
  whole,      // unknown: an element may need all of every operand
};

// What mixed precision (src/precision) may do with the operator. It is always computed in f32; the
// question is whether its result may be stored in 16 bits.
enum class Narrowing : uint8_t {
  none,     // not numeric, or semantics unknown: control flow, calls, integers
  product,  // operands in 16 bits, sums in f32
  exact,    // loses nothing: elements are moved or chosen, or fit 16 bits if the operands do
  plain,    // rounded once, and no worse than its operands were
  sums,     // sums many elements, in f32; an error in the result would affect whole rows
  wide,     // range or meaning of the result is far from the operand's: never stored in 16 bits
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
// Takes many cycles per element: storing it beats recomputing it.
inline bool is_costly(Opcode opcode) { return opcode_info(opcode).cost >= CostClass::divide; }

}  // namespace heddle::hlo
