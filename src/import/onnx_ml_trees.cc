// TreeEnsemble, TreeEnsembleClassifier, TreeEnsembleRegressor of ai.onnx.ml: their attributes as a
// Forest, and outputs from its sums. Where the specification leaves it open (two classes), scores
// and labels are those of ONNX Runtime.
#include <algorithm>
#include <cmath>
#include <map>

#include "import/onnx_forest.h"
#include "import/onnx_ml.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

using ml::Transform;
using NodeId = std::pair<int64_t, int64_t>;  // tree, node

std::vector<double> numbers(Op& op, const proto::Tensor& tensor, std::string_view what) {
  const Literal literal = op.tensor_value(tensor, what);
  if (literal.shape().rank() != 1 ||
      !(tensor::is_float(literal.type()) || tensor::is_integer(literal.type())))
    op.fail("{} is {}, wanted a list of numbers", what, to_string(literal.shape()));
  std::vector<double> values(static_cast<size_t>(literal.elems()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = literal.get_f64(static_cast<int64_t>(i));
  return values;
}

// An attribute given as a list of floats, or (its name with _as_tensor) as a tensor.
std::vector<double> numbers_attr(Op& op, const std::string& name) {
  const proto::Tensor* tensor = op.tensor_attr(name + "_as_tensor");
  const std::vector<float> plain = op.floats_attr(name);
  if (tensor != nullptr && !plain.empty())
    op.fail("both {} and {}_as_tensor are given", name, name);
  return tensor != nullptr ? numbers(op, *tensor, name) : ml::doubles(plain);
}

void check_count(Op& op, const char* name, size_t got, size_t wanted) {
  if (got != wanted) op.fail("{} has {} entries, wanted {}", name, got, wanted);
}

TestMode mode_of(Op& op, const std::string& name) {
  if (name == "BRANCH_LEQ") return TestMode::leq;
  if (name == "BRANCH_LT") return TestMode::lt;
  if (name == "BRANCH_GTE") return TestMode::gte;
  if (name == "BRANCH_GT") return TestMode::gt;
  if (name == "BRANCH_EQ") return TestMode::eq;
  if (name == "BRANCH_NEQ") return TestMode::neq;
  op.fail("node mode {} is unknown, wanted LEAF or BRANCH_LEQ, _LT, _GTE, _GT, _EQ, _NEQ",
          quoted(name));
}

// Nodes and leaves of the operators that store both in one list.
struct Parts {
  Forest forest;
  std::map<NodeId, Forest::Ref> refs;
};

Parts read_nodes(Op& op) {
  op.ignore({"nodes_hitrates", "nodes_hitrates_as_tensor"});
  const std::vector<std::string> modes = op.strings_attr("nodes_modes");
  const Ints trees = op.ints_attr("nodes_treeids"), ids = op.ints_attr("nodes_nodeids"),
             features = op.ints_attr("nodes_featureids"), yes = op.ints_attr("nodes_truenodeids"),
             no = op.ints_attr("nodes_falsenodeids"),
             missing = op.ints_attr("nodes_missing_value_tracks_true");
  const std::vector<double> splits = numbers_attr(op, "nodes_values");
  const size_t count = modes.size();
  check_count(op, "nodes_treeids", trees.size(), count);
  check_count(op, "nodes_nodeids", ids.size(), count);
  check_count(op, "nodes_featureids", features.size(), count);
  check_count(op, "nodes_truenodeids", yes.size(), count);
  check_count(op, "nodes_falsenodeids", no.size(), count);
  check_count(op, "nodes_values", splits.size(), count);
  if (!missing.empty()) check_count(op, "nodes_missing_value_tracks_true", missing.size(), count);
  Parts parts;
  for (size_t i = 0; i < count; ++i) {
    Forest::Ref ref{modes[i] == "LEAF", 0};
    ref.number =
        static_cast<int64_t>(ref.leaf ? parts.forest.leaves.size() : parts.forest.nodes.size());
    if (!parts.refs.emplace(NodeId(trees[i], ids[i]), ref).second)
      op.fail("node {} of tree {} is there twice", ids[i], trees[i]);
    // A tree's first node is its root.
    if (i == 0 || trees[i] != trees[i - 1]) parts.forest.roots.push_back(ref);
    if (ref.leaf) {
      parts.forest.leaves.emplace_back();
    } else {
      parts.forest.nodes.push_back({features[i],
                                    mode_of(op, modes[i]),
                                    !missing.empty() && missing[i] != 0,
                                    splits[i],
                                    {},
                                    {},
                                    {}});
    }
  }
  size_t at = 0;
  for (size_t i = 0; i < count; ++i) {
    if (modes[i] == "LEAF") continue;
    const auto child = [&](int64_t id) {
      const auto found = parts.refs.find({trees[i], id});
      if (found == parts.refs.end())
        op.fail("node {} of tree {} has child {}, which is not there", ids[i], trees[i], id);
      return found->second;
    };
    Forest::Node& node = parts.forest.nodes[at++];
    node.on_true = child(yes[i]);
    node.on_false = child(no[i]);
  }
  return parts;
}

// `kind`: "class" or "target".
void read_weights(Op& op, const std::string& kind, Parts& parts) {
  const Ints trees = op.ints_attr(kind + "_treeids"), ids = op.ints_attr(kind + "_nodeids"),
             targets = op.ints_attr(kind + "_ids");
  const std::vector<double> weights = numbers_attr(op, kind + "_weights");
  check_count(op, "treeids of weights", trees.size(), weights.size());
  check_count(op, "nodeids of weights", ids.size(), weights.size());
  check_count(op, "ids of weights", targets.size(), weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto found = parts.refs.find({trees[i], ids[i]});
    if (found == parts.refs.end())
      op.fail("a weight is for node {} of tree {}, which is not there", ids[i], trees[i]);
    if (!found->second.leaf) continue;  // not a leaf: the weight has no effect
    parts.forest.leaves[static_cast<size_t>(found->second.number)].emplace_back(targets[i],
                                                                                weights[i]);
  }
}

Aggregate aggregate_attr(Op& op) {
  const std::string name = op.string_attr("aggregate_function", "SUM");
  if (name == "SUM") return Aggregate::sum;
  if (name == "AVERAGE") return Aggregate::average;
  if (name == "MIN") return Aggregate::minimum;
  if (name == "MAX") return Aggregate::maximum;
  op.fail("aggregate_function is {}, wanted SUM, AVERAGE, MIN or MAX", quoted(name));
}

// The features, in f64 if the input is, else f32; sums have the same type.
Instr* features(Op& op) {
  return ml::table_input(op, 0, op.type(0) == Type::f64 ? Type::f64 : Type::f32);
}

Instr* add_row(Op& op, Instr* x, const std::vector<double>& values) {
  const auto count = static_cast<int64_t>(values.size());
  Instr* row = ml::constant_list(op, x->shape().type(), values, {count});
  return op.b.binary(Opcode::add, x, broadcast_along(op, row, x->shape().extents(), 1));
}

// For a single target only PROBIT changes the score.
Instr* finish(Op& op, Instr* scores, Transform transform) {
  if (scores->shape().dim(1) == 1 && transform != Transform::probit) return scores;
  return ml::transformed(op, scores, transform);
}

Outputs regressor(Op& op) {
  Parts parts = read_nodes(op);
  read_weights(op, "target", parts);
  parts.forest.targets = op.int_attr("n_targets", 1);
  if (parts.forest.targets < 1) op.fail("n_targets is {}", parts.forest.targets);
  parts.forest.aggregate = aggregate_attr(op);
  const Transform transform = ml::transform_attr(op);
  const std::vector<double> base = numbers_attr(op, "base_values");
  Instr* x = features(op);
  Instr* sums = evaluate_forest(op, parts.forest, x, x->shape().type());
  if (!base.empty()) {
    check_count(op, "base_values", base.size(), static_cast<size_t>(parts.forest.targets));
    sums = add_row(op, sums, base);
  }
  return {op.b.convert(finish(op, sums, transform), Type::f32)};
}

// [1 - s, s], or [-s, s].
Instr* two_columns(Op& op, Instr* score, double sum) {
  Instr* other = sum == 0 ? op.b.unary(Opcode::negate, score)
                          : op.b.binary(Opcode::subtract, op.b.full(score->shape(), sum), score);
  return op.b.concatenate({other, score}, 1);
}

struct Classes {
  ml::Labels labels;
  std::vector<bool> spoken_for;  // by class: some leaf adds to it
  bool all_positive = true;
  std::vector<double> base;
};

// If only one of two classes has weights, its sum decides between both: it is taken as the second
// one's, whatever the class's number.
Outputs binary_scores(Op& op, const Classes& classes, Instr* sums, Transform transform) {
  const bool second = classes.spoken_for[1];
  const std::vector<double>& base = classes.base;
  Instr* score = ml::columns(op, sums, second ? 1 : 0, second ? 2 : 1);
  Instr* other = second ? ml::columns(op, sums, 0, 1) : nullptr;
  if (base.size() == 2) {
    Instr* shift = op.b.full(score->shape(), base[1]);
    if (second) {
      score = op.b.binary(Opcode::add, other, shift);
      other = op.b.unary(Opcode::negate, score);
    } else {
      other = op.b.binary(Opcode::add, score, op.b.full(score->shape(), base[0]));
      score = op.b.binary(Opcode::add, shift, op.b.full(score->shape(), 0));
      Instr* positive = compare(op, Direction::gt, other, classes.all_positive ? 0.5 : 0.0);
      Instr* scores = op.b.concatenate({other, score}, 1);
      return {
          ml::labels_at(op, classes.labels,
                        op.b.convert(reshape(op, positive, {positive->shape().dim(0)}), Type::s32)),
          ml::transformed(op, scores, transform)};
    }
  } else if (base.size() == 1) {
    (second ? other : score) =
        op.b.binary(Opcode::add, second ? other : score, op.b.full(score->shape(), base[0]));
  }
  Instr* positive = compare(op, Direction::gt, score, classes.all_positive ? 0.5 : 0.0);
  positive = op.b.convert(reshape(op, positive, {positive->shape().dim(0)}), Type::s32);
  Instr* scores = nullptr;
  if (second) {
    scores = ml::transformed(op, op.b.concatenate({other, score}, 1), transform);
  } else if (transform == Transform::probit) {
    op.fail("post_transform is PROBIT, which gives one score for two classes");
  } else if (transform == Transform::logistic) {
    scores = ml::transformed(op, two_columns(op, score, 0), transform);
  } else {
    scores = two_columns(op, score, classes.all_positive ? 1 : 0);
  }
  return {ml::labels_at(op, classes.labels, positive), scores};
}

// The class with the largest sum, among those that leaves add to.
Outputs many_scores(Op& op, const Classes& classes, Instr* sums, Transform transform) {
  if (!classes.base.empty()) sums = add_row(op, sums, classes.base);
  Instr* candidates = sums;
  const bool all =
      !classes.base.empty() || std::all_of(classes.spoken_for.begin(), classes.spoken_for.end(),
                                           [](bool spoken_for) { return spoken_for; });
  if (!all) {
    Literal allowed(Shape::array(Type::pred, {classes.labels.count()}));
    for (size_t i = 0; i < classes.spoken_for.size(); ++i)
      allowed.set_s64(static_cast<int64_t>(i), classes.spoken_for[i] ? 1 : 0);
    Instr* mask = broadcast_along(op, op.b.constant(allowed), sums->shape().extents(), 1);
    candidates = op.b.select(mask, sums, op.b.full(sums->shape(), -INFINITY));
  }
  return {ml::labels_at(op, classes.labels, ml::argmax(op, candidates)),
          ml::transformed(op, sums, transform)};
}

Outputs classifier(Op& op) {
  Parts parts = read_nodes(op);
  read_weights(op, "class", parts);
  Classes classes;
  classes.labels = ml::labels_attr(op, "classlabels_int64s", "classlabels_strings");
  parts.forest.targets = classes.labels.count();
  const Transform transform = ml::transform_attr(op);
  classes.base = numbers_attr(op, "base_values");
  const size_t count = static_cast<size_t>(parts.forest.targets);
  if (count != 2 && !classes.base.empty())
    check_count(op, "base_values", classes.base.size(), count);
  if (classes.base.size() > count) check_count(op, "base_values", classes.base.size(), count);
  classes.spoken_for.assign(count, false);
  for (const Forest::Weights& leaf : parts.forest.leaves) {
    for (const auto& [target, weight] : leaf) {
      if (target < 0 || target >= parts.forest.targets)
        op.fail("a weight is for class {}, there are {}", target, count);
      classes.spoken_for[static_cast<size_t>(target)] = true;
      classes.all_positive = classes.all_positive && !(weight < 0);
    }
  }
  Instr* x = features(op);
  Instr* sums = evaluate_forest(op, parts.forest, x, x->shape().type());
  const bool binary = count == 2 && classes.spoken_for[0] != classes.spoken_for[1];
  Outputs outputs = binary ? binary_scores(op, classes, sums, transform)
                           : many_scores(op, classes, sums, transform);
  outputs[1].instr = op.b.convert(outputs[1].instr, Type::f32);
  return outputs;
}

// The operator with separate nodes and leaves, and numbers instead of names.
Outputs ensemble(Op& op) {
  op.ignore({"nodes_hitrates"});
  Forest forest;
  forest.targets = op.int_attr("n_targets", 1);
  const int64_t aggregate = op.int_attr("aggregate_function", 1);
  const int64_t transform = op.int_attr("post_transform", 0);
  if (forest.targets < 1 || aggregate < 0 || aggregate > 3 || transform < 0 || transform > 4)
    op.fail("n_targets {}, aggregate_function {}, post_transform {}", forest.targets, aggregate,
            transform);
  forest.aggregate = static_cast<Aggregate>(aggregate);
  const auto list = [&](const char* name) {
    const proto::Tensor* tensor = op.tensor_attr(name);
    return tensor != nullptr ? numbers(op, *tensor, name) : std::vector<double>();
  };
  const std::vector<double> modes = list("nodes_modes"), splits = list("nodes_splits"),
                            weights = list("leaf_weights"), members = list("membership_values");
  const Ints targets = op.ints_attr("leaf_targetids"),
             features_of = op.ints_attr("nodes_featureids"),
             yes = op.ints_attr("nodes_truenodeids"), no = op.ints_attr("nodes_falsenodeids"),
             yes_leaf = op.ints_attr("nodes_trueleafs"), no_leaf = op.ints_attr("nodes_falseleafs"),
             missing = op.ints_attr("nodes_missing_value_tracks_true");
  const size_t count = modes.size();
  check_count(op, "nodes_splits", splits.size(), count);
  check_count(op, "nodes_featureids", features_of.size(), count);
  check_count(op, "nodes_truenodeids", yes.size(), count);
  check_count(op, "nodes_falsenodeids", no.size(), count);
  check_count(op, "nodes_trueleafs", yes_leaf.size(), count);
  check_count(op, "nodes_falseleafs", no_leaf.size(), count);
  check_count(op, "leaf_targetids", targets.size(), weights.size());
  if (!missing.empty()) check_count(op, "nodes_missing_value_tracks_true", missing.size(), count);
  size_t member = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!(modes[i] >= 0 && modes[i] <= 6)) op.fail("node mode {}, wanted 0 to 6", modes[i]);
    Forest::Node node{features_of[i],
                      static_cast<TestMode>(modes[i]),
                      !missing.empty() && missing[i] != 0,
                      splits[i],
                      {},
                      {yes_leaf[i] != 0, yes[i]},
                      {no_leaf[i] != 0, no[i]}};
    if (node.mode == TestMode::member) {  // sets are concatenated, separated by NaN
      while (member < members.size() && !std::isnan(members[member]))
        node.members.push_back(members[member++]);
      ++member;
    }
    forest.nodes.push_back(std::move(node));
  }
  for (size_t i = 0; i < weights.size(); ++i) forest.leaves.push_back({{targets[i], weights[i]}});
  for (int64_t root : op.ints_attr("tree_roots")) forest.roots.push_back({false, root});
  constexpr Transform kTransforms[] = {Transform::none, Transform::softmax, Transform::logistic,
                                       Transform::softmax_zero, Transform::probit};
  Instr* x = features(op);
  Instr* sums = evaluate_forest(op, forest, x, x->shape().type());
  return {op.b.convert(finish(op, sums, kTransforms[transform]), op.type(0))};
}

constexpr OpEntry kOps[] = {
    {"ai.onnx.ml.TreeEnsemble", 1, 1, ensemble},
    {"ai.onnx.ml.TreeEnsembleClassifier", 1, 1, classifier},
    {"ai.onnx.ml.TreeEnsembleRegressor", 1, 1, regressor},
};

}  // namespace

std::span<const OpEntry> ml_tree_ops() { return kOps; }

}  // namespace heddle::import
