// Modules as text: accepted forms, printed form, and errors.
#include "hlo/text.h"
#include "hlo/loop_trips.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "hlo/loop_trips.h"
#include "hlo/text_test_util.h"
#include "hlo/verify.h"

namespace heddle::hlo {
namespace {

using testing::HasSubstr;

std::unique_ptr<Module> parsed(std::string_view text) {
  Result<std::unique_ptr<Module>> module = parse_module(text);
  EXPECT_TRUE(module) << module.error().message << "\n" << text;
  if (!module) return nullptr;
  const Status valid = verify(**module);
  EXPECT_TRUE(valid) << valid.error().message << "\n" << text;
  expect_round_trip(**module, "");
  return std::move(*module);
}

std::string error_of(std::string_view text) {
  Result<std::unique_ptr<Module>> module = parse_module(text);
  return module ? "no error" : module.error().message;
}

// The body of an ENTRY with parameters %x, %y of f32[2,3].
std::string in_entry(std::string_view lines) {
  return fmt::format(
      "HloModule m\nENTRY %e {{\n  %x = f32[2,3]{{1,0}} parameter(0)\n"
      "  %y = f32[2,3]{{1,0}} parameter(1)\n  {}\n}}\n",
      lines);
}

// The modules of a file in its own formatting, without comments and blank lines.
std::string canonical(const std::string& file) {
  std::string out;
  for (size_t at = 0; at < file.size();) {
    const size_t end = std::min(file.find('\n', at), file.size());
    const std::string line = file.substr(at, end - at);
    if (!line.empty() && !line.starts_with("//")) out += line + "\n";
    at = end + 1;
  }
  return out;
}

TEST(Text, FilesOfOpcodesPrintAsTheyAre) {
  std::set<Opcode> seen;
  for (const char* name : {"ops_elementwise.hlo", "ops_data.hlo", "ops_control.hlo"}) {
    const std::string file = testdata(name);
    auto modules = parse_modules(file);
    ASSERT_TRUE(modules) << name << ": " << modules.error().message;
    std::string printed;
    for (const auto& module : *modules) {
      const Status valid = verify(*module);
      EXPECT_TRUE(valid) << name << ": " << valid.error().message;
      expect_round_trip(*module, name);
      printed += to_string(*module);
      for (const auto& computation : module->computations())
        for (const Instr* instr : computation->instrs()) seen.insert(instr->opcode());
    }
    EXPECT_EQ(canonical(printed), canonical(file)) << name;
  }
  for (int i = 0; i < kOpcodeCount; ++i)
    EXPECT_TRUE(seen.contains(static_cast<Opcode>(i)))
        << opcode_text(static_cast<Opcode>(i)) << " is in no test file";
}

TEST(Text, ShortFormsSettleAfterOneStep) {
  for (const char* name : {"syntax.hlo", "literals.hlo"}) {
    auto modules = parse_modules(testdata(name));
    ASSERT_TRUE(modules) << name << ": " << modules.error().message;
    for (const auto& module : *modules) {
      const Status valid = verify(*module);
      EXPECT_TRUE(valid) << name << ": " << valid.error().message;
      expect_round_trip(*module, name);
    }
  }
}

TEST(Text, SplitsFiles) {
  auto modules = parse_modules(testdata("syntax.hlo"));
  ASSERT_TRUE(modules) << modules.error().message;
  ASSERT_EQ(modules->size(), 6u);
  EXPECT_EQ((*modules)[0]->name(), "short_forms");
  EXPECT_EQ((*modules)[2]->name(), "main");  // of its entry
  EXPECT_EQ((*modules)[4]->name(), "dot");   // of its instruction

  auto two = parse_modules(
      "HloModule a\nENTRY e {\n  x = f32[] parameter(0)\n}\n"
      "HloModule b\nENTRY e {\n  x = f32[] parameter(0)\n}\n"
      "// -----\n// nothing here\n");
  ASSERT_TRUE(two) << two.error().message;
  EXPECT_EQ(two->size(), 2u);
  auto none = parse_modules("// only HloModule in a comment\n");
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
  auto late = parse_modules("// one\n// -----\n// two\nHloModule m\nENTRY e { x = add() }\n");
  EXPECT_THAT(late.error().message, HasSubstr("5:11: "));  // lines of the whole file
}

TEST(Text, Header) {
  auto module = parsed(
      "HloModule m, is_scheduled=true, input_output_alias={ {0}: (1, {}, must-alias), {1}: (0, {}) "
      "}, entry_computation_layout={(f32[2]{0}, f32[3])->(f32[3], f32[2])}, replica_count=2, "
      "num_partitions=4, frontend_attributes={a=\"b, c\"}, "
      "allow_spmd_sharding_propagation_to_output={true,false}\n"
      "ENTRY e {\n  p = f32[2] parameter(0)\n  q = f32[3] parameter(1)\n"
      "  ROOT t = (f32[3], f32[2]) tuple(q, p)\n}\n");
  ASSERT_TRUE(module);
  EXPECT_TRUE(module->is_scheduled);
  ASSERT_EQ(module->input_output_alias.size(), 2u);
  EXPECT_EQ(module->input_output_alias[0], (Alias{{0}, 1, {}, true}));
  EXPECT_EQ(module->input_output_alias[1], (Alias{{1}, 0, {}, false}));
  EXPECT_EQ(module->replica_count, 2);
  EXPECT_EQ(module->num_partitions, 4);
  ASSERT_EQ(module->header.size(), 2u);
  EXPECT_EQ(module->header[0].second, "{a=\"b, c\"}");
}

TEST(Text, TupleElementsInShort) {
  auto module =
      parsed(in_entry("t = (f32[2,3], (f32[2,3])) tuple(x, (f32[2,3]) tuple(y))\n"
                      "a = add(%t#0, t#1#0)\n  ROOT b = subtract(a, t#1#0)"));
  ASSERT_TRUE(module);
  int gtes = 0;
  for (const Instr* instr : module->entry()->instrs()) gtes += instr->is(Opcode::get_tuple_element);
  EXPECT_EQ(gtes, 3);  // t#0, t#1, t#1#0: each once
  const Instr* a = module->entry()->find("a");
  ASSERT_TRUE(a);
  EXPECT_EQ(a->operand(1)->tuple_index(), 0);
  EXPECT_EQ(a->operand(1)->operand(0)->tuple_index(), 1);
}

TEST(Text, AsyncSugarEqualsTheGenericForm) {
  auto modules = parse_modules(testdata("syntax.hlo"));
  ASSERT_TRUE(modules);
  const Module& module = *(*modules)[1];
  const Instr* start = module.entry()->find("start");
  ASSERT_TRUE(start && start->is(Opcode::async_start));
  ASSERT_EQ(start->called().size(), 1u);
  EXPECT_EQ(start->called()[0]->root()->opcode(), Opcode::slice);
  EXPECT_EQ(start->called()[0]->execution_thread, "side");
  EXPECT_EQ(module.entry()->root()->called(), start->called());
}

TEST(Text, AnnotationsAreKeptAsWritten) {
  auto module = parsed(
      in_entry("ROOT a = add(x, y), metadata={op_name=\"a}b\" source_line=3}, "
               "backend_config={sizes:[32], // no comment \"}\"\n \"k\" : \"it's\"}, "
               "sharding={{replicated}, /*index=1*/ {devices=[2]0,1}}, "
               "frontend_attributes={k=\"v\",j={\"x\":1}}, statistics={visualizing_index=0}"));
  ASSERT_TRUE(module);
  const Annotations want = {
      {"metadata", "{source_line=3}"},
      {"backend_config", "{sizes:[32], // no comment \"}\" \"k\" : \"it's\"}"},
      {"sharding", "{{replicated}, {devices=[2]0,1}}"},
      {"frontend_attributes", "{k=\"v\",j={\"x\":1}}"},
      {"statistics", "{visualizing_index=0}"}};
  EXPECT_EQ(module->entry()->root()->annotations(), want);
  EXPECT_THAT(module->entry()->root()->nodes().list(), testing::ElementsAre("a}b"));
  EXPECT_THAT(to_string(*module), HasSubstr("metadata={op_name=\"a}b\" source_line=3}"));
  EXPECT_THAT(to_string(*module, {.annotations = false}),
              testing::Not(testing::AnyOf(HasSubstr("metadata"), HasSubstr("sharding"))));
}

TEST(Text, WhatIsKnownOfALoopReadsBack) {
  auto module = parsed(R"(HloModule m
c { s = (s32[]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(100)
  ROOT r = pred[] compare(i, n), direction=LT }
b { s = (s32[]) parameter(0) i = s32[] get-tuple-element(s), index=0 one = s32[] constant(1)
  j = s32[] add(i, one) ROOT r = (s32[]) tuple(j) }
ENTRY e { z = s32[] constant(0) t = (s32[]) tuple(z)
  ROOT w = (s32[]) while(t), condition=c, body=b }
)");
  ASSERT_TRUE(module);
  Instr* loop = module->entry()->root();
  set_trips(loop, 100);
  set_strips(loop);
  set_unread(loop->operand(0));
  const auto again = parsed(to_string(*module));
  ASSERT_TRUE(again);
  EXPECT_EQ(known_trips(again->entry()->root()), 100);
  EXPECT_TRUE(is_strips(again->entry()->root()));
  EXPECT_TRUE(is_unread(again->entry()->root()->operand(0)));
}

TEST(Text, NamesDoNotMatterWithIds) {
  const PrintOptions ids{.annotations = false, .ids_instead_of_names = true};
  auto a = parsed(
      "HloModule a\nf { p = f32[] parameter(0) n = negate(p) }\n"
      "ENTRY e { x = f32[] parameter(0) ROOT y = call(x), to_apply=f }\n");
  auto b = parsed(
      "HloModule b\ng { q = f32[] parameter(0) m = negate(q), metadata={op_name=\"\"} }\n"
      "ENTRY h { z = f32[] parameter(0) ROOT w = call(z), to_apply=g }\n");
  auto c = parsed(
      "HloModule c\ng { q = f32[] parameter(0) m = abs(q) }\n"
      "ENTRY h { z = f32[] parameter(0) ROOT w = call(z), to_apply=g }\n");
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(to_string(*a, ids), to_string(*b, ids));
  EXPECT_NE(to_string(*a, ids), to_string(*c, ids));
  parsed(to_string(*a, ids));  // still a module
}

TEST(Text, PrintsParts) {
  auto module =
      parsed(in_entry("c = f32[4] constant({1, 2, 3, 4})\n"
                      "ROOT r = reduce(x, f32[] constant(0)), dimensions={1}, to_apply={"
                      " a = f32[] parameter(0) b = f32[] parameter(1) s = add(a, b) }"));
  ASSERT_TRUE(module);
  const Instr& root = *module->entry()->root();
  EXPECT_EQ(to_string(root),
            "%r = f32[2] reduce(%x, %constant), dimensions={1}, to_apply=%r.to_apply");
  EXPECT_EQ(attrs_to_string(root), "dimensions={1}");
  EXPECT_THAT(to_string(*module->entry()), HasSubstr("ENTRY %e {\n  %x = f32[2,3]{1,0} param"));
  EXPECT_EQ(to_string(*module->entry()->find("c"), {.max_constant_elems = 3}),
            "%c = f32[4] constant({...})");
}

TEST(Text, SingleInstructionMakesItsParameters) {
  auto module = parsed(
      "r = f32[3] reduce(f32[3,4] x, f32[] y), dimensions={1}, to_apply={"
      " a = f32[] parameter(0) b = f32[] parameter(1) ROOT m = maximum(a, b) }");
  ASSERT_TRUE(module);
  EXPECT_EQ(module->entry()->parameters().size(), 2u);
  EXPECT_EQ(error_of("r = add(x, f32[] y)"), "1:9: operand %x needs its shape written");
}

TEST(Text, DeepNestingIsAnErrorNotACrash) {
  const int n = 200000;
  std::string shapes(n, '('), operands, bodies;
  EXPECT_THAT(error_of(in_entry("t = " + shapes)), HasSubstr("nested too deeply"));
  for (int i = 0; i < n; ++i) operands += "negate(";
  EXPECT_THAT(error_of(in_entry("t = " + operands)), HasSubstr("nested too deeply"));
  for (int i = 0; i < n / 10; ++i) bodies += "r = f32[] call(), to_apply={\n";
  EXPECT_THAT(error_of("HloModule m\nENTRY e {\n" + bodies), HasSubstr("nested too deeply"));
  EXPECT_THAT(error_of(in_entry("t = add(x, y), sharding=" + std::string(n, '{'))),
              HasSubstr("is not closed"));
  // Just below the limit it works.
  std::string some;
  for (int i = 0; i < 400; ++i) some += "negate(";
  EXPECT_EQ(error_of(in_entry("t = f32[2,3] " + some + "x" + std::string(400, ')'))), "no error");
}

// Inferred shapes are bounded too.
TEST(Text, GrowingTuplesAreAnError) {
  std::string doubling = "t0 = tuple(x, x)\n", deep = doubling;
  for (int i = 0; i < 60; ++i) doubling += fmt::format("  t{} = tuple(t{}, t{})\n", i + 1, i, i);
  EXPECT_THAT(error_of(in_entry(doubling)), HasSubstr("more than 1048576 parts"));
  for (int i = 0; i < 2000; ++i) deep += fmt::format("  t{} = tuple(t{})\n", i + 1, i);
  EXPECT_THAT(error_of(in_entry(deep)), HasSubstr("nested too deeply"));
  EXPECT_THAT(error_of("HloModule m\nENTRY e {\n  a = f32[8388608] parameter(0)\n"
                       "  b = dot(a, a)\n}\n"),
              HasSubstr("more than 2^46 bytes"));
}

struct ErrorCase {
  const char* lines;
  const char* message;
};

class TextErrors : public testing::TestWithParam<ErrorCase> {};

TEST_P(TextErrors, NamesThePlaceAndTheFault) {
  const ErrorCase& c = GetParam();
  const std::string message = error_of(in_entry(c.lines));
  EXPECT_THAT(message, HasSubstr(c.message)) << c.lines;
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    All, TextErrors,
    testing::Values(
        ErrorCase{"a = f32[2,3] add(x, y), foo=3", "5:27: unknown attribute 'foo' of %a (add)"},
        ErrorCase{"a = f32[2,3] add(x, y), dimensions={1}", "unknown attribute 'dimensions'"},
        ErrorCase{"a = f32[2,3] add(x, y), sharding={}, sharding={}",
                  "attribute 'sharding' of %a (add) is given twice"},
        ErrorCase{"a = f32[2,3] add(x)", "5:3: %a (add) has 1 operands, wanted 2"},
        ErrorCase{"a = f32[2,3] add(x, z)", "5:23: %z is not defined before its use in e"},
        ErrorCase{"a = f32[2,3] plus(x, y)", "5:16: unknown opcode 'plus'"},
        ErrorCase{"a = f32[2,3] add(x y)", "got 'y', wanted ',' or ')' after an operand"},
        ErrorCase{"x = f32[2,3] add(x, y)", "%x is defined twice in e"},
        ErrorCase{"a = add(f32[3] x, y)", "operand %x is f32[2,3], not f32[3]"},
        ErrorCase{"a = convert(x)", "%a (convert) needs its shape written"},
        ErrorCase{"a = reduce(x, y), dimensions={1}", "needs the attribute 'to_apply'"},
        ErrorCase{"a = transpose(x)", "%a (transpose): needs the attribute 'dimensions'"},
        ErrorCase{"a = transpose(x), dimensions={0,z}", "got 'z', wanted a number"},
        ErrorCase{"a = add(x, f32[2] negate(y))", "5:3: %a (add): "},
        ErrorCase{"a = call(x), to_apply=g", "computation g is not defined before its use"},
        ErrorCase{"a = compare(x, y), direction=XX", "wanted one of EQ, NE, GE, GT, LE, LT"},
        ErrorCase{"a = f32[2] constant({1, 2, 3})", "more than 2 items in dimension 0"},
        ErrorCase{"a = f32[2] constant({1})", "has 1 items in dimension 0, wanted 2"},
        ErrorCase{"a = u8[] constant(256)", "256 is out of the range of u8"},
        ErrorCase{"a = f32[] constant(1e39)", "1e39 is out of the range of f32"},
        ErrorCase{"a = s32[] constant(1.5)", "wanted a number of s32"},
        ErrorCase{"a = f32[1000000000] constant({1})", "fewer than the 1000000000 elements"},
        ErrorCase{"a = f32[300000000] constant({...})", "take more than 1073741824 bytes"},
        ErrorCase{"a = f32[<=4] constant({...})", "has no fixed size"},
        ErrorCase{"a = f32[99999999999,99999999999] negate(x)", "more than 2^46 bytes"},
        ErrorCase{"a = f32[2,3]{1,1} negate(x)", "not a permutation of 2"},
        ErrorCase{"a = f32[2,3]{1,0:Q(1)} negate(x)", "unknown part 'Q' of a layout"},
        ErrorCase{"a = f32[2,3]{1,0:T(0)} negate(x)", "a tile's size is 0"},
        ErrorCase{"a = f32[-2] negate(x)", "the dimension -2 is negative"},
        ErrorCase{"a = f32[2] parameter(7)", "has a parameter 7 but no parameter 2"},
        ErrorCase{"a = f32[2] parameter(1)", "parameter 1 of e is defined twice"},
        ErrorCase{"ROOT a = negate(x)\n  ROOT b = negate(x)", "6:8: a second ROOT in e"},
        ErrorCase{"a = (f32[2,3]) tuple(x)\n  b = negate(a#1)", "which has no element 1"},
        ErrorCase{"a = negate(x#0)", "%x is f32[2,3], which has no element 0"},
        ErrorCase{"a = negate(x), control-predecessors={b}", "before it is a predecessor"},
        ErrorCase{"a = f32[2,3] custom-call(x), custom_call_target=\"abc", "does not end"},
        ErrorCase{"a = pad(x, y), padding=0x1", "wanted '_'"},
        ErrorCase{"a = f32[1] reduce-window(x, y), window={size=2x2 stride=2}, to_apply={}",
                  "has no instruction"},
        ErrorCase{"a = f32[1] convolution(x, y), window={size=2x2 stride=2}, dim_labels=bf_io->bf",
                  "stride has 1 dimensions, wanted 2"},
        ErrorCase{"a = f32[1] convolution(x, y), dim_labels=b0f_0io->bf", "different numbers"},
        ErrorCase{"a = f32[1] convolution(x, y), dim_labels=bbf_0io->b0f", "does not belong"},
        ErrorCase{"a = f32[2,3] fusion(x), kind=kOdd, calls={p = f32[2,3] parameter(0)}",
                  "wanted one of kLoop, kInput, kOutput, kCustom"},
        ErrorCase{"a = f32[2] parameter-start(x)", "unknown opcode 'parameter-start'"},
        ErrorCase{"a = f32[2] slice-done(x)", "%x is not an async-start"},
        ErrorCase{"a = f32[2] slice(x), slice={[0]}", "wanted ':' in a slice"},
        ErrorCase{"a = f32[2] negate(x), metadata=", "wanted a value"},
        ErrorCase{"a = f32[2] negate(x), metadata={", "'{' is not closed"},
        ErrorCase{"\x01", "got '\\x01', wanted an instruction or '}'"},
        ErrorCase{"a = bf16[] constant(nan(0xfff))", "is not a payload of a NaN of bf16"},
        ErrorCase{"a = s64[] constant(9223372036854775808)", "out of the range of s64"},
        ErrorCase{"a = get-tuple-element(x), index=99999999999999999999", "range of 64 bits"}));

TEST(Text, ErrorsOutsideInstructions) {
  EXPECT_EQ(error_of(""), "1:1: got the end of the text, wanted a computation");
  EXPECT_EQ(error_of("HloModule"), "1:10: got the end of the text, wanted the name of the module");
  EXPECT_EQ(error_of("HloModule m, color=red\nENTRY e { x = f32[] parameter(0) }"),
            "1:14: unknown attribute 'color' of the module");
  EXPECT_EQ(error_of("HloModule m\nENTRY e { x = f32[] parameter(0)"), "2:9: '{' is not closed");
  EXPECT_EQ(error_of("HloModule m\nENTRY e { }"), "2:9: computation e has no instruction");
  EXPECT_EQ(error_of("HloModule m\nENTRY e () -> s32[] { x = f32[] parameter(0) }"),
            "2:7: the signature of e says s32[], its root is f32[]");
  EXPECT_EQ(error_of("HloModule m\ne { x = f32[] parameter(0) }\ne { x = f32[] parameter(0) }"),
            "3:1: computation e is defined twice");
  EXPECT_THAT(error_of("HloModule m, entry_computation_layout={(s32[])->f32[]}\n"
                       "ENTRY e { x = f32[] parameter(0) }"),
              HasSubstr("entry_computation_layout says s32[] for parameter 0, which is f32[]"));
  EXPECT_THAT(error_of("HloModule m\nENTRY e { x = f32[] parameter(0) }\n"
                       "HloModule n\nENTRY e { x = f32[] parameter(0) }"),
              HasSubstr("3:1: got a second HloModule"));
  EXPECT_EQ(error_of("HloModule m\nENTRY e { x = f32[] parameter(0) }\n"
                     "ENTRY f { x = f32[] parameter(0) }"),
            "3:1: a second ENTRY");
}

}  // namespace
}  // namespace heddle::hlo
