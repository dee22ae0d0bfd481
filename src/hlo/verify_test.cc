// Every numbered invariant of module.h, broken once. The interface cannot break most of them, so
// a test peer reaches inside.
#include "hlo/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hlo/builder.h"
#include "hlo/state_arrays.h"

namespace heddle::hlo {

struct InstrTestPeer {
  static std::vector<Instr*>& operands(Instr* i) { return i->operands_; }
  static std::vector<Instr*>& users(Instr* i) { return i->users_; }
  static std::vector<Instr*>& control(Instr* i) { return i->control_predecessors_; }
  static std::vector<Computation*>& called(Instr* i) { return i->called_; }
  static Attrs& attrs(Instr* i) { return i->attrs_; }
  static std::string& name(Instr* i) { return i->name_; }
  static std::string& name(Computation* c) { return c->name_; }
  static Computation*& parent(Instr* i) { return i->parent_; }
  static std::vector<Instr*>& order(Computation* c) { return c->order_; }
  static std::vector<Instr*>& parameters(Computation* c) { return c->parameters_; }
  static Instr*& root(Computation* c) { return c->root_; }
};

namespace {

using Peer = InstrTestPeer;
using testing::HasSubstr;
using testing::StartsWith;

const Shape kShape = Shape::array(Type::f32, {4});

class VerifyTest : public testing::Test {
 protected:
  VerifyTest() {
    x = b.parameter(0, kShape, "x");
    y = b.parameter(1, kShape, "y");
    sum = b.binary(Opcode::add, x, y);
    total = b.reduce(Opcode::add, sum, {0});
    scalar_add = total->called()[0];
    c->set_root(total);
    module.set_entry(c);
  }
  // Another computation with one instruction.
  Instr* stranger() {
    Computation* other = module.add_computation("other");
    Builder builder(other);
    other->set_root(builder.parameter(0, kShape, "z"));
    return other->root();
  }
  std::string errors() const {
    const Status status = verify(module);
    return status ? "" : status.error().message;
  }

