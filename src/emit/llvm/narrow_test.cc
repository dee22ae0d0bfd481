// Conversions of f32 to narrow integers after roundings, sums and clamps, in every number of lanes:
// the results are the interpreter's, NaN, infinities and ties included.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "emit/llvm/test_code.h"
#include "kernel/interp.h"
#include "kernel/text.h"
#include "tensor/type.h"

namespace heddle::emit {
namespace {

using tensor::Type;

std::vector<float> numbers() {
  std::vector<float> result{std::nanf(""), INFINITY, -INFINITY, -0.0F, 1e30F, -1e30F, 1e-40F};
  for (const float edge :
       {-32768.0F,     -32640.0F,      -256.0F,      -128.0F,  -127.0F,  0.0F,
        3.0F,          77.0F,          126.0F,       127.0F,   128.0F,   255.0F,
        256.0F,        32640.0F,       32767.0F,     65408.0F, 65535.0F, 2147483520.0F,
        2147483648.0F, -2147483648.0F, 4294967296.0F})
    for (const float by : {-1.5F, -1.0F, -0.5F, -0.25F, 0.0F, 0.25F, 0.5F, 1.0F, 1.5F})
      result.push_back(edge + by);
  while (result.size() % 16 != 0) result.push_back(static_cast<float>(result.size()) + 0.5F);
  return result;
}

constexpr const char* kForms[] = {
    "round_even(a[i])",
    "round_even(a[i]) + 128:f32",
    "-128:f32 + round_even(a[i])",
    "round_even(a[i]) + 0.5:f32",
    "round_even(a[i]) + 100000:f32",
    "min(max(0:f32, round_even(a[i])), 255:f32)",
    "max(min(round_even(a[i]), 127:f32), -128:f32)",
    "min(max(-128:f32, round_even(a[i]) + 3:f32), 127:f32)",
    "min(max(3:f32, round_even(a[i])), 77:f32)",
    "min(max(-100000:f32, a[i]), 100000:f32)",
    "max(a[i], 0:f32)",
};

void check(const char* form, Type to, int lanes, const target::Target& target) {
  std::vector<float> in = numbers();
  auto kernel = kernel::parse_kernel(fmt::format(
      "heddle.kernel 1\nkernel k {{ buffer a: f32[{0}] global in buffer y: {1}[{0}] global out "
      "phase {{ group {{ vector i {0} lanes {2} {{ y[i] = convert({3}, {1}) }} }} }} }}\n",
      in.size(), tensor::type_name(to), lanes, form));
  ASSERT_TRUE(kernel.has_value()) << (kernel ? "" : kernel.error().message) << form;
  auto code = TestCode::make(*kernel, target);
  ASSERT_TRUE(code.has_value()) << code.error().message;
  const auto bytes = static_cast<size_t>(tensor::type_bytes(to));
  std::vector<char> got(in.size() * bytes), want(in.size() * bytes);
  (*code)->run({in.data(), got.data()}, {});
  EXPECT_TRUE(kernel::interpret(*kernel, {in.data(), want.data()}).faults.empty());
  for (size_t i = 0; i < in.size(); ++i)
    EXPECT_EQ(std::memcmp(&got[i * bytes], &want[i * bytes], bytes), 0)
        << form << " to " << tensor::type_name(to) << " of " << in[i] << " in " << lanes
        << " lanes on " << target.name;
}

TEST(Narrow, ConversionsRoundAndSaturate) {
  for (const target::Target& target : runnable_targets())
    for (const char* form : kForms)
      for (const Type to : {Type::u8, Type::s8, Type::u16, Type::s16, Type::s32})
        for (const int lanes : {4, 8, 16}) check(form, to, lanes, target);
}

}  // namespace
}  // namespace heddle::emit
