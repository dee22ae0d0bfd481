// Host calls without the interpreter give its bits.
#include "api/host_native.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <limits>
#include <string>

#include "hlo/text.h"
#include "interp/interp.h"
#include "interp/random_inputs.h"

namespace heddle::api {
namespace {

using tensor::Literal;

std::vector<Literal> leaves_of(const Literal& value) {
  return value.shape().is_tuple()
             ? std::vector<Literal>(value.elements().begin(), value.elements().end())
             : std::vector<Literal>{value};
}

// The largest difference, relative to the largest value; complex numbers part by part.
double distance(const Literal& got, const Literal& want) {
  const auto value = [](const Literal& x, int64_t i) {
    return tensor::is_complex(x.type()) ? x.get_complex(i) : std::complex<double>(x.get_f64(i));
  };
  double worst = 0, most = 0;
  for (int64_t i = 0; i < want.elems(); ++i) {
    const std::complex<double> a = value(got, i), b = value(want, i);
    if (std::isnan(b.real()) && std::isnan(a.real())) continue;
    worst = std::max(worst, std::isnan(std::abs(a - b)) ? 1e30 : std::abs(a - b));
    most = std::max(most, std::abs(b));
  }
  return worst / std::max(most, 1e-30);
}

// Runs it both ways; false: there is no native form. `most`: the allowed difference.
bool compare(const std::string& text, const std::function<void(std::vector<Literal>&)>& change,
             double most = 0) {
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module) << module.error().message;
  const auto native = native_call(**module);
  if (!native) return false;
  std::vector<Literal> arguments = interp::random_arguments(**module, 7);
  if (change) change(arguments);
  auto want = interp::evaluate(**module, arguments);
  EXPECT_TRUE(want) << want.error().message;
  const std::vector<Literal> wanted = leaves_of(*want);
  std::vector<Literal> got;
  std::vector<runtime::HostArgument> in;
  std::vector<runtime::HostResult> out;
  for (const Literal& one : arguments) in.push_back({&one.shape(), one.data()});
  for (const Literal& one : wanted) got.emplace_back(one.shape());
  for (Literal& one : got) out.push_back({&one.shape(), one.mutable_data()});
  EXPECT_TRUE((*native)(in, out));
  for (size_t i = 0; i < wanted.size() && most > 0; ++i)
    EXPECT_LT(distance(got[i], wanted[i]), most) << "result " << i << " of " << text;
  for (size_t i = 0; i < wanted.size() && most == 0; ++i)
    EXPECT_EQ(std::memcmp(got[i].data(), wanted[i].data(), wanted[i].bytes()), 0)
        << "result " << i << " of " << text;
  return true;
}

std::string sort_text(const std::string& direction, const std::string& dimension,
                      const std::string& more = "") {
  return R"(HloModule m
before { x = f32[] parameter(0)
  y = f32[] parameter(1)
  i = s64[] parameter(2)
  j = s64[] parameter(3)
  ROOT c = pred[] compare(x, y), direction=)" +
         direction + more + R"(
}
ENTRY e { a = f32[5,9,4] parameter(0)
  b = s64[5,9,4] parameter(1)
  ROOT s = (f32[5,9,4], s64[5,9,4]) sort(a, b), dimensions={)" +
         dimension + "}, is_stable=true, to_apply=before }";
}

TEST(HostNative, SortsLinesInTheInterpretersOrder) {
  auto with_ties_and_nan = [](std::vector<Literal>& arguments) {
    for (int64_t i = 0; i < arguments[0].shape().elems(); i += 3) arguments[0].set_f64(i, 0.5);
    arguments[0].set_f64(10, std::nan(""));
    arguments[0].set_f64(44, -0.0);
  };
  for (const char* direction : {"LT", "GT", "LE", "GE"})
    for (const char* dimension : {"0", "1", "2"})
      EXPECT_TRUE(compare(sort_text(direction, dimension), with_ties_and_nan));
}

// As JAX sorts: both zeros are equal, and so are NaNs, which come last.
std::string jax_sort_text(const std::string& type, const std::string& zero,
                          const std::string& direction) {
  std::string text = R"(HloModule m
before { x = T[] parameter(0)
  y = T[] parameter(1)
  i = s64[] parameter(2)
  j = s64[] parameter(3)
  zero = T[] constant()" +
                     zero + R"()
  nan = T[] constant(nan)
  x_zero = pred[] compare(x, zero), direction=EQ
  x_one = T[] select(x_zero, zero, x)
  x_nan = pred[] compare(x, x), direction=NE
  x_key = T[] select(x_nan, nan, x_one)
  y_zero = pred[] compare(y, zero), direction=EQ
  y_one = T[] select(y_zero, zero, y)
  y_nan = pred[] compare(y, y), direction=NE
  y_key = T[] select(y_nan, nan, y_one)
  ROOT c = pred[] compare(x_key, y_key), direction=)" +
                     direction + R"(, type=TOTALORDER
}
ENTRY e { a = T[2,600] parameter(0)
  b = s64[2,600] parameter(1)
  ROOT s = (T[2,600], s64[2,600]) sort(a, b), dimensions={1}, is_stable=true, to_apply=before })";
  for (size_t at; (at = text.find("T[")) != std::string::npos;) text.replace(at, 1, type);
  return text;
}

