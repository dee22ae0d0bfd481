// Epilogues of products whose arrays' rows share sets of the first cache stay apart where that
// costs more than the product's way through memory.
#include <gtest/gtest.h>

#include <algorithm>

#include "fuse/fuse.h"
#include "hlo/text.h"

namespace heddle::fuse {
namespace {

// A gradient of a weight and what is made of it: `moments` arrays are read and written.
std::string step(int columns, int moments) {
  const std::string shape = "f32[768," + std::to_string(columns) + "]";
  std::string text =
      "HloModule step\nENTRY main {\n  x = f32[512,768] parameter(0)\n  y = f32[512," +
      std::to_string(columns) + "] parameter(1)\n  g = " + shape +
      " dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n";
  std::string shapes, names, last = "g";
  for (int i = 0; i < moments; ++i) {
    const std::string n = std::to_string(i);
    text += "  m" + n + " = " + shape + " parameter(" + std::to_string(i + 2) + ")\n";
    text += "  n" + n + " = " + shape + " add(" + last + ", m" + n + ")\n";
    last = "n" + n;
    shapes += (i ? ", " : "") + shape;
    names += (i ? ", n" : "n") + n;
  }
  return text + "  ROOT t = (" + shapes + ") tuple(" + names + ")\n}\n";
}

// Kernels that the gradient and its epilogue are, and whether shared sets were the reason.
std::pair<int64_t, bool> kernels(int columns, int moments) {
  auto module = hlo::parse_module(step(columns, moments));
  EXPECT_TRUE(module.has_value());
  std::vector<Refusal> refusals;
  EXPECT_TRUE(
      fuse(module->get(), *target::find_target("icelake"), Mode::greedy, &refusals).has_value());
  const auto& instrs = (*module)->entry()->instrs();
  return {std::count_if(instrs.begin(), instrs.end(),
                        [](const hlo::Instr* instr) { return instr->is(hlo::Opcode::fusion); }),
          std::any_of(refusals.begin(), refusals.end(),
                      [](const Refusal& refusal) { return refusal.code == "shared-sets"; })};
}

TEST(SharedSetsTest, ManyArraysAMultipleOfThePageApartStayApart) {
  EXPECT_EQ(kernels(3072, 3), std::pair(int64_t{2}, true));
  EXPECT_EQ(kernels(3088, 3), std::pair(int64_t{1}, false));
}

TEST(SharedSetsTest, OneArrayStays) { EXPECT_EQ(kernels(3072, 1), std::pair(int64_t{1}, false)); }

}  // namespace
}  // namespace heddle::fuse
