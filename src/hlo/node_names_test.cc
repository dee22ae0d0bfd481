#include "hlo/node_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hlo/builder.h"
#include "hlo/module.h"
#include "hlo/text.h"

namespace heddle::hlo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Shape kShape = Shape::array(Type::f32, {4});

NodeNames names(std::initializer_list<const char*> list) {
  NodeNames all;
  for (const char* name : list) all.add(NodeNames(name));
  return all;
}

TEST(NodeNames, UnionsKeepTheirOrderAndEachNameOnce) {
  NodeNames a = names({"x", "y"});
  a.add(names({"y", "z", "x"}));
  EXPECT_THAT(a.list(), ElementsAre("x", "y", "z"));
  a.add(a);
  a.add({});
  EXPECT_THAT(a.list(), ElementsAre("x", "y", "z"));
  EXPECT_THAT(NodeNames().list(), IsEmpty());
  EXPECT_THAT(NodeNames("").list(), IsEmpty());
}

TEST(NodeNames, TextReadsBack) {
  const NodeNames odd = names({"a;b", "%3B", "100%25", "50%", "\"quoted\"", "%253B"});
  EXPECT_EQ(odd.text(8), "a%3Bb;%253B;100%2525;50%;\"quoted\";%25253B");
  EXPECT_EQ(NodeNames::from_text(odd.text(8)), odd);
  EXPECT_EQ(odd.text(2), "a%3Bb;%253B;...");
  EXPECT_EQ(NodeNames::from_text("a;b;...").text(2), "a;b;...");  // reads as it prints
  EXPECT_THAT(NodeNames::from_text(odd.text(2)).list(), ElementsAre("a;b", "%3B", "..."));
}