  Module module{"m"};
  Computation* c = module.add_computation("main");
  Builder b{c};
  Instr *x, *y, *sum, *total;
  Computation* scalar_add;
};

TEST_F(VerifyTest, AGoodModule) { EXPECT_EQ(errors(), ""); }

TEST_F(VerifyTest, Invariant1OperandsBelong) {
  Instr* z = stranger();
  Peer::operands(sum)[1] = z;
  EXPECT_THAT(errors(),
              HasSubstr("invariant 1: %add in %main: operand 1 is not of its computation"));
  Peer::operands(sum)[1] = y;
  Peer::control(sum).push_back(z);
  EXPECT_EQ(errors(),
            "invariant 1: %add in %main: a control predecessor is not of its computation");
  Peer::control(sum).clear();
  Peer::users(x).push_back(z);
  EXPECT_EQ(errors(), "invariant 1: %x in %main: a user is not of its computation");
  Peer::users(x).pop_back();
  Peer::parent(sum) = z->parent();
  EXPECT_EQ(errors(), "invariant 1: %add in %main: its parent is another computation");
  Peer::parent(sum) = c;
}

TEST_F(VerifyTest, Invariant2OperandsStandBefore) {
  std::swap(Peer::order(c)[1], Peer::order(c)[2]);
  EXPECT_EQ(errors(), "invariant 2: %add in %main: operand 1 (%y) comes after it");
}

TEST_F(VerifyTest, Invariant2Cycle) {
  Instr* first = b.unary(Opcode::negate, sum);
  Instr* second = b.unary(Opcode::negate, first);
  c->replace_operand(first, 0, second);
  EXPECT_THAT(errors(), StartsWith("invariant 2: %negate"));
}

TEST_F(VerifyTest, Invariant3Users) {
  Peer::users(x).push_back(sum);
  EXPECT_EQ(errors(), "invariant 3: %x in %main: a user is listed twice");
  Peer::users(x) = {};
  EXPECT_EQ(errors(), "invariant 3: %x in %main: 0 users are listed, 1 have it as operand");
  Peer::users(x) = {sum, total};
  EXPECT_EQ(errors(), "invariant 3: %x in %main: its user %reduce does not have it as operand");
}

TEST_F(VerifyTest, Invariant4Row) {
  Peer::attrs(sum) = DotAttrs{};
  EXPECT_EQ(errors(), "invariant 4: %add in %main: add has attributes of another opcode");
  Peer::attrs(sum) = NoAttrs{};
  Peer::operands(sum).pop_back();
  Peer::users(y).clear();
  EXPECT_EQ(errors(), "invariant 4: %add in %main: add: 1 operands, 2 wanted");
  Peer::operands(sum).push_back(y);
  Peer::users(y).push_back(sum);
  Peer::called(total).clear();
  EXPECT_EQ(errors(), "invariant 4: %reduce in %main: reduce: 0 called computations, wanted 1");
}

TEST_F(VerifyTest, Invariant5Shape) {
  sum->set_shape(Shape::array(Type::f32, {5}));
  EXPECT_EQ(errors(),
            "invariant 5: %add in %main: add: declared f32[5], but its operands give f32[4]");
}

TEST_F(VerifyTest, Invariant6Parameters) {
  y->mutable_attrs_as<ParameterAttrs>().number = 0;
  EXPECT_THAT(errors(), HasSubstr("invariant 6: %y in %main: parameter 0 appears twice"));
  y->mutable_attrs_as<ParameterAttrs>().number = 2;
  EXPECT_THAT(errors(), HasSubstr("invariant 6: %main: 2 parameters are numbered 0 to 2"));
  y->mutable_attrs_as<ParameterAttrs>().number = 1;
  std::swap(Peer::parameters(c)[0], Peer::parameters(c)[1]);
  EXPECT_EQ(errors(), "invariant 6: %main: parameters() does not list its parameters by number");
}

TEST_F(VerifyTest, Invariant7Called) {
  Module other("other");
  Computation* foreign = other.clone_computation(*scalar_add);
  Peer::called(total)[0] = foreign;
  EXPECT_EQ(errors(),
            "invariant 7: %reduce in %main: it calls a computation that is not of the module");
}

TEST_F(VerifyTest, Invariant7Cycle) {
  Instr* z = stranger();
  Computation* other = z->parent();
  Builder builder(other);
  Instr* call = builder.call(other, {z});
  EXPECT_EQ(errors(), "invariant 7: %other calls %other, which calls it");
  other->remove(call);
}

TEST_F(VerifyTest, Invariant8Signature) {
  scalar_add->parameters()[0]->set_shape(Shape::scalar(Type::f64));
  EXPECT_THAT(errors(), HasSubstr("invariant 8: %reduce in %main: reduce: scalar_add_f32 is "
                                  "(f64[], f32[]) -> f32[], wanted (f32[], f32[]) -> f32[]"));
}

TEST_F(VerifyTest, Invariant9Names) {
  Peer::name(sum) = "x";
  EXPECT_EQ(errors(), "invariant 9: two instructions of %main are named %x");
  Peer::name(sum) = "add";
  Peer::name(scalar_add) = "main";
  EXPECT_EQ(errors(), "invariant 9: two computations are named %main");
}

TEST_F(VerifyTest, Invariant10RootAndEntry) {
  Peer::root(c) = nullptr;
  EXPECT_EQ(errors(), "invariant 10: %main has no root");
  Peer::root(c) = scalar_add->root();
  EXPECT_EQ(errors(), "invariant 10: the root of %main is not one of its instructions");
  Peer::root(c) = total;
  module.set_entry(nullptr);
  EXPECT_EQ(errors(), "invariant 10: the module has no entry");
  Module other("other");
  module.set_entry(other.clone_computation(*scalar_add));
  EXPECT_EQ(errors(), "invariant 10: the entry is not a computation of the module");
}

TEST_F(VerifyTest, Invariant11Aliases) {
  c->set_root(b.tuple({sum, total}));
  module.input_output_alias = {{{0}, 1, {}, false}};
  EXPECT_EQ(errors(), "");
  module.input_output_alias = {{{0}, 1, {}, false}, {{0}, 0, {}, true}};
  EXPECT_EQ(errors(),
            "invariant 11: alias of output {0} and parameter 0 {}: the output has another alias");
  module.input_output_alias = {{{1}, 1, {}, false}};
  EXPECT_EQ(errors(),
            "invariant 11: alias of output {1} and parameter 1 {}: f32[] and f32[4] differ");
  module.input_output_alias = {{{0}, 2, {}, false}};
  EXPECT_EQ(errors(),
            "invariant 11: alias of output {0} and parameter 2 {}: there is no such parameter");
  module.input_output_alias = {{{}, 0, {}, false}, {{0, 0}, 0, {}, false}};
  EXPECT_EQ(errors(),
            "invariant 11: alias of output {} and parameter 0 {}: there is no such output\n"
            "invariant 11: alias of output {0, 0} and parameter 0 {}: there is no such output");
}

TEST_F(VerifyTest, Invariant12ControlCycle) {
  c->add_control_edge(total, sum);
  EXPECT_THAT(errors(), HasSubstr("invariant "));
  Peer::control(sum).clear();
  c->sort();
  EXPECT_EQ(errors(), "");
  Peer::control(sum).push_back(total);  // the order is left alone
  EXPECT_EQ(errors(), "invariant 12: %add in %main: its control predecessor %reduce depends on it");
}

TEST_F(VerifyTest, Invariant13States) {
  const std::string wrong = "invariant 13: the states are not the last parameters and results";
  const Literal start(y->shape());
  set_states(&module, {start});
  EXPECT_EQ(errors(), wrong) << "the root is no tuple";
  c->set_root(b.tuple({total, sum}));
  EXPECT_EQ(errors(), "");
  EXPECT_EQ(states_of(module), std::vector<Literal>{start});
  EXPECT_EQ(states_of(*module.clone()), std::vector<Literal>{start});
  set_states(&module, {start, start, start});
  EXPECT_EQ(errors(), wrong) << "more than there are parameters";
  set_states(&module, {Literal(Shape::array(Type::f32, {5}))});
  EXPECT_EQ(errors(), wrong) << "a number too many";
  EXPECT_TRUE(states_of(module).empty());
  for (const char* text :
       {"", "{", "{0 0 0 0 x}", "{0 0 0 0 -}", "{0 0 0 0 99999999999999999999}", "0 0 0 0"})
    EXPECT_THAT(read_states(text).error().message, HasSubstr("heddle_states: got '")) << text;
  set_states(&module, {});
  EXPECT_TRUE(module.states.empty());
  EXPECT_EQ(errors(), "");
}

TEST_F(VerifyTest, CollectsAllViolations) {
  sum->set_shape(Shape::array(Type::f32, {5}));
  y->mutable_attrs_as<ParameterAttrs>().number = 7;
  module.input_output_alias = {{{0}, 1, {}, false}};
  const std::string all = errors();
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 2) << all;
}

}  // namespace
}  // namespace heddle::hlo
