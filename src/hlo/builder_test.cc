#include "hlo/builder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "hlo/shape_test_util.h"
#include "hlo/verify.h"

namespace heddle::hlo {
namespace {

class BuilderTest : public testing::Test {
 protected:
  BuilderTest() { module.set_entry(c); }
  ~BuilderTest() override {
    if (!c->root()) c->set_root(b.tuple({}));
    const Status status = verify(module);
    EXPECT_TRUE(status) << status.error().message;
  }
  Instr* param(const std::string& shape) {
    return b.parameter(static_cast<int64_t>(c->parameters().size()), shape_of(shape));
  }
  static std::string text(const Instr* instr) { return to_string(instr->shape(), false); }
  // Opcodes from x down its first operands.
  static std::string chain(const Instr* x) {
    std::string out(opcode_text(x->opcode()));
    return x->operands().empty() ? out : out + " < " + chain(x->operand(0));
  }
  std::string error() const { return b.status() ? "" : b.status().error().message; }

  Module module{"m"};
  Computation* c = module.add_computation("main");
  Builder b{c};
};

TEST_F(BuilderTest, ElementwiseAndConstants) {
  Instr* x = param("f32[2,3]");
  EXPECT_EQ(text(b.unary(Opcode::tanh, x)), "f32[2,3]");
  EXPECT_EQ(text(b.compare(Direction::lt, x, b.full(x->shape(), 2))), "pred[2,3]");
  EXPECT_EQ(text(b.select(b.compare(Direction::lt, x, x), x, x)), "f32[2,3]");
  EXPECT_EQ(text(b.clamp(b.scalar(Type::f32, 0), x, b.scalar(Type::f32, 6))), "f32[2,3]");
  EXPECT_EQ(b.convert(x, Type::f32), x);
  EXPECT_EQ(text(b.convert(x, Type::bf16)), "bf16[2,3]");
  EXPECT_EQ(text(b.bitcast_convert(x, shape_of("u8[2,3,4]"))), "u8[2,3,4]");
  EXPECT_EQ(b.scalar(Type::s32, -7)->literal().get_s64(0), -7);
  EXPECT_EQ(b.scalar(Type::c64, 2)->literal().get_complex(0), std::complex<double>(2));
  EXPECT_TRUE(b.full(Shape::scalar(Type::f32), 1)->is(Opcode::constant));
  EXPECT_EQ(error(), "");
  b.check();
}

TEST_F(BuilderTest, NumpyBroadcasting) {
  Instr* x = param("f32[2,3]");
  EXPECT_EQ(text(b.binary_broadcast(Opcode::add, x, param("f32[3]"))), "f32[2,3]");
  EXPECT_EQ(text(b.binary_broadcast(Opcode::add, param("f32[4,1,1]"), x)), "f32[4,2,3]");
  Instr* mixed = b.binary_broadcast(Opcode::add, param("f32[2,1]"), param("f32[1,3]"));
  EXPECT_EQ(text(mixed), "f32[2,3]");
  EXPECT_EQ(chain(mixed), "add < broadcast < reshape < parameter");
  Instr* same = b.binary_broadcast(Opcode::add, x, x);
  EXPECT_EQ(chain(same), "add < parameter");  // nothing is stretched
  EXPECT_EQ(text(b.compare_broadcast(Direction::eq, x, param("f32[]"))), "pred[2,3]");
  EXPECT_EQ(text(b.binary_broadcast(Opcode::add, param("f32[0,3]"), param("f32[1,3]"))),
            "f32[0,3]");
  EXPECT_EQ(text(b.binary_broadcast(Opcode::add, param("f32[<=8,1]"), param("f32[3]"))),
            "f32[<=8,3]");
  EXPECT_EQ(error(), "");
}

TEST_F(BuilderTest, BroadcastForms) {
  Instr* x = param("f32[<=2,3]");
  EXPECT_EQ(text(b.broadcast(x, {2, 5, 3}, {0, 2})), "f32[<=2,5,3]");
  EXPECT_EQ(text(b.broadcast_to(x, {7, 2, 3})), "f32[7,<=2,3]");
  EXPECT_EQ(b.broadcast_to(x, {2, 3}), x);
  EXPECT_EQ(error(), "");
  b.broadcast_to(x, {2, 4});
  EXPECT_EQ(error(), "broadcast: f32[<=2,3] and f32[<=2,4] do not broadcast (operands 0 and 1)");
}

TEST_F(BuilderTest, ReshapeKeepsWhatPassesThrough) {
  tensor::Dim n(8);
  n.dynamic = true;
  n.symbol = "n";
  Instr* x = b.parameter(0, Shape(Type::f32, {n, 4, 6}), "x");
  Instr* front = b.reshape(x, {8, 24});
  EXPECT_EQ(front->shape().dims()[0], n);
  EXPECT_FALSE(front->shape().dims()[1].dynamic);
  EXPECT_EQ(text(b.reshape(x, {32, 6})), "f32[<=32,6]");
  EXPECT_EQ(text(b.reshape(x, {1, 2, 16, 6})), "f32[1,<=2,16,6]");
  EXPECT_EQ(text(b.reshape(b.transpose(x, {1, 2, 0}), {24, 8})), "f32[24,<=8]");
  EXPECT_EQ(error(), "");
}

TEST_F(BuilderTest, Movement) {
  Instr* x = param("f32[4,6]");
  EXPECT_EQ(text(b.transpose(x, {1, 0})), "f32[6,4]");
  EXPECT_EQ(text(b.slice(x, {1, 0}, {3, 6}, {})), "f32[2,6]");
  EXPECT_EQ(text(b.slice(x, {0, 0}, {4, 6}, {1, 2})), "f32[4,3]");
  EXPECT_EQ(text(b.pad(x, b.scalar(Type::f32, 0), {1, 0}, {0, 2}, {})), "f32[5,8]");
  EXPECT_EQ(text(b.concatenate({x, x}, 1)), "f32[4,12]");
  EXPECT_EQ(text(b.reverse(x, {0})), "f32[4,6]");
  EXPECT_EQ(text(b.iota(shape_of("s32[4,2]"), 1)), "s32[4,2]");
  Instr* i = b.scalar(Type::s32, 1);
  EXPECT_EQ(text(b.dynamic_slice(x, {i, i}, {2, 3})), "f32[2,3]");
  EXPECT_EQ(text(b.dynamic_update_slice(x, param("f32[1,1]"), {i, i})), "f32[4,6]");
  EXPECT_EQ(error(), "");
}

TEST_F(BuilderTest, Take) {
  Instr* x = param("f32[4,5,6]");
  EXPECT_EQ(text(b.take(x, param("s32[]"), 1)), "f32[4,6]");
  EXPECT_EQ(text(b.take(x, param("s32[2,3]"), 1)), "f32[4,2,3,6]");
  EXPECT_EQ(text(b.take(x, param("s64[7]"), -1)), "f32[4,5,7]");
  EXPECT_EQ(text(b.take(x, param("s64[7]"), 0)), "f32[7,5,6]");
  EXPECT_EQ(error(), "");
  b.take(x, param("s64[7]"), 3);
  EXPECT_EQ(error(), "take: axis 3 of f32[4,5,6] by s64[7]");
}

TEST_F(BuilderTest, Reductions) {
  Instr* x = param("f32[4,6]");
  Instr* sum = b.reduce(Opcode::add, x, {1});
  EXPECT_EQ(text(sum), "f32[4]");
  EXPECT_EQ(b.reduce(Opcode::add, x, {0})->called(), sum->called());  // made once
  Instr* max = b.reduce(Opcode::maximum, x, {0, 1});
  EXPECT_EQ(max->operand(1)->literal().get_f64(0), -INFINITY);
  EXPECT_NE(max->called(), sum->called());
  Window window;
  window.dims = {{.size = 2, .stride = 2}, {.size = 3, .stride = 3}};
  EXPECT_EQ(text(b.reduce_window(Opcode::maximum, x, b.scalar(Type::f32, 0), window)), "f32[2,2]");
  Instr* both = b.reduce({x, x}, {b.scalar(Type::f32, 0), b.scalar(Type::f32, 0)}, {1}, [&] {
    Computation* pair = module.add_computation("pair");
    Builder p(pair);
    std::vector<Instr*> ps;
    for (int64_t i = 0; i < 4; ++i) ps.push_back(p.parameter(i, Shape::scalar(Type::f32)));
    pair->set_root(
        p.tuple({p.binary(Opcode::add, ps[0], ps[2]), p.binary(Opcode::maximum, ps[1], ps[3])}));
    return pair;
  }());
  EXPECT_EQ(text(both), "(f32[4], f32[4])");
  EXPECT_EQ(text(b.get_tuple_element(both, 1)), "f32[4]");
  EXPECT_EQ(error(), "");
}

TEST_F(BuilderTest, ScalarComputationLeavesOthersAlone) {
  // The name is already used by a different computation.
  Computation* taken = module.add_computation("scalar_add_f32");
  Builder t(taken);
  taken->set_root(t.parameter(0, Shape::scalar(Type::f32)));
  Computation* mine = b.scalar_computation(Opcode::add, Type::f32);
  EXPECT_NE(mine, taken);
  EXPECT_EQ(b.scalar_computation(Opcode::add, Type::f32), mine);
  EXPECT_NE(b.scalar_computation(Opcode::add, Type::f64), mine);
}

TEST_F(BuilderTest, Contractions) {
  EXPECT_EQ(text(b.matmul(param("f32[2,3]"), param("f32[3,5]"))), "f32[2,5]");
  Instr* rows = b.matmul(param("f32[7,2,3]"), param("f32[3,5]"));
  EXPECT_EQ(text(rows), "f32[7,2,5]");
  EXPECT_EQ(chain(rows), "dot < parameter");
  EXPECT_EQ(text(b.matmul(param("f32[2,3]"), param("f32[7,3,5]"))), "f32[7,2,5]");
  EXPECT_EQ(text(b.matmul(param("f32[7,1,2,3]"), param("f32[8,3,5]"))), "f32[7,8,2,5]");
  EXPECT_EQ(text(b.matmul(param("f32[<=7,2,3]"), param("f32[7,3,5]"))), "f32[<=7,2,5]");
  ConvolutionAttrs conv;
  conv.window.dims = {{.size = 3}};
  conv.dims = {0, 1, 1, 0, 0, 1, {2}, {2}, {2}};  // bf0_oi0->bf0
  EXPECT_EQ(text(b.convolution(param("f32[2,4,9]"), param("f32[6,4,3]"), conv)), "f32[2,6,7]");
  EXPECT_EQ(error(), "");
  b.matmul(param("f32[2,3]"), param("f32[4,5]"));
  EXPECT_EQ(error(), "dot: contracting dims 3 and 4 differ (operand 1 axis 0)");
}

TEST_F(BuilderTest, ControlFlow) {
  const Shape scalar = Shape::scalar(Type::s32);
  Computation* condition = module.add_computation("condition");
  Builder cb(condition);
  condition->set_root(cb.compare(Direction::lt, cb.parameter(0, scalar), cb.scalar(Type::s32, 10)));
  Computation* body = module.add_computation("body");
  Builder bb(body);
  body->set_root(bb.binary(Opcode::add, bb.parameter(0, scalar), bb.scalar(Type::s32, 1)));
  Instr* loop = b.while_loop(condition, body, b.scalar(Type::s32, 0));
  EXPECT_EQ(text(loop), "s32[]");
  EXPECT_EQ(text(b.call(body, {loop})), "s32[]");
  Instr* predicate = b.compare(Direction::eq, loop, loop);
  EXPECT_EQ(text(b.conditional(predicate, loop, body, loop, body)), "s32[]");
  Computation* less = module.add_computation("less");
  Builder lb(less);
  Instr* first = lb.parameter(0, Shape::scalar(Type::f32));
  less->set_root(lb.compare(Direction::lt, first, lb.parameter(1, Shape::scalar(Type::f32))));
  EXPECT_EQ(text(b.sort({param("f32[9]")}, 0, true, less)), "f32[9]");
  EXPECT_EQ(error(), "");
}

TEST_F(BuilderTest, NamesHaveThePrefix) {
  Instr* x = b.parameter(0, shape_of("f32[2]"), "input");
  EXPECT_EQ(x->name(), "input");
  b.set_name("layer1");
  EXPECT_EQ(b.unary(Opcode::tanh, x)->name(), "layer1.tanh");
  b.set_name("");
  EXPECT_EQ(b.unary(Opcode::tanh, x)->name(), "tanh");
}

TEST_F(BuilderTest, TheFirstErrorStays) {
  Instr* x = param("f32[2,3]");
  Instr* bad = b.binary(Opcode::add, x, param("f32[2,4]"));
  EXPECT_EQ(text(bad), "f32[1,1,1,1,1,1,1,1]");
  const std::string first = "add: dims 3 and 4 differ (operand 1 axis 1)";
  EXPECT_EQ(error(), first);
  // All later results are poison, without a crash.
  EXPECT_EQ(b.matmul(bad, x), bad);
  EXPECT_EQ(b.transpose(x, {5}), bad);
  EXPECT_EQ(b.reduce(Opcode::add, x, {9}), bad);
  EXPECT_EQ(b.take(x, bad, 0), bad);
  EXPECT_EQ(b.scalar(Type::f32, 1), bad);
  EXPECT_EQ(b.binary_broadcast(Opcode::add, bad, x), bad);
  EXPECT_EQ(error(), first);
  EXPECT_DEATH(b.check(), "dims 3 and 4 differ");
}

TEST_F(BuilderTest, TuplesInWrongPlacesAreErrors) {
  Instr* t = param("(f32[2])");
  using Make = std::function<Instr*(Builder&)>;
  const std::vector<Make> all = {
      [&](Builder& x) { return x.convert(t, Type::f32); },
      [&](Builder& x) { return x.reshape(t, {2}); },
      [&](Builder& x) { return x.broadcast(t, {2}, {0}); },
      [&](Builder& x) { return x.broadcast_to(t, {2}); },
      [&](Builder& x) { return x.binary_broadcast(Opcode::add, t, t); },
      [&](Builder& x) { return x.compare_broadcast(Direction::eq, t, t); },
      [&](Builder& x) { return x.matmul(t, t); },
      [&](Builder& x) { return x.take(t, t, 0); },
      [&](Builder& x) { return x.reduce(Opcode::add, t, {0}); },
      [&](Builder& x) { return x.reduce_window(Opcode::add, t, t, {}); },
      [&](Builder& x) { return x.full(t->shape(), 0); },
      [&](Builder& x) { return x.get_tuple_element(t, 1); },
  };
  for (size_t i = 0; i < all.size(); ++i) {
    Builder fresh(c);
    all[i](fresh);
    EXPECT_FALSE(fresh.status()) << i;
  }
}

TEST(NeutralValue, OfEveryKindOfType) {
  EXPECT_EQ(neutral_value(Opcode::add, Type::f32).get_f64(0), 0);
  EXPECT_EQ(neutral_value(Opcode::multiply, Type::bf16).get_f64(0), 1);
  EXPECT_EQ(neutral_value(Opcode::multiply, Type::c64).get_complex(0), std::complex<double>(1));
  EXPECT_EQ(neutral_value(Opcode::maximum, Type::f16).get_f64(0), -INFINITY);
  EXPECT_EQ(neutral_value(Opcode::minimum, Type::f64).get_f64(0), INFINITY);
  EXPECT_EQ(neutral_value(Opcode::maximum, Type::f8e4m3fn).get_f64(0), -448);
  EXPECT_EQ(neutral_value(Opcode::maximum, Type::s8).get_s64(0), -128);
  EXPECT_EQ(neutral_value(Opcode::minimum, Type::s64).get_s64(0), INT64_MAX);
  EXPECT_EQ(neutral_value(Opcode::maximum, Type::s4).get_s64(0), -8);
  EXPECT_EQ(neutral_value(Opcode::minimum, Type::u8).get_s64(0), 255);
  EXPECT_EQ(neutral_value(Opcode::maximum, Type::u32).get_s64(0), 0);
  EXPECT_EQ(neutral_value(Opcode::and_, Type::pred).get_s64(0), 1);
  EXPECT_EQ(neutral_value(Opcode::and_, Type::s32).get_s64(0), -1);
  EXPECT_EQ(neutral_value(Opcode::or_, Type::pred).get_s64(0), 0);
  EXPECT_EQ(neutral_value(Opcode::maximum, Type::pred).get_s64(0), 0);
  EXPECT_EQ(neutral_value(Opcode::minimum, Type::pred).get_s64(0), 1);
  // 2^-127 is the smallest of a format without sign and zero.
  EXPECT_EQ(neutral_value(Opcode::maximum, Type::f8e8m0fnu).get_f64(0), std::ldexp(1.0, -127));
}

}  // namespace
}  // namespace heddle::hlo
