#include "import/onnx_forest.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "import/onnx_ml.h"

namespace heddle::import {
namespace {

// Limit on the tests from a root to a leaf: each is a step of all trees.
constexpr int64_t kMostSteps = 4096;

// A node as ascending thresholds: outcome i applies up to thresholds[i], the last one beyond all.
struct Steps {
  std::vector<int64_t> thresholds;
  std::vector<Forest::Ref> outcomes;
  bool nan_is_last = true;  // else it comes first
};

class Flat {
 public:
  // `type`: of the features.
  Flat(Op& op, const Forest& forest, Type type, int64_t features)
      : op_(op),
        forest_(forest),
        type_(type),
        features_(features),
        last_(type == Type::f64 ? INT64_MAX : INT32_MAX) {}

  void build();

  struct Record {
    int64_t threshold = 0, feature = 0, pair = 0, leaf = -1;
  };
  const std::vector<Record>& records() const { return records_; }
  const std::vector<int64_t>& roots() const { return roots_; }
  int64_t steps() const { return steps_; }
  bool nan_last() const { return nan_last_; }
  bool nan_first() const { return nan_first_; }

 private:
  Steps steps_of(const Forest::Node& node);
  std::vector<int64_t> member_keys(const Forest::Node& node) const;
  void place_node(int64_t number);
  void place(const Steps& steps, size_t first, size_t last, int64_t feature, int64_t slot);
  void refer(const Forest::Ref& ref, int64_t slot);
  void check(const Forest::Ref& ref) const;
  void measure();
  int64_t new_pair() {
    records_.resize(records_.size() + 2);
    return static_cast<int64_t>(records_.size()) - 2;
  }

