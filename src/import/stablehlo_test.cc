// StableHLO to HLO: the translation of operations, shapes that must be known, errors. Values are
// compared in tests/stablehlo_models_test.cc.
#include "import/stablehlo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "hlo/text.h"

namespace heddle::import {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Result<Imported> import_text(const std::string& text, const Options& options = {}) {
  return import_stablehlo_bytes(text, options);
}

// The module's text without the % of names.
std::string hlo_of(const std::string& text, const Options& options = {}) {
  Result<Imported> result = import_text(text, options);
  if (!result) return "error: " + result.error().message;
  std::string made = hlo::to_string(*result->module);
  std::erase(made, '%');
  return made;
}

// A function of x: 2x3xf32, i: i32 and p: i1 with this body.
std::string with_body(const std::string& body) {
  return "func.func @main(%x: tensor<2x3xf32>, %i: tensor<i32>, %p: tensor<i1>) -> tensor<f32> "
         "{\n" +
         body + "\n%z = stablehlo.constant dense<0.0> : tensor<f32>\nreturn %z : tensor<f32>\n}";
}

std::string error_of(const std::string& body) {
  Result<Imported> result = import_text(with_body(body));
  return result ? "" : result.error().message;
}

TEST(stablehlo, NamesOfInputsAndOutputs) {
  const auto imported = import_text(R"(
    func.func @main(%a: tensor<2xf32>, %b: tuple<tensor<f32>, tensor<i32>>)
        -> (tensor<f32>, tensor<2xf32>) {
      %0 = stablehlo.get_tuple_element %b[0] : (tuple<tensor<f32>, tensor<i32>>) -> tensor<f32>
      return %0, %a : tensor<f32>, tensor<2xf32>
    })");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_THAT(imported->input_names, ElementsAre("arg0", "arg1.0", "arg1.1"));
  EXPECT_THAT(imported->input_aliases, ElementsAre("a", "b.0", "b.1"));
  EXPECT_THAT(imported->output_names, ElementsAre("out0", "out1"));
  EXPECT_THAT(imported->assertions, IsEmpty());
}

TEST(stablehlo, DonatedArgumentsAreAliases) {
  EXPECT_THAT(hlo_of("func.func @main(%p: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %q: "
                     "tensor<f32> {tf.aliasing_output = 1 : i32}) -> (tensor<f32>, tensor<4xf32>) "
                     "{\nreturn %q, %p : tensor<f32>, tensor<4xf32>\n}"),
              HasSubstr("input_output_alias={ {1}: (0, {}, may-alias) }"));
}

TEST(stablehlo, EqualElementsAreOneConstant) {
  EXPECT_THAT(hlo_of("func.func @main() -> tensor<1000x1000xf32> {\n"
                     "%0 = stablehlo.constant dense<2.0> : tensor<1000x1000xf32>\n"
                     "return %0 : tensor<1000x1000xf32>\n}"),
              HasSubstr("f32[1000,1000] broadcast(constant)"));
}

TEST(stablehlo, ABroadcastRepeatsExtentsOfOne) {
  EXPECT_THAT(hlo_of("func.func @main(%a: tensor<1x3xf32>) -> tensor<2x3xf32> {\n"
                     "%0 = stablehlo.broadcast_in_dim %a, dims = [0, 1] : (tensor<1x3xf32>) -> "
                     "tensor<2x3xf32>\nreturn %0 : tensor<2x3xf32>\n}"),
              HasSubstr("broadcast(reshape), dimensions={1}"));
}

// A constant bound outside the loop is copied into its condition, so that the trip count is known.
TEST(stablehlo, RegionsTakeConstantsInAndPassTheRest) {
  const std::string text = hlo_of(R"(
    func.func @main(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %ten = stablehlo.constant dense<10> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %0:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<f32>
        cond {
          %c = stablehlo.compare LT, %i, %ten, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
        } do {
          %n = stablehlo.add %i, %one : tensor<i32>
          %b = stablehlo.multiply %a, %y : tensor<f32>
          stablehlo.return %n, %b : tensor<i32>, tensor<f32>
        }
      return %0#1 : tensor<f32>
    })");
  EXPECT_THAT(text, HasSubstr("(s32[], f32[], f32[]) while("));
  EXPECT_THAT(text, HasSubstr("constant(10)"));
}

TEST(stablehlo, BranchesGetWhatTheyUse) {
  const std::string text = hlo_of(R"(
    func.func @main(%p: tensor<i1>, %x: tensor<f32>, %y: tensor<i32>) -> (tensor<f32>, tensor<i32>) {
      %0:2 = "stablehlo.if"(%p) ({
        %1 = stablehlo.negate %x : tensor<f32>
        stablehlo.return %1, %y : tensor<f32>, tensor<i32>
      }, {
        stablehlo.return %x, %y : tensor<f32>, tensor<i32>
      }) : (tensor<i1>) -> (tensor<f32>, tensor<i32>)
      return %0#0, %0#1 : tensor<f32>, tensor<i32>
    })");
  EXPECT_THAT(text, HasSubstr("(f32[], s32[]) conditional("));
}

TEST(stablehlo, CallsAndCompositesAreInlined) {
  const std::string text = hlo_of(R"(
    func.func @main(%x: tensor<f32>) -> tensor<f32> {
      %0 = call @f(%x) : (tensor<f32>) -> tensor<f32>
      %1 = stablehlo.composite "my.op" %0 {decomposition = @f, version = 1 : i32} : (tensor<f32>) -> tensor<f32>
      return %1 : tensor<f32>
    }
    func.func private @f(%x: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.sine %x : tensor<f32>
      return %0 : tensor<f32>
    })");
  EXPECT_THAT(text, HasSubstr("sine.1 = f32[] sine(sine)"));
  EXPECT_THAT(text, Not(HasSubstr("call")));
}

TEST(stablehlo, FewLargestElementsAreOneOperation) {
  const auto text = [](int64_t k) {
    return hlo_of(fmt::format(R"(
    func.func @main(%x: tensor<300xf32>) -> (tensor<{0}xf32>, tensor<{0}xi32>) {{
      %0:2 = stablehlo.composite "chlo.top_k" %x {{composite_attributes = {{k = {0} : i64}}, decomposition = @f, version = 1 : i32}} : (tensor<300xf32>) -> (tensor<{0}xf32>, tensor<{0}xi32>)
      return %0#0, %0#1 : tensor<{0}xf32>, tensor<{0}xi32>
    }}
    func.func private @f(%x: tensor<300xf32>) -> (tensor<{0}xf32>, tensor<{0}xi32>) {{
      %0 = stablehlo.slice %x [0:{0}] : (tensor<300xf32>) -> tensor<{0}xf32>
      %1 = stablehlo.iota dim = 0 : tensor<{0}xi32>
      return %0, %1 : tensor<{0}xf32>, tensor<{0}xi32>
    }})",
                              k));
  };
  EXPECT_THAT(text(5), HasSubstr("topk("));
  EXPECT_THAT(text(200), Not(HasSubstr("topk(")));
}

