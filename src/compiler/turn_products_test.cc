// Left sides that are contracted along their rows are transposed where that pays.
#include <gtest/gtest.h>

#include "fuse/groups.h"
#include "fuse/passes.h"
#include "hlo/text.h"
#include "hlo/verify.h"
#include "interp/interp.h"
#include "interp/random_inputs.h"
#include "tensor/compare.h"

namespace heddle::fuse {
namespace {

std::unique_ptr<hlo::Module> product(int64_t k, int64_t m, int64_t n) {
  auto module = hlo::parse_module(fmt::format(R"(HloModule gradient
ENTRY e {{
  a = f32[{0},{1}] parameter(0)
  b = f32[{0},{2}] parameter(1)
  ROOT d = f32[{1},{2}] dot(a, b), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
}})",
                                              k, m, n));
  EXPECT_TRUE(module) << module.error().message;
  return std::move(*module);
}

bool turned(hlo::Module* module) {
  const Result<bool> changed = turn_products(*module, {});
  EXPECT_TRUE(hlo::verify(*module));
  return *changed;
}

TEST(TurnProducts, GradientsOfWeights) {
  auto module = product(40, 512, 256);
  auto before = module->clone();
  ASSERT_TRUE(turned(module.get()));
  const Instr* dot = module->entry()->root();
  EXPECT_TRUE(dot->is(Opcode::dot));
  EXPECT_TRUE(dot->operand(0)->is(Opcode::transpose));
  EXPECT_FALSE(turned(module.get()));
  const auto inputs = interp::random_arguments(*module, 3);
  auto is = interp::evaluate(*module, inputs), was = interp::evaluate(*before, inputs);
  ASSERT_TRUE(is && was);
  EXPECT_TRUE(*is == *was);
}

}  // namespace
}  // namespace heddle::fuse
