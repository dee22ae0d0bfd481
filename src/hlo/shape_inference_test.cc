// Properties of the shape rules of all opcodes.
#include "hlo/shape_inference.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "hlo/shape_test_util.h"

namespace heddle::hlo {
namespace {

// Random shapes and attributes, mostly nonsense.
class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  int64_t number() {
    switch (below(12)) {
      case 0:
        return std::numeric_limits<int64_t>::max() - below(2);
      case 1:
        return std::numeric_limits<int64_t>::min() + below(2);
      case 2:
        return -1 - below(3);
      default:
        return below(5);
    }
  }
  Ints ints() {
    Ints list;
    for (int64_t i = below(4); i > 0; --i) list.push_back(number());
    return list;
  }
  Type type() {
    constexpr Type kTypes[] = {Type::f32, Type::f32, Type::f32, Type::s32,      Type::pred,
                               Type::u8,  Type::c64, Type::s4,  Type::f8e8m0fnu};
    return kTypes[below(std::size(kTypes))];
  }
  Shape shape(int depth = 0) {
    const int64_t kind = below(16);
    if (kind == 0) return Shape::make_token();
    if (kind == 1 && depth < 2) {
      std::vector<Shape> elements;
      for (int64_t i = below(3); i > 0; --i) elements.push_back(shape(depth + 1));
      return Shape::make_tuple(std::move(elements));
    }
    std::vector<tensor::Dim> dims;
    for (int64_t i = below(4); i > 0; --i) {
      tensor::Dim dim(below(20) == 0 ? std::numeric_limits<int64_t>::max() >> below(50) : below(5));
      dim.dynamic = below(5) == 0;
      if (dim.dynamic && below(2) == 0) dim.size = tensor::Dim::kUnbounded;
      dims.push_back(dim);
    }
    return Shape(below(3) == 0 ? type() : Type::f32, std::move(dims));
  }
  Window window() {
    Window w;
    for (int64_t i = below(4); i > 0; --i) {
      if (below(2) == 0) {
        w.dims.push_back({.size = 1 + below(3)});
      } else {
        w.dims.push_back({number(), number(), number(), number(), number(), number(), false});
      }
    }
    return w;
  }

  void fill(DimensionsAttrs& a) { a.dimensions = ints(); }
  void fill(DimensionAttrs& a) { a.dimension = number(); }
  void fill(ReshapeAttrs& a) { a.inferred_dimension = number(); }
  void fill(SliceAttrs& a) { a = {ints(), ints(), ints()}; }
  void fill(PadAttrs& a) { a = {ints(), ints(), ints()}; }
  void fill(DynamicSliceAttrs& a) { a.slice_sizes = ints(); }
  void fill(ReducePrecisionAttrs& a) { a = {number(), number()}; }
  void fill(DotAttrs& a) { a = {ints(), ints(), ints(), ints(), {}, "", ""}; }
  void fill(RaggedDotAttrs& a) {
    fill(a.dot);
    a.lhs_ragged_dims = ints();
    a.rhs_group_dims = ints();
  }
  void fill(WindowAttrs& a) { a.window = window(); }
  void fill(ConvolutionAttrs& a) {
    a.window = window();
    a.dims = {number(), number(), number(), number(), number(), number(), ints(), ints(), ints()};
    a.feature_group_count = number();
    a.batch_group_count = number();
  }
  void fill(GatherAttrs& a) { a = {ints(), ints(), ints(), ints(), ints(), ints(), number()}; }
  void fill(ScatterAttrs& a) { a = {ints(), ints(), ints(), ints(), ints(), number()}; }
  void fill(SortAttrs& a) { a.dimension = number(); }
  void fill(TopKAttrs& a) { a.k = number(); }
  void fill(ScanAttrs& a) { a = {number(), number(), false, ""}; }
  void fill(BatchNormAttrs& a) { a.feature_index = number(); }
  void fill(TriangularSolveAttrs& a) { a.left_side = below(2) == 0; }
  void fill(FftAttrs& a) { a = {static_cast<FftAttrs::Kind>(below(4)), ints()}; }
  void fill(TupleIndexAttrs& a) { a.index = number(); }
  void fill(CollectiveAttrs& a) { a.dimensions = ints(); }
  void fill(ParameterAttrs& a) { a.number = number(); }
  template <typename T>
  void fill(T&) {}

