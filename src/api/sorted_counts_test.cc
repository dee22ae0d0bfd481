// Counted rows that are sorted, and the first of them: one program for any count. Where a number of
// rows says something else of the graph, results are right, too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "api/late_test_util.h"

namespace heddle::api {
namespace {

using import::testing::attr;
using import::testing::graph_attr;
using import::testing::ints_tensor;
using import::testing::kFloat;
using import::testing::kInt64;
using import::testing::Model;
using import::testing::node;
using import::testing::value;
using testing::Floats;
using testing::Ints;
using testing::Session;

using import::testing::Message;

constexpr int64_t kMost = 24;

Message floats_tensor(const std::string& name, const Floats& values) {
  return import::testing::tensor<float>(name, kFloat, {std::ssize(values)}, values);
}

Message branch_of(const std::vector<Message>& nodes, const std::string& output) {
  Model graph;
  graph.nodes = nodes;
  graph.outputs = {output};
  return graph.graph();
}

Message branch(const std::string& condition, const Message& then, const Message& otherwise) {
  return node("If", {condition}, {"y"},
              {graph_attr("then_branch", then), graph_attr("else_branch", otherwise)});
}

// `found`: the elements of x that are not 0; `few`: 4, or how many there are if those are fewer.
Model found_elements() {
  Model model;
  model.inputs = {value("x", kFloat, {"24"})};
  model.constants = {ints_tensor("four", {4}), ints_tensor("zero", {0}), ints_tensor("last", {-1})};
  model.nodes = {node("NonZero", {"x"}, {"places"}),
                 node("Reshape", {"places", "last"}, {"at"}),
                 node("Gather", {"x", "at"}, {"found"}),
                 node("Shape", {"found"}, {"all"}),
                 node("Concat", {"four", "all"}, {"both"}, {attr("axis", int64_t{0})}),
                 node("ReduceMin", {"both"}, {"few"}, {attr("keepdims", int64_t{1})})};
  model.typed_outputs = {value("y", kFloat, {"k"})};
  return model;
}

struct Sample {
  Floats x, found;
};

Sample sample_of(int64_t count) {
  Sample sample{Floats(static_cast<size_t>(kMost), 0.0f), {}};
  for (int64_t i = 0; i < count; ++i)
    sample.x[static_cast<size_t>(i * 7 % kMost)] = static_cast<float>((i * 5 + 3) % 11 - 20);
  for (const float x : sample.x)
    if (x != 0) sample.found.push_back(x);
  return sample;
}

template <typename Wanted>
void expect_right(Session* session, const Wanted& wanted) {
  ASSERT_EQ(session->error(), "");
  session->set_shape(0, {kMost});
  for (const int64_t count : {7, 24, 3, 4, 0, 1, 5, 2, 0, 9}) {
    const Sample sample = sample_of(count);
    const Floats y = session->run(sample.x.data(), nullptr);
    ASSERT_EQ(session->error(), "");
    EXPECT_EQ(y, wanted(sample)) << count;
  }
}

Floats largest(const Sample& sample, size_t most) {
  Floats all = sample.found;
  std::stable_sort(all.begin(), all.end(), std::greater<>());
  all.resize(std::min(all.size(), most));
  return all;
}

TEST(SortedCounts, TopOfCountedRowsIsOneProgram) {
  Model model = found_elements();
  model.nodes.push_back(node("TopK", {"found", "few"}, {"y", "places_of_y"}));
  Session session(model, {}, true);
  expect_right(&session, [](const Sample& sample) { return largest(sample, 4); });
  EXPECT_EQ(session.compilations(), 1);
}

TEST(SortedCounts, TheFirstOfSortedRows) {
  Model model = found_elements();
  model.constants.push_back(ints_tensor("six", {6}));
  model.nodes.push_back(node("TopK", {"found", "all"}, {"sorted", "places_of_sorted"}));
  model.nodes.push_back(node("Slice", {"sorted", "zero", "six"}, {"first"}));
  model.nodes.push_back(node("Neg", {"first"}, {"y"}));
  Session session(model, {}, true);
  expect_right(&session, [](const Sample& sample) {
    Floats all = largest(sample, 6);
    for (float& x : all) x = -x;
    return all;
  });
  EXPECT_EQ(session.compilations(), 1);
}

// Where nothing was found another branch is taken: these runs have a program of their own.
TEST(SortedCounts, ABranchForNothing) {
  Model model = found_elements();
  model.constants.push_back(floats_tensor("none", {-1, -2}));
  model.nodes.push_back(node("ReduceProd", {"all"}, {"product"}, {attr("keepdims", int64_t{0})}));
  model.constants.push_back(import::testing::tensor<int64_t>("nothing", kInt64, {}, {0}));
  model.nodes.push_back(node("Equal", {"product", "nothing"}, {"is_empty"}));
  model.nodes.push_back(
      branch("is_empty", branch_of({node("Identity", {"none"}, {"nothing_y"})}, "nothing_y"),
             branch_of({node("TopK", {"found", "few"}, {"top_y", "places_of_y"})}, "top_y")));
  Session session(model, {}, true);
  expect_right(&session, [](const Sample& sample) {
    return sample.found.empty() ? Floats{-1, -2} : largest(sample, 4);
  });
  EXPECT_EQ(session.compilations(), 2);
}

// A branch for more than five: no bound says which.
TEST(SortedCounts, ABranchForMany) {
  Model model = found_elements();
  model.constants.push_back(ints_tensor("five", {5}));
  model.nodes.push_back(node("Greater", {"all", "five"}, {"are_many"}));
  model.nodes.push_back(
      branch("are_many", branch_of({node("Neg", {"found"}, {"all_y"})}, "all_y"),
             branch_of({node("TopK", {"found", "few"}, {"top_y", "places_of_y"})}, "top_y")));
  Session session(model, {}, true);
  expect_right(&session, [](const Sample& sample) {
    if (sample.found.size() <= 5) return largest(sample, 4);
    Floats all = sample.found;
    for (float& x : all) x = -x;
    return all;
  });
}

TEST(SortedCounts, ANumberOfRowsAsAValue) {
  Model model = found_elements();
  model.nodes.push_back(node("Cast", {"few"}, {"factor"}, {attr("to", int64_t{kFloat})}));
  model.nodes.push_back(node("TopK", {"found", "few"}, {"top", "places_of_top"}));
  model.nodes.push_back(node("Mul", {"top", "factor"}, {"y"}));
  Session session(model, {}, true);
  expect_right(&session, [](const Sample& sample) {
    Floats all = largest(sample, 4);
    const auto factor = static_cast<float>(all.size());
    for (float& x : all) x *= factor;
    return all;
  });
}

// Loops over counted rows stop where they end; the one that looks at all of another array of as
// many elements, which are positions, does not.
TEST(SortedCounts, BesideAnArrayOfAsManyElements) {
  Model model = found_elements();
  model.inputs.push_back(value("given", kInt64, {"24"}));
  model.constants.push_back(floats_tensor("table", {1, 2, 3, 4, 5, 6}));
  model.nodes.push_back(node("Exp", {"found"}, {"y"}));
  model.nodes.push_back(node("Add", {"given", "zero"}, {"row"}));
  model.nodes.push_back(node("Gather", {"table", "row"}, {"rows"}));
  model.nodes.push_back(node("ReduceSum", {"rows"}, {"sum"}, {attr("keepdims", int64_t{0})}));
  model.typed_outputs.push_back(value("sum", kFloat, {}));
  Session session(model, {}, true);
  ASSERT_EQ(session.error(), "");
  Ints at(static_cast<size_t>(kMost));
  for (size_t i = 0; i < at.size(); ++i) at[i] = static_cast<int64_t>(i % 6);
  for (const int64_t count : {24, 3, 1, 9, 0, 2}) {
    const Sample sample = sample_of(count);
    session.set_shape(0, {kMost});
    session.set_shape(1, {kMost});
    float sum = 0;
    heddle_status_free(heddle_context_bind_input(session.context(), 0, sample.x.data()));
    heddle_status_free(heddle_context_bind_input(session.context(), 1, at.data()));
    heddle_status* const prepared = heddle_context_prepare(session.context());
    EXPECT_EQ(prepared, nullptr) << heddle_status_message(prepared);
    heddle_status_free(prepared);
    Floats y(sample.found.size() + 1);
    heddle_status_free(heddle_context_bind_output(session.context(), 0, y.data()));
    heddle_status_free(heddle_context_bind_output(session.context(), 1, &sum));
    heddle_status* const run = heddle_context_run(session.context());
    EXPECT_EQ(run, nullptr) << heddle_status_message(run);
    heddle_status_free(run);
    EXPECT_EQ(sum, 84) << count;
  }
  EXPECT_EQ(session.compilations(), 1);
}

// As many rows of a table as were found, but four at most.
TEST(SortedCounts, RowsOfSomethingElse) {
  Model model = found_elements();
  model.constants.push_back(floats_tensor("table", {1, 2, 3, 4, 5, 6}));
  model.nodes.push_back(node("Slice", {"table", "zero", "few"}, {"part"}));
  model.nodes.push_back(node("Neg", {"part"}, {"y"}));
  Session session(model, {}, true);
  expect_right(&session, [](const Sample& sample) {
    Floats all{-1, -2, -3, -4};
    all.resize(std::min(all.size(), sample.found.size()));
    return all;
  });
}

// The same of an input, from its second row on.
TEST(SortedCounts, RowsOfAnotherInput) {
  Model model = found_elements();
  model.inputs.push_back(value("rows", kFloat, {"6"}));
  model.constants.push_back(ints_tensor("one", {1}));
  model.nodes.push_back(node("Slice", {"rows", "one", "few"}, {"part"}));
  model.nodes.push_back(node("Neg", {"part"}, {"y"}));
  Session session(model, {}, true);
  const Floats rows{1, 2, 3, 4, 5, 6};
  session.set_shape(0, {kMost});
  session.set_shape(1, {6});
  for (const int64_t count : {7, 3, 1, 24, 2, 0}) {
    const Sample sample = sample_of(count);
    Floats wanted{-2, -3, -4};
    wanted.resize(static_cast<size_t>(std::clamp<int64_t>(count - 1, 0, 3)));
    EXPECT_EQ(session.run(sample.x.data(), rows.data()), wanted) << count;
    ASSERT_EQ(session.error(), "");
  }
}

}  // namespace
}  // namespace heddle::api
