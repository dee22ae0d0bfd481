// HLO text and the recognition of formats.
#include <fstream>

#include "hlo/text.h"
#include "hlo/verify.h"
#include "import/onnx_test_util.h"

namespace heddle::import {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing;  // NOLINT

constexpr std::string_view kTuples = R"(HloModule m
ENTRY e {
  p = (f32[2], (s32[], f32[3])) parameter(0)
  q = f32[2] parameter(1)
  a = f32[2] get-tuple-element(p), index=0
  s = f32[2] add(a, q)
  ROOT r = (f32[2], (f32[2], f32[2])) tuple(s, t)
})";

TEST(HloText, LeavesHaveNames) {
  std::string text(kTuples);
  text.replace(text.find("ROOT r"), 0, "t = (f32[2], f32[2]) tuple(a, s)\n  ");
  const Imported result = imported(import_hlo_text(text));
  EXPECT_THAT(result.input_names, ElementsAre("arg0.0", "arg0.1.0", "arg0.1.1", "arg1"));
  EXPECT_THAT(result.input_aliases, ElementsAre("p.0", "p.1.0", "p.1.1", "q"));
  EXPECT_THAT(result.output_names, ElementsAre("out0", "out1", "out2"));
}

TEST(HloText, OneModuleIsChosen) {
  const std::string two =
      "HloModule a\nENTRY e { ROOT p = f32[] parameter(0) }\n// -----\n"
      "HloModule b\nENTRY e { ROOT p = f32[2] parameter(0) }\n";
  EXPECT_THAT(error_of(import_hlo_text(two)),
              HasSubstr("2 modules; choose one with --module NAME: a, b"));
  Options options;
  options.module_name = "b";
  EXPECT_EQ(imported(import_hlo_text(two, options)).module->name(), "b");
  options.module_name = "c";
  EXPECT_THAT(error_of(import_hlo_text(two, options)), HasSubstr("no module c; there are: a, b"));
  options.module_name = "a";
  EXPECT_THAT(error_of(import_hlo_text(two + "// -----\n" + two, options)),
              HasSubstr("--module a: 2 modules have this name"));
  EXPECT_FALSE(import_hlo_text("HloModule"));
  EXPECT_FALSE(import_hlo_text(""));
}

TEST(HloText, FixedValuesAreConstants) {
  constexpr std::string_view kText =
      "HloModule m, input_output_alias={ {}: (2, {}, may-alias) }, "
      "entry_computation_layout={(f32[2]{0}, s32[2]{0}, f32[2]{0})->f32[2]{0}}\n"
      "ENTRY e { w = f32[2] parameter(0)\n n = s32[2] parameter(1)\n x = f32[2] parameter(2)\n"
      " f = f32[2] convert(n)\n s = f32[2] add(x, w)\n ROOT r = f32[2] multiply(s, f) }";
  const tensor::Shape floats = tensor::Shape::array(tensor::Type::f32, {2});
  const std::vector<float> numbers = {3, 4};
  Options options;
  options.values["arg0"] = tensor::Literal::from<float>(floats, numbers);
  options.values["n"] = tensor::Literal(tensor::Shape::array(tensor::Type::s32, {2}));
  const Imported result = imported(import_hlo_text(kText, options));
  EXPECT_THAT(result.input_names, ElementsAre("arg2"));
  EXPECT_THAT(result.input_aliases, ElementsAre("x"));
  EXPECT_TRUE(hlo::verify(*result.module));
  EXPECT_EQ(result.module->input_output_alias.at(0).parameter, 0);
  EXPECT_THAT(hlo::to_string(*result.module), HasSubstr("constant({3, 4})"));
  options.values["n"] = tensor::Literal(floats);
  EXPECT_THAT(error_of(import_hlo_text(kText, options)),
              HasSubstr("the fixed value of n is f32[2]; wanted s32[2]"));
  options.values.erase("n");
  options.values["y"] = tensor::Literal(floats);
  EXPECT_THAT(error_of(import_hlo_text(kText, options)), HasSubstr("no input y"));
}