TEST(stablehlo, AssertionsAreOutputs) {
  const auto imported = import_text(R"(
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      check.expect_almost_eq_const %x, dense<[1.0, 2.0]> : tensor<2xf32> {tolerance = 0.5 : f64}
      stablehlo.custom_call @check.expect_close(%x, %x) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()
      return %x : tensor<2xf32>
    })");
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_EQ(imported->assertions.size(), 2u);
  const Assertion& almost = imported->assertions[0];
  EXPECT_EQ(almost.kind, Assertion::Kind::almost_equal);
  EXPECT_EQ(almost.tolerance, 0.5);
  EXPECT_EQ(almost.name, "check.expect_almost_eq_const at 3:7");
  EXPECT_EQ(imported->assertions[1].most_ulp, 3u);
  EXPECT_THAT(imported->output_names,
              ElementsAre("out0", "check0.got", "check0.want", "check1.got"));
}

TEST(stablehlo, WhatAnAssertionAccepts) {
  const tensor::Shape shape = tensor::Shape::array(tensor::Type::f32, {2});
  const auto value = [&](float a, float b) {
    return tensor::Literal::from<float>(shape, std::vector<float>{a, b});
  };
  Assertion equal, almost, close;
  almost.kind = Assertion::Kind::almost_equal;
  close.kind = Assertion::Kind::close;
  const float inf = INFINITY, nan = NAN;
  EXPECT_EQ(failure_of(equal, value(nan, 0.0f), value(nan, -0.0f)), "");
  EXPECT_THAT(failure_of(equal, value(1, 2), value(1, 3)),
              HasSubstr("1 of 2 elements differ; element 1 is 2, wanted 3"));
  EXPECT_EQ(failure_of(almost, value(1.0005f, inf), value(1, inf)), "");
  EXPECT_NE(failure_of(almost, value(1.002f, 0), value(1, 0)), "");
  EXPECT_NE(failure_of(almost, value(nan, 0), value(1, 0)), "");
  const float three = 1 + 3 * 0x1p-23f, four = 1 + 4 * 0x1p-23f;
  EXPECT_EQ(failure_of(close, value(three, 1), value(1, 1)), "");
  EXPECT_NE(failure_of(close, value(four, 1), value(1, 1)), "");
  EXPECT_NE(failure_of(close, value(nan, 1), value(1, 1)), "");
  close.least_ulp = 1;
  EXPECT_NE(failure_of(close, value(three, 1), value(1, 1)), "");
  EXPECT_NE(failure_of(equal, value(1, 1),
                       tensor::Literal::from<float>(tensor::Shape::array(tensor::Type::f32, {1}),
                                                    std::vector<float>{1})),
            "");
}

