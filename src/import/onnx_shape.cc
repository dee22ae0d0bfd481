// Operators that give the same elements another shape or order, and operators on shapes.
#include <algorithm>
#include <optional>

#include "hlo/combiner.h"
#include "import/onnx_emit.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

// Reshapes an input: a known value stays known, whatever its size.
Outputs reshaped_output(Op& op, size_t i, const Ints& extents) {
  const Value* value = op.value(i);
  const bool computed = value->instr != nullptr && !value->elsewhere.empty();
  if (const Literal* literal = op.known(i);
      literal && !computed && product(extents) == literal->elems())
    return {reshaped(*literal, op.check_extents(extents))};
  return {reshape(op, op.in(i), extents)};
}

Outputs shape(Op& op) {
  const int64_t rank = op.rank(0);
  const auto bound = [&](const char* name, int64_t otherwise) {
    int64_t at = op.int_attr(name, otherwise);
    if (at < 0) at += rank;
    return std::clamp<int64_t>(at, 0, rank);
  };
  const int64_t start = bound("start", 0), end = bound("end", rank);
  return {op.known_extents(0, start, std::max(start, end))};
}

Outputs size(Op& op) {
  Output extents = op.known_extents(0, 0, op.rank(0));
  const auto elems = [](const Literal& of) {
    int64_t all = 1;
    for (int64_t d = 0; d < of.elems(); ++d)  // of names of counts it may be anything else
      if (__builtin_mul_overflow(all, of.get_s64(d), &all)) all = -1;
    Literal count(Shape::scalar(Type::s64));
    count.set_s64(0, all);
    return count;
  };
  for (Literal& few : extents.elsewhere) few = elems(few);
  extents.literal = elems(*extents.literal);
  return {extents};
}

// 0 copies the input's dimension (unless allowzero), one -1 is inferred from the rest.
Ints reshape_extents(Op& op, Ints wanted, bool allow_zero) {
  const Ints from = op.shape(0).extents();
  const int64_t elems = op.shape(0).elems();
  int64_t rest = 1, inferred = -1;
  const auto wrong = [&](const char* why) {
    op.fail("shape [{}] {}; data has shape [{}]", fmt::join(wanted, ","), why,
            fmt::join(from, ","));
  };
  const Ints as_written = wanted;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == 0 && !allow_zero) {
      if (i >= from.size()) wrong("has a 0 (copy) where data has no dimension");
      wanted[i] = from[i];
    }
    if (wanted[i] < -1) wrong("has a negative dimension");
    if (wanted[i] == -1) {
      if (inferred >= 0) wrong("has two -1");
      inferred = static_cast<int64_t>(i);
    } else if (__builtin_mul_overflow(rest, wanted[i], &rest)) {
      wrong("is too large");
    }
  }
  if (inferred >= 0) {
    if (rest == 0) wrong("has both 0 and -1");
    if (elems % rest != 0) wrong("does not divide the number of elements");
    wanted[static_cast<size_t>(inferred)] = elems / rest;
  } else if (rest != elems) {
    wrong("has a different number of elements");
  }
  return op.check_extents(wanted);
}

Outputs reshape_op(Op& op) {
  const bool allow_zero = op.int_attr("allowzero", 0) != 0;
  return reshaped_output(op, 0, reshape_extents(op, op.known_ints(1, "shape"), allow_zero));
}

Outputs flatten(Op& op) {
  const int64_t rank = op.rank(0);
  int64_t axis = op.int_attr("axis", 1);
  if (axis < -rank || axis > rank) op.fail("axis {} is out of range for rank {}", axis, rank);
  if (axis < 0) axis += rank;
  const Ints extents = op.shape(0).extents();
  return reshaped_output(op, 0, {product(extents, 0, axis), product(extents, axis)});
}

// Axes are an attribute before opset 13, an input from then on.
std::optional<Ints> axes_of(Op& op) {
  if (op.opset() >= 13) {
    if (!op.has(1)) return std::nullopt;
    return op.known_ints(1, "axes");
  }
  if (!op.has_attr("axes")) return std::nullopt;
  return op.ints_attr("axes");
}

Outputs squeeze(Op& op) {
  const Ints extents = op.shape(0).extents();
  const std::optional<Ints> given = axes_of(op);
  Ints axes;
  if (given) {
    axes = op.axes(*given, op.rank(0));
  } else {
    for (int64_t i = 0; i < op.rank(0); ++i) {
      if (op.shape(0).dim(i) == 1) axes.push_back(i);
    }
  }
  for (int64_t axis : axes) {
    if (op.shape(0).dim(axis) != 1)
      op.fail("dimension {} of [{}] is not 1", axis, fmt::join(extents, ","));
  }
  return reshaped_output(op, 0, without(extents, axes));
}

