// Shapes that are known late, through the C interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "api/late_test_util.h"
#include "import/onnx_test_util.h"

namespace heddle::api {
namespace {

using import::testing::attr;
using import::testing::kFloat;
using import::testing::kInt64;
using import::testing::node;
using import::testing::value;
using ::testing::ElementsAre;
using testing::Floats;
using ::testing::HasSubstr;
using testing::Ints;
using testing::Session;

// y = Relu(Reshape(x, shape)).
import::testing::Model reshape() {
  import::testing::Model model;
  model.inputs = {value("x", kFloat, {"n"}), value("shape", kInt64, {"2"})};
  model.nodes = {node("Reshape", {"x", "shape"}, {"r"}), node("Relu", {"r"}, {"y"})};
  model.outputs = {"y"};
  return model;
}

// The elements of exp(x) that are above t.
import::testing::Model chosen() {
  import::testing::Model model;
  model.inputs = {value("x", kFloat, {"n"}), value("t", kFloat, {})};
  model.nodes = {node("Exp", {"x"}, {"e"}), node("Greater", {"e", "t"}, {"c"}),
                 node("NonZero", {"c"}, {"at"}), node("Squeeze", {"at"}, {"i"}),
                 node("Gather", {"e", "i"}, {"y"}, {attr("axis", int64_t{0})})};
  model.outputs = {"y"};
  return model;
}

const Ints kSix{6}, kTwo{2}, kNone;

TEST(Late, AnInputDecidesAShape) {
  const Floats x{-1, 2, -3, 4, -5, 6};
  const Ints wide{2, 3}, high{3, 2}, flat{1, 6};
  Session session(reshape(),
                  {{"x", HEDDLE_F32, kSix.data(), 1, x.data()},
                   {"shape", HEDDLE_S64, kTwo.data(), 1, wide.data()}},
                  false);
  ASSERT_EQ(session.error(), "");
  EXPECT_THAT(session.dims(), ElementsAre(2, 3));
  EXPECT_THAT(session.run(x.data(), wide.data()), ElementsAre(0, 2, 0, 4, 0, 6));
  EXPECT_EQ(session.compilations(), 1);
  EXPECT_THAT(session.run(x.data(), high.data()), ElementsAre(0, 2, 0, 4, 0, 6));
  EXPECT_THAT(session.dims(), ElementsAre(3, 2));
  EXPECT_EQ(session.compilations(), 2);
  session.run(x.data(), wide.data());
  EXPECT_EQ(session.compilations(), 2) << "the first program is still there";
  EXPECT_EQ(session.error(), "");
  // Memory that was bound for another shape is not written.
  Floats small(2);
  heddle_context_bind_input(session.context(), 1, flat.data());
  heddle_status* status = heddle_context_run(session.context());
  EXPECT_THAT(heddle_status_message(status), HasSubstr("y is f32[1,6] for these inputs"));
  heddle_status_free(status);
}

TEST(Late, ARunThatFailsLeavesTheOthers) {
  const Floats x{1, 2, 3, 4, 5, 6};
  const Ints wide{2, 3}, wrong{4, 4};
  Session session(reshape(),
                  {{"x", HEDDLE_F32, kSix.data(), 1, x.data()},
                   {"shape", HEDDLE_S64, kTwo.data(), 1, wide.data()}},
                  false);
  ASSERT_EQ(session.error(), "");
  for (int i = 0; i < 2; ++i) {
    heddle_context_bind_input(session.context(), 0, x.data());
    heddle_context_bind_input(session.context(), 1, wrong.data());
    heddle_status* status = heddle_context_prepare(session.context());
    EXPECT_THAT(heddle_status_message(status), HasSubstr("different number of elements"));
    heddle_status_free(status);
    EXPECT_EQ(session.run(x.data(), wide.data()), x);
  }
  EXPECT_EQ(session.compilations(), 1);
}

TEST(Late, ThoseUnusedLongestGo) {
  const Floats x{1, 2, 3, 4, 5, 6};
  const Ints wide{2, 3}, high{3, 2};
  Session session(reshape(),
                  {{"x", HEDDLE_F32, kSix.data(), 1, x.data()},
                   {"shape", HEDDLE_S64, kTwo.data(), 1, wide.data()}},
                  false, 1);
  for (const Ints* shape : {&high, &wide, &high})
    EXPECT_EQ(session.run(x.data(), shape->data()), x);
  EXPECT_EQ(session.error(), "");
  EXPECT_EQ(session.compilations(), 4);
}

TEST(Late, AComputedValueDecidesAShape) {
  const Floats x{0, 1, 2};
  const Ints three{3};
  float t = 1.5f;
  Session session(
      chosen(),
      {{"x", HEDDLE_F32, three.data(), 1, x.data()}, {"t", HEDDLE_F32, kNone.data(), 0, &t}},
      false);
  ASSERT_EQ(session.error(), "");
  EXPECT_THAT(session.dims(), ElementsAre(2));
  EXPECT_THAT(session.run(x.data(), &t), ElementsAre(std::exp(1.f), std::exp(2.f)));
  // As many of others: the same program.
  const Floats other{3, 0, 2};
  EXPECT_THAT(session.run(other.data(), &t), ElementsAre(std::exp(3.f), std::exp(2.f)));
  EXPECT_EQ(session.compilations(), 1);
  t = 0;
  EXPECT_EQ(session.run(other.data(), &t).size(), 3u);
  t = 100;
  EXPECT_EQ(session.run(other.data(), &t).size(), 0u);
  EXPECT_EQ(session.compilations(), 3);
  EXPECT_EQ(session.error(), "");
}

TEST(Late, ACountWithABoundStaysOpen) {
  const Floats x{0, 1, 2, -1};
  const Ints four{4};
  float t = 1.5f;
  Session session(
      chosen(),
      {{"x", HEDDLE_F32, four.data(), 1, x.data()}, {"t", HEDDLE_F32, kNone.data(), 0, &t}}, false);
  ASSERT_EQ(session.error(), "");
  EXPECT_THAT(session.dims(), ElementsAre(2));
  EXPECT_THAT(session.run(x.data(), &t), ElementsAre(std::exp(1.f), std::exp(2.f)));
  t = 0;
  EXPECT_EQ(session.run(x.data(), &t).size(), 4u);
  EXPECT_THAT(session.dims(), ElementsAre(4));
  t = 100;
  EXPECT_EQ(session.run(x.data(), &t).size(), 0u);
  t = 7;
  EXPECT_THAT(session.run(x.data(), &t), ElementsAre(std::exp(2.f)));
  EXPECT_EQ(session.compilations(), 1);
  EXPECT_EQ(session.error(), "");
}

TEST(Late, BoxesThatAreSelected) {
  import::testing::Model model;
  model.inputs = {value("b", kFloat, {"1", "3", "4"}), value("s", kFloat, {"1", "1", "3"})};
  model.constants = {import::testing::ints_tensor("most", {3}),
                     import::testing::tensor<float>("iou", kFloat, {1}, {0.4f})};
  model.nodes = {node("Mul", {"s", "s"}, {"squares"}),
                 node("NonMaxSuppression", {"b", "squares", "most", "iou"}, {"rows"}),
                 node("Cast", {"rows"}, {"y"}, {attr("to", int64_t{kFloat})})};
  model.outputs = {"y"};
  const Ints boxes{1, 3, 4}, scores{1, 1, 3};
  const Floats b{0, 0, 2, 2, 0, 0, 2, 1, 5, 5, 6, 6}, apart{0, 0, 1, 1, 2, 2, 3, 3, 5, 5, 6, 6};
  const Floats s{0.5, 0.9f, 0.1f};
  Session session(
      model,
      {{"b", HEDDLE_F32, boxes.data(), 3, b.data()}, {"s", HEDDLE_F32, scores.data(), 3, s.data()}},
      false);
  ASSERT_EQ(session.error(), "");
  EXPECT_THAT(session.run(b.data(), s.data()), ElementsAre(0, 0, 1, 0, 0, 2));
  EXPECT_THAT(session.run(apart.data(), s.data()), ElementsAre(0, 0, 1, 0, 0, 0, 0, 0, 2));
  EXPECT_EQ(session.error(), "");
}

TEST(Late, ShapesOfInputsDiffer) {
  const Floats x{0, 1, 2, -1, 5};
  float t = 1.5f;
  Session again(
      chosen(),
      {{"x", HEDDLE_F32, kTwo.data(), 1, x.data()}, {"t", HEDDLE_F32, kNone.data(), 0, &t}}, true);
  ASSERT_EQ(again.error(), "");
  EXPECT_THAT(again.run(x.data(), &t), ElementsAre(std::exp(1.f)));
  again.set_shape(0, {5});
  EXPECT_THAT(again.run(x.data(), &t), ElementsAre(std::exp(1.f), std::exp(2.f), std::exp(5.f)));
  EXPECT_EQ(again.error(), "");
  again.set_shape(0, {5, 1});
  EXPECT_THAT(again.error(), HasSubstr("rank"));
  again.set_shape(0, {INT64_MAX});
  EXPECT_THAT(again.error(), HasSubstr("more bytes than can be counted"));
}

TEST(Late, TheFirstRunTells) {
  import::testing::Model model = chosen();
  model.outputs = {};
  model.typed_outputs = {value("y", kFloat, {"k"})};
  Session session(model, {}, true);
  ASSERT_EQ(session.error(), "");
  EXPECT_EQ(session.output().rank, -1);
  EXPECT_EQ(session.compilations(), 0);
  const Floats x{0, 1, 2, -1, 5};
  const float t = 1.5f;
  session.set_shape(0, {5});
  EXPECT_THAT(session.run(x.data(), &t), ElementsAre(std::exp(1.f), std::exp(2.f), std::exp(5.f)));
  EXPECT_THAT(session.dims(), ElementsAre(3));
  EXPECT_EQ(session.compilations(), 1);
  EXPECT_EQ(session.error(), "");
  Session none(chosen(), {}, false);
  EXPECT_THAT(none.error(), HasSubstr("; give "));
}

TEST(Late, WithoutLateShapesAreFixed) {
  const Floats x{0, 1, 2, -1};
  const Ints four{4};
  const float t = 1.5f;
  Session session(
      chosen(),
      {{"x", HEDDLE_F32, four.data(), 1, x.data()}, {"t", HEDDLE_F32, kNone.data(), 0, &t}}, false);
  session.set_shape(0, {5});
  EXPECT_THAT(session.error(), HasSubstr("open the model with `late`"));
}

}  // namespace
}  // namespace heddle::api