 private:
  std::mt19937_64 engine_;
};

// An answer or an error of one line that names the opcode; never a crash.
TEST(ShapeInference, NonsenseIsAnError) {
  Random random(7);
  Functions f;
  std::vector<Computation*> functions{f({"f32[]", "f32[]"}, "f32[]"),
                                      f({"f32[]", "f32[]"}, "pred[]"), f({}, "()"),
                                      f({"f32[2]", "f32[]"}, "(f32[2], f32[])")};
  int good = 0;
  for (int i = 0; i < kOpcodeCount; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    const OpcodeInfo& info = opcode_info(opcode);
    for (int round = 0; round < 400; ++round) {
      std::vector<Shape> shapes;
      const int most = info.most_operands < 0 ? info.least_operands + 4 : info.most_operands;
      const int64_t count = info.least_operands + random.below(most - info.least_operands + 2);
      const bool alike = random.below(2) == 0;
      for (int64_t n = 0; n < count; ++n)
        shapes.push_back(alike && n > 0 ? shapes[0] : random.shape());
      Attrs attrs = default_attrs(info.attrs_index);
      std::visit([&](auto& a) { random.fill(a); }, attrs);
      std::vector<Computation*> called;
      if (info.traits & Trait::calls)
        for (int64_t n = random.below(3); n >= 0; --n)
          called.push_back(functions[random.below(static_cast<int64_t>(functions.size()))]);
      std::vector<const Shape*> operands;
      for (const Shape& shape : shapes) operands.push_back(&shape);
      const Shape declared = alike && count > 0 ? shapes[0] : random.shape();
      const bool declares = shape_is_declared(opcode) || random.below(4) == 0;
      auto result = infer_shape(opcode, operands, attrs, called, declares ? &declared : nullptr);
      if (result) {
        ++good;
        continue;
      }
      const std::string& message = result.error().message;
      EXPECT_EQ(message.find(fmt::format("{}: ", info.text)), 0u) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      EXPECT_EQ(whose(result.error().kind), ErrorKind::user);
    }
  }
  EXPECT_GT(good, 2000);  // not all of it is nonsense
}

TEST(ShapeInference, DeclaredOpcodes) {
  for (Opcode op :
       {Opcode::parameter, Opcode::constant, Opcode::convert, Opcode::reshape, Opcode::custom_call,
        Opcode::iota, Opcode::broadcast, Opcode::all_reduce, Opcode::send, Opcode::slice})
    EXPECT_TRUE(shape_is_declared(op)) << opcode_text(op);
  for (Opcode op : {Opcode::add, Opcode::dot, Opcode::reduce, Opcode::transpose, Opcode::tuple,
                    Opcode::while_, Opcode::pad, Opcode::gather})
    EXPECT_FALSE(shape_is_declared(op)) << opcode_text(op);
}

TEST(ShapeInference, DeclaredLayoutIsKept) {
  const Shape x = shape_of("f32[2,3]"), declared = shape_of("f32[2,3]{0,1}");
  const Shape* operands[] = {&x, &x};
  auto shape = infer_shape(Opcode::add, operands, NoAttrs{}, {}, &declared);
  ASSERT_TRUE(shape);
  EXPECT_EQ(*shape, declared);
}

TEST(ShapeInference, AttributesLeftOutAreTheDefaults) {
  EXPECT_EQ(infer(Opcode::dot, {"f32[2]", "f32[3]"}), "f32[2,3]");
}

}  // namespace
}  // namespace heddle::hlo