TEST(HostNative, SortsInTheTotalOrder) {
  auto with_all_kinds = [](std::vector<Literal>& arguments) {
    const double infinity = std::numeric_limits<double>::infinity();
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double kinds[] = {0.0, -0.0, nan, -nan, infinity, -infinity, 1, -1};
    for (int64_t i = 0; i < arguments[0].shape().elems(); i += 3)
      arguments[0].set_f64(i, kinds[i / 3 % 8]);
  };
  for (const char* direction : {"LT", "GT", "LE", "GE"})
    for (const char* type : {"f32", "f64", "f16", "bf16"}) {
      EXPECT_TRUE(compare(jax_sort_text(type, "0", direction), with_all_kinds)) << type;
      std::string plain = sort_text(direction, "1", ", type=TOTALORDER");
      for (size_t at; (at = plain.find("f32")) != std::string::npos;) plain.replace(at, 3, "KEY");
      for (size_t at; (at = plain.find("KEY")) != std::string::npos;) plain.replace(at, 3, type);
      EXPECT_TRUE(compare(plain, with_all_kinds)) << type;
    }
  EXPECT_FALSE(compare(jax_sort_text("f32", "1", "LT"), {}));
}

// Elements that are equal and come last anyway are not sorted; behind others they would be.
TEST(HostNative, SortsLinesThatEndInEqualElements) {
  for (const char* direction : {"LT", "GT", "LE", "GE"})
    for (const char* dimension : {"0", "1", "2"})
      for (const double last : {-1e30, 0.0, 1e30, -0.0})
        for (const int64_t from : {0, 1, 90, 177})
          EXPECT_TRUE(compare(sort_text(direction, dimension), [&](std::vector<Literal>& in) {
            for (int64_t i = from; i < 180; ++i) in[0].set_f64(i, last);
            if (from == 90) in[0].set_f64(7, std::nan(""));
          }));
}

// Long lines are radix-sorted.
TEST(HostNative, SortsLongLines) {
  for (const char* direction : {"LT", "GT"})
    for (const char* type : {"f32", "f64", "s32", "s64"})
      for (const bool nan : {false, true}) {
        std::string text = sort_text(direction, "0");
        for (size_t at; (at = text.find("[5,9,4]")) != std::string::npos;)
          text.replace(at, 7, "[700,2]");
        for (size_t at; (at = text.find("f32")) != std::string::npos;) text.replace(at, 3, "KEY");
        for (size_t at; (at = text.find("KEY")) != std::string::npos;) text.replace(at, 3, type);
        EXPECT_TRUE(compare(text, [&](std::vector<Literal>& arguments) {
          const bool floating = type[0] == 'f';
          for (int64_t i = 0; i < 1400; ++i) {
            const int64_t x = (i * 7919) % 1009 - 500;
            if (floating)
              arguments[0].set_f64(i, static_cast<double>(x) / 8);
            else
              arguments[0].set_s64(i, x * 65537);
          }
          if (floating) arguments[0].set_f64(3, -0.0);
          if (floating) arguments[0].set_f64(5, -std::numeric_limits<double>::infinity());
          if (floating && nan) arguments[0].set_f64(800, std::nan(""));
        })) << type;
      }
}

