// FlexAttention: attention whose scores and probabilities are modified by subgraphs of the node.
#include <cmath>

#include "import/onnx_emit.h"
#include "import/onnx_importer.h"

namespace heddle::import {

using proto::Graph;
using proto::Node;

namespace {

Instr* grouped_dot(Op& op, Instr* a, Instr* b, int64_t b_dim) {
  hlo::DotAttrs attrs;
  attrs.lhs_batch_dims = attrs.rhs_batch_dims = {0, 1};
  attrs.lhs_contracting_dims = {4};
  attrs.rhs_contracting_dims = {b_dim};
  return op.b.dot(a, b, std::move(attrs));
}

Instr* softmax_last(Op& op, Instr* x) {
  const Ints extents = x->shape().extents();
  const int64_t last = x->shape().rank() - 1;
  Instr* largest = op.b.reduce(Opcode::maximum, x, {last});
  x = op.b.binary(Opcode::subtract, x, broadcast_back(op, largest, extents, {last}));
  x = op.b.unary(Opcode::exponential, x);
  Instr* total = op.b.reduce(Opcode::add, x, {last});
  return op.b.binary(Opcode::divide, x, broadcast_back(op, total, extents, {last}));
}

}  // namespace

void Importer::run_flex_attention(const Node& node, Scope& scope, const Inputs& inputs) {
  hlo::Builder b(into_);
  const size_t first = into_->instrs().size();
  Op op(node, kNewestOpset, inputs, b, source_, limits_, false);
  for (size_t i = 0; i < 3; ++i) op.check_float(i);
  const Ints q = op.shape(0).extents(), k = op.shape(1).extents(), v = op.shape(2).extents();
  const bool ok = q.size() == 4 && k.size() == 4 && v.size() == 4 && k[0] == q[0] && v[0] == q[0] &&
                  k[3] == q[3] && v[1] == k[1] && v[2] == k[2] && k[1] > 0 && q[1] % k[1] == 0;
  if (!ok)
    op.fail("Q, K and V are {}, {} and {}", to_string(op.shape(0)), to_string(op.shape(1)),
            to_string(op.shape(2)));
  const Type type = op.type(0);
  Type compute = compute_type(type);
  if (const int64_t given = op.int_attr("softmax_precision", 0); given != 0)
    compute = element_type(given, op.describe());
  const double scale = op.float_attr("scale", 1 / std::sqrt(static_cast<double>(q[3])));
  const int64_t group = q[1] / k[1];
  const Ints scores{q[0], q[1], q[2], k[2]};
  op.check_extents(scores);
  // Scales both sides, which keeps half precision in range.
  const double root = std::sqrt(scale);
  Instr* x =
      reshape(op, binary(op, Opcode::multiply, op.in(0), root), {q[0], k[1], group, q[2], q[3]});
  x = grouped_dot(op, x, binary(op, Opcode::multiply, op.in(1), root), 3);
  x = op.b.convert(reshape(op, x, scores), compute);
  const auto through = [&](std::string_view name, Instr* value) {
    bool has = false;
    for (const proto::Attribute& attribute : node.attributes) has = has || attribute.name == name;
    if (!has) return value;
    op.ignore({name});
    const Graph& graph = graph_attr(node, name);
    if (graph.inputs.size() != 1 || graph.outputs.size() != 1)
      op.fail("{} has {} inputs and {} outputs, wanted one each", name, graph.inputs.size(),
              graph.outputs.size());
    Scope inner;
    inner.outer = &scope;
    inner.opsets = scope.opsets;
    inner.attributes = scope.attributes;
    inner.values.emplace(graph.inputs[0].name, instr_value(value, graph.inputs[0].name));
    run_graph(graph, inner);
    Value* result = output_value(graph, 0, inner);
    if (!result->is_tensor() || result->shape().extents() != scores)
      op.fail("{} changes the shape of the scores", name);
    return op.b.convert(materialise(b, *result), compute);
  };
  x = through("score_mod", x);
  x = through("prob_mod", softmax_last(op, x));
  x = grouped_dot(op, reshape(op, x, {q[0], k[1], group, q[2], k[2]}),
                  op.b.convert(op.in(2), compute), 2);
  x = op.b.convert(reshape(op, x, {q[0], q[1], q[2], v[3]}), op.type(2));
  op.check_builder();
  op.check_all_read();
  finish_instrs(first, node, name_of(node));
  define_outputs(node, {x}, scope, name_of(node));
}

}  // namespace heddle::import
