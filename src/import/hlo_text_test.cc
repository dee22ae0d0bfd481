// HLO text and the recognition of formats.
#include <fstream>

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
  EXPECT_FALSE(import_hlo_text("HloModule"));
  EXPECT_FALSE(import_hlo_text(""));
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
  EXPECT_THAT(error_of(written("module @m {}")),
              HasSubstr("StableHLO text cannot be imported yet"));
  EXPECT_THAT(error_of(written("hello")), HasSubstr("not a model"));
  EXPECT_THAT(error_of(written("")), HasSubstr("not a model"));
}

}  // namespace
}  // namespace heddle::import
