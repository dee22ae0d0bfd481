#include <cmath>
#include <complex>
#include <numbers>

#include "interp/run_test_util.h"

namespace heddle::interp {
namespace {

TEST(Fft, ShortOnesByHand) {
  EXPECT_EQ(
      run_op("fft", "c64[4]", {"c64[4] {(1,0),(2,0),(3,0),(4,0)}"}, "fft_type=FFT, fft_length={4}"),
      "{(10, 0), (-2, 2), (-2, 0), (-2, -2)}");
  EXPECT_EQ(run_op("fft", "c64[4]", {"c64[4] {(10,0),(-2,2),(-2,0),(-2,-2)}"},
                   "fft_type=IFFT, fft_length={4}"),
            "{(1, 0), (2, 0), (3, 0), (4, 0)}");
  EXPECT_EQ(run_op("fft", "c64[3]", {"f32[4] {1,2,3,4}"}, "fft_type=RFFT, fft_length={4}"),
            "{(10, 0), (-2, 2), (-2, 0)}");
  EXPECT_EQ(
      run_op("fft", "f32[4]", {"c64[3] {(10,0),(-2,2),(-2,0)}"}, "fft_type=IRFFT, fft_length={4}"),
      "{1, 2, 3, 4}");
  EXPECT_EQ(run_op("fft", "c64[1]", {"c64[1] {(3,4)}"}, "fft_type=FFT, fft_length={1}"),
            "{(3, 4)}");
  EXPECT_EQ(run_op("fft", "c64[2,2]", {"c64[2,2] {{(1,0),(2,0)},{(3,0),(4,0)}}"},
                   "fft_type=FFT, fft_length={2,2}"),
            "{ {(10, 0), (-2, 0)}, {(-4, 0), (0, 0)} }");
}

std::string transformed(const std::string& op, const std::string& length) {
  return "x = f64[" + length + "] iota(), iota_dimension=0\n" + "z = f64[" + length +
         "] sine(x)\n" + op;
}

// Against the definition, for lengths of each algorithm.
TEST(Fft, ByDefinition) {
  for (int n : {2, 3, 8, 12, 64, 101, 128, 129, 200, 262}) {
    const std::string length = std::to_string(n);
    auto result = evaluate_text(
        transformed("y = c128[" + length + "] complex(z, x)\nROOT r = c128[" + length +
                        "] fft(y), fft_type=FFT, fft_length={" + length + "}",
                    length));
    ASSERT_TRUE(result) << result.error().message;
    for (int k = 0; k < n; ++k) {
      std::complex<double> want = 0;
      for (int j = 0; j < n; ++j) {
        const double angle = -2 * std::numbers::pi * (j * k % n) / n;
        want += std::complex<double>(std::sin(j), j) * std::polar(1.0, angle);
      }
      EXPECT_LT(std::abs(result->get_complex(k) - want), 1e-11 * n * n) << n << " at " << k;
    }
  }
}

TEST(Fft, RealTransformsInvertEachOther) {
  for (int n : {1, 2, 5, 6, 16, 130, 131}) {
    const std::string length = std::to_string(n), half = std::to_string(n / 2 + 1);
    auto result = evaluate_text(transformed(
        "y = c128[" + half + "] fft(z), fft_type=RFFT, fft_length={" + length + "}\n" +
            "ROOT r = f64[" + length + "] fft(y), fft_type=IRFFT, fft_length={" + length + "}",
        length));
    ASSERT_TRUE(result) << result.error().message;
    for (int j = 0; j < n; ++j) EXPECT_NEAR(result->get_f64(j), std::sin(j), 1e-14) << n;
  }
}

TEST(Fft, ThreeDimensionsAndBack) {
  auto result = evaluate_text(R"(
    x = f32[2,3,4,5] iota(), iota_dimension=3
    y = f32[2,3,4,5] iota(), iota_dimension=1
    z = f32[2,3,4,5] multiply(x, y)
    f = c64[2,3,4,3] fft(z), fft_type=RFFT, fft_length={3,4,5}
    b = f32[2,3,4,5] fft(f), fft_type=IRFFT, fft_length={3,4,5}
    d = f32[2,3,4,5] subtract(b, z)
    e = f32[2,3,4,5] abs(d)
    s = f32[120] reshape(e)
    ROOT t = (f32[120], c64[2,3,4,3]) tuple(s, f))");
  ASSERT_TRUE(result) << result.error().message;
  for (int64_t i = 0; i < 120; ++i) EXPECT_LT(result->elements()[0].get_f64(i), 1e-6);
  // The sum of all elements of a batch: (0+1+2) * (0+…+4) * 4.
  EXPECT_EQ(result->elements()[1].get_complex(0), std::complex<double>(120, 0));
}

}  // namespace
}  // namespace heddle::interp
