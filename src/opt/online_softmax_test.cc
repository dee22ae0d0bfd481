// online_softmax: attention over many keys is computed by tiles of keys.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "opt/passes.h"
#include "opt/test_util.h"

namespace heddle::opt {
namespace {

using hlo::Instr;
using hlo::Opcode;

constexpr const char* kCombines =
    "HloModule m\n"
    "mx { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }\n"
    "sm { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n";

// softmax(`logits` of the scores s)·V for [2, queries, 8] and [2, keys, 8]; `logits` defines t.
std::string attention(int64_t queries, int64_t keys, const std::string& logits,
                      const std::string& root = "ROOT o") {
  const std::string scores = fmt::format("f32[2,{},{}]", queries, keys);
  const std::string row = fmt::format("f32[2,{}]", queries);
  return kCombines +
         fmt::format(
             "ENTRY e {{\n"
             "q = f32[2,{0},8] parameter(0) k = f32[2,{1},8] parameter(1)\n"
             "v = f32[2,{1},8] parameter(2)\n"
             "s = {2} dot(q, k), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, "
             "lhs_contracting_dims={{2}}, rhs_contracting_dims={{2}}\n"
             "ninf = f32[] constant(-inf) zero = f32[] constant(0)\n{4}\n"
             "m = {3} reduce(t, ninf), dimensions={{2}}, to_apply=mx\n"
             "mb = {2} broadcast(m), dimensions={{0,1}}\n"
             "d = {2} subtract(t, mb)\n"
             "x = {2} exponential(d)\n"
             "z = {3} reduce(x, zero), dimensions={{2}}, to_apply=sm\n"
             "zb = {2} broadcast(z), dimensions={{0,1}}\n"
             "p = {2} divide(x, zb)\n"
             "{5} = f32[2,{0},8] dot(p, v), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, "
             "lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}\n}}",
             queries, keys, scores, row, logits, root);
}

constexpr const char* kPlain =
    "c = f32[] constant(0.3) cb = f32[2,50,1536] broadcast(c), "
    "dimensions={} t = f32[2,50,1536] multiply(s, cb)";

// The number of elements of the widest remaining array; checks that the values are the same.
int64_t widest_after(const std::string& text) {
  auto module = parse(text);
  auto before = module->clone();
  const pass::RunReport report = run(*module, "online_softmax,dce");
  expect_same_values(*before, *module, 5, true, "online_softmax");
  EXPECT_FALSE(run(*module, "online_softmax").changed);
  EXPECT_EQ(report.changed, !report.notes.empty());
  int64_t widest = 0;
  for (const Instr* instr : module->entry()->instrs())
    if (instr->is(Opcode::exponential))
      widest = std::max(widest, instr->shape().dim(instr->shape().rank() - 1));
  return widest;
}

TEST(OnlineSoftmax, TilesOfKeys) {
  EXPECT_EQ(widest_after(attention(50, 1536, kPlain)), 768);
  EXPECT_EQ(widest_after(attention(48, 2048, "t = f32[2,48,2048] negate(s)")), 512);
}

TEST(OnlineSoftmax, Masks) {
  // By key; by query and key; causal, with later tiles fully masked for the first queries.
  EXPECT_EQ(widest_after(attention(50, 1536,
                                   "w = f32[1536] parameter(3) wb = f32[2,50,1536] broadcast(w), "
                                   "dimensions={2} t = f32[2,50,1536] add(s, wb)")),
            768);
  EXPECT_EQ(
      widest_after(attention(50, 1536,
                             "w = f32[2,1536] parameter(3) wb = f32[2,50,1536] broadcast(w), "
                             "dimensions={0,2} y = f32[50,1536] parameter(4) yb = f32[2,50,1536] "
                             "broadcast(y), dimensions={1,2} u = f32[2,50,1536] add(s, wb) "
                             "t = f32[2,50,1536] add(u, yb)")),
      768);
  const std::string causal =
      "i = s32[2,50,1536] iota(), iota_dimension=1 j = s32[2,50,1536] iota(), iota_dimension=2 "
      "c = pred[2,50,1536] compare(j, i), direction={} "
      "nb = f32[2,50,1536] broadcast(ninf), dimensions={{}} t = f32[2,50,1536] select(c, s, nb)";
  EXPECT_EQ(widest_after(attention(50, 1536, fmt::format(fmt::runtime(causal), "LE"))), 768);
  // Query 0 has no allowed key: NaN, as before.
  EXPECT_EQ(widest_after(attention(50, 1536, fmt::format(fmt::runtime(causal), "LT"))), 768);
}

TEST(OnlineSoftmax, OtherOrdersOfDimensions) {
  EXPECT_EQ(widest_after(std::string(kCombines) +
                         "ENTRY e { q = f32[50,2,8] parameter(0) k = f32[8,1536,2] parameter(1)\n"
                         "v = f32[8,2,1536] parameter(2) ninf = f32[] constant(-inf)\n"
                         "zero = f32[] constant(0)\n"
                         "t = f32[2,50,1536] dot(q, k), lhs_batch_dims={1}, rhs_batch_dims={2}, "
                         "lhs_contracting_dims={2}, rhs_contracting_dims={0}\n"
                         "m = f32[2,50] reduce(t, ninf), dimensions={2}, to_apply=mx\n"
                         "mb = f32[2,50,1536] broadcast(m), dimensions={0,1}\n"
                         "d = f32[2,50,1536] subtract(t, mb) x = f32[2,50,1536] exponential(d)\n"
                         "z = f32[2,50] reduce(x, zero), dimensions={2}, to_apply=sm\n"
                         "zb = f32[2,50,1536] broadcast(z), dimensions={0,1}\n"
                         "p = f32[2,50,1536] divide(x, zb)\n"
                         "ROOT o = f32[2,50,8] dot(p, v), lhs_batch_dims={0}, rhs_batch_dims={1}, "
                         "lhs_contracting_dims={2}, rhs_contracting_dims={2} }"),
            768);
}

// If no tile divides the keys they are padded: padded keys have no weight, whatever the mask.
TEST(OnlineSoftmax, KeysThatDoNotDivide) {
  EXPECT_EQ(widest_after(attention(48, 1601, "t = f32[2,48,1601] negate(s)")), 544);
  EXPECT_EQ(widest_after(attention(50, 1500,
                                   "w = f32[1500] parameter(3) wb = f32[2,50,1500] broadcast(w), "
                                   "dimensions={2} y = f32[2,50,1500] parameter(4) "
                                   "u = f32[2,50,1500] add(s, wb) t = f32[2,50,1500] add(u, y)")),
            752);
}

// Few keys, few queries, weights with other readers.
TEST(OnlineSoftmax, WhatStays) {
  const std::string plain = "t = f32[2,{0},{1}] negate(s)";
  auto stays = [&](int64_t queries, int64_t keys) {
    return widest_after(attention(queries, keys, fmt::format(fmt::runtime(plain), queries, keys)));
  };
  EXPECT_EQ(stays(50, 1024), 1024);
  EXPECT_EQ(stays(4, 1536), 1536);
  std::string text = attention(50, 1536, kPlain, "o");
  text.insert(text.size() - 1, "ROOT r = tuple(o, p)");
  EXPECT_EQ(widest_after(text), 1536);
}

}  // namespace
}  // namespace heddle::opt
