#include "api/output_products.h"

namespace heddle::api {
namespace {

using hlo::Instr;
using hlo::Opcode;

using Sum = std::vector<ProductOfExtents>;

constexpr size_t kMostTerms = 64;
constexpr int kMostDepth = 64;

Sum times(const Sum& a, const Sum& b) {
  Sum result;
  for (const ProductOfExtents& x : a)
    for (const ProductOfExtents& y : b) {
      ProductOfExtents both{x.factor * y.factor, x.of};
      both.of.insert(both.of.end(), y.of.begin(), y.of.end());
      result.push_back(std::move(both));
    }
  return result;
}

class Products {
 public:
  Products(const hlo::DimClasses& classes, const hlo::SymbolTable& table)
      : classes_(classes), table_(table) {}

  // What is there of a dimension.
  std::optional<Sum> along(const Instr* x, int64_t d, int depth) const {
    const int64_t extent = x->shape().dim(d);
    const int of = classes_.of(x, d), s = classes_.symbol(of);
    // Rows are counted, whatever the class is of which they are a multiple.
    for (const Instr* rows : x->parent()->instrs()) {
      if (!hlo::is_first_rows(*rows) || hlo::counted_like(*rows) || classes_.of(rows, 0) != of)
        continue;
      const int64_t bound = rows->shape().dim(0);
      if (bound < 1 || extent % bound != 0) continue;
      const std::optional<Sum> count = number(rows->operand(1), depth + 1);
      return count ? std::optional(times({{extent / bound, {}}}, *count)) : std::nullopt;
    }
    if (s < 0) return Sum{{extent, {}}};
    const auto symbol = static_cast<size_t>(s);
    const int64_t bound = table_.symbols[symbol].bound;
    if (bound < 1 || extent % bound != 0) return std::nullopt;
    return Sum{{extent / bound, {tensor::Extent::of_symbol(s)}}};
  }

 private:
  std::optional<Sum> number(const Instr* n, int depth) const {
    if (depth > kMostDepth || n->shape().elems() != 1) return std::nullopt;
    if (n->is(Opcode::constant) && tensor::is_integer(n->shape().type()))
      return Sum{{n->literal().get_s64(0), {}}};
    if (n->is(Opcode::convert) || n->is(Opcode::reshape)) return number(n->operand(0), depth + 1);
    if (n->is(Opcode::get_dimension_size))
      return along(n->operand(0), n->attrs_as<hlo::DimensionAttrs>().dimension, depth + 1);
    if (n->is(Opcode::divide)) return quotient(*n, depth);
    if (!n->is(Opcode::add) && !n->is(Opcode::multiply)) return std::nullopt;
    // One after the other: what is added to itself over and over ends at so many terms.
    const std::optional<Sum> a = number(n->operand(0), depth + 1);
    if (!a) return std::nullopt;
    const std::optional<Sum> b = number(n->operand(1), depth + 1);
    if (!b || a->size() * b->size() > kMostTerms) return std::nullopt;
    if (n->is(Opcode::multiply)) return times(*a, *b);
    Sum sum = *a;
    sum.insert(sum.end(), b->begin(), b->end());
    return sum;
  }

  std::optional<Sum> quotient(const Instr& n, int depth) const {
    const std::optional<Sum> a = number(n.operand(0), depth + 1);
    if (!a) return std::nullopt;
    const std::optional<Sum> b = number(n.operand(1), depth + 1);
    const bool is_fixed = b && b->size() == 1 && (*b)[0].of.empty() && (*b)[0].factor > 0;
    if (a->size() != 1 || (*a)[0].of.size() != 1 || !is_fixed) return std::nullopt;
    const auto part = (*a)[0].of[0].times((*a)[0].factor).quotient((*b)[0].factor);
    return part ? std::optional(Sum{{1, {*part}}}) : std::nullopt;
  }

  const hlo::DimClasses& classes_;
  const hlo::SymbolTable& table_;
};

}  // namespace

int64_t OutputProducts::at(const std::vector<int64_t>& extents) const {
  int64_t result = 0;
  for (const ProductOfExtents& product : sum) {
    int64_t one = product.factor;
    for (const tensor::Extent& extent : product.of) one *= extent.at(extents);
    result += one;
  }
  return result;
}

std::optional<std::vector<ProductOfExtents>> products_along(const Instr* value, int64_t dimension,
                                                            const hlo::DimClasses& classes,
                                                            const hlo::SymbolTable& table) {
  return Products(classes, table).along(value, dimension, 0);
}

}  // namespace heddle::api