Outputs unsqueeze(Op& op) {
  const std::optional<Ints> given = axes_of(op);
  if (!given) op.fail("axes are missing");
  const int64_t rank = op.rank(0) + static_cast<int64_t>(given->size());
  if (rank > kMaxRank) op.fail("a value of rank {}, at most {} is supported", rank, kMaxRank);
  const Ints axes = op.axes(*given, rank);
  Ints extents = op.shape(0).extents();
  for (int64_t axis : axes) extents.insert(extents.begin() + axis, 1);
  return reshaped_output(op, 0, extents);
}

Outputs transpose(Op& op) {
  const int64_t rank = op.rank(0);
  Ints permutation = range(0, rank);
  std::reverse(permutation.begin(), permutation.end());
  permutation = op.ints_attr("perm", permutation);
  Ints sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != range(0, rank))
    op.fail("perm [{}] is not a permutation of {} dimensions", fmt::join(permutation, ","), rank);
  if (permutation == range(0, rank)) return {op.in(0)};
  return {op.b.transpose(op.in(0), permutation)};
}

Outputs concat(Op& op) {
  if (op.opset() >= 4 && !op.has_attr("axis")) op.fail("attribute 'axis' is missing");
  const int64_t axis = op.axis_attr(1, op.rank(0));
  std::vector<Instr*> parts;
  for (size_t i = 0; i < op.inputs(); ++i) {
    const Ints want = keeping(op.shape(0).extents(), {axis});
    if (op.rank(i) != op.rank(0) || keeping(op.shape(i).extents(), {axis}) != want ||
        op.type(i) != op.type(0))
      op.fail_shape("inputs 0 and {} are {} and {}; only dimension {} may differ", i,
                    to_string(op.shape(0)), to_string(op.shape(i)), axis);
    // Empty parts (a cache at its first step) contribute nothing.
    if (op.shape(i).dim(axis) != 0) parts.push_back(op.in(i));
  }
  if (parts.empty()) return {op.in(0)};
  if (parts.size() == 1) return {parts[0]};
  return {op.b.concatenate(parts, axis)};
}

using Positions = std::vector<Instr*>;  // by dimension

// The positions of the elements of a mask that hold, if the number is how many; null: it is
// something else, or nobody has asked where they are.
const Positions* positions_counted_by(Instr* number, const Decisions& decisions) {
  const auto moves = [](const Instr* x) {
    return x->is(Opcode::reshape) || x->is(Opcode::convert);
  };
  while (moves(number)) number = number->operand(0);
  if (!number->is(Opcode::reduce) || number->shape().elems() != 1 ||
      hlo::combiner_of(*number->called().at(0)) != Opcode::add)
    return nullptr;
  for (Instr* x = number->operand(0);; x = x->operand(0)) {
    const auto found = decisions.nonzero.find(x);
    if (found != decisions.nonzero.end() && x->shape().type() == Type::pred) return &found->second;
    if (!moves(x)) return nullptr;
  }
}

// A list of extents of which some are how many elements of masks hold, of which NonZero has found
// the positions: as many as it has. Nothing: it is something else.
std::optional<Value> extents_of_masks(Op& op, Instr* list) {
  const Decisions* decisions = op.limits().decisions;
  if (list == nullptr || decisions == nullptr || list->shape().rank() != 1 ||
      list->shape().type() != Type::s64)
    return std::nullopt;
  Value result;
  const int64_t count = list->shape().elems();
  result.literal = Literal(Shape::array(Type::s64, {count}));
  for (int64_t k = 0; k < count; ++k) {
    const auto [part, number] = part_of(list, k);
    if (part->is(Opcode::constant)) {
      result.literal->set_s64(k, part->literal().get_s64(number));
      for (Literal& other : result.elsewhere) other.set_s64(k, part->literal().get_s64(number));
      continue;
    }
    const Positions* positions = positions_counted_by(part, *decisions);
    if (positions == nullptr) return std::nullopt;
    Value rows;
    rows.instr = positions->at(0);
    Op of_rows(op, op.opset(), {&rows});
    const Output extent = of_rows.known_extents(0, 1, 2);
    result.literal->set_s64(k, extent.literal->get_s64(0));
    if (result.elsewhere.empty()) result.elsewhere.assign(extent.elsewhere.size(), *result.literal);
    for (size_t i = 0; i < result.elsewhere.size(); ++i)
      result.elsewhere[i].set_s64(k, extent.elsewhere.empty() ? extent.literal->get_s64(0)
                                                              : extent.elsewhere[i].get_s64(0));
    result.rows.insert(extent.rows.begin(), extent.rows.end());
  }
  return result;
}