const char* const kDynamic = R"(
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x3xf32>) -> tensor<?x2x3xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<2> : tensor<1xi32>
    %3 = stablehlo.constant dense<3> : tensor<1xi32>
    %4 = stablehlo.concatenate %1, %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_broadcast_in_dim %arg1, %4, dims = [0, 2] : (tensor<?x3xf32>, tensor<3xi32>) -> tensor<?x2x3xf32>
    return %5 : tensor<?x2x3xf32>
  })";

TEST(stablehlo, ShapesThatDependOnAnInputFixIt) {
  auto imported = import_text(kDynamic);
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_EQ(imported->bound.size(), 1u);
  EXPECT_EQ(imported->bound[0].name, "arg0");
  EXPECT_THAT(imported->input_names, ElementsAre("arg1"));
  EXPECT_EQ(imported->unbound.size(), 1u);
  EXPECT_THAT(imported->notes.at(0), HasSubstr("arg0 is taken as 1"));

  Options options;
  options.shapes["arg1"] = {4, 3};
  EXPECT_THAT(
      import_text(kDynamic, options).error().message,
      HasSubstr("arg0 is taken as 1: a shape depends on it (give it a value: --input arg0=SPEC)"));
  options.values["arg0"] = tensor::Literal::from<int64_t>(tensor::Shape::scalar(tensor::Type::s64),
                                                          std::vector<int64_t>{4});
  imported = import_text(kDynamic, options);
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_THAT(imported->unbound, IsEmpty());
  EXPECT_EQ(tensor::to_string(imported->module->entry()->root()->shape(), false), "(f32[4,2,3])");
}

TEST(stablehlo, BoundedDimensionsRunAtTheirBound) {
  const auto imported = import_text(
      "func.func @main(%a: tensor<?xf32, #stablehlo.bounds<5>>) -> tensor<i32> {\n"
      "%0 = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?xf32, #stablehlo.bounds<5>>) -> "
      "tensor<i32>\nreturn %0 : tensor<i32>\n}");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_THAT(imported->notes.at(0), HasSubstr("bounded (<=5)"));
  EXPECT_THAT(hlo::to_string(*imported->module), HasSubstr("constant(5)"));
}