// A module that parses may still be invalid: nothing after the importer checks again.
TEST(HloText, WhatParsesIsVerified) {
  EXPECT_THAT(error_of(import_hlo_text(R"(HloModule m
ENTRY e {
  x = f32[4,3] parameter(0)
  i = s32[2,1] parameter(1)
  ROOT g = f32[2,3] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={2147483647}, index_vector_dim=1, slice_sizes={1,3}
})")),
              HasSubstr("start_index_map names dimension 2147483647 of a rank 2 array"));
}

// As JAX writes them for CPUs.
constexpr std::string_view kCholesky = R"(HloModule m
ENTRY e {
  x = f64[2,3,3] parameter(0)
  both = (f64[2,3,3], s32[2]) custom-call(x), custom_call_target="lapack_dpotrf_ffi", operand_layout_constraints={f64[2,3,3]{1,2,0}}, api_version=API_VERSION_TYPED_FFI, backend_config={uplo = 76 : ui8}
  factor = f64[2,3,3] get-tuple-element(both), index=0
  info = s32[2] get-tuple-element(both), index=1
  ROOT r = (f64[2,3,3], s32[2]) tuple(factor, info)
})";

TEST(HloText, LapacksCholeskyIsAnOperator) {
  const Imported lower = imported(import_hlo_text(kCholesky));
  EXPECT_TRUE(find(lower, Opcode::cholesky)->attrs_as<hlo::CholeskyAttrs>().lower);
  EXPECT_EQ(count(lower, Opcode::custom_call), 0);
  EXPECT_TRUE(hlo::verify(*lower.module));
  std::string text(kCholesky);
  text.replace(text.find("76"), 2, "85");
  EXPECT_FALSE(find(imported(import_hlo_text(text)), Opcode::cholesky)
                   ->attrs_as<hlo::CholeskyAttrs>()
                   .lower);
}

TEST(HloText, LapacksTriangularSolveIsAnOperator) {
  const std::string text = R"(HloModule m
ENTRY e {
  a = f32[4,4] parameter(0)
  b = f32[4,8] parameter(1)
  ROOT x = f32[4,8] custom-call(a, b), custom_call_target="lapack_strsm_ffi", api_version=API_VERSION_TYPED_FFI, backend_config={diag = 85 : ui8, side = 76 : ui8, trans_x = 84 : ui8, uplo = 76 : ui8}
})";
  const Imported solved = imported(import_hlo_text(text));
  EXPECT_EQ(count(solved, Opcode::custom_call), 0);
  const auto& attrs = find(solved, Opcode::triangular_solve)->attrs_as<hlo::TriangularSolveAttrs>();
  EXPECT_TRUE(attrs.left_side && attrs.lower && attrs.unit_diagonal);
  EXPECT_EQ(attrs.transpose_a, hlo::TriangularSolveAttrs::Transpose::transpose);
  std::string strange = text;
  strange.replace(strange.find("76"), 2, "77");
  EXPECT_EQ(count(imported(import_hlo_text(strange)), Opcode::custom_call), 1);
}

TEST(HloText, OtherCallsOfLapackStay) {
  std::string text(kCholesky);
  text.replace(text.find("dpotrf"), 6, "dgeqrf");
  EXPECT_EQ(count(imported(import_hlo_text(text)), Opcode::custom_call), 1);
  text = kCholesky;
  text.replace(text.find("uplo"), 4, "side");
  EXPECT_EQ(count(imported(import_hlo_text(text)), Opcode::custom_call), 1);
}

