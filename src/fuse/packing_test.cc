// Independent operators of equal shape without a common array: on a GPU the search packs them into
// one loop. tests/text/fuse/packing_*.hlo shows a CPU's covers.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "fuse/fuse.h"
#include "hlo/join.h"
#include "hlo/text.h"

namespace heddle::fuse {
namespace {

constexpr const char* kMaps = R"(HloModule maps
ENTRY e {
  x = f32[91,57] parameter(0)
  y = f32[91,57] parameter(1)
  a = f32[91,57] negate(x)
  b = f32[91,57] tanh(y)
  ROOT t = (f32[91,57], f32[91,57]) tuple(a, b)
})";

constexpr const char* kSums = R"(HloModule sums
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
most {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}
ENTRY e {
  x = f32[60,57] parameter(0)
  y = f32[60,57] parameter(1)
  zero = f32[] constant(0)
  least = f32[] constant(-inf)
  a = f32[60] reduce(x, zero), dimensions={1}, to_apply=add
  b = f32[60] reduce(y, least), dimensions={1}, to_apply=most
  ROOT t = (f32[60], f32[60]) tuple(a, b)
})";

struct Kernels {
  int fusions = 0, composites = 0;
  bool operator==(const Kernels&) const = default;
};

Kernels kernels_of(const char* text, const char* target, bool remote) {
  auto module = hlo::parse_module(text);
  SearchOptions options;
  options.remote = remote;
  EXPECT_TRUE(fuse(module->get(), *target::find_target(target), Mode::stitch, nullptr, options));
  Kernels kernels;
  for (const hlo::Instr* instr : (*module)->entry()->instrs()) {
    if (!instr->is(hlo::Opcode::fusion)) continue;
    ++kernels.fusions;
    kernels.composites += hlo::join_of(*instr) == hlo::Join::phases;
  }
  return kernels;
}

TEST(Packing, IndependentOperatorsAreOneLoopOnAGpu) {
  for (const char* text : {kMaps, kSums}) {
    EXPECT_EQ(kernels_of(text, "sm_90", true), (Kernels{1, 0})) << text;
    EXPECT_EQ(kernels_of(text, "sm_90", false), (Kernels{2, 0})) << text;
  }
}

}  // namespace
}  // namespace heddle::fuse
