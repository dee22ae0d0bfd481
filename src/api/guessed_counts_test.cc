// Counts that data decides and that nothing bounds (how long a Range is): programs are for a guess,
// beside bounded dimensions of inputs, and for more where a run had more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "api/late_test_util.h"

namespace heddle::api {
namespace {

using import::testing::attr;
using import::testing::ints_tensor;
using import::testing::kFloat;
using import::testing::kInt64;
using import::testing::node;
using import::testing::value;
using testing::Floats;
using testing::Ints;
using testing::Session;

// Each element of x as often as `times` says, as PyTorch writes repeat_interleave.
import::testing::Model repeated() {
  import::testing::Model model;
  model.inputs = {value("x", kFloat, {"n"}), value("times", kInt64, {"n"})};
  model.constants = {ints_tensor("zero", {0}), ints_tensor("one", {1}), ints_tensor("last", {-1}),
                     ints_tensor("second", {1})};
  model.nodes = {node("Exp", {"x"}, {"e"}),
                 node("CumSum", {"times", "zero"}, {"ends"}),
                 node("Gather", {"ends", "last"}, {"all"}),
                 node("Squeeze", {"all"}, {"total"}),
                 node("Range", {"zero", "total", "one"}, {"places"}),
                 node("Unsqueeze", {"places", "second"}, {"rows"}),
                 node("GreaterOrEqual", {"rows", "ends"}, {"behind"}),
                 node("Cast", {"behind"}, {"ones"}, {attr("to", int64_t{kInt64})}),
                 node("ReduceSum", {"ones", "second"}, {"at"}, {attr("keepdims", int64_t{0})}),
                 node("Gather", {"e", "at"}, {"y"})};
  model.typed_outputs = {value("y", kFloat, {"k"})};
  return model;
}

struct Sizes {
  Floats x, y;
  Ints times;
};

Sizes sizes_of(int64_t n, int64_t most) {
  Sizes run;
  for (int64_t i = 0; i < n; ++i) {
    run.x.push_back(std::sin(static_cast<float>(i + n)));
    run.times.push_back(1 + i * 7 % most);
    run.y.insert(run.y.end(), static_cast<size_t>(run.times.back()), std::exp(run.x.back()));
  }
  return run;
}

void expect_right(Session* session, int64_t n, int64_t most) {
  const Sizes run = sizes_of(n, most);
  session->set_shape(0, {n});
  session->set_shape(1, {n});
  const Floats y = session->run(run.x.data(), run.times.data());
  ASSERT_EQ(session->error(), "");
  EXPECT_EQ(session->dims(), (Ints{std::ssize(run.y)}));
  EXPECT_THAT(y, ::testing::Pointwise(::testing::FloatNear(1e-5f), run.y)) << n << " " << most;
}

TEST(GuessedCounts, ManySizesAreAFewPrograms) {
  Session session(repeated(), {}, true);
  ASSERT_EQ(session.error(), "");
  for (int64_t k = 0; k < 40; ++k) expect_right(&session, 1 + k * 37 % 60, 4);
  EXPECT_LE(session.compilations(), 6);
}

TEST(GuessedCounts, ARunOfMoreIsOfALargerProgram) {
  Session session(repeated(), {}, true);
  ASSERT_EQ(session.error(), "");
  for (const int64_t most : {1, 2, 40, 3, 90, 5}) expect_right(&session, 30, most);
  expect_right(&session, 31, 700);
  expect_right(&session, 60, 900);  // some 27,000: more than is guessed
  expect_right(&session, 31, 7);
}

// A run that is made again would draw again: where a state is kept, the count is decided.
TEST(GuessedCounts, NotWhereAStateIsKept) {
  import::testing::Model model = repeated();
  model.nodes.push_back(node("RandomUniform", {}, {"drawn"}, {attr("shape", Ints{3})}));
  model.typed_outputs.push_back(value("drawn", kFloat, {"3"}));
  Session session(model, {}, true);
  ASSERT_EQ(session.error(), "");
  for (const int64_t most : {1, 2, 3}) {
    const Sizes run = sizes_of(9, most);
    session.set_shape(0, {9});
    session.set_shape(1, {9});
    heddle_context* const context = session.context();
    const auto fine = [](heddle_status* status) {
      EXPECT_EQ(status, nullptr) << heddle_status_message(status);
      heddle_status_free(status);
    };
    fine(heddle_context_bind_input(context, 0, run.x.data()));
    fine(heddle_context_bind_input(context, 1, run.times.data()));
    fine(heddle_context_prepare(context));
    EXPECT_EQ(session.dims(), (Ints{std::ssize(run.y)}));
  }
  EXPECT_EQ(session.compilations(), 3) << "one for each length";
}

// What prepare() has run is run again where the values are others then.
TEST(GuessedCounts, ValuesMayChangeBehindPrepare) {
  Session session(repeated(), {}, true);
  for (int64_t n = 7; n < 10; ++n) expect_right(&session, n, 3);
  Floats x(9, 0);
  Ints times(9, 1);
  Floats y(9, 0);
  const auto fine = [](heddle_status* status) {
    EXPECT_EQ(status, nullptr) << heddle_status_message(status);
    heddle_status_free(status);
  };
  fine(heddle_context_bind_input(session.context(), 0, x.data()));
  fine(heddle_context_bind_input(session.context(), 1, times.data()));
  fine(heddle_context_prepare(session.context()));
  fine(heddle_context_bind_output(session.context(), 0, y.data()));
  x.assign(9, 1);
  fine(heddle_context_run(session.context()));
  EXPECT_THAT(y, ::testing::Each(::testing::FloatNear(std::exp(1.0f), 1e-5f)));
  times[0] = 3;
  heddle_status* const longer = heddle_context_run(session.context());
  ASSERT_NE(longer, nullptr);
  EXPECT_THAT(heddle_status_message(longer), ::testing::HasSubstr("its memory was bound for"));
  heddle_status_free(longer);
}

}  // namespace
}  // namespace heddle::api