TEST(Sniff, TellsFormatsByContent) {
  EXPECT_EQ(sniff(one_node("Relu", {{"2"}}).bytes()), Format::onnx);
  EXPECT_EQ(sniff(Message().text(2, "pytorch").bytes()), Format::onnx);
  EXPECT_EQ(sniff(Message().text(1, "jit_f").bytes()), Format::hlo_proto);
  EXPECT_EQ(sniff("ML\xefR\x0d"), Format::stablehlo_bytecode);
  EXPECT_EQ(sniff("\x89HEDDLE\n"), Format::program);
  EXPECT_EQ(sniff("HloModule m, is_scheduled=true\n"), Format::hlo_text);
  EXPECT_EQ(sniff("// a comment\n/* another */\nHloModule m"), Format::hlo_text);
  EXPECT_EQ(sniff("ENTRY main {"), Format::hlo_text);
  EXPECT_EQ(sniff("%f (x: f32[]) -> f32[] {"), Format::hlo_text);
  EXPECT_EQ(sniff("add = f32[2] add(a, b)"), Format::hlo_text);
  EXPECT_EQ(sniff("module @jit_f {\n"), Format::stablehlo_text);
  EXPECT_EQ(sniff("// RUN: x\nfunc.func @main() {"), Format::stablehlo_text);
  EXPECT_EQ(sniff("#loc = loc(unknown)\n"), Format::stablehlo_text);
  EXPECT_EQ(sniff(""), Format::unknown);
  EXPECT_EQ(sniff("   \n"), Format::unknown);
  EXPECT_EQ(sniff("\x7f"
                  "ELF\x02\x01"),
            Format::unknown);
  EXPECT_EQ(sniff("PK\x03\x04"), Format::unknown);
  EXPECT_EQ(sniff("\xef\xbb\xbf"), Format::unknown);
  std::string comments;
  for (int i = 0; i < 1000; ++i) comments += "// RUN: heddle opt %s\n";
  EXPECT_EQ(sniff(comments + "HloModule m"), Format::hlo_text);
  EXPECT_EQ(sniff("/*" + std::string(10000, 'x') + "*/ HloModule m"), Format::hlo_text);
}

TEST(ImportModel, GoesByContent) {
  const std::string path = ::testing::TempDir() + "heddle_import_model_test";
  const auto written = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    return import_model(path);
  };
  EXPECT_THAT(imported(written(one_node("Relu", {{"2"}}).bytes())).input_names, ElementsAre("x0"));
  EXPECT_THAT(imported(written("HloModule a\nENTRY e { ROOT p = f32[] parameter(0) }")).input_names,
              ElementsAre("arg0"));
  EXPECT_THAT(imported(written("func.func @f(%x: tensor<f32>) -> tensor<f32> {\n"
                               "return %x : tensor<f32> }"))
                  .input_names,
              ElementsAre("arg0"));
  EXPECT_THAT(error_of(written("module @m {}")), HasSubstr("no function in the module"));
  EXPECT_THAT(error_of(written("module @m {\n  oops\n}")),
              HasSubstr("heddle_import_model_test:2:3: the pretty form of 'oops'"));
  EXPECT_THAT(error_of(written("ML\xefR\x0d")),
              HasSubstr("heddle_import_model_test: the file, byte 5: a text without its end"));
  EXPECT_THAT(error_of(written("hello")), HasSubstr("not a model"));
  EXPECT_THAT(error_of(written("")), HasSubstr("not a model"));
}

TEST(HloText, ConstantsWithoutValuesAreInventedOnDemandOnly) {
  const std::string text =
      "HloModule a\nENTRY e { c = f32[8] constant({...})\n"
      "d = f32[2] constant({...})\nROOT r = (f32[8], f32[2]) tuple(c, d) }";
  EXPECT_THAT(error_of(import_hlo_text(text)), HasSubstr("constant c and 1 more"));
  Options options;
  options.random_constants = true;
  EXPECT_THAT(imported(import_hlo_text(text, options)).notes,
              ElementsAre(HasSubstr("the values are invented")));
}

TEST(HloText, BoundsAreTold) {
  const Imported result =
      imported(import_hlo_text("HloModule a\nENTRY e { p = (f32[<=16,8], f32[3]) parameter(0)\n"
                               "ROOT r = f32[3] get-tuple-element(p), index=1 }"));
  EXPECT_THAT(result.notes,
              ElementsAre("arg0.0: dimension 0 is bounded (<=16); it runs at its bound"));
  for (const hlo::Instr* instr : result.module->entry()->instrs())
    EXPECT_TRUE(instr->shape().is_static()) << instr->name();
}

}  // namespace
}  // namespace heddle::import