// Lists that grow by one name per step, all kept: a step costs neither memory nor time in
// proportion to its list, and destroying the chain does not recurse.
TEST(NodeNames, LongChainsAreCheap) {
  std::vector<NodeNames> steps{NodeNames("0")};
  for (int i = 1; i < 200'000; ++i) {
    NodeNames next(std::to_string(i));
    next.add(steps.back());
    steps.push_back(next);
  }
  EXPECT_EQ(steps.back().list().size(), 200'000u);
  EXPECT_EQ(steps.back().list()[0], "199999");
  steps.erase(steps.begin(), steps.end() - 1);
}

TEST(NodeNames, MetadataKeepsItsOtherFields) {
  std::string text = "{op_type=\"Add\" op_name=\"a}b;c\" source_line=3}";
  const NodeNames taken = take_op_name(&text);
  EXPECT_THAT(taken.list(), ElementsAre("a}b", "c"));
  EXPECT_EQ(text, "{op_type=\"Add\" source_line=3}");
  EXPECT_EQ(with_op_name(text, taken, 8), "{op_type=\"Add\" op_name=\"a}b;c\" source_line=3}");
  for (const char* other : {"{}", "{source_line=3}", "{source_file=\"op_name=\\\"no\\\"\"}"}) {
    text = other;
    EXPECT_THAT(take_op_name(&text).list(), IsEmpty()) << other;
    EXPECT_EQ(text, other);
    text = with_op_name(other, taken, 8);
    EXPECT_THAT(text, HasSubstr("op_name=\"a}b;c\""));
    EXPECT_EQ(take_op_name(&text), taken) << other;
    EXPECT_EQ(text, other);
  }
  text = "{op_name=\"only\"}";
  EXPECT_THAT(take_op_name(&text).list(), ElementsAre("only"));
  EXPECT_EQ(text, "{}");
}

class HandingOn : public testing::Test {
 protected:
  Instr* named(Instr* instr, const char* name) {
    instr->add_nodes(NodeNames(name));
    return instr;
  }
  Module module{"m"};
  Computation* main = module.add_computation("main");
  Builder b{main};
  Instr* x = b.parameter(0, kShape, "x");
};

TEST_F(HandingOn, WhatReplacesTakesTheNamesOfAllThatDies) {
  Instr* kept = named(b.unary(Opcode::tanh, x), "kept");
  Instr* inner = named(b.unary(Opcode::exponential, kept), "inner");
  Instr* old = named(b.unary(Opcode::negate, inner), "old");
  main->set_root(b.tuple({old, kept}));
  Instr* helper = b.unary(Opcode::abs, kept);
  Instr* made = b.unary(Opcode::sqrt, helper);
  main->replace_all_uses(old, made);
  EXPECT_THAT(made->nodes().list(), ElementsAre("old", "inner"));
  EXPECT_THAT(helper->nodes().list(), ElementsAre("old", "inner"));
  EXPECT_THAT(kept->nodes().list(), ElementsAre("kept"));  // still used: its name is not taken
}

TEST_F(HandingOn, WhatIsThereAlreadyGetsBoth) {
  Instr* one = named(b.unary(Opcode::tanh, x), "one");
  Instr* two = named(b.unary(Opcode::tanh, x), "two");
  main->set_root(b.tuple({one, two}));
  main->replace_all_uses(two, one);
  EXPECT_THAT(one->nodes().list(), ElementsAre("one", "two"));
}

// Parameters and constants compute nothing: their readers get the names.
TEST_F(HandingOn, ParametersAndConstantsPassThemToReaders) {
  Instr* same = named(b.reshape(x, {4}), "reshape");
  Instr* reader = named(b.unary(Opcode::tanh, same), "tanh");
  main->set_root(b.tuple({reader}));
  main->replace_all_uses(same, x);
  EXPECT_THAT(reader->nodes().list(), ElementsAre("tanh", "reshape"));
  EXPECT_TRUE(x->nodes().empty());
  Instr* folded = named(b.unary(Opcode::negate, x), "folded");
  Instr* other = named(b.binary(Opcode::add, folded, x), "other");
  main->set_root(other);
  main->replace_all_uses(folded, b.broadcast(b.scalar(Type::f32, 2), {4}, {}));
  EXPECT_THAT(other->nodes().list(), ElementsAre("other", "folded"));
  EXPECT_TRUE(other->operand(0)->nodes().empty()) << "all who read this number would have it";
}

TEST_F(HandingOn, ANewOperandIsOfItsReader) {
  Instr* turned = named(b.unary(Opcode::negate, x), "negate");
  Instr* reader = named(b.unary(Opcode::tanh, turned), "tanh");
  main->set_root(reader);
  Instr* instead = b.unary(Opcode::abs, x);
  main->replace_operand(reader, 0, instead);
  EXPECT_THAT(reader->nodes().list(), ElementsAre("tanh", "negate"));
  EXPECT_THAT(instead->nodes().list(), ElementsAre("tanh", "negate"));
}

TEST_F(HandingOn, CopiesAndTextKeepThem) {
  module.set_entry(main);
  main->set_root(named(b.unary(Opcode::tanh, x), "layer/Tanh"));
  for (int i = 0; i < 9; ++i) main->root()->add_nodes(NodeNames("more" + std::to_string(i)));
  EXPECT_EQ(module.clone()->entry()->root()->nodes(), main->root()->nodes());
  const std::string text = to_string(module);
  EXPECT_THAT(text, HasSubstr("metadata={op_name=\"layer/Tanh;more0;more1;more2;more3;more4;more5;"
                              "more6;...\"}"));
  const auto parsed = parse_module(text);
  ASSERT_TRUE(parsed);
  EXPECT_EQ((*parsed)->entry()->root()->nodes().list().size(), 9u);  // "..." is one
  EXPECT_EQ(to_string(**parsed).find("more7"), std::string::npos);
  const auto all = parse_module(to_string(module, {.max_nodes = 100}));
  ASSERT_TRUE(all);
  EXPECT_EQ((*all)->entry()->root()->nodes(), main->root()->nodes());
}

// The first few of a long list are found at its head; if the head has few distinct names, after it.
TEST(NodeNames, TheFirstOfALongListAreThoseOfTheList) {
  NodeNames names, again;
  for (int i = 0; i < 300; ++i) names.add(NodeNames("n" + std::to_string(i)));
  EXPECT_EQ(names.text(3), "n0;n1;n2;...");
  EXPECT_THAT(names.text(400), HasSubstr(";n299"));
  NodeNames pair("a");
  pair.add(NodeNames("b"));
  for (int i = 0; i < 10; ++i) {  // doubled each time: many parts, two names
    NodeNames more = pair;
    more.add(NodeNames("c" + std::to_string(i % 2)));
    again.add(more);
    again.add(again.list().size() > 3 ? NodeNames("z" + std::to_string(i)) : NodeNames());
    NodeNames twice = again;
    twice.add(names);
    again = twice;
  }
  std::string first;
  const auto all = again.list();
  for (size_t i = 0; i < 5; ++i) first += std::string(all[i]) + ";";
  EXPECT_EQ(again.text(5), first + "...");
}

TEST_F(HandingOn, AListOfSeveralHasWhatTheyCall) {
  Computation* body = module.add_computation("body");
  Builder inner(body);
  Instr* p = inner.parameter(0, kShape, "p");
  body->set_root(named(inner.unary(Opcode::negate, named(inner.unary(Opcode::tanh, p), "a")), "b"));
  Instr* call = named(b.call(body, {x}), "call");
  NodeList list;
  list.add(*call);
  list.add(*call);
  EXPECT_THAT(list.names(), ElementsAre("call", "a", "b"));
}

}  // namespace
}  // namespace heddle::hlo