TEST(stablehlo, QuantisedValuesAreTheirIntegers) {
  const std::string text = hlo_of(R"(
    !q = !quant.uniform<i8:f32, 0.5:-20>
    func.func @main(%a: tensor<2x!q>, %b: tensor<2x!q>) -> (tensor<2x!q>, tensor<2x!q>) {
      %0 = stablehlo.add %a, %b : tensor<2x!q>
      %1 = stablehlo.reverse %a, dims = [0] : tensor<2x!q>
      return %0, %1 : tensor<2x!q>, tensor<2x!q>
    })");
  EXPECT_THAT(text, HasSubstr("f32[2] add("));
  EXPECT_THAT(text, HasSubstr("s8[2] reverse(arg0)"));  // moved unchanged
}

TEST(stablehlo, LocationsNameNodes) {
  const std::string text = hlo_of(
      "#loc1 = loc(\"jit(f)/sin\"(#loc2))\n#loc2 = loc(\"f.py\":1:2)\n"
      "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n"
      "%0 = stablehlo.sine %x : tensor<f32> loc(#loc1)\nreturn %0 : tensor<f32>\n}");
  EXPECT_THAT(text, HasSubstr("op_name=\"jit(f)/sin\""));
}

TEST(stablehlo, ShardingIsIgnored) {
  EXPECT_THAT(hlo_of(R"(
    module @m attributes {mhlo.num_partitions = 2 : i32} {
      sdy.mesh @mesh = <["x"=2]> {stablehlo.mesh = {axes = [{name = "x"}]}}
      func.func public @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
        %0 = sdy.sharding_constraint %a <@mesh, [{}]> : tensor<4xf32>
        %1 = stablehlo.custom_call @Sharding(%0) {mhlo.sharding = "{replicated}"} : (tensor<4xf32>) -> tensor<4xf32>
        return %1 : tensor<4xf32>
      }
    })"),
              HasSubstr("tuple(arg0)"));
}

TEST(stablehlo, ThePartOfOneDeviceIsAll) {
  const auto text = [](const std::string& part) {
    return hlo_of(
        "func.func @main(%a: tensor<4xf32>, %k: tensor<4xf32>) -> tensor<4xf32> {\n"
        "%0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{\"x\", ?}]>] "
        "out_shardings=[<@mesh, [{\"x\"}]>] manual_axes={\"x\"} (%b: " +
        part +
        ") {\n"
        "%1 = stablehlo.add %b, %k : " +
        part + "\nsdy.return %1 : " + part +
        "\n} : "
        "(tensor<4xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>\n}");
  };
  EXPECT_THAT(text("tensor<4xf32>"), HasSubstr("add(arg0, arg1)"));
  EXPECT_THAT(text("tensor<2xf32>"),
              HasSubstr("sdy.manual_computation: this program is for several"));
}

TEST(stablehlo, AsynchronousOperationsAreDoneAtOnce) {
  EXPECT_THAT(hlo_of(R"(
    func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "stablehlo.async_start"(%a) ({
      ^bb0(%b: tensor<4xf32>):
        %1 = "stablehlo.cross-replica-sum"(%b) {replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<4xf32>) -> tensor<4xf32>
        %2 = stablehlo.sine %1 : tensor<4xf32>
        stablehlo.return %2 : tensor<4xf32>
      }) : (tensor<4xf32>) -> !stablehlo.future<tensor<4xf32>>
      %3 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<4xf32>>) -> tensor<4xf32>
      return %3 : tensor<4xf32>
    })"),
              HasSubstr("sine(arg0)"));
}

TEST(stablehlo, ProcessesOfAGridAreOneModule) {
  const std::string text = hlo_of(R"(
    func.func @gather(%x: tensor<1xf32>) -> tensor<2xf32> {
      %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>} : (tensor<1xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }
    func.func @main(%a: tensor<1xf32>, %b: tensor<1xf32>) -> tensor<2xf32> {
      %0:2 = "interpreter.run_parallel"(%a, %b) {programs = [[@gather], [@gather]]} : (tensor<1xf32>, tensor<1xf32>) -> (tensor<2xf32>, tensor<2xf32>)
      return %0#0 : tensor<2xf32>
    })");
  EXPECT_THAT(text, HasSubstr("concatenate(arg1, arg0)"));
}

