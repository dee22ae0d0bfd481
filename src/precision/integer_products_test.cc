// integer_products on random products of quantised values, compared with the interpreter: sums in
// s32 have the same bits, floats are equal within their rounding.
#include <gtest/gtest.h>

#include <random>

#include "hlo/builder.h"
#include "hlo/text.h"
#include "interp/interp.h"
#include "interp/random_inputs.h"
#include "pass/run.h"
#include "precision/passes.h"
#include "tensor/compare.h"

namespace heddle::precision {
namespace {

using hlo::Builder;
using hlo::Instr;
using hlo::Ints;
using hlo::Opcode;
using tensor::Literal;
using tensor::Shape;
using tensor::Type;

class RandomProduct {
 public:
  explicit RandomProduct(uint64_t seed) : random_(seed) {}

  std::unique_ptr<hlo::Module> build() {
    auto module = std::make_unique<hlo::Module>("random");
    hlo::Computation* entry = module->add_computation("e");
    module->set_entry(entry);
    Builder b(entry);
    b_ = &b;
    floats_ = pick(2) == 0;
    entry->set_root(pick(2) == 0 ? dot() : convolution());
    b.check();
    return module;
  }
  bool floats() const { return floats_; }

 private:
  int64_t pick(int64_t below) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(below));
  }

  Instr* parameter(Type type, const Ints& extents) {
    return b_->parameter(parameters_++, Shape::array(type, extents));
  }

  // One number, or one per slice of `dim`, constant or not.
  Instr* slices(Type type, Type as, const Ints& extents, int64_t dim) {
    const bool whole = dim < 0 || pick(2) == 0;
    const Ints own = whole ? Ints{} : Ints{extents[static_cast<size_t>(dim)]};
    Instr* x = whole && pick(2) == 0 ? b_->scalar(type, static_cast<double>(pick(100)))
                                     : parameter(type, own);
    return b_->broadcast(b_->convert(x, as), extents, whole ? Ints{} : Ints{dim});
  }

  // `dim`: dimension along which scale and zero point may differ, or -1; `has_zero`: may have a
  // zero point.
  Instr* quantised(const Ints& extents, int64_t dim, bool has_zero) {
    const Type type = pick(2) == 0 ? Type::u8 : Type::s8;
    Instr* x = b_->convert(parameter(type, extents), Type::s32);
    const bool shifts = type == Type::u8 && !has_zero;
    if (shifts) x = b_->binary(Opcode::subtract, x, b_->full(x->shape(), 128));
    if (has_zero && pick(3) > 0) {
      x = b_->binary(Opcode::subtract, x, slices(type, Type::s32, extents, dim));
    }
    if (!floats_) return x;
    return b_->binary(Opcode::multiply, b_->convert(x, Type::f32),
                      slices(Type::f32, Type::f32, extents, dim));
  }

  Instr* dot() {
    const int64_t batch = 1 + pick(2), m = 1 + pick(5), n = 1 + pick(5), k = 1 + pick(9);
    hlo::DotAttrs attrs;
    attrs.lhs_batch_dims = attrs.rhs_batch_dims = {0};
    attrs.lhs_contracting_dims = {2};
    attrs.rhs_contracting_dims = {1};
    Instr* a = quantised({batch, m, k}, pick(2), true);
    Instr* c = quantised({batch, k, n}, pick(2) * 2, true);
    if (pick(3) == 0) {  // transposed in memory
      c = b_->transpose(quantised({batch, n, k}, 1, true), {0, 2, 1});
    }
    return b_->dot(a, c, attrs);
  }

  Instr* convolution() {
    const int64_t features = 1 + pick(6), outputs = 1 + pick(5), size = 1 + pick(3);
    hlo::ConvolutionAttrs attrs;
    attrs.dims.input_batch = attrs.dims.output_batch = attrs.dims.kernel_output_feature = 0;
    attrs.dims.input_feature = attrs.dims.output_feature = attrs.dims.kernel_input_feature = 1;
    attrs.dims.input_spatial = attrs.dims.kernel_spatial = attrs.dims.output_spatial = {2, 3};
    for (int i = 0; i < 2; ++i)
      attrs.window.dims.push_back({.size = size,
                                   .stride = 1 + pick(2),
                                   .pad_low = pick(3),
                                   .pad_high = pick(3),
                                   .lhs_dilate = 1 + pick(2)});
    Instr* x = quantised({2, features, 5, 4}, -1, true);
    Instr* w = quantised({outputs, features, size, size}, 0, pick(4) == 0);
    return b_->convolution(x, w, attrs);
  }

  std::mt19937_64 random_;
  Builder* b_ = nullptr;
  int64_t parameters_ = 0;
  bool floats_ = false;
};

// The interpreter's random arguments are small integers; here every byte value matters.
std::vector<Literal> arguments_of(const hlo::Module& module, uint64_t seed) {
  std::vector<Literal> arguments = interp::random_arguments(module, seed);
  std::mt19937_64 random(seed);
  for (Literal& argument : arguments)
    if (tensor::type_bits(argument.type()) == 8)
      for (int64_t i = 0; i < argument.elems(); ++i) argument.set_bits(i, random() & 0xffU);
  return arguments;
}

TEST(IntegerProducts, EqualsTheInterpreter) {
  int rewritten = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    RandomProduct random(seed);
    const std::unique_ptr<hlo::Module> before = random.build();
    const std::unique_ptr<hlo::Module> after = before->clone();
    pass::RunOptions options;
    options.verify = true;
    const auto report = pass::run(*after, "integer_products", pass::PassTable(passes()), options);
    ASSERT_TRUE(report) << report.error().message;
    rewritten += report->changed ? 1 : 0;
    const std::vector<Literal> arguments = arguments_of(*before, seed);
    const auto want = interp::evaluate(*before, arguments);
    const auto got = interp::evaluate(*after, arguments);
    ASSERT_TRUE(want && got) << hlo::to_string(*after);
    const tensor::Tolerance tolerance =
        random.floats() ? tensor::Tolerance{.relative_to_max = 1e-5} : tensor::Tolerance{};
    EXPECT_TRUE(tensor::compare(*got, *want, tolerance).equal)
        << "seed " << seed << "\n"
        << hlo::to_string(*before) << hlo::to_string(*after);
  }
  EXPECT_GT(rewritten, 250);
}

}  // namespace
}  // namespace heddle::precision
