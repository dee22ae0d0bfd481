// The interface: arguments, errors, widening, single instructions.
#include "interp/interp.h"

#include <cstring>

#include "hlo/builder.h"
#include "interp/run_test_util.h"
#include "tensor/unaligned.h"

namespace heddle::interp {
namespace {

using tensor::Literal;
using tensor::Shape;
using tensor::Type;

Literal floats(const std::vector<float>& values) {
  return Literal::from<float>(Shape::array(Type::f32, {static_cast<int64_t>(values.size())}),
                              values);
}

TEST(Interp, TakesArgumentsByNumber) {
  auto module = module_of(R"(ENTRY e {
    b = f32[2] parameter(1)
    a = f32[2] parameter(0)
    ROOT r = f32[2] subtract(a, b) })");
  std::vector<Literal> arguments = {floats({5, 6}), floats({1, 4})};
  auto result = evaluate(*module, arguments);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(tensor::to_string(*result), "{4, 2}");
  EXPECT_EQ(arguments[0], floats({5, 6}));
}

TEST(Interp, ErrorsNameTheModelsNodes) {
  auto module = module_of(R"(ENTRY e {
    a = f32[2] parameter(0)
    b = f32[2] negate(a), metadata={op_name="first"}
    ROOT r = f32[2] negate(b), metadata={op_name="layer/Neg;layer/Add;c;d"} })");
  std::vector<Literal> arguments = {floats({5, 6})};
  Options options;
  options.max_steps = 1;
  auto result = evaluate(*module, arguments, options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message,
            "negate (r, layer/Neg, layer/Add and 2 more): more than 1 instructions have run; an "
            "endless loop?");
}

TEST(Interp, NamesAWrongArgument) {
  auto module = module_of("ENTRY e { ROOT a = f32[2] parameter(0) }");
  std::vector<Literal> wrong = {floats({1, 2, 3})};
  auto result = evaluate(*module, wrong);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::user);
  EXPECT_EQ(result.error().message, "e: argument 0 is f32[3], wanted f32[2]");
  EXPECT_EQ(evaluate(*module, {}).error().message, "e: 0 arguments, wanted 1");
}

TEST(Interp, ArgumentsAreNotChangedByUpdatesInPlace) {
  auto module = module_of(R"(ENTRY e {
    a = f32[2] parameter(0)
    one = f32[1] constant({9})
    zero = s32[] constant(0)
    ROOT r = f32[2] dynamic-update-slice(a, one, zero) })");
  std::vector<Literal> arguments = {floats({5, 6})};
  EXPECT_EQ(tensor::to_string(*evaluate(*module, arguments)), "{9, 6}");
  EXPECT_EQ(arguments[0], floats({5, 6}));
}

TEST(Interp, WideningKeepsWhatRoundingLoses) {
  // (1 + 2^-30) - 1 in f32 is 0.
  const std::string text = R"(
    one = f32[] constant(1)
    small = f32[] constant(9.313226e-10)
    a = f32[] add(one, small)
    narrow = bf16[] convert(a)
    back = f32[] convert(narrow)
    ROOT r = f32[] subtract(back, one))";
  EXPECT_EQ(run(text), "0");
  EXPECT_EQ(run(text, {.widen = true}), "9.313226e-10");
  auto wide = evaluate_text(text, {.widen = true, .keep_wide = true});
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->type(), Type::f64);
  EXPECT_EQ(wide->get_f64(0), 0x1p-30);
}

TEST(Interp, WideningRoundsWhereTheModuleAsksForBitsOrEightOfThem) {
  EXPECT_EQ(run("x = f32[] constant(1.06)\n y = f8e4m3fn[] convert(x)\n ROOT r = f32[] convert(y)",
                {.widen = true}),
            "1");
  EXPECT_EQ(run("x = f32[] constant(1.06)\n ROOT y = f32[] reduce-precision(x), "
                "exponent_bits=8, mantissa_bits=3",
                {.widen = true}),
            "1");
}

