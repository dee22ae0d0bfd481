#include "opt/equal_counts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hlo/symbol.h"
#include "opt/match.h"

namespace heddle::opt {
namespace {

constexpr int64_t kFew = 16;  // elements: extents of one array

// What a number may be computed by: small, without calls, and the same each time.
bool is_arithmetic(const Instr* x) {
  return x->shape().is_array() && x->shape().elems() <= kFew && x->called().empty() &&
         hlo::has_trait(x->opcode(), hlo::Trait::pure);
}

bool are_alike(const Instr* a, const Instr* b) {
  if (a->shape() != b->shape()) return false;
  return a->is(Opcode::constant) ? a->literal() == b->literal() : a->attrs() == b->attrs();
}

std::optional<int64_t> known_number(const Instr* x) {
  const Literal* literal = constant_of(x);
  if (literal == nullptr || literal->elems() != 1 || !is_integer(x)) return std::nullopt;
  return literal->get_s64(0);
}

// The operand that a minimum is: no more than a constant that it is limited to already, as a count
// of rows is that was told twice how many there may be. Null: it is none.
Instr* limited_before(const Instr* x) {
  if (!x->is(Opcode::minimum)) return nullptr;
  Instr* of = x->operand(0);
  const std::optional<int64_t> limit = known_number(x->operand(1));
  if (!limit || !of->is(Opcode::minimum)) return nullptr;
  const std::optional<int64_t> before = known_number(of->operand(1));
  return before && *before <= *limit ? of : nullptr;
}

}  // namespace

void share_equal_counts(hlo::Computation* computation, const hlo::DimClasses* classes) {
  std::map<std::pair<int, int64_t>, Instr*> sizes;  // by class and extent
  std::map<std::pair<Opcode, std::vector<const Instr*>>, std::vector<Instr*>> all;
  std::unordered_map<const Instr*, Instr*> first;  // of those that are equal
  const auto first_of = [&](Instr* x) {
    const auto found = first.find(x);
    return found == first.end() ? x : found->second;
  };
  for (Instr* x : computation->instrs()) {
    if (hlo::is_first_rows(*x))
      for (size_t k = 1; k < x->operands().size(); ++k)
        computation->replace_operand(x, k, first_of(x->operand(k)));
    if (!is_arithmetic(x) || x->is(Opcode::parameter)) continue;
    if (classes && x->is(Opcode::get_dimension_size)) {
      const Instr* of = x->operand(0);
      const int64_t d = x->attrs_as<hlo::DimensionAttrs>().dimension;
      Instr* size =
          sizes.emplace(std::pair(classes->of(of, d), of->shape().dim(d)), x).first->second;
      if (size != x) first.emplace(x, size);
      continue;
    }
    if (Instr* same = limited_before(x)) {
      first.emplace(x, first_of(same));
      continue;
    }
    std::vector<const Instr*> operands;
    for (Instr* operand : x->operands()) operands.push_back(first_of(operand));
    std::vector<Instr*>& alike = all[{x->opcode(), std::move(operands)}];
    const auto found = std::find_if(alike.begin(), alike.end(),
                                    [&](const Instr* other) { return are_alike(other, x); });
    if (found == alike.end())
      alike.push_back(x);
    else
      first.emplace(x, *found);
  }
}

}  // namespace heddle::opt
