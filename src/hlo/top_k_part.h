// One result of a top-k. fuse replaces the tuple elements of a `topk` by these, so that each is an
// ordinary array and can share a kernel with its readers. A custom call of one operand whose target
// selects largest or smallest and values or indices; k is the last extent of its shape. Values are
// ordered as by `topk`: total order, and for equal values by index.
#pragma once

#include <optional>
#include <string_view>

#include "hlo/module.h"

namespace heddle::hlo {

struct TopKPart {
  int64_t k = 0;
  bool largest = true;  // else the k smallest
  bool places = false;  // s32 indices along the last dimension, else the values
};

inline std::string_view top_k_target(const TopKPart& part) {
  if (part.largest) return part.places ? "heddle.largest.places" : "heddle.largest.values";
  return part.places ? "heddle.smallest.places" : "heddle.smallest.values";
}

// None: another instruction, or a call that does not have this form.
inline std::optional<TopKPart> top_k_part(const Instr& instr) {
  if (!instr.is(Opcode::custom_call) || instr.operands().size() != 1 || !instr.called().empty())
    return std::nullopt;
  const tensor::Shape &from = instr.operand(0)->shape(), &to = instr.shape();
  if (!from.is_array() || !to.is_array() || from.rank() < 1 || from.rank() != to.rank() ||
      !from.is_static() || !to.is_static())
    return std::nullopt;
  const std::string& target = instr.attrs_as<CustomCallAttrs>().custom_call_target;
  for (const bool largest : {true, false}) {
    for (const bool places : {false, true}) {
      const TopKPart part{to.dim(-1), largest, places};
      if (target != top_k_target(part)) continue;
      for (int64_t d = 0; d + 1 < from.rank(); ++d)
        if (from.dim(d) != to.dim(d)) return std::nullopt;
      const bool typed = to.type() == (places ? tensor::Type::s32 : from.type());
      return typed && part.k >= 1 && part.k <= from.dim(-1) ? std::optional(part) : std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace heddle::hlo
