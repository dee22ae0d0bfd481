// The names of a model's nodes survive every pass that replaces or merges instructions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "opt/passes.h"
#include "opt/pipeline.h"
#include "opt/test_util.h"

namespace heddle::opt {
namespace {

using hlo::Instr;
using hlo::NodeNames;
using hlo::Opcode;
using testing::IsEmpty;

bool is_named(const Instr* instr) {
  return instr->shape().is_array() && !instr->is(Opcode::parameter) &&
         !instr->is(Opcode::constant) && !instr->is(Opcode::get_tuple_element);
}

// Gives every instruction of the entry and of loop bodies a unique node name; returns the names
// lost by the pipeline.
std::vector<std::string> lost(const std::string& text, std::string_view pipeline) {
  auto module = parse(text);
  std::vector<hlo::Computation*> named{module->entry()};
  for (Instr* instr : module->entry()->instrs())
    if (instr->is(Opcode::while_) || instr->is(Opcode::conditional))
      named.insert(named.end(), instr->called().begin() + instr->is(Opcode::while_),
                   instr->called().end());
  std::set<std::string> names;
  for (hlo::Computation* computation : named)
    for (Instr* instr : computation->instrs())
      if (is_named(instr) && names.insert(instr->name()).second)
        instr->add_nodes(NodeNames(instr->name()));
  EXPECT_TRUE(run(*module, pipeline).changed) << pipeline;
  hlo::NodeList list;
  list.add(*module->entry());
  for (std::string_view name : list.names()) names.erase(std::string(name));
  return {names.begin(), names.end()};
}

std::string matrix(int rows, int columns) {
  std::string text;
  for (int r = 0; r < rows; ++r) {
    text += r == 0 ? "{{" : "}, {";
    for (int c = 0; c < columns; ++c) text += (c == 0 ? "" : ",") + std::to_string(r + 2 * c + 1);
  }
  return fmt::format("f32[{},{}] constant({}}}}})", rows, columns, text);
}

constexpr const char* kDot = ", lhs_contracting_dims={1}, rhs_contracting_dims={0}\n";

TEST(NodeNames, EqualInstructions) {
  EXPECT_THAT(lost("x = f32[4] parameter(0) a = tanh(x) b = tanh(x) ROOT r = add(a, b)", "cse"),
              IsEmpty());
}

// A constant shared by all layers would give all their names to each kernel.
TEST(NodeNames, ASharedConstantHasTheNameOfOne) {
  auto module = parse(
      "x = f32[4] parameter(0) c = f32[] constant(2) a = f32[4] broadcast(c), dimensions={}\n"
      "b = f32[4] broadcast(c), dimensions={} m = multiply(x, a) ROOT r = add(m, b)");
  for (Instr* instr : module->entry()->instrs())
    if (is_named(instr)) instr->add_nodes(NodeNames(instr->name()));
  ASSERT_TRUE(run(*module, "cse").changed);
  const Instr* sum = module->entry()->root();
  EXPECT_THAT(sum->operand(1)->nodes().list(), testing::ElementsAre("a"));
  EXPECT_THAT(sum->nodes().list(), testing::ElementsAre("r", "b"));  // its reader has it
}

TEST(NodeNames, Identities) {
  EXPECT_THAT(lost("x = f32[4] parameter(0) one = f32[] constant(1)\n"
                   "ones = f32[4] broadcast(one), dimensions={}\n"
                   "t = tanh(x) m = multiply(t, ones) ROOT r = negate(m)",
                   "algebraic,dce"),
              IsEmpty());
  // For a parameter its readers have the name.
  EXPECT_THAT(lost("x = f32[4] parameter(0) one = f32[] constant(1)\n"
                   "ones = f32[4] broadcast(one), dimensions={}\n"
                   "m = multiply(x, ones) ROOT r = tanh(m)",
                   "algebraic,dce"),
              IsEmpty());
}

TEST(NodeNames, FoldedConstants) {
  EXPECT_THAT(lost("x = f32[2] parameter(0) c = f32[2] constant({1, 2})\n"
                   "n = negate(c) a = abs(n) ROOT r = add(x, a)",
                   "fold_constants,dce"),
              IsEmpty());
}

TEST(NodeNames, Dots) {
  EXPECT_THAT(lost("x = f32[16,4] parameter(0)\nw = " + matrix(4, 2) + "\nv = " + matrix(4, 3) +
                       "\na = f32[16,2] dot(x, w)" + kDot + "b = f32[16,3] dot(x, v)" + kDot +
                       "s = tanh(a) t = tanh(b) ROOT r = tuple(s, t)",
                   "merge_dots,dce"),
              IsEmpty());
  EXPECT_THAT(lost(std::string("w = f32[256,300] parameter(0)\n"
                               "x = f32[1,256] parameter(1) y = f32[3,256] parameter(2)\n"
                               "a = f32[1,300] dot(x, w)") +
                       kDot + "b = f32[3,300] dot(y, w)" + kDot + "ROOT r = tuple(a, b)",
                   "gemv_to_gemm,dce"),
              IsEmpty());
  EXPECT_THAT(
      lost("x = f32[4,2] parameter(0)\nw = " + matrix(2, 3) + "\nd = f32[4,3] dot(x, w)" + kDot +
               "a0 = f32[3] constant({1, 3, 5})\n"
               "a = f32[4,3] broadcast(a0), dimensions={1} ROOT r = multiply(d, a)",
           "fold_scale_into_weights,{fold_constants,dce}*"),
      IsEmpty());
  EXPECT_THAT(lost(std::string("x = f32[8,4] parameter(0) w = f32[8,3] parameter(1)\n"
                               "t = f32[4,8] transpose(x), dimensions={1,0}\n"
                               "ROOT r = f32[4,3] dot(t, w)") +
                       kDot,
                   "canonicalize_dot,dce"),
              IsEmpty());
}

TEST(NodeNames, MergedDotsHaveTheNamesOfAll) {
  auto module = parse("x = f32[16,4] parameter(0)\nw = " + matrix(4, 2) + "\nv = " + matrix(4, 3) +
                      "\na = f32[16,2] dot(x, w)" + kDot + "b = f32[16,3] dot(x, v)" + kDot +
                      "ROOT r = tuple(a, b)");
  for (const char* name : {"a", "b"}) module->entry()->find(name)->add_nodes(NodeNames(name));
  run(*module, "merge_dots,dce");
  for (const Instr* instr : module->entry()->instrs()) {
    if (!instr->is(Opcode::dot)) continue;
    EXPECT_THAT(instr->nodes().list(), testing::ElementsAre("a", "b"));
  }
}

TEST(NodeNames, Convolutions) {
  const std::string conv =
      "x = f32[2,3,5,6] parameter(0) k = f32[4,3,3,3] parameter(1)\n"
      "t = f32[2,3,5,6] tanh(x)\n"
      "c = f32[2,4,5,6] convolution(t, k), window={size=3x3 pad=1_1x1_1}, "
      "dim_labels=bf01_oi01->bf01\n"
      "n = f32[2,4,5,6] negate(c) ROOT r = f32[2,4,5,6] exponential(n)";
  EXPECT_THAT(lost(conv, "choose_layout,dce"), IsEmpty());
  EXPECT_THAT(lost("x = f32[2,3,5,6] parameter(0) k = f32[4,3,1,1] parameter(1)\n"
                   "ROOT c = f32[2,4,5,6] convolution(x, k), window={size=1x1}, "
                   "dim_labels=bf01_oi01->bf01",
                   "convolution_to_dot,dce"),
              IsEmpty());
  EXPECT_THAT(lost("x = f32[2,3] parameter(0) s = f32[3] parameter(1) o = f32[3] parameter(2)\n"
                   "m = f32[3] parameter(3) v = f32[3] parameter(4) t = f32[2,3] tanh(x)\n"
                   "ROOT n = f32[2,3] batch-norm-inference(t, s, o, m, v), epsilon=0.001, "
                   "feature_index=1",
                   "expand_batch_norm,dce"),
              IsEmpty());
}

std::string recurrence(int steps) {
  std::string text =
      "  x = f32[3,12,5] parameter(0)\n  w = f32[5,5] parameter(1)\n"
      "  u = f32[5,5] parameter(2)\n  h0 = f32[3,5] parameter(3)\n";
  for (int t = 1; t <= steps; ++t)
    text += fmt::format(
        "  p{0} = f32[3,1,5] slice(x), slice={{[0:3], [{1}:{0}], [0:5]}}\n"
        "  x{0} = f32[3,5] reshape(p{0})\n  a{0} = f32[3,5] dot(x{0}, w){2}"
        "  b{0} = f32[3,5] dot(h{1}, u){2}  s{0} = f32[3,5] add(a{0}, b{0})\n"
        "  h{0} = f32[3,5] tanh(s{0})\n",
        t, t - 1, kDot);
  return text + fmt::format("  ROOT r = (f32[3,5]) tuple(h{})\n", steps);
}

TEST(NodeNames, LoopsOfWhatWasWrittenOut) {
  EXPECT_THAT(lost(recurrence(10), "reroll,dce"), IsEmpty());
  auto module = parse(recurrence(10));
  for (Instr* instr : module->entry()->instrs())
    if (is_named(instr)) instr->add_nodes(NodeNames(instr->name()));
  run(*module, "reroll,dce");
  const Instr* tanh = nullptr;
  for (const Instr* instr : module->entry()->instrs())
    if (instr->is(Opcode::while_))
      for (const Instr* inner : instr->called()[1]->instrs())
        if (inner->is(Opcode::tanh)) tanh = inner;
  ASSERT_NE(tanh, nullptr);
  EXPECT_EQ(tanh->nodes().text(3), "h1;h2;h3;...");
  EXPECT_EQ(tanh->nodes().list().size(), 10u);
}

TEST(NodeNames, OutOfLoops) {
  const std::string loop =
      "HloModule m\n"
      "condition { s = (s32[], f32[4], f32[4]) parameter(0)\n"
      "  i = s32[] get-tuple-element(s), index=0 n = s32[] constant(3)\n"
      "  ROOT less = pred[] compare(i, n), direction=LT }\n"
      "body { s = (s32[], f32[4], f32[4]) parameter(0)\n"
      "  i = s32[] get-tuple-element(s), index=0 sum = f32[4] get-tuple-element(s), index=1\n"
      "  w = f32[4] get-tuple-element(s), index=2 one = s32[] constant(1)\n"
      "  next = s32[] add(i, one) invariant = f32[4] tanh(w)\n"
      "  more = f32[4] add(sum, invariant)\n"
      "  ROOT r = (s32[], f32[4], f32[4]) tuple(next, more, w) }\n"
      "ENTRY main { x = f32[4] parameter(0) y = f32[4] parameter(1) zero = s32[] constant(0)\n"
      "  start = (s32[], f32[4], f32[4]) tuple(zero, x, y)\n"
      "  state = (s32[], f32[4], f32[4]) while(start), condition=condition, body=body\n"
      "  ROOT out = f32[4] get-tuple-element(state), index=1 }\n";
  EXPECT_THAT(lost(loop, "hoist_invariant,dce"), IsEmpty());
  EXPECT_THAT(lost(loop, "rotate_loops,dce"), IsEmpty());
}

// Everything at once: a softmax of scaled scores between two products.
TEST(NodeNames, TheWholePipeline) {
  const std::string text =
      "HloModule m\n"
      "mx { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }\n"
      "sm { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
      "ENTRY e {\n"
      "q = f32[2,50,8] parameter(0) k = f32[2,1536,8] parameter(1) v = f32[2,1536,8] parameter(2)\n"
      "kt = f32[2,8,1536] transpose(k), dimensions={0,2,1}\n"
      "s = f32[2,50,1536] dot(q, kt), lhs_batch_dims={0}, rhs_batch_dims={0}, "
      "lhs_contracting_dims={2}, rhs_contracting_dims={1}\n"
      "ninf = f32[] constant(-inf) zero = f32[] constant(0) c = f32[] constant(0.25)\n"
      "cb = f32[2,50,1536] broadcast(c), dimensions={} t = f32[2,50,1536] multiply(s, cb)\n"
      "m = f32[2,50] reduce(t, ninf), dimensions={2}, to_apply=mx\n"
      "mb = f32[2,50,1536] broadcast(m), dimensions={0,1} d = f32[2,50,1536] subtract(t, mb)\n"
      "x = f32[2,50,1536] exponential(d)\n"
      "z = f32[2,50] reduce(x, zero), dimensions={2}, to_apply=sm\n"
      "zb = f32[2,50,1536] broadcast(z), dimensions={0,1} p = f32[2,50,1536] divide(x, zb)\n"
      "o = f32[2,50,8] dot(p, v), lhs_batch_dims={0}, rhs_batch_dims={0}, "
      "lhs_contracting_dims={2}, rhs_contracting_dims={1}\n"
      "y = f32[100,8] reshape(o) ROOT r = f32[2,50,8] reshape(y) }\n";
  EXPECT_THAT(lost(text, "online_softmax,dce"), IsEmpty());
  EXPECT_THAT(lost(text, pipeline_for(Level::O1)), IsEmpty());
  EXPECT_THAT(lost(text, pipeline_for(Level::O2)), IsEmpty());
}

}  // namespace
}  // namespace heddle::opt
