// Loops that append to a sequence as often as data says, as PyTorch's older exporter writes
// repeat_interleave: no trip decides anything, and what has another form is written out as before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "api/late_test_util.h"

namespace heddle::api {
namespace {

using import::testing::attr;
using import::testing::graph_attr;
using import::testing::ints_tensor;
using import::testing::kBool;
using import::testing::kFloat;
using import::testing::kInt64;
using import::testing::Message;
using import::testing::node;
using import::testing::Strings;
using import::testing::tensor;
using import::testing::tensor_attr;
using import::testing::value;
using testing::Floats;
using testing::Ints;
using testing::Session;

// What stands between the row of a trip, `row` [1,3] or [1], and what is appended, `out`. The count
// is `n` [1].
struct Form {
  std::vector<Message> nodes;
  bool is_flat = false;  // rows of one element: [T], not [T,3]
};

// As the exporter has it: [1,3] -> [1,1,3] -> [1,n,3] -> [n,3].
Form exported() {
  return {
      {node("Unsqueeze", {"row", "first"}, {"wide"}),
       node("Concat", {"one", "n", "one"}, {"asked"}, {attr("axis", int64_t{0})}),
       node("Shape", {"asked"}, {"rank"}),
       node("ConstantOfShape", {"rank"}, {"ones"}, {tensor_attr("value", ints_tensor("", {1}))}),
       node("Mul", {"ones", "less"}, {"open"}), node("Equal", {"asked", "open"}, {"is_open"}),
       node("Where", {"is_open", "ones", "asked"}, {"to"}),
       node("Expand", {"wide", "to"}, {"repeated"}),
       node("Reshape", {"repeated", "rows"}, {"out"})}};
}

// x [T,3] or [T]; element i as often as `times` [T] says, floats: y [*,3] or [*].
import::testing::Model repeated(const Form& form) {
  Message body;
  body.message(1, node("SequenceAt", {"counts", "i"}, {"n"}));
  body.message(1, node("SequenceAt", {"parts", "i"}, {"row"}));
  for (const Message& inside : form.nodes) body.message(1, inside);
  body.message(1, node("SequenceInsert", {"so_far", "out"}, {"longer"}));
  body.message(1, node("Cast", {"going"}, {"go"}, {attr("to", int64_t{kBool})})).text(2, "body");
  body.message(11, value("i", kInt64, {})).message(11, value("unused", kBool, {}));
  body.message(11, Message().text(1, "so_far"));
  for (const char* output : {"go", "longer"}) body.message(12, Message().text(1, output));
  import::testing::Model model;
  const Strings dims = form.is_flat ? Strings{"n"} : Strings{"n", "3"};
  model.inputs = {value("x", kFloat, dims), value("times", kFloat, {"n"})};
  model.constants = {ints_tensor("one", {1}),
                     ints_tensor("first", {0}),
                     ints_tensor("less", {-1}),
                     ints_tensor("rows", {-1, 3}),
                     ints_tensor("flat", {-1}),
                     ints_tensor("three", {3}),
                     ints_tensor("seven", {7}),
                     tensor<uint8_t>("going", kBool, {}, {1}),
                     tensor<int64_t>("zero", kInt64, {}, {0})};
  model.nodes = {node("Exp", {"x"}, {"e"}),
                 node("Cast", {"times"}, {"durations"}, {attr("to", int64_t{kInt64})}),
                 node("Shape", {"times"}, {"length"}),
                 node("ConstantOfShape", {"length"}, {"singles"},
                      {tensor_attr("value", ints_tensor("", {1}))}),
                 node("SplitToSequence", {"durations", "singles"}, {"counts"}),
                 node("SplitToSequence", {"e", "singles"}, {"parts"}),
                 node("SequenceEmpty", {}, {"none"}, {attr("dtype", int64_t{kFloat})}),
                 node("Loop", {"length", "going", "none"}, {"all"}, {graph_attr("body", body)}),
                 node("ConcatFromSequence", {"all"}, {"y"}, {attr("axis", int64_t{0})})};
  model.typed_outputs = {value("y", kFloat, form.is_flat ? Strings{"k"} : Strings{"k", "3"})};
  return model;
}

struct Case {
  Floats x, times, y;
};

Case run_of(const Ints& times, int64_t width = 3, float factor = 1) {
  Case run;
  for (size_t i = 0; i < times.size(); ++i) {
    run.times.push_back(static_cast<float>(times[i]));
    for (int64_t k = 0; k < width; ++k)
      run.x.push_back(std::sin(static_cast<float>(i) + 10 * static_cast<float>(k)));
    for (int64_t again = 0; again < times[i]; ++again)
      for (auto at = run.x.end() - width; at != run.x.end(); ++at)
        run.y.push_back(factor * std::exp(*at));
  }
  return run;
}

Ints some_times(int64_t count, int64_t most) {
  Ints times;
  for (int64_t i = 0; i < count; ++i) times.push_back((i * 7 + count) % (most + 1));
  return times;
}

void expect_right(Session* session, const Ints& times, int64_t width = 3, float factor = 1) {
  const Case run = run_of(times, width, factor);
  const int64_t count = std::ssize(times);
  session->set_shape(0, width == 1 ? Ints{count} : Ints{count, width});
  session->set_shape(1, {count});
  const Floats y = session->run(run.x.data(), run.times.data());
  ASSERT_EQ(session->error(), "");
  const int64_t rows = std::ssize(run.y) / width;
  EXPECT_EQ(session->dims(), width == 1 ? Ints{rows} : (Ints{rows, width}));
  EXPECT_THAT(y, ::testing::Pointwise(::testing::FloatNear(1e-5f), run.y)) << count;
}

TEST(RaggedLoops, ManySizesAndCountsAreAFewPrograms) {
  Session session(repeated(exported()), {}, true);
  ASSERT_EQ(session.error(), "");
  for (int64_t k = 0; k < 40; ++k) expect_right(&session, some_times(1 + k * 37 % 60, 1 + k % 9));
  EXPECT_LE(session.compilations(), 6);
}

TEST(RaggedLoops, NoneOfSomeAndNoneOfAll) {
  Session session(repeated(exported()), {}, true);
  for (const Ints& times : {Ints{2, 0, 3}, Ints{0, 0, 5, 0}, Ints{0, 0, 0}, Ints{0}, Ints{4},
                            Ints{1}, Ints{0, 1}, Ints{3, 0}, Ints(17, 0), Ints{0, 0, 0, 900}})
    expect_right(&session, times);
}

TEST(RaggedLoops, MoreThanWasGuessed) {
  Session session(repeated(exported()), {}, true);
  for (const int64_t most : {1, 2, 40, 3, 300, 5}) expect_right(&session, some_times(30, most));
  expect_right(&session, some_times(60, 900));  // more than any guess
  expect_right(&session, some_times(31, 7));
}

// Other forms that come to the same.
TEST(RaggedLoops, OtherWaysToRepeat) {
  const Form at_once{{node("Concat", {"n", "three"}, {"to"}, {attr("axis", int64_t{0})}),
                      node("Expand", {"row", "to"}, {"out"})}};
  const Form flat{{node("Expand", {"row", "n"}, {"out"})}, true};
  for (const Form& form : {at_once, flat}) {
    Session session(repeated(form), {}, true);
    ASSERT_EQ(session.error(), "");
    for (int64_t k = 0; k < 20; ++k)
      expect_right(&session, some_times(1 + k * 37 % 60, 1 + k % 9), form.is_flat ? 1 : 3);
    EXPECT_LE(session.compilations(), 6);
  }
}

// A row that is computed in the loop, and a count that is compared: trip by trip.
TEST(RaggedLoops, WhatHasAnotherFormIsWrittenOut) {
  Form doubled = exported();
  doubled.nodes.insert(doubled.nodes.begin(), node("Add", {"row", "row"}, {"sum"}));
  doubled.nodes[1] = node("Unsqueeze", {"sum", "first"}, {"wide"});
  Session twice(repeated(doubled), {}, true);
  for (const Ints& times : {Ints{2, 0, 3}, Ints{1, 1, 2}, Ints{2}})
    expect_right(&twice, times, 3, 2);
  const Form seven_is_one{{node("Equal", {"n", "seven"}, {"is_seven"}),
                           node("Where", {"is_seven", "one", "n"}, {"times_now"}),
                           node("Expand", {"row", "times_now"}, {"out"})},
                          true};
  Session session(repeated(seven_is_one), {}, true);
  expect_right(&session, {2, 1, 3}, 1);
  const Case run = run_of({2, 1, 3}, 1);
  const Floats times{2, 7, 3};  // 7 is 1
  EXPECT_THAT(session.run(run.x.data(), times.data()),
              ::testing::Pointwise(::testing::FloatNear(1e-5f), run.y));
}

// The sequence is looked at, too: it is a list of its elements.
TEST(RaggedLoops, ASequenceThatIsNotOnlyJoined) {
  import::testing::Model model = repeated(exported());
  model.nodes.back() = node("ConcatFromSequence", {"all"}, {"joined"}, {attr("axis", int64_t{0})});
  model.nodes.push_back(node("SequenceAt", {"all", "zero"}, {"front"}));
  model.nodes.push_back(node("Concat", {"joined", "front"}, {"y"}, {attr("axis", int64_t{0})}));
  Session session(model, {}, true);
  Case run = run_of({2, 0, 3});
  run.y.insert(run.y.end(), run.y.begin(), run.y.begin() + 6);
  session.set_shape(0, {3, 3});
  session.set_shape(1, {3});
  EXPECT_THAT(session.run(run.x.data(), run.times.data()),
              ::testing::Pointwise(::testing::FloatNear(1e-5f), run.y));
  EXPECT_EQ(session.error(), "");
}

// How many trips there are is data: those elements of x that are not 0.
TEST(RaggedLoops, TripsThatDataDecides) {
  import::testing::Model model = repeated({{node("Expand", {"row", "n"}, {"out"})}, true});
  model.nodes[0] = node("Compress", {"x", "chosen"}, {"e"});
  model.nodes[1] = node("Compress", {"times", "chosen"}, {"chosen_times"});
  const std::vector<Message> more{
      node("Cast", {"x"}, {"chosen"}, {attr("to", int64_t{kBool})}), model.nodes[0], model.nodes[1],
      node("Cast", {"chosen_times"}, {"durations"}, {attr("to", int64_t{kInt64})}),
      node("Shape", {"durations"}, {"length"})};
  model.nodes.erase(model.nodes.begin(), model.nodes.begin() + 3);
  model.nodes.insert(model.nodes.begin(), more.begin(), more.end());
  Session session(model, {}, true);
  for (const int64_t zeros : {0, 1, 5, 11}) {
    Floats x, times, y;
    for (int64_t i = 0; i < 24; ++i) {
      x.push_back(i % 12 < zeros ? 0 : static_cast<float>(i));
      times.push_back(static_cast<float>(i * 5 % 4));
      if (x.back() != 0) y.insert(y.end(), static_cast<size_t>(times.back()), x.back());
    }
    session.set_shape(0, {24});
    session.set_shape(1, {24});
    EXPECT_EQ(session.run(x.data(), times.data()), y) << zeros;
    ASSERT_EQ(session.error(), "");
  }
}

}  // namespace
}  // namespace heddle::api
