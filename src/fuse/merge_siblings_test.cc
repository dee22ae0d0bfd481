#include <gtest/gtest.h>

#include "fuse/fuse.h"
#include "hlo/text.h"

namespace heddle::fuse {
namespace {

// One value with very many readers: kernels that nothing can join any more do not prevent the
// others from joining each other, nor are they tried for ever.
TEST(siblings, ManyReadersOfOneValueBecomeFewKernels) {
  constexpr int kReaders = 700;
  std::string text =
      "HloModule m\nENTRY e {\n  p = f32[32,64] parameter(0)\n  x = f32[32,64] tanh(p)\n";
  std::string types, names;
  for (int i = 0; i < kReaders; ++i) {
    text += fmt::format(
        "  k{0} = f32[] constant({0})\n  c{0} = f32[32,64] broadcast(k{0}), dimensions={{}}\n"
        "  m{0} = f32[32,64] multiply(x, c{0})\n",
        i);
    types += i > 0 ? ", f32[32,64]" : "f32[32,64]";
    names += fmt::format("{}m{}", i > 0 ? ", " : "", i);
  }
  text += "  ROOT out = (" + types + ") tuple(" + names + ")\n}\n";
  const auto module = hlo::parse_module(text);
  ASSERT_TRUE(module) << module.error().message;
  const auto target = target::find_target("icelake");
  ASSERT_TRUE(fuse(module->get(), *target, Mode::stitch));
  int kernels = 0;
  for (const hlo::Instr* instr : (*module)->entry()->instrs())
    kernels += instr->is(hlo::Opcode::fusion);
  EXPECT_LT(kernels, kReaders / 32);
}

}  // namespace
}  // namespace heddle::fuse
