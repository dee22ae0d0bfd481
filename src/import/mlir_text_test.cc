// The parser of MLIR text: types, attributes, both forms of operations, and errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "import/failure.h"
#include "import/mlir_parser.h"

namespace heddle::import {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Kind = MlirAttr::Kind;

std::string error_of(const std::string& text) {
  try {
    parse_mlir(text);
  } catch (const Failure& failure) {
    return failure.error.message;
  }
  return "";
}

// The first operation of a text.
MlirOp first_op(const MlirModule& module) { return module.body.ops.at(0); }

MlirAttr attribute(const std::string& text) {
  const MlirModule module = parse_mlir("\"t.op\"() {a = " + text + "} : () -> ()");
  return *first_op(module).attr("a");
}

MlirType type(const std::string& text) {
  const MlirModule module = parse_mlir("%0 = \"t.op\"() : () -> " + text);
  return module.values.at(0);
}

hlo::Ints ints(const MlirAttr& attr) {
  hlo::Ints values;
  EXPECT_TRUE(integers_of(attr, &values));
  return values;
}

TEST(mlir_text, Types) {
  EXPECT_EQ(to_string(type("tensor<f32>")), "tensor<f32>");
  EXPECT_EQ(to_string(type("tensor<0x2x?xi1>")), "tensor<0x2x?xpred>");
  EXPECT_EQ(to_string(type("tensor<4xcomplex<f64>>")), "tensor<4xc128>");
  EXPECT_EQ(to_string(type("tuple<tensor<ui8>, tuple<!stablehlo.token>>")),
            "tuple<tensor<u8>, tuple<token>>");
  EXPECT_EQ(to_string(type("tensor<3xf8E4M3B11FNUZ>")), "tensor<3xf8e4m3b11fnuz>");
  const MlirType bounded = type("tensor<?x2xf32, #stablehlo.bounds<16, ?>>");
  EXPECT_THAT(bounded.bounds, ElementsAre(16, MlirType::kDynamic));
  EXPECT_FALSE(bounded.is_static());
  EXPECT_THAT(type("tensor<?xf32, #stablehlo.type_extensions<bounds = [7]>>").bounds,
              ElementsAre(7));
}

TEST(mlir_text, QuantizedTypes) {
  const MlirType one = type("tensor<2x!quant.uniform<i8<-127:127>:f32, 0.5:-30>>");
  ASSERT_NE(one.quantization, nullptr);
  EXPECT_EQ(one.element, tensor::Type::s8);
  EXPECT_EQ(one.quantization->minimum, -127);
  EXPECT_THAT(one.quantization->scales, ElementsAre(0.5));
  EXPECT_THAT(one.quantization->zero_points, ElementsAre(-30));
  const MlirType axis = type("tensor<2x!quant.uniform<u8:f32:0, {0.1:3,2.5E-1}>>");
  EXPECT_EQ(axis.quantization->axis, 0);
  EXPECT_EQ(axis.quantization->maximum, 255);
  EXPECT_THAT(axis.quantization->scales, ElementsAre(0.1, 0.25));
  EXPECT_THAT(axis.quantization->zero_points, ElementsAre(3, 0));
}

TEST(mlir_text, Attributes) {
  EXPECT_EQ(attribute("-3 : i8").integer, -3);
  EXPECT_EQ(attribute("18446744073709551615 : ui64").integer, -1);
  EXPECT_EQ(attribute("2.5e1").floating, 25);
  EXPECT_EQ(attribute("0x3F80 : bf16").floating, 1);
  EXPECT_EQ(attribute("\"a\\22b\\0A\"").text, "a\"b\n");
  EXPECT_THAT(ints(attribute("array<i64: 1, -2>")), ElementsAre(1, -2));
  EXPECT_THAT(ints(attribute("[3, 4]")), ElementsAre(3, 4));
  EXPECT_THAT(ints(attribute("dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>")),
              ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(ints(attribute("dense<7> : tensor<3xi64>")), ElementsAre(7, 7, 7));
  EXPECT_EQ(attribute("@main::@f").text, "main::f");
  EXPECT_EQ(attribute("#stablehlo<comparison_direction EQ>").elements.at(0).text, "EQ");
  EXPECT_THAT(ints(*attribute("#stablehlo.gather<offset_dims = [1, 2]>").field("offset_dims")),
              ElementsAre(1, 2));
  const MlirAttr conv = attribute("#stablehlo.conv<[b, 1, 0, f]x[0, 1, i, o]->[b, 0, 1, f]>");
  EXPECT_THAT(ints(*conv.field("input_spatial_dimensions")), ElementsAre(2, 1));
  // For other dialects only the name is kept.
  EXPECT_EQ(attribute("#sdy.sharding<@mesh, [{\"x\"}, {}]>").text, "sdy.sharding");
}

TEST(mlir_text, BitsOfDenseValues) {
  const auto values = [](const std::string& text) {
    return tensor::to_string(*literal_of(attribute(text)));
  };
  EXPECT_EQ(values("dense<\"0x0000803F000000C0\"> : tensor<2xf32>"), "{1, -2}");
  EXPECT_EQ(values("dense<\"0x0000803F\"> : tensor<3xf32>"), "{1, 1, 1}");  // a splat
  EXPECT_EQ(values("dense<[0x7FC0, 0xFF80]> : tensor<2xbf16>"), "{nan, -inf}");
  EXPECT_EQ(values("dense<[(1.0, 2.0), (0x7F800000, -1.0)]> : tensor<2xcomplex<f32>>"),
            "{(1, 2), (inf, -1)}");
  EXPECT_EQ(values("dense<\"0x0001\"> : tensor<2xi1>"), "{0, 1}");
  EXPECT_EQ(values("dense<\"0x0502\"> : tensor<11xi1>"),  // a bit each
            "{1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0}");
  EXPECT_EQ(values("dense<[-1, 3]> : tensor<2xi4>"), "{-1, 3}");
  EXPECT_EQ(values("dense<> : tensor<0x3xf32>"), "{}");
  EXPECT_EQ(values("dense<[[], []]> : tensor<2x0xf32>"), "{ {}, {} }");
}

TEST(mlir_text, Resources) {
  const std::string op = "\"a\"() {a = dense_resource<key> : tensor<2xi16>} : () -> ()\n";
  const MlirModule module = parse_mlir(
      op + "{-#\n dialect_resources: {\n builtin: {\n key: \"0x040000000100FFFF\"\n }\n }\n#-}\n");
  EXPECT_EQ(tensor::to_string(*first_op(module).attr("a")->literal), "{1, -1}");
  EXPECT_THAT(error_of(op), HasSubstr("the values of resource 'key' were left out"));
  EXPECT_THAT(error_of(op + "{-# builtin: { key: \"0x04000000\" } #-}"),
              HasSubstr("0 bytes, wanted 4"));
  EXPECT_THAT(error_of(op + "{-# builtin: { key: \"0x0400000001\" } #-}"), HasSubstr("wanted 4"));
  EXPECT_THAT(error_of(op + "{-# builtin: { key: \"0x0400"), HasSubstr("are cut off"));
}

TEST(mlir_text, Locations) {
  const auto name = [](const std::string& location) {
    return parse_mlir("\"a\"() : () -> () loc(" + location + ")").body.ops.at(0).location;
  };
  EXPECT_EQ(name("unknown"), "");
  EXPECT_EQ(name("\"f.py\":1:2"), "");
  EXPECT_EQ(name("\"jit(f)/add\"(\"f.py\":1:2)"), "jit(f)/add");
  EXPECT_EQ(name("fused<\"x\">[\"y\", \"f.py\":1:2]"), "x");
  EXPECT_EQ(name("callsite(\"sin\"(\"f.py\":3:1 to :4) at #loc7)"), "sin");
  EXPECT_EQ(name("#loc3"), "#loc3");
}

TEST(mlir_text, LargeSplatsTakeNoMemory) {
  const MlirAttr splat = attribute("dense<1.0> : tensor<1000000000x1000000000xf32>");
  EXPECT_EQ(splat.literal->elems(), 1);
  EXPECT_FALSE(literal_of(splat).has_value());  // and an error if it must be expanded
}

TEST(mlir_text, GenericForm) {
  const MlirModule module = parse_mlir(R"(
    %0:2 = "a.b"() : () -> (tensor<f32>, tensor<i32>) loc("source.py":1:2)
    %1 = "a.c"(%0#1, %0#0) <{x = 1 : i64}> ({
      ^bb0(%a: tensor<i32>, %b: tensor<f32>):
        "a.return"(%a) : (tensor<i32>) -> ()
    }, {}) {y} : (tensor<i32>, tensor<f32>) -> tensor<i32> loc("the name")
    #loc = loc("other")
  )");
  const MlirOp& op = module.body.ops.at(1);
  EXPECT_THAT(op.operands, ElementsAre(1, 0));
  EXPECT_EQ(op.attr("x")->integer, 1);
  EXPECT_TRUE(op.attr("y")->is(Kind::unit));
  EXPECT_EQ(op.regions.size(), 2u);
  EXPECT_EQ(op.regions[0].blocks.at(0).arguments.size(), 2u);
  EXPECT_EQ(op.location, "the name");
  EXPECT_EQ(op.line, 3);
  EXPECT_EQ(module.body.ops.at(0).location, "");
  EXPECT_EQ(module.locations.at(0).second, "other");
}

TEST(mlir_text, PrettyFormsHaveTheAttributesOfTheGenericOnes) {
  const auto op = [](const std::string& text) {
    return parse_mlir("%x:3 = \"t.x\"() : () -> (tensor<4xf32>, tensor<f32>, tensor<i32>)\n" + text)
        .body.ops.at(1);
  };
  const MlirOp slice = op("%0 = stablehlo.slice %x#0 [1:4:2] : (tensor<4xf32>) -> tensor<2xf32>");
  EXPECT_THAT(ints(*slice.attr("limit_indices")), ElementsAre(4));
  EXPECT_THAT(ints(*slice.attr("strides")), ElementsAre(2));
  const MlirOp dot =
      op("%0 = stablehlo.dot_general %x#0, %x#0, contracting_dims = [0] x [0], precision = [HIGH, "
         "DEFAULT] : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>");
  EXPECT_THAT(ints(*dot.attr("dot_dimension_numbers")->field("rhs_contracting_dimensions")),
              ElementsAre(0));
  EXPECT_EQ(dot.attr("precision_config")->elements.at(0).elements.at(0).text, "HIGH");
  const MlirOp reduce =
      op("%0 = stablehlo.reduce(%x#0 init: %x#1) applies stablehlo.add across dimensions = [0] : "
         "(tensor<4xf32>, tensor<f32>) -> tensor<f32>");
  EXPECT_EQ(reduce.regions.at(0).blocks.at(0).ops.at(0).name, "stablehlo.add");
  const MlirOp two = op(R"(
    %0:2 = stablehlo.reduce(%x#0 init: %x#1), (%x#0 init: %x#1) across dimensions = [0] :
      (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
      reducer(%a: tensor<f32>, %b: tensor<f32>) (%c: tensor<f32>, %d: tensor<f32>) {
        stablehlo.return %c, %b : tensor<f32>, tensor<f32>
      })");
  const MlirBlock& body = two.regions.at(0).blocks.at(0);  // a, c, b, d
  EXPECT_THAT(body.ops.at(0).operands, ElementsAre(body.arguments.at(1), body.arguments.at(2)));
  const MlirOp loop = op(R"(
    %0:2 = stablehlo.while(%i = %x#2, %a = %x#0) : tensor<i32>, tensor<4xf32> attributes {k = 1}
      cond { %c = stablehlo.compare LT, %i, %x#2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
             stablehlo.return %c : tensor<i1> }
      do { stablehlo.return %i, %a : tensor<i32>, tensor<4xf32> })");
  EXPECT_EQ(loop.results.size(), 2u);
  EXPECT_EQ(loop.regions.at(1).blocks.at(0).arguments.size(), 2u);
  const MlirOp call =
      op("stablehlo.custom_call @f(%x#1) {has_side_effect = true} : (tensor<f32>) -> ()");
  EXPECT_EQ(call.attr("call_target_name")->text, "f");
  EXPECT_TRUE(call.results.empty());
  EXPECT_EQ(
      op("%0 = stablehlo.select %x#0, %x#0, %x#0 : tensor<4xi1>, tensor<4xf32>").results.size(),
      1u);
  EXPECT_EQ(op("%0:2 = chlo.top_k(%x#0, k = 2) : tensor<4xf32> -> (tensor<2xf32>, tensor<2xi32>)")
                .attr("k")
                ->integer,
            2);
  EXPECT_EQ(op("%0 = stablehlo.reduce_precision %x#0, format = e5m10 : tensor<4xf32>")
                .attr("mantissa_bits")
                ->integer,
            10);
}

TEST(mlir_text, FunctionsAndModules) {
  const MlirModule module = parse_mlir(R"(
    !t = tensor<2xf32>
    #a = array<i64: 5>
    module @m attributes {mhlo.num_partitions = 1 : i32, k = #a} {
      sdy.mesh @mesh = <["x"=2]>
      func.func public @main(%arg0: !t {jax.arg_info = "x"} loc("x")) -> (!t {jax.result_info = ""}) {
        %0 = call @"<lambda>"(%arg0) : (!t) -> !t
        return %0 : !t
      }
      func.func private @"<lambda>"(%arg0: !t) -> !t { return %arg0 : !t }
      func.func private @declared(!t) -> !t
    }
  )");
  EXPECT_EQ(module.name, "m");
  ASSERT_EQ(module.body.ops.size(), 4u);
  const MlirOp& main = module.body.ops[1];
  EXPECT_EQ(main.attr("sym_name")->text, "main");
  EXPECT_EQ(main.regions.at(0).blocks.at(0).ops.at(0).attr("callee")->text, "<lambda>");
  EXPECT_TRUE(module.body.ops[3].regions.empty());
}

TEST(mlir_text, ErrorsHaveAPlace) {
  EXPECT_EQ(error_of("\n  %0 = stablehlo.add %1, %1 : tensor<f32>"),
            "2:22: value %1 is not defined before its use");
  EXPECT_THAT(error_of("%0 = \"a\"() : () -> tensor<f33>"), HasSubstr("1:27: 'f33' is no type"));
  EXPECT_THAT(error_of("func.func @f() {\n%0 = stablehlo.nonsense\n}"), HasSubstr("`:` and types"));
  EXPECT_THAT(error_of("func.func @f() {"), HasSubstr("got the end of the text, wanted `}`"));
  EXPECT_THAT(error_of("other.op"), HasSubstr("1:1: the pretty form of 'other.op' is not known"));
  EXPECT_THAT(error_of("\"a\"() {a = dense<[1, 2]> : tensor<3xi32>} : () -> ()"),
              HasSubstr("got 2 elements in dimension 0, wanted 3"));
  EXPECT_THAT(error_of("\"a\"() {a = dense<\"0x00\"> : tensor<3xf32>} : () -> ()"),
              HasSubstr("1 bytes, wanted 12"));
  EXPECT_THAT(error_of("%0 = \"a\"() : () -> ()"), HasSubstr("0 results; 1 are named"));
  EXPECT_THAT(error_of("\"a"), HasSubstr("the string is not closed"));
  EXPECT_THAT(error_of("%a = \"a\"() : () -> i1\n%a = \"a\"() : () -> i1"),
              HasSubstr("value %a is defined twice"));
}

// Neither the stack nor the memory grows with sizes claimed by a text.
TEST(mlir_text, DeepAndLargeTextsAreRefused) {
  const auto nested = [](const std::string& open, int64_t count) {
    std::string text = "\"a\"() {a = ";
    for (int64_t i = 0; i < count; ++i) text += open;
    return text;
  };
  constexpr int64_t kDeep = 100'000;
  for (const char* open : {"[", "{a = ", "(", "dense<[", "#stablehlo.gather<a = ", "tuple<"})
    EXPECT_NE(error_of(nested(open, kDeep)), "") << open;
  std::string regions, tensors = "\"a\"() {a = dense<";
  for (int64_t i = 0; i < kDeep; ++i) regions += "\"a\"() ({";
  EXPECT_THAT(error_of(regions), HasSubstr("nested deeper than"));
  for (int64_t i = 0; i < kDeep; ++i) tensors += "[";
  for (int64_t i = 0; i < kDeep; ++i) tensors += "]";
  tensors += "> : tensor<";
  for (int64_t i = 0; i < kDeep; ++i) tensors += "1x";
  EXPECT_THAT(error_of(tensors + "f32>} : () -> ()"), HasSubstr("dimensions"));
  EXPECT_THAT(error_of("\"a\"() {a = dense<[1]> : tensor<1000000000000xi8>} : () -> ()"),
              HasSubstr("too few elements"));
  EXPECT_THAT(error_of("\"a\"() {a = dense<1> : tensor<9999999999x9999999999x9xi8>} : () -> ()"),
              HasSubstr("too large"));
  EXPECT_THAT(error_of("%0:9999999 = \"a\"() : () -> ()"), HasSubstr("results"));
}

}  // namespace
}  // namespace heddle::import