TEST(stablehlo, ErrorsNameThePlaceAndTheOperation) {
  EXPECT_EQ(error_of("%0 = stablehlo.add %x, %x : tensor<2x4xf32>"),
            "2:1: stablehlo.add: result 0 is f32[2,3], but its type is tensor<2x4xf32>");
  EXPECT_THAT(error_of("%0 = \"stablehlo.add\"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>"),
              HasSubstr("2:1: stablehlo.add: 1 operands, wanted 2"));
  EXPECT_THAT(error_of("%0 = stablehlo.add %x, %i : tensor<2x3xf32>"), HasSubstr("stablehlo.add"));
  EXPECT_THAT(error_of("\"other.thing\"() : () -> ()"),
              HasSubstr("other.thing: this operation is not supported"));
  EXPECT_THAT(error_of("%0 = \"stablehlo.transpose\"(%x) : (tensor<2x3xf32>) -> tensor<3x2xf32>"),
              HasSubstr("attribute permutation is missing"));
  EXPECT_THAT(error_of("%0 = call @nowhere() : () -> tensor<f32>"),
              HasSubstr("no function @nowhere"));
  EXPECT_THAT(error_of("%0 = call @main(%x, %i, %p) : (tensor<2x3xf32>, tensor<i32>, tensor<i1>) "
                       "-> tensor<f32>"),
              HasSubstr("nested deeper than"));
  EXPECT_THAT(error_of("%0 = \"stablehlo.all_reduce\"(%x) ({}) {replica_groups = dense<[[0, 1]]> : "
                       "tensor<1x2xi64>} : (tensor<2x3xf32>) -> tensor<2x3xf32>"),
              HasSubstr("several devices"));
  EXPECT_THAT(error_of("stablehlo.custom_call @shape_assertion(%c) {error_message = \"too small\"} "
                       ": (tensor<i1>) -> ()"),
              HasSubstr("not defined"));
  EXPECT_THAT(error_of("%c = stablehlo.constant dense<false> : tensor<i1>\nstablehlo.custom_call "
                       "@shape_assertion(%c) {error_message = \"too small\"} : (tensor<i1>) -> ()"),
              HasSubstr("too small"));
  EXPECT_THAT(error_of("\"stablehlo.convert\"(%x) : (tensor<2x3xf32>) -> ()"),
              HasSubstr("result 0 is missing"));
  // Damage that used to reach an internal check.
  EXPECT_THAT(error_of("%0 = stablehlo.dynamic_reshape %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>) "
                       "-> tensor<?xf32>"),
              HasSubstr("operand 1 is f32[2,3], wanted integers"));
  EXPECT_THAT(import_text("module {}").error().message, HasSubstr("no function"));
}

TEST(stablehlo, AFileOfSeveralModules) {
  const std::string unit =
      "func.func @f() -> tensor<f32> {\n%0 = stablehlo.constant dense<1.0> : "
      "tensor<f32>\nreturn %0 : tensor<f32>\n}\n";
  std::string other = unit;
  other.replace(other.find("@f"), 2, "@g");
  const std::string both = "// RUN: nothing\n\n// -----\n" + unit + "// -----\n" + other;
  EXPECT_EQ(split_stablehlo(both).size(), 2u);
  EXPECT_THAT(import_text(both).error().message, HasSubstr("--module NAME: f, g"));
  Options options;
  options.module_name = "g";
  EXPECT_TRUE(import_text(both, options));
  options.module_name = "h";
  EXPECT_THAT(import_text(both, options).error().message, HasSubstr("no module h"));
  // Lines are those of the file.
  const std::string wrong = unit + "// -----\nfunc.func @g() { oops }\n";
  EXPECT_THAT(import_text(wrong, options).error().message,
              HasSubstr("6:18: the pretty form of 'oops'"));
}

}  // namespace
}  // namespace heddle::import
