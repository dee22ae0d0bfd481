#include "fuse/memory.h"

#include <gtest/gtest.h>

#include "fuse/fuse.h"
#include "hlo/text.h"
#include "target/target.h"

namespace heddle::fuse {
namespace {

using Live = std::vector<int64_t>;

TEST(MemoryGraph, CountsWhatIsAliveInAnyOrder) {
  // 0 -> 1 -> 3 and 0 -> 2 -> 3; a value that 0 makes for 3 too is live at both in between.
  MemoryGraph graph;
  graph.nodes = 4;
  graph.values = {{10, 0, {1, 3}, -1}, {100, 0, {2}, -1}, {1000, 1, {3}, -1}, {5, 2, {3}, -1}};
  EXPECT_EQ(live_bytes(graph), (Live{110, 1010, 115, 1015}));
}

TEST(MemoryGraph, WritesOverWhatNobodyReadsLater) {
  MemoryGraph graph;
  graph.nodes = 3;
  graph.values = {{64, 0, {1}, -1}, {64, 1, {2}, 0}};
  EXPECT_EQ(live_bytes(graph), (Live{64, 64, 64}));
  graph.values[0].readers.push_back(2);  // it is read again
  EXPECT_EQ(live_bytes(graph), (Live{64, 128, 128}));
}

// The most live bytes at one kernel of the covered entry, by mode.
int64_t peak(const std::string& text, Mode mode) {
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module) << module.error().message;
  EXPECT_TRUE(fuse(module->get(), *target::find_target("icelake"), mode));
  const hlo::Computation& entry = *(*module)->entry();
  std::unordered_map<const hlo::Instr*, std::vector<int>> nodes;
  for (const hlo::Instr* instr : entry.instrs())
    if (instr->is(hlo::Opcode::fusion)) nodes[instr] = {static_cast<int>(nodes.size())};
  const std::vector<int> none;
  const Live live =
      live_bytes(memory_graph(entry, static_cast<int>(nodes.size()),
                              [&](const hlo::Instr* instr) -> const std::vector<int>& {
                                const auto found = nodes.find(instr);
                                return found == nodes.end() ? none : found->second;
                              }));
  return *std::max_element(live.begin(), live.end());
}

// A chain through few features between two wide ones keeps both of these.
TEST(MemoryLimit, ChainsDoNotRaiseThePeak) {
  std::string text =
      "HloModule m\nENTRY e {\n  x = f32[1,112,112,32] parameter(0)\n"
      "  f = f32[3,3,1,32] parameter(1)\n  g = f32[3,3,1,48] parameter(2)\n"
      "  v = f32[32,16] parameter(3)\n  w = f32[16,48] parameter(4)\n"
      "  zero = f32[] constant(0)\n";
  const auto depthwise = [](const std::string& name, const std::string& operands, int64_t n) {
    return fmt::format(
        "  {} = f32[1,112,112,{}] convolution({}), window={{size=3x3 pad=1_1x1_1}}, "
        "dim_labels=b01f_01io->b01f, feature_group_count={}\n",
        name, n, operands, n);
  };
  text += depthwise("d", "x, f", 32);
  text +=
      "  r = f32[12544,32] reshape(d)\n"
      "  p = f32[12544,16] dot(r, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "  q = f32[12544,48] dot(p, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "  z = f32[12544,48] broadcast(zero), dimensions={}\n"
      "  m = f32[12544,48] maximum(q, z)\n  n = f32[1,112,112,48] reshape(m)\n";
  text += depthwise("ROOT o", "n, g", 48) + "}\n";
  EXPECT_EQ(peak(text, Mode::stitch), peak(text, Mode::greedy));
}

}  // namespace
}  // namespace heddle::fuse