std::string scatter_text(const std::string& type, const std::string& combine) {
  return "HloModule m\ncombine { x = " + type + "[] parameter(0)\n  y = " + type +
         "[] parameter(1)\n  ROOT r = " + type + "[] " + combine + " }\nENTRY e { a = " + type +
         "[6,5,4] parameter(0)\n  i = s64[7,2] parameter(1)\n  u = " + type +
         "[3,7,2] parameter(2)\n  ROOT s = " + type +
         "[6,5,4] scatter(a, i, u), update_window_dims={0,2}, inserted_window_dims={1}, "
         "scatter_dims_to_operand_dims={1,2}, index_vector_dim=1, to_apply=combine }";
}

// Repeated indices, and windows that are partly, wholly, and very far outside.
void spread(std::vector<Literal>& arguments) {
  const int64_t places[] = {0, 0, 4, 3, 0, 0, 2, 2, 5, 1, -1, 0, 1, INT64_MAX};
  for (int64_t i = 0; i < 14; ++i) arguments[1].set_s64(i, places[i]);
}

TEST(HostNative, ScattersNumbers) {
  for (const char* combine : {"add(x, y)", "multiply(y, x)"})
    for (const char* type : {"f32", "f64", "s32", "s64"})
      EXPECT_TRUE(compare(scatter_text(type, combine), spread)) << type;
  for (const char* combine : {"maximum(x, y)", "minimum(y, x)"})
    for (const char* type : {"f32", "f64", "s32", "s64"})
      EXPECT_TRUE(compare(scatter_text(type, combine), [](std::vector<Literal>& arguments) {
        spread(arguments);
        if (arguments[0].type() == tensor::Type::f32 || arguments[0].type() == tensor::Type::f64)
          for (int64_t i = 0; i < 20; i += 2) {
            arguments[0].set_f64(i, i % 4 == 0 ? 0.0 : -0.0);
            arguments[2].set_f64(i, i % 3 == 0 ? -0.0 : 0.0);
          }
      })) << type;
  EXPECT_FALSE(compare(scatter_text("f32", "subtract(x, y)"), spread));
  EXPECT_FALSE(compare(scatter_text("bf16", "add(x, y)"), spread));
  // One element per index.
  EXPECT_TRUE(compare(R"(HloModule m
sum { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = f32[] add(x, y) }
ENTRY e { a = f32[5,4] parameter(0)
  i = s64[3,2,2] parameter(1)
  u = f32[3,2] parameter(2)
  ROOT s = f32[5,4] scatter(a, i, u), update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=2, to_apply=sum })",
                      [](std::vector<Literal>& arguments) {
                        const int64_t places[] = {0, 0, 4, 3, 0, 0, -1, 2, INT64_MIN, 1, 2, 4};
                        for (int64_t i = 0; i < 12; ++i) arguments[1].set_s64(i, places[i]);
                      }));
  EXPECT_TRUE(compare(R"(HloModule m
replace { x = f32[] parameter(0)
  ROOT y = f32[] parameter(1) }
ENTRY e { a = f32[10] parameter(0)
  i = s32[4] parameter(1)
  u = f32[4] parameter(2)
  ROOT s = f32[10] scatter(a, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=replace })",
                      {}));
}