Outputs expand(Op& op) {
  if (op.known(1) == nullptr)
    if (std::optional<Value> shape = extents_of_masks(op, op.value(1)->instr)) {
      Op known(op, op.opset(), {op.value(0), &*shape});
      Outputs outputs = expand(known);
      known.add_reads_to(op);
      return outputs;
    }
  const Ints wanted = op.check_extents(op.known_ints(1, "shape"));
  const Ints extents = common_extents(op, op.shape(0).extents(), wanted);
  return {op.as_many_as(broadcast_to(op, op.in(0), extents), 1)};
}

// [a, b] repeated r, s times: [a, b] -> [r, a, s, b] -> [r a, s b].
Outputs tile(Op& op) {
  const Ints repeats = op.known_ints(1, "repeats");
  const Ints from = op.shape(0).extents();
  if (repeats.size() != from.size()) op.fail("{} repeats for rank {}", repeats.size(), from.size());
  op.check_extents(repeats);
  Ints apart, dims, to;
  for (size_t i = 0; i < from.size(); ++i) {
    if (repeats[i] != 1) apart.push_back(repeats[i]);
    dims.push_back(static_cast<int64_t>(apart.size()));
    apart.push_back(from[i]);
    to.push_back(from[i] * repeats[i]);
  }
  op.check_extents(to);
  if (to == from) return {op.in(0)};
  return {reshape(op, op.b.broadcast(op.in(0), apart, dims), to)};
}

void check_blocks(Op& op, int64_t block, bool ok, const char* what) {
  if (op.rank(0) != 4 || block < 1 || !ok)
    op.fail("blocksize {} for {}: {}", block, to_string(op.shape(0)), what);
}

Outputs depth_to_space(Op& op) {
  const int64_t block = op.int_attr("blocksize", 0);
  const std::string mode = op.string_attr("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") op.fail("mode is {}, wanted DCR or CRD", quoted(mode));
  const Ints e = op.shape(0).extents();
  check_blocks(op, block,
               block > 0 && block <= 4096 && e.size() == 4 && e[1] % (block * block) == 0,
               "wanted [N,C,H,W] with C a multiple of its square");
  const int64_t depth = e[1] / (block * block);
  const bool dcr = mode == "DCR";
  Instr* x = reshape(op, op.in(0),
                     dcr ? Ints{e[0], block, block, depth, e[2], e[3]}
                         : Ints{e[0], depth, block, block, e[2], e[3]});
  x = op.b.transpose(x, dcr ? Ints{0, 3, 4, 1, 5, 2} : Ints{0, 1, 4, 2, 5, 3});
  return {reshape(op, x, {e[0], depth, e[2] * block, e[3] * block})};
}

Outputs space_to_depth(Op& op) {
  const int64_t block = op.int_attr("blocksize", 0);
  const std::string mode = op.string_attr("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") op.fail("mode is {}, wanted DCR or CRD", quoted(mode));
  const Ints e = op.shape(0).extents();
  check_blocks(
      op, block,
      block > 0 && block <= 4096 && e.size() == 4 && e[2] % block == 0 && e[3] % block == 0,
      "wanted [N,C,H,W] with H and W multiples of it");
  Instr* x = reshape(op, op.in(0), {e[0], e[1], e[2] / block, block, e[3] / block, block});
  x = op.b.transpose(x, mode == "DCR" ? Ints{0, 3, 5, 1, 2, 4} : Ints{0, 1, 3, 5, 2, 4});
  return {reshape(op, x, {e[0], e[1] * block * block, e[2] / block, e[3] / block})};
}

constexpr OpEntry kOps[] = {
    {"Concat", 1, -1, concat, true, Text::passes},
    {"DepthToSpace", 1, 1, depth_to_space, true, Text::passes},
    {"Expand", 2, 2, expand, true, Text::passes},
    {"Flatten", 1, 1, flatten, true, Text::passes},
    {"Reshape", 2, 2, reshape_op, true, Text::passes},
    {"Shape", 1, 1, shape, true, Text::passes},
    {"Size", 1, 1, size, true, Text::passes},
    {"SpaceToDepth", 1, 1, space_to_depth, true, Text::passes},
    {"Squeeze", 1, 2, squeeze, true, Text::passes},
    {"Tile", 2, 2, tile, true, Text::passes},
    {"Transpose", 1, 1, transpose, true, Text::passes},
    {"Unsqueeze", 1, 2, unsqueeze, true, Text::passes},
};

}  // namespace

std::span<const OpEntry> shape_ops() { return kOps; }

}  // namespace heddle::import
