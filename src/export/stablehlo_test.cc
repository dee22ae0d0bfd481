// StableHLO text of HLO modules is read back with the same meaning.
#include "export/stablehlo.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "hlo/leaves.h"
#include "hlo/text_test_util.h"
#include "hlo/verify.h"
#include "import/stablehlo.h"

namespace heddle::exports {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

std::string written(const std::string& text) {
  const auto module = hlo::parse_module(text);
  EXPECT_TRUE(module) << module.error().message;
  const Result<std::string> made = to_stablehlo(**module);
  EXPECT_TRUE(made) << made.error().message;
  return made ? *made : "";
}

std::string refusal(const std::string& text) {
  const auto module = hlo::parse_module(text);
  EXPECT_TRUE(module) << module.error().message;
  const Result<std::string> made = to_stablehlo(**module);
  EXPECT_FALSE(made);
  return made ? "" : made.error().message;
}

std::vector<std::string> types_of(const std::vector<tensor::Shape>& shapes) {
  std::vector<std::string> types;
  for (const tensor::Shape& shape : shapes) types.push_back(tensor::to_string(shape, false));
  return types;
}

std::vector<std::string> parameter_types(const hlo::Module& module) {
  std::vector<tensor::Shape> shapes;
  for (const hlo::Instr* parameter : module.entry()->parameters())
    for (tensor::Shape& leaf : hlo::leaves_of(parameter->shape()))
      shapes.push_back(std::move(leaf));
  return types_of(shapes);
}

TEST(Stablehlo, TextsOfTheTestsAreReadBack) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(HEDDLE_SOURCE_DIR "/src"))
    if (entry.path().extension() == ".hlo") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  int read = 0, refused = 0;
  for (const auto& path : paths) {
    auto modules = hlo::parse_modules(hlo::read_file(path));
    ASSERT_TRUE(modules) << path;
    for (const auto& module : *modules) {
      SCOPED_TRACE(path.string() + " " + module->name());
      const Result<std::string> made = to_stablehlo(*module);
      if (!made) {
        EXPECT_THAT(made.error().message,
                    AnyOf(HasSubstr("no such operation"), HasSubstr("values were left out"),
                          HasSubstr("not of known size"), HasSubstr("between layouts"),
                          HasSubstr("no type"), HasSubstr("of the smallest")));
        ++refused;
        continue;
      }
      Result<import::Imported> imported = import::import_stablehlo_bytes(*made, {});
      ASSERT_TRUE(imported) << imported.error().message;
      EXPECT_TRUE(hlo::verify(*imported->module));
      EXPECT_EQ(parameter_types(*module), parameter_types(*imported->module));
      EXPECT_EQ(types_of(hlo::leaves_of(module->entry()->root()->shape())),
                types_of(hlo::leaves_of(imported->module->entry()->root()->shape())));
      ++read;
    }
  }
  std::cout << read << " modules read back, " << refused << " refused\n";
  EXPECT_GT(read, 150);
}

TEST(Stablehlo, TuplesAreTakenApart) {
  const std::string text = written(R"(HloModule m
ENTRY e {
  p = (f32[2], (s32[], pred[3])) parameter(0)
  inner = (s32[], pred[3]) get-tuple-element(p), index=1
  i = s32[] get-tuple-element(inner), index=0
  x = f32[2] get-tuple-element(p), index=0
  one = (s32[]) tuple(i)
  ROOT t = ((s32[]), f32[2]) tuple(one, x)
})");
  EXPECT_EQ(R"(module @m {
  func.func public @main(%arg0: tensor<2xf32>, %arg1: tensor<i32>, %arg2: tensor<3xi1>) -> (tensor<i32>, tensor<2xf32>) {
    "func.return"(%arg1, %arg0) : (tensor<i32>, tensor<2xf32>) -> ()
  }
}
)",
            text);
}

TEST(Stablehlo, WhatItHasNotIsRefusedByName) {
  EXPECT_THAT(refusal("HloModule m\nENTRY e { a = s32[4] parameter(0)\n"
                      "ROOT r = s32[4] mulhi(a, a) }"),
              HasSubstr("%r (mulhi): StableHLO has no such operation"));
  EXPECT_THAT(refusal("HloModule m\nENTRY e { a = f32[<=4] parameter(0)\n"
                      "ROOT r = f32[<=4] negate(a) }"),
              HasSubstr("f32[<=4] is not of known size"));
  EXPECT_THAT(refusal("HloModule m\nENTRY e { ROOT c = f32[4] constant({...}) }"),
              HasSubstr("its values were left out"));
}

TEST(Stablehlo, ConstantsKeepTheirBits) {
  const std::string text = written(
      "HloModule m\nENTRY e {\n"
      "a = f32[3] constant({nan, -inf, 1e-45})\n b = f16[2] constant({0.1, -0})\n"
      "c = s4[2] constant({-8, 7})\n d = pred[2] constant({true, false})\n"
      "f = c64[2] constant({(1, nan), (-0, 2)})\n"
      "ROOT t = (f32[3], f16[2], s4[2], pred[2], c64[2]) tuple(a, b, c, d, f) }");
  EXPECT_THAT(text, HasSubstr("dense<[0x7FC00000, 0xFF800000, 1.0e-45]> : tensor<3xf32>"));
  const Result<import::Imported> imported = import::import_stablehlo_bytes(text, {});
  ASSERT_TRUE(imported) << imported.error().message;
  const std::string back = hlo::to_string(*imported->module);
  for (const char* value : {"{nan, -inf, 1e-45}", "{0.1, -0}", "{-8, 7}", "(1, nan), (-0, 2)"})
    EXPECT_THAT(back, HasSubstr(value));
}

}  // namespace
}  // namespace heddle::exports