TEST(Interp, WideArgumentsAreTakenWithWidening) {
  auto module = module_of("ENTRY e { a = f32[1] parameter(0)\n ROOT r = f32[1] add(a, a) }");
  Literal wide(Shape::array(Type::f64, {1}));
  wide.set_f64(0, 0.1);
  std::vector<Literal> arguments = {wide};
  EXPECT_FALSE(evaluate(*module, arguments));
  auto result = evaluate(*module, arguments, {.widen = true, .keep_wide = true});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->get_f64(0), 0.2);
}

TEST(Interp, EvaluatesOneInstruction) {
  hlo::Module module("m");
  hlo::Builder b(module.add_computation("e"));
  hlo::Instr* x = b.parameter(0, Shape::array(Type::f32, {2}));
  hlo::Instr* sum = b.reduce(hlo::Opcode::add, x, {0});
  b.check();
  std::vector<Literal> operands = {floats({3, 4}), hlo::neutral_value(hlo::Opcode::add, Type::f32)};
  auto result = evaluate_instr(*sum, operands);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(tensor::to_string(*result), "7");
  operands.pop_back();
  EXPECT_FALSE(evaluate_instr(*sum, operands));
}

// An unaligned weight, as in a model file, as an argument and as a constant.
TEST(Interp, ElementsMayLieAtAnyAddress) {
  constexpr int64_t kCount = tensor::kLeastUnalignedBytes / 4;
  auto bytes = std::make_shared<std::vector<char>>(kCount * 4 + 8);
  char* at = bytes->data();
  while (reinterpret_cast<uintptr_t>(at) % 4 != 3) ++at;
  const float seven = 7;
  std::memcpy(at + (kCount - 1) * 4, &seven, 4);
  const Literal weight = Literal::view(Shape::array(Type::f32, {kCount}), at, bytes);
  ASSERT_FALSE(tensor::is_element_aligned(weight));
  hlo::Module module("m");
  hlo::Computation* entry = module.add_computation("e");
  hlo::Builder b(entry);
  entry->set_root(b.binary(hlo::Opcode::add, b.parameter(0, weight.shape()), b.constant(weight)));
  b.check();
  module.set_entry(entry);
  std::vector<Literal> arguments = {weight};
  auto result = evaluate(module, arguments);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->get_f64(0), 0);
  EXPECT_EQ(result->get_f64(kCount - 1), 14);
}

TEST(Interp, DynamicDimensionsAreTakenAtTheirBound) {
  auto module = module_of("ENTRY e { a = f32[<=2] parameter(0)\n ROOT r = f32[<=2] negate(a) }");
  std::vector<Literal> arguments = {floats({5, 6})};
  auto result = evaluate(*module, arguments);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(tensor::to_string(*result), "{-5, -6}");
  auto unbounded = module_of("ENTRY e { a = f32[?] parameter(0)\n ROOT r = f32[?] negate(a) }");
  EXPECT_FALSE(evaluate(*unbounded, arguments));
  EXPECT_EQ(unsupported(*unbounded).size(), 2u);
}

TEST(Interp, TuplesAsArgumentsAndResults) {
  auto module = module_of(R"(ENTRY e {
    t = (f32[2], (f32[1])) parameter(0)
    a = f32[2] get-tuple-element(t), index=0
    n = (f32[1]) get-tuple-element(t), index=1
    ROOT r = ((f32[1]), f32[2]) tuple(n, a) })");
  std::vector<Literal> arguments = {
      Literal::tuple({floats({1, 2}), Literal::tuple({floats({3})})})};
  for (bool widen : {false, true}) {
    auto result = evaluate(*module, arguments, {.widen = widen});
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(tensor::to_string(*result), "(({3}), {1, 2})");
  }
}

}  // namespace
}  // namespace heddle::interp
