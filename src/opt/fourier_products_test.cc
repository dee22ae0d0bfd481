// fourier_products: no transforms are left, and the values are the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "opt/passes.h"
#include "opt/test_util.h"

namespace heddle::opt {
namespace {

using hlo::Instr;
using hlo::Opcode;

// Number of remaining operators on complex numbers, except those that separate and join parts.
int64_t complex_after(const std::string& text) {
  auto module = parse(text);
  auto before = module->clone();
  run(*module, "split_complex,{algebraic,cse,dce}*,fourier_products,{algebraic,cse,dce}*");
  expect_same_values(*before, *module, 7, true, text);
  EXPECT_FALSE(run(*module, "fourier_products").changed) << text;
  int64_t count = 0;
  for (const Instr* x : module->entry()->instrs()) {
    if (x->is(Opcode::parameter) || x->is(Opcode::tuple) || x->is(Opcode::complex)) continue;
    const bool is_complex = x->shape().is_array() && tensor::is_complex(x->shape().type());
    count += is_complex || x->is(Opcode::fft) ? 1 : 0;
  }
  return count;
}

std::string part_type(std::string type) {
  if (type[0] == 'c') type.replace(0, type.find('['), type.starts_with("c64") ? "f32" : "f64");
  return type;
}

// A transform from parts to parts: of real numbers if the types are real.
std::string transform(const std::string& kind, const std::string& in, const std::string& out,
                      const std::string& lengths) {
  const std::string from = part_type(in), to = part_type(out);
  const std::string given = from == in ? "p" : "z", results = "({0}, {0}) tuple(r, i)";
  std::string text = "HloModule m\nENTRY e { p = " + from + " parameter(0)\n";
  if (from != in) text += "q = " + from + " parameter(1) z = " + in + " complex(p, q)\n";
  const std::string call =
      "y = " + out + " fft(" + given + "), fft_type=" + kind + ", fft_length={" + lengths + "}\n";
  if (to == out) return text + "ROOT " + call + "}";
  return text + call + "r = " + to + " real(y) i = " + to +
         " imag(y)\nROOT t = " + fmt::format(fmt::runtime(results), to) + " }";
}

TEST(FourierProducts, Transforms) {
  EXPECT_EQ(complex_after(transform("FFT", "c64[3,16]", "c64[3,16]", "16")), 0);
  EXPECT_EQ(complex_after(transform("IFFT", "c64[2,5,12]", "c64[2,5,12]", "5,12")), 0);
  EXPECT_EQ(complex_after(transform("RFFT", "f32[2,7,10]", "c64[2,7,6]", "7,10")), 0);
  EXPECT_EQ(complex_after(transform("RFFT", "f32[2,9]", "c64[2,5]", "9")), 0);
  EXPECT_EQ(complex_after(transform("IRFFT", "c64[2,7,6]", "f32[2,7,10]", "7,10")), 0);
  EXPECT_EQ(complex_after(transform("IRFFT", "c64[2,5]", "f32[2,9]", "9")), 0);
  EXPECT_EQ(complex_after(transform("FFT", "c128[4,6]", "c128[4,6]", "4,6")), 0);
}

TEST(FourierProducts, LongTransformsByFactors) {
  EXPECT_EQ(complex_after(transform("FFT", "c64[2,512]", "c64[2,512]", "512")), 0);
  EXPECT_EQ(complex_after(transform("IFFT", "c64[96,2]", "c64[96,2]", "96,2")), 0);
  EXPECT_EQ(complex_after(transform("RFFT", "f32[3,300]", "c64[3,151]", "300")), 0);
}

TEST(FourierProducts, LongPrimesStay) {
  EXPECT_EQ(complex_after(transform("FFT", "c64[2,257]", "c64[2,257]", "257")), 1);
  EXPECT_EQ(complex_after(transform("IRFFT", "c64[2,300]", "f32[2,598]", "598")), 1);
}

// On CPUs only transforms that take less time as products than as host calls.
TEST(FourierProducts, ShortTransformsOnly) {
  const auto is_rewritten = [](const std::string& text) {
    auto module = parse(text);
    run(*module, "split_complex,{algebraic,cse,dce}*");
    return run(*module, "short_fourier_products").changed;
  };
  EXPECT_TRUE(is_rewritten(transform("FFT", "c64[512,16]", "c64[512,16]", "16")));
  EXPECT_TRUE(is_rewritten(transform("FFT", "c64[1,61]", "c64[1,61]", "61")));
  EXPECT_TRUE(is_rewritten(transform("RFFT", "f32[512,61]", "c64[512,31]", "61")));
  EXPECT_TRUE(is_rewritten(transform("IRFFT", "c64[64,17]", "f32[64,32]", "32")));
  EXPECT_TRUE(is_rewritten(transform("FFT", "c64[6,14,8]", "c64[6,14,8]", "14,8")));
  EXPECT_FALSE(is_rewritten(transform("FFT", "c64[512,64]", "c64[512,64]", "64")));
  EXPECT_FALSE(is_rewritten(transform("RFFT", "f32[64,2048]", "c64[64,1025]", "2048")));
  EXPECT_FALSE(is_rewritten(transform("IRFFT", "c64[64,129]", "f32[64,256]", "256")));
}

// Complex numbers whose parts are not used are transformed as complex.
TEST(FourierProducts, TransformsOfComplexNumbersStay) {
  for (const char* text :
       {"HloModule m\nENTRY e { z = c64[3,8] parameter(0) ROOT y = c64[3,8] fft(z), fft_type=FFT, "
        "fft_length={8} }",
        "HloModule m\nENTRY e { x = f32[3,8] parameter(0) ROOT y = c64[3,5] fft(x), fft_type=RFFT, "
        "fft_length={8} }"}) {
    auto module = parse(text);
    EXPECT_FALSE(run(*module, "fourier_products").changed) << text;
  }
}

}  // namespace
}  // namespace heddle::opt