  Op& op_;
  const Forest& forest_;
  Type type_;
  int64_t features_, last_;
  std::vector<Record> records_;
  std::vector<int64_t> roots_;
  // Slots that hold a node's record: the first one is original, the others are copies of it.
  std::vector<int64_t> own_;
  std::vector<std::pair<int64_t, int64_t>> copies_;  // slot, node
  std::vector<int64_t> todo_;                        // nodes
  int64_t steps_ = 0;
  bool nan_last_ = false, nan_first_ = false;
};

std::vector<int64_t> Flat::member_keys(const Forest::Node& node) const {
  std::vector<int64_t> keys;
  if (node.mode == TestMode::member) {
    for (double member : node.members)
      if (!std::isnan(member)) keys.push_back(ml::order_key(member, type_));
  } else if (!std::isnan(node.split)) {
    keys.push_back(ml::order_key(node.split, type_));
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

Steps Flat::steps_of(const Forest::Node& node) {
  const auto &yes = node.on_true, &no = node.on_false;
  const std::vector<int64_t> keys = member_keys(node);
  Steps steps;
  const auto then = [&](int64_t up_to, const Forest::Ref& outcome) {
    steps.thresholds.push_back(up_to);
    steps.outcomes.push_back(outcome);
  };
  bool last_is_true = false, first_is_true = false;
  const bool inverse = node.mode == TestMode::neq;
  switch (node.mode) {
    case TestMode::leq:
    case TestMode::lt:
      first_is_true = !keys.empty();
      if (!keys.empty()) then(keys[0] - (node.mode == TestMode::lt ? 1 : 0), yes);
      break;
    case TestMode::gte:
    case TestMode::gt:
      last_is_true = !keys.empty();
      if (!keys.empty()) then(keys[0] - (node.mode == TestMode::gte ? 1 : 0), no);
      break;
    default:
      first_is_true = last_is_true = inverse;
      for (int64_t key : keys) {
        then(key - 1, inverse ? yes : no);
        then(key, inverse ? no : yes);
      }
  }
  steps.outcomes.push_back(last_is_true ? yes : no);
  // The side to which NaN goes: as the node says, else as its comparison gives.
  const bool wanted = node.missing_is_true || inverse;
  steps.nan_is_last = wanted == last_is_true;
  if (!steps.nan_is_last && wanted != first_is_true) {
    steps.nan_is_last = true;
    steps.thresholds.push_back(last_ - 1);
    steps.outcomes.push_back(wanted ? yes : no);
  }
  if (steps.thresholds.empty()) {  // a single outcome
    steps.thresholds.push_back(last_);
    steps.outcomes.push_back(steps.outcomes[0]);
  }
  (steps.nan_is_last ? nan_last_ : nan_first_) = true;
  return steps;
}

void Flat::check(const Forest::Ref& ref) const {
  const size_t most = ref.leaf ? forest_.leaves.size() : forest_.nodes.size();
  if (ref.number < 0 || ref.number >= static_cast<int64_t>(most))
    op_.fail("a tree refers to {} {}, there are {}", ref.leaf ? "leaf" : "node", ref.number, most);
}

void Flat::refer(const Forest::Ref& ref, int64_t slot) {
  check(ref);
  if (ref.leaf) {
    records_[static_cast<size_t>(slot)] = {last_, 0, slot, ref.number};
    return;
  }
  int64_t& own = own_[static_cast<size_t>(ref.number)];
  if (own >= 0) return copies_.emplace_back(slot, ref.number), void();
  own = slot;
  todo_.push_back(ref.number);
}

// Places outcomes first..last below `slot`, as a balanced tree of tests.
void Flat::place(const Steps& steps, size_t first, size_t last, int64_t feature, int64_t slot) {
  struct Part {
    size_t first, last;
    int64_t slot;
  };
  std::vector<Part> parts{{first, last, slot}};
  while (!parts.empty()) {
    const Part part = parts.back();
    parts.pop_back();
    if (part.first == part.last) {
      refer(steps.outcomes[part.first], part.slot);
      continue;
    }
    const size_t middle = (part.first + part.last) / 2;
    const int64_t pair = new_pair();
    records_[static_cast<size_t>(part.slot)] = {steps.thresholds[middle], feature, pair, -1};
    parts.push_back({middle + 1, part.last, pair + 1});
    parts.push_back({part.first, middle, pair});
  }
}

void Flat::place_node(int64_t number) {
  const Forest::Node& node = forest_.nodes[static_cast<size_t>(number)];
  if (node.feature < 0 || node.feature >= features_)
    op_.fail("a tree tests feature {}, the input has {}", node.feature, features_);
  const Steps steps = steps_of(node);
  // Features for tests with NaN first come after the others.
  place(steps, 0, steps.outcomes.size() - 1, node.feature + (steps.nan_is_last ? 0 : features_),
        own_[static_cast<size_t>(number)]);
}

// The longest path in tests; fails if a path does not end.
void Flat::measure() {
  const size_t n = records_.size();
  std::vector<int64_t> below(n, 0), depth(n, 0);
  const auto tests = [&](size_t slot) { return records_[slot].leaf < 0; };
  for (size_t slot = 0; slot < n; ++slot) {
    if (!tests(slot)) continue;
    for (int64_t side : {0, 1}) ++below[static_cast<size_t>(records_[slot].pair + side)];
  }
  std::vector<size_t> ready;
  for (size_t slot = 0; slot < n; ++slot)
    if (below[slot] == 0) ready.push_back(slot);
  size_t seen = 0;
  while (!ready.empty()) {
    const size_t slot = ready.back();
    ready.pop_back();
    ++seen;
    steps_ = std::max(steps_, depth[slot]);
    if (!tests(slot)) continue;
    for (int64_t side : {0, 1}) {
      const auto next = static_cast<size_t>(records_[slot].pair + side);
      depth[next] = std::max(depth[next], depth[slot] + 1);
      if (--below[next] == 0) ready.push_back(next);
    }
  }
  if (seen != n) op_.fail("a tree's nodes refer to each other in a circle");
  if (steps_ > kMostSteps)
    op_.fail("a tree is {} tests deep, at most {} are supported", steps_, kMostSteps);
}

void Flat::build() {
  own_.assign(forest_.nodes.size(), -1);
  records_.resize(forest_.roots.size());
  for (size_t tree = 0; tree < forest_.roots.size(); ++tree) {
    roots_.push_back(static_cast<int64_t>(tree));
    refer(forest_.roots[tree], static_cast<int64_t>(tree));
  }
  // Breadth-first over all trees together: records read at the same time are adjacent.
  for (size_t at = 0; at < todo_.size(); ++at) place_node(todo_[at]);
  for (const auto& [slot, node] : copies_)
    records_[static_cast<size_t>(slot)] =
        records_[static_cast<size_t>(own_[static_cast<size_t>(node)])];
  measure();
}

// The contribution of a leaf's slot to each target; equal rows are stored once.
struct Values {
  std::vector<int64_t> row_of_slot;
  std::vector<std::vector<double>> rows;
};

Values values_of(Op& op, const Forest& forest, const Flat& flat, double nothing) {
  Values values;
  std::map<std::vector<double>, int64_t> known;
  std::vector<int64_t> row_of_leaf(forest.leaves.size(), -1);
  for (const Flat::Record& record : flat.records()) {
    if (record.leaf < 0) {
      values.row_of_slot.push_back(0);
      continue;
    }
    int64_t& row = row_of_leaf[static_cast<size_t>(record.leaf)];
    if (row < 0) {
      std::vector<double> weights(static_cast<size_t>(forest.targets), nothing);
      for (const auto& [target, weight] : forest.leaves[static_cast<size_t>(record.leaf)]) {
        if (target < 0 || target >= forest.targets)
          op.fail("a leaf adds to target {}, there are {}", target, forest.targets);
        double& at = weights[static_cast<size_t>(target)];
        at = forest.aggregate == Aggregate::minimum   ? std::min(at, weight)
             : forest.aggregate == Aggregate::maximum ? std::max(at, weight)
                                                      : at + weight;
      }
      row = known.emplace(weights, static_cast<int64_t>(values.rows.size())).first->second;
      if (row == static_cast<int64_t>(values.rows.size())) values.rows.push_back(weights);
      op.check_extents({static_cast<int64_t>(values.rows.size()), forest.targets});
    }
    values.row_of_slot.push_back(row);
  }
  return values;
}

Literal list(Type type, const std::vector<int64_t>& values) {
  Literal literal(Shape::array(type, {static_cast<int64_t>(values.size())}));
  for (size_t i = 0; i < values.size(); ++i) literal.set_s64(static_cast<int64_t>(i), values[i]);
  return literal;
}

// Features as ordered integers, [rows * width]; NaN is last, and first in the second half of each
// row, with only the halves that tests use.
Instr* keys(Op& op, Instr* x, const Flat& flat, Type word) {
  std::vector<Instr*> parts;
  if (flat.nan_last()) parts.push_back(ml::order_keys(op, x));
  if (flat.nan_first()) {
    Literal first(Shape::scalar(word));
    first.set_s64(0, word == Type::s64 ? INT64_MIN : INT32_MIN);
    Instr* nan = op.b.compare(Direction::ne, x, x);
    parts.push_back(select(op, nan, op.b.constant(first), ml::order_keys(op, x)));
  }
  Instr* all = parts.size() == 1 ? parts[0] : op.b.concatenate(parts, 1);
  return reshape(op, all, {all->shape().elems()});
}

// The records as a table of integers, and its layout: two words each, the threshold, and the pair
// and the feature in one; or these separately, if they need more bits.
struct Table {
  int64_t features = 0;  // of a row of keys
  int64_t feature_bits = 0, stride = 0;
  bool packed = false;
  std::vector<int64_t> words;
};

Table table_of(Op& op, const Flat& flat, int64_t features) {
  Table table;
  const bool both = flat.nan_first() && flat.nan_last();
  table.features = features * (both ? 2 : 1);
  table.feature_bits = std::bit_width(static_cast<uint64_t>(table.features));
  const auto slots = static_cast<int64_t>(flat.records().size());
  op.check_extents({4 * slots});
  table.packed = std::bit_width(static_cast<uint64_t>(2 * slots)) + table.feature_bits < 31;
  table.stride = table.packed ? 2 : 4;
  for (const Flat::Record& record : flat.records()) {
    const int64_t feature = both || !flat.nan_first() ? record.feature : record.feature % features;
    const int64_t pair = record.pair * table.stride;
    table.words.push_back(record.threshold);
    table.words.push_back(table.packed ? pair << table.feature_bits | feature : pair);
    if (!table.packed) table.words.insert(table.words.end(), {feature, 0});
  }
  return table;
}

// The final slot of each row in each tree: [rows, trees].
Instr* walk(Op& op, const Flat& flat, Instr* x) {
  const Type word = x->shape().type() == Type::f64 ? Type::s64 : Type::s32;
  const int64_t rows = x->shape().dim(0);
  const Table table = table_of(op, flat, x->shape().dim(1));
  op.check_extents({rows, table.features});
  const auto size = static_cast<int64_t>(table.words.size());
  const Type index = std::max(rows * table.features, size) > INT32_MAX ? Type::s64 : Type::s32;
  const Ints all{rows, static_cast<int64_t>(flat.roots().size())};
  Instr* words = op.b.constant(list(word, table.words));
  Instr* x_keys = keys(op, x, flat, word);
  Instr* row =
      binary(op, Opcode::multiply, iota(op, index, all, 0), static_cast<double>(table.features));
  std::vector<int64_t> starts = flat.roots();
  for (int64_t& start : starts) start *= table.stride;
  Instr* slot = op.b.broadcast(op.b.constant(list(index, starts)), all, {1});
  const auto word_at = [&](int64_t offset) {
    Instr* at = offset == 0 ? slot : binary(op, Opcode::add, slot, static_cast<double>(offset));
    return op.b.take(words, at, 0);
  };
  for (int64_t step = 0; step < flat.steps(); ++step) {
    Instr* threshold = word_at(0);
    Instr *pair = op.b.convert(word_at(1), index), *feature = nullptr;
    if (table.packed) {
      const double mask = std::exp2(table.feature_bits) - 1;
      feature = op.b.binary(Opcode::and_, pair, op.b.full(pair->shape(), mask));
      pair = binary(op, Opcode::shift_right_logical, pair, static_cast<double>(table.feature_bits));
    } else {
      feature = op.b.convert(word_at(2), index);
    }
    Instr* key = op.b.take(x_keys, op.b.binary(Opcode::add, row, feature), 0);
    Instr* beyond = op.b.compare(Direction::gt, key, threshold);
    Instr* side = select(op, beyond, op.b.scalar(index, static_cast<double>(table.stride)),
                         op.b.scalar(index, 0));
    slot = op.b.binary(Opcode::add, pair, side);
  }
  return binary(op, Opcode::shift_right_logical, slot, table.stride == 2 ? 1 : 2);
}

// The contributions of the slots to the targets, unsummed: [rows, trees, targets], for one target
// [rows, trees].
Instr* contributions(Op& op, const Forest& forest, const Values& values, Instr* slot, Type type) {
  if (forest.targets == 1) {
    Literal weights(Shape::array(type, {static_cast<int64_t>(values.row_of_slot.size())}));
    for (int64_t i = 0; i < weights.elems(); ++i) {
      const auto row = static_cast<size_t>(values.row_of_slot[static_cast<size_t>(i)]);
      weights.set_f64(i, values.rows[row][0]);
    }
    return op.b.take(op.b.constant(std::move(weights)), slot, 0);
  }
  const auto width = static_cast<size_t>(forest.targets);
  Literal weights(Shape::array(type, {static_cast<int64_t>(values.rows.size()), forest.targets}));
  for (size_t i = 0; i < values.rows.size() * width; ++i)
    weights.set_f64(static_cast<int64_t>(i), values.rows[i / width][i % width]);
  Instr* rows = op.b.constant(list(slot->shape().type(), values.row_of_slot));
  return op.b.take(op.b.constant(std::move(weights)), op.b.take(rows, slot, 0), 0);
}

// The summed contributions for a few targets: one reduction over as many arrays [rows, trees], so
// that each tree is walked once for all targets, and trees are vectorised.
Instr* sums_at_once(Op& op, const Forest& forest, const Values& values, Instr* slot, Type type,
                    Opcode reduction) {
  const auto targets = static_cast<size_t>(forest.targets);
  Instr* rows = op.b.constant(list(slot->shape().type(), values.row_of_slot));
  Instr* row = op.b.take(rows, slot, 0);
  std::vector<Instr*> arrays, starts, columns;
  for (size_t t = 0; t < targets; ++t) {
    Literal weights(Shape::array(type, {static_cast<int64_t>(values.rows.size())}));
    for (size_t i = 0; i < values.rows.size(); ++i)
      weights.set_f64(static_cast<int64_t>(i), values.rows[i][t]);
    arrays.push_back(op.b.take(op.b.constant(std::move(weights)), row, 0));
    starts.push_back(op.b.constant(hlo::neutral_value(reduction, type)));
  }
  hlo::Computation* each = op.b.module()->add_computation("each_target");
  hlo::Builder inner(each);
  std::vector<Instr*> parameters, results;
  for (size_t i = 0; i < 2 * targets; ++i)
    parameters.push_back(inner.parameter(static_cast<int64_t>(i), Shape::scalar(type)));
  for (size_t t = 0; t < targets; ++t)
    results.push_back(inner.binary(reduction, parameters[t], parameters[targets + t]));
  each->set_root(inner.tuple(results));
  Instr* sums = op.b.reduce(arrays, starts, {1}, each);
  const int64_t count = slot->shape().dim(0);
  for (size_t t = 0; t < targets; ++t)
    columns.push_back(
        reshape(op, op.b.get_tuple_element(sums, static_cast<int64_t>(t)), {count, 1}));
  return op.b.concatenate(columns, 1);
}

}  // namespace

Instr* evaluate_forest(Op& op, const Forest& forest, Instr* x, Type type) {
  if (x->shape().type() != Type::f64) x = op.b.convert(x, Type::f32);
  const int64_t rows = x->shape().dim(0);
  const auto trees = static_cast<int64_t>(forest.roots.size());
  if (trees == 0) op.fail("there is no tree");
  op.check_extents({rows, trees, forest.targets});
  if (rows == 0) return op.b.full(Shape::array(type, {0, forest.targets}), 0);
  Flat flat(op, forest, x->shape().type(), x->shape().dim(1));
  flat.build();
  const bool least = forest.aggregate == Aggregate::minimum;
  const bool most = forest.aggregate == Aggregate::maximum;
  const double inf = std::numeric_limits<double>::infinity();
  const double nothing = least ? inf : most ? -inf : 0;
  const Values values = values_of(op, forest, flat, nothing);
  const Opcode reduction = least ? Opcode::minimum : most ? Opcode::maximum : Opcode::add;
  constexpr int64_t kMostAtOnce = 8;
  Instr *slot = walk(op, flat, x), *result = nullptr;
  if (forest.targets > 1 && forest.targets <= kMostAtOnce) {
    result = sums_at_once(op, forest, values, slot, type, reduction);
  } else {
    Instr* each = contributions(op, forest, values, slot, type);
    result = reshape(op, op.b.reduce(reduction, each, {1}), {rows, forest.targets});
  }
  if (forest.aggregate == Aggregate::average)
    return binary(op, Opcode::divide, result, static_cast<double>(trees));
  if (nothing == 0) return result;
  return select(op, compare(op, Direction::eq, result, nothing), op.b.scalar(type, 0), result);
}

}  // namespace heddle::import