TEST(HostNative, FourierTransforms) {
  const auto text = [](const char* out, const char* in, const char* kind, const char* length) {
    return fmt::format(
        "HloModule m\nENTRY e {{ x = {} parameter(0)\n"
        "ROOT y = {} fft(x), fft_type={}, fft_length={{{}}} }}",
        in, out, kind, length);
  };
  for (const char* length : {"12", "7", "64"})
    for (const char* kind : {"FFT", "IFFT"}) {
      const std::string shape = fmt::format("c64[3,{}]", length);
      EXPECT_TRUE(compare(text(shape.c_str(), shape.c_str(), kind, length), {}, 1e-6)) << length;
    }
  // rows in vectors, and single ones after them
  EXPECT_TRUE(compare(text("c64[19,33]", "f32[19,64]", "RFFT", "64"), {}, 1e-6));
  EXPECT_TRUE(compare(text("f32[19,50]", "c64[19,26]", "IRFFT", "50"), {}, 1e-6));
  EXPECT_TRUE(compare(text("c128[11,30]", "c128[11,30]", "FFT", "30"), {}, 1e-14));
  EXPECT_TRUE(compare(text("c128[2,5,6]", "c128[2,5,6]", "FFT", "5,6"), {}, 1e-14));
  EXPECT_TRUE(compare(text("c64[2,5,4]", "f32[2,5,6]", "RFFT", "5,6"), {}, 1e-6));
  EXPECT_TRUE(compare(text("f32[2,5,6]", "c64[2,5,4]", "IRFFT", "5,6"), {}, 1e-6));
  EXPECT_TRUE(compare(text("f64[3,9]", "c128[3,5]", "IRFFT", "9"), {}, 1e-14));
}

// Replaces the first argument by positive definite matrices that are far from singular.
void make_definite(std::vector<Literal>& arguments) {
  Literal& a = arguments[0];
  const int64_t n = a.shape().dim(-1);
  for (int64_t i = 0; i < a.elems(); ++i) {
    const int64_t row = i / n % n, column = i % n;
    a.set_f64(i, row == column ? 2.0 * static_cast<double>(n)
                               : 1.0 / static_cast<double>(1 + (row + column) % 7));
  }
}

TEST(HostNative, Cholesky) {
  const auto text = [](const char* shape, bool lower) {
    return fmt::format(
        "HloModule m\nENTRY e {{ x = {0} parameter(0)\n"
        "ROOT y = {0} cholesky(x), lower={1} }}",
        shape, lower);
  };
  for (const bool lower : {true, false})
    for (const char* shape : {"f32[2,3,3]", "f32[1,1]", "f32[37,37]", "f64[3,18,18]"})
      EXPECT_TRUE(compare(text(shape, lower), make_definite, 1e-6)) << shape;
  const auto indefinite = [](std::vector<Literal>& arguments) {
    make_definite(arguments);
    arguments[0].set_f64(24, -1);
  };
  EXPECT_TRUE(compare(text("f32[5,5]", true), indefinite, 1e-6));
}

TEST(HostNative, TriangularSystems) {
  for (const char* left : {"true", "false"})
    for (const char* lower : {"true", "false"})
      for (const char* transpose : {"NO_TRANSPOSE", "TRANSPOSE"})
        for (const char* unit : {"true", "false"})
          for (const char* shape : {"2,19,19", "2,19,1", "2,1,19"}) {
            const bool column = shape[5] == '1' && shape[6] == 0,
                       row = shape[2] == '1' && shape[3] == ',';
            if ((column && left[0] == 'f') || (row && left[0] == 't')) continue;
            EXPECT_TRUE(compare(
                fmt::format("HloModule m\nENTRY e {{ a = f32[2,19,19] parameter(0)\n"
                            "b = f32[{0}] parameter(1)\nROOT y = f32[{0}] triangular-solve(a, b), "
                            "left_side={1}, lower={2}, transpose_a={3}, unit_diagonal={4} }}",
                            shape, left, lower, transpose, unit),
                [](std::vector<Literal>& arguments) {
                  make_definite(arguments);
                  for (int64_t i = 0; i < arguments[0].elems(); ++i)
                    arguments[0].set_f64(i, arguments[0].get_f64(i) / 38);
                },
                1e-6))
                << shape << left << lower << transpose << unit;
          }
}

TEST(HostNative, PartsOfComplexNumbers) {
  EXPECT_TRUE(
      compare("HloModule m\nENTRY e { x = c64[3,5] parameter(0)\nROOT y = f32[3,5] real(x) }", {}));
  EXPECT_TRUE(compare(
      "HloModule m\nENTRY e { x = c128[3,5] parameter(0)\nROOT y = f64[3,5] imag(x) }", {}));
  EXPECT_TRUE(
      compare("HloModule m\nENTRY e { x = f32[7] parameter(0)\ny = f32[7] parameter(1)\n"
              "ROOT z = c64[7] complex(x, y) }",
              {}));
}

}  // namespace
}  // namespace heddle::api
