// Matrix products. A matrix shared by all batches becomes a dot without batch dimensions, whatever
// the rank of the other side: no flattening. Common batches are batch dimensions.
#include <algorithm>

#include "import/onnx_emit.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

void check_same_type(Op& op) {
  if (op.type(0) != op.type(1))
    op.fail("inputs 0 and 1 are {} and {}; they must have one element type", to_string(op.shape(0)),
            to_string(op.shape(1)));
}

Instr* contract(Op& op, Instr* a, int64_t a_dim, Instr* b, int64_t b_dim) {
  hlo::DotAttrs attrs;
  attrs.lhs_contracting_dims = {a_dim};
  attrs.rhs_contracting_dims = {b_dim};
  return op.b.dot(a, b, std::move(attrs));
}

Ints with_matrix(const Ints& batch, const Ints& from) {
  Ints result = batch;
  result.insert(result.end(), from.end() - 2, from.end());
  return result;
}

// [batch..., M, K] x [batch..., K, N], batches broadcast.
Instr* batched(Op& op, Instr* a, Instr* b) {
  const Ints ea = a->shape().extents(), eb = b->shape().extents();
  const Ints batch =
      common_extents(op, Ints(ea.begin(), ea.end() - 2), Ints(eb.begin(), eb.end() - 2));
  Ints result = batch;
  result.push_back(ea[ea.size() - 2]);
  result.push_back(eb.back());
  op.check_extents(result);
  if (product(eb, 0, static_cast<int64_t>(eb.size()) - 2) == 1) {  // one matrix for all
    b = reshape(op, b, Ints(eb.end() - 2, eb.end()));
    return reshape(op, contract(op, a, static_cast<int64_t>(ea.size()) - 1, b, 0), result);
  }
  a = broadcast_to(op, a, with_matrix(batch, ea));
  b = broadcast_to(op, b, with_matrix(batch, eb));
  const auto rank = static_cast<int64_t>(result.size());
  hlo::DotAttrs attrs;
  attrs.lhs_batch_dims = attrs.rhs_batch_dims = range(0, rank - 2);
  attrs.lhs_contracting_dims = {rank - 1};
  attrs.rhs_contracting_dims = {rank - 2};
  return op.b.dot(a, b, std::move(attrs));
}

Outputs matmul(Op& op) {
  check_same_type(op);
  return {matrix_product(op, op.in(0), op.in(1))};
}

}  // namespace

Instr* matrix_product(Op& op, Instr* a, Instr* b) {
  const Shape &sa = a->shape(), &sb = b->shape();
  const int64_t ra = sa.rank(), rb = sb.rank();
  if (ra == 0 || rb == 0)
    op.fail("inputs are {} and {}, wanted ranks of 1 or more", to_string(sa), to_string(sb));
  const int64_t b_dim = std::max<int64_t>(rb - 2, 0);
  if (sa.dim(ra - 1) != sb.dim(b_dim))
    op.fail_shape("{} by {}: the inner dimensions {} and {} differ", to_string(sa), to_string(sb),
                  sa.dim(ra - 1), sb.dim(b_dim));
  return ra == 1 || rb <= 2 ? contract(op, a, ra - 1, b, b_dim) : batched(op, a, b);
}

namespace {

// alpha A' B' + beta C
Outputs gemm(Op& op) {
  check_same_type(op);
  const double alpha = op.float_attr("alpha", 1.0), beta = op.float_attr("beta", 1.0);
  const int64_t a_dim = op.int_attr("transA", 0) != 0 ? 0 : 1;
  const int64_t b_dim = op.int_attr("transB", 0) != 0 ? 1 : 0;
  op.ignore({"broadcast"});
  if (op.rank(0) != 2 || op.rank(1) != 2 || op.shape(0).dim(a_dim) != op.shape(1).dim(b_dim))
    op.fail("A is {}, B is {}: dimensions {} and {} must be equal", to_string(op.shape(0)),
            to_string(op.shape(1)), a_dim, b_dim);
  Instr* result = contract(op, op.in(0), a_dim, op.in(1), b_dim);
  if (alpha != 1) result = binary(op, Opcode::multiply, result, alpha);
  if (!op.has(2) || beta == 0) return {result};
  if (op.type(2) != op.type(0)) op.fail("C is {}", to_string(op.shape(2)));
  Instr* c = op.in(2);
  if (beta != 1) c = binary(op, Opcode::multiply, c, beta);
  const Ints extents{op.shape(0).dim(1 - a_dim), op.shape(1).dim(1 - b_dim)};
  return {op.b.binary(Opcode::add, result, broadcast_to(op, c, extents))};
}

constexpr OpEntry kOps[] = {
    {"Gemm", 2, 3, gemm},
    {"MatMul", 2, 2, matmul},
};

}  // namespace

std::span<const OpEntry> matmul_ops() { return kOps; }

}  // namespace heddle::import
