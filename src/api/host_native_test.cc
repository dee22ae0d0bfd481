// Host calls without the interpreter give its bits.
#include "api/host_native.h"

#include <gtest/gtest.h>

#include <cmath>
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

// Runs it both ways; false: there is no native form.
bool compare(const std::string& text, const std::function<void(std::vector<Literal>&)>& change) {
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
  for (size_t i = 0; i < wanted.size(); ++i)
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

// As JAX sorts: both zeros are one, and so are NaNs, which come last.
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

// Long lines are sorted by the bytes of their keys.
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

// Places that come twice, and windows that lie outside in part, wholly, and very far.
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
  // An element each.
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

}  // namespace
}  // namespace heddle::api
