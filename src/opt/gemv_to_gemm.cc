// gemv_to_gemm: merges products of few rows with one matrix into one product of all their rows.
// With few rows the time is that of loading the matrix from memory, which all of them then share.
// Exact: every element is the same sum.
//
// Not done where it does not pay: small matrices, which stay in the cache, and products that
// already have enough rows. Products that depend on one another are not merged (steps of a
// recurrence). Each rewrite leaves fewer dots.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

using hlo::Builder;

constexpr int64_t kLeastMatrixBytes = 256 << 10, kMostRows = 16, kMostRowsOfAll = 64;

// One product as rows times a shared matrix.
struct Product {
  Instr* dot;
  size_t side;   // of the matrix: operand 0 or 1
  int64_t rows;  // of the other operand
  Instr* matrix() const { return dot->operand(side); }
  Instr* other() const { return dot->operand(1 - side); }
};

const Ints& contracted(const Instr* dot, size_t side) {
  const auto& attrs = dot->attrs_as<hlo::DotAttrs>();
  return side == 0 ? attrs.lhs_contracting_dims : attrs.rhs_contracting_dims;
}

bool is_product(const Instr* dot, size_t side) {
  if (!dot->is(Opcode::dot) || dot->operands().size() != 2 || !are_static_arrays(dot)) return false;
  const auto& attrs = dot->attrs_as<hlo::DotAttrs>();
  const Shape &matrix = dot->operand(side)->shape(), &other = dot->operand(1 - side)->shape();
  return attrs.lhs_batch_dims.empty() && attrs.rest.empty() &&
         attrs.lhs_contracting_dims.size() == 1 && matrix.rank() == 2 && other.rank() <= 2 &&
         dot->operand(0) != dot->operand(1) && matrix.bytes() >= kLeastMatrixBytes &&
         dot->shape().elems() > 0;
}

std::vector<Product> products_of(const Computation& computation) {
  std::vector<Product> found;
  for (Instr* dot : computation.instrs()) {
    for (size_t side : {size_t{1}, size_t{0}}) {
      if (!is_product(dot, side)) continue;
      const Shape& other = dot->operand(1 - side)->shape();
      const int64_t rows = other.elems() / other.dim(contracted(dot, 1 - side)[0]);
      if (rows <= kMostRows) found.push_back({dot, side, rows});
    }
  }
  return found;
}

bool are_alike(const Product& a, const Product& b) {
  return a.matrix() == b.matrix() && a.side == b.side &&
         contracted(a.dot, a.side) == contracted(b.dot, b.side) &&
         a.dot->shape().type() == b.dot->shape().type() &&
         a.other()->shape().type() == b.other()->shape().type();
}

void add_readers(const Instr* from, std::unordered_set<const Instr*>* reached) {
  std::vector<const Instr*> stack{from};
  while (!stack.empty()) {
    const Instr* top = stack.back();
    stack.pop_back();
    if (!reached->insert(top).second) continue;
    for (const auto* list : {&top->users(), &top->control_successors()})
      stack.insert(stack.end(), list->begin(), list->end());
  }
}

// The first products that can be merged, in program order; at least two, or none.
std::vector<Product> first_group(const std::vector<Product>& products) {
  for (size_t i = 0; i < products.size(); ++i) {
    std::vector<Product> group{products[i]};
    int64_t rows = products[i].rows;
    std::unordered_set<const Instr*> reached;
    for (size_t j = i + 1; j < products.size(); ++j) {
      if (!are_alike(products[i], products[j]) || rows + products[j].rows > kMostRowsOfAll)
        continue;
      if (group.size() == 1 && reached.empty()) add_readers(products[i].dot, &reached);
      if (reached.count(products[j].dot)) continue;
      add_readers(products[j].dot, &reached);
      group.push_back(products[j]);
      rows += products[j].rows;
    }
    if (group.size() > 1) return group;
  }
  return {};
}

void merge(const std::vector<Product>& group, Computation* computation, Builder& b) {
  const size_t side = group[0].side;
  std::vector<Instr*> parts;
  int64_t rows = 0;
  for (const Product& product : group) {  // [rows, K] each
    Instr* other = product.other();
    const int64_t k = contracted(product.dot, 1 - side)[0];
    if (other->shape().rank() == 1)
      other = b.reshape(other, {1, other->shape().dim(0)});
    else if (k == 0)
      other = b.transpose(other, {1, 0});
    parts.push_back(other);
    rows += product.rows;
  }
  auto attrs = group[0].dot->attrs_as<hlo::DotAttrs>();
  (side == 0 ? attrs.rhs_contracting_dims : attrs.lhs_contracting_dims) = {1};
  Instr* all = b.concatenate(parts, 0);
  Instr* matrix = group[0].matrix();
  const int64_t columns = matrix->shape().dim(1 - contracted(group[0].dot, side)[0]);
  const Ints extents = side == 0 ? Ints{columns, rows} : Ints{rows, columns};
  const Shape shape = Shape::array(group[0].dot->shape().type(), extents);
  Instr* value = side == 0 ? b.make(Opcode::dot, {matrix, all}, attrs, {}, &shape)
                           : b.make(Opcode::dot, {all, matrix}, attrs, {}, &shape);
  for (const Product& product : group) value->add_nodes(product.dot->nodes());
  const size_t along = side == 0 ? 1 : 0;
  int64_t at = 0;
  for (const Product& product : group) {
    Ints starts{0, 0}, limits = extents;
    starts[along] = at;
    limits[along] = at += product.rows;
    Instr* slice = b.slice(value, starts, limits, {});
    if (product.dot->shape().rank() == 1) slice = b.reshape(slice, {product.dot->shape().dim(0)});
    computation->replace_all_uses(product.dot, slice);
  }
  b.check();
}

}  // namespace

Result<bool> gemv_to_gemm(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  for (Computation* computation : module.post_order()) {
    Builder b(computation);
    bool here = false;
    while (true) {
      const std::vector<Product> group = first_group(products_of(*computation));
      if (group.empty() || !context.allow("gemv_to_gemm", "one_matrix")) break;
      merge(group, computation, b);
      computation->remove_dead();
      here = true;
    }
    changed |= here;
  }
  return changed;
}

}  // namespace heddle::opt
