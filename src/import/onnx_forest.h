// Decision trees as a graph of ordinary operators: all trees of all rows advance by one test at a
// time.
//
// A test compares integers: a feature's bits mapped to an order in which NaN is first or last. So
// every mode of a node is a few thresholds between outcomes, and a step is
//   slot = pair[slot] + (feature > threshold[slot])
// over [rows, trees], with the nodes of all trees in one flat table. Leaf slots point to
// themselves.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "import/onnx_emit.h"

namespace heddle::import {

enum class TestMode { leq, lt, gte, gt, eq, neq, member };
enum class Aggregate { average, sum, minimum, maximum };

struct Forest {
  // A node or a leaf, by its number.
  struct Ref {
    bool leaf = false;
    int64_t number = 0;
  };
  struct Node {
    int64_t feature = 0;
    TestMode mode = TestMode::leq;
    bool missing_is_true = false;  // the outcome for NaN
    double split = 0;
    std::vector<double> members;
    Ref on_true, on_false;
  };
  using Weights = std::vector<std::pair<int64_t, double>>;  // target, weight
  std::vector<Node> nodes;
  std::vector<Weights> leaves;
  std::vector<Ref> roots;
  int64_t targets = 0;
  Aggregate aggregate = Aggregate::sum;
};

// For x [rows, features], the node's input: [rows, targets] in `type`, without base values. Fails
// if a path does not end, or a feature or a target is out of range.
Instr* evaluate_forest(Op& op, const Forest& forest, Instr* x, Type type);

}  // namespace heddle::import
