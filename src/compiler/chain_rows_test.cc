// Row links in chains (attention, reductions after a product, prologues): checked by the kernel
// interpreter against the reference.
#include <algorithm>

#include "compiler/fusion_test_util.h"
#include "fuse/fuse.h"
#include "hlo/verify.h"
#include "interp/interp.h"
#include "interp/random_inputs.h"
#include "schedule/chain.h"
#include "tensor/compare.h"

namespace heddle::stitch {
namespace {

using compiler::FusionCheck;
using compiler::parsed;
using compiler::proved;

constexpr const char* kTargets[] = {"icelake", "avx2", "portable"};

FusionCheck checked(const std::string& text, const char* target_name = "icelake") {
  FusionCheck check = proved(text, target_name, 7, 4096);
  EXPECT_TRUE(is_chain(check.placed)) << text;
  return check;
}

std::string refused(const std::string& text) {
  stage::PlacedFusion placed =
      schedule::place(*parsed(text)->entry(), *target::find_target("icelake"));
  EXPECT_FALSE(static_cast<bool>(placed.decision)) << text;
  return placed.decision.code();
}

constexpr const char* kCombines = R"(HloModule m
add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT r = f32[] add(p, q) }
max { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT r = f32[] maximum(p, q) }
)";

// softmax(Q·Kᵀ·scale + mask)·V by head; `groups` heads share K and V.
std::string attention(int64_t batch, int64_t heads, int64_t queries, int64_t keys, int64_t depth,
                      int64_t groups = 1) {
  const std::string scores = fmt::format("f32[{},{},{},{}]", batch, heads, queries, keys);
  const std::string row = fmt::format("f32[{},{},{}]", batch, heads, queries);
  const std::string kv = fmt::format("f32[{},{},{},{}]", batch, heads, keys, depth);
  const int64_t shared = heads / groups;
  const std::string held = fmt::format("f32[{},{},{},{}]", batch, shared, keys, depth);
  const std::string wide = fmt::format("f32[{},{},{},{},{}]", batch, shared, groups, keys, depth);
  return kCombines + fmt::format(R"(ENTRY e {{
  q = f32[{0},{1},{2},{4}] parameter(0)
  k0 = {8} parameter(1)
  v0 = {8} parameter(2)
  mask = f32[{0},{3}] parameter(3)
  kw = {9} broadcast(k0), dimensions={{0,1,3,4}}
  k = {7} reshape(kw)
  vw = {9} broadcast(v0), dimensions={{0,1,3,4}}
  v = {7} reshape(vw)
  s = {5} dot(q, k), lhs_batch_dims={{0,1}}, rhs_batch_dims={{0,1}}, lhs_contracting_dims={{3}}, rhs_contracting_dims={{3}}
  scale = f32[] constant(0.25)
  scales = {5} broadcast(scale), dimensions={{}}
  t = {5} multiply(s, scales)
  masks = {5} broadcast(mask), dimensions={{0,3}}
  u = {5} add(t, masks)
  least = f32[] constant(-inf)
  m = {6} reduce(u, least), dimensions={{3}}, to_apply=max
  ms = {5} broadcast(m), dimensions={{0,1,2}}
  d = {5} subtract(u, ms)
  x = {5} exponential(d)
  zero = f32[] constant(0)
  z = {6} reduce(x, zero), dimensions={{3}}, to_apply=add
  zs = {5} broadcast(z), dimensions={{0,1,2}}
  p = {5} divide(x, zs)
  o = f32[{0},{1},{2},{4}] dot(p, v), lhs_batch_dims={{0,1}}, rhs_batch_dims={{0,1}}, lhs_contracting_dims={{3}}, rhs_contracting_dims={{2}}
  ROOT out = f32[{0},{2},{1},{4}] transpose(o), dimensions={{0,2,1,3}}
}})",
                                 batch, heads, queries, keys, depth, scores, row, kv, held, wide);
}

TEST(ChainRowsTest, Attention) {
  for (const char* target : kTargets) {
    checked(attention(1, 2, 16, 16, 8), target);
    checked(attention(2, 3, 19, 37, 10), target);
    checked(attention(1, 1, 70, 21, 16), target);
  }
}

TEST(ChainRowsTest, HeadsShareKeysAndValues) {
  for (const char* target : {"icelake", "avx2"}) checked(attention(2, 6, 21, 18, 12, 3), target);
}

TEST(ChainRowsTest, RandomAttention) {
  uint64_t state = 99;
  auto below = [&](uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state >> 33) % n);
  };
  for (int round = 0; round < 16 && !HasFailure(); ++round)
    checked(attention(1 + below(3), 1 + below(4), 8 + below(90), 2 + below(70), 2 + below(40)),
            round % 3 == 0 ? "avx2" : "icelake");
}

// A row with every key masked is NaN, as in the reference.
TEST(ChainRowsTest, MaskedRows) {
  checked(std::string(kCombines) + R"(ENTRY e {
  q = f32[2,20,8] parameter(0)
  k = f32[2,20,8] parameter(1)
  v = f32[2,20,8] parameter(2)
  s = f32[2,20,20] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
  i = s32[20,20] iota(), iota_dimension=0
  j = s32[20,20] iota(), iota_dimension=1
  c = pred[20,20] compare(j, i), direction=LT
  cs = pred[2,20,20] broadcast(c), dimensions={1,2}
  least = f32[] constant(-inf)
  leasts = f32[2,20,20] broadcast(least), dimensions={}
  u = f32[2,20,20] select(cs, s, leasts)
  m = f32[2,20] reduce(u, least), dimensions={2}, to_apply=max
  ms = f32[2,20,20] broadcast(m), dimensions={0,1}
  d = f32[2,20,20] subtract(u, ms)
  x = f32[2,20,20] exponential(d)
  zero = f32[] constant(0)
  z = f32[2,20] reduce(x, zero), dimensions={2}, to_apply=add
  zs = f32[2,20,20] broadcast(z), dimensions={0,1}
  p = f32[2,20,20] divide(x, zs)
  ROOT o = f32[2,20,8] dot(p, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
})");
}

// The layer norm of `value`, f32[rows,columns], as `name`; parameters from `number` on.
std::string layer_norm(const std::string& value, const std::string& name, int64_t rows,
                       int64_t columns, int number, const char* root = "") {
  const std::string box = fmt::format("f32[{},{}]", rows, columns);
  return fmt::format(R"(  {1}zero = f32[] constant(0)
  {1}g = f32[{4}] parameter({5})
  {1}b = f32[{4}] parameter({6})
  {1}count = f32[] constant({4})
  {1}sum = f32[{3}] reduce({0}, {1}zero), dimensions={{1}}, to_apply=add
  {1}counts = f32[{3}] broadcast({1}count), dimensions={{}}
  {1}mean = f32[{3}] divide({1}sum, {1}counts)
  {1}means = {2} broadcast({1}mean), dimensions={{0}}
  {1}less = {2} subtract({0}, {1}means)
  {1}square = {2} multiply({1}less, {1}less)
  {1}squares = f32[{3}] reduce({1}square, {1}zero), dimensions={{1}}, to_apply=add
  {1}variance = f32[{3}] divide({1}squares, {1}counts)
  {1}small = f32[] constant(1e-5)
  {1}smalls = f32[{3}] broadcast({1}small), dimensions={{}}
  {1}above = f32[{3}] add({1}variance, {1}smalls)
  {1}root = f32[{3}] rsqrt({1}above)
  {1}roots = {2} broadcast({1}root), dimensions={{0}}
  {1}unit = {2} multiply({1}less, {1}roots)
  {1}gs = {2} broadcast({1}g), dimensions={{1}}
  {1}scaled = {2} multiply({1}unit, {1}gs)
  {1}bs = {2} broadcast({1}b), dimensions={{1}}
  {7}{1} = {2} add({1}scaled, {1}bs)
)",
                     value, name, box, rows, columns, number, number + 1, root);
}

std::string norm_behind(int64_t m, int64_t k, int64_t n) {
  return kCombines + fmt::format(R"(ENTRY e {{
  a = f32[{0},{1}] parameter(0)
  w = f32[{1},{2}] parameter(1)
  r = f32[{0},{2}] parameter(2)
  d = f32[{0},{2}] dot(a, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  s = f32[{0},{2}] add(d, r)
{3}}})",
                                 m, k, n, layer_norm("s", "y", m, n, 3, "ROOT "));
}

TEST(ChainRowsTest, LayerNormBehindAProduct) {
  for (const char* target : kTargets) {
    checked(norm_behind(32, 24, 48), target);
    checked(norm_behind(37, 11, 21), target);
    checked(norm_behind(5, 7, 130), target);
  }
}

std::string norm_before(int64_t m, int64_t k, int64_t n) {
  return kCombines + fmt::format(R"(ENTRY e {{
  a = f32[{0},{1}] parameter(0)
  w = f32[{1},{2}] parameter(1)
{3}  d = f32[{0},{2}] dot(y, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT t = f32[{0},{2}] tanh(d)
}})",
                                 m, k, n, layer_norm("a", "y", m, k, 2));
}

TEST(ChainRowsTest, LayerNormBeforeAProduct) {
  for (const char* target : kTargets) {
    checked(norm_before(32, 24, 48), target);
    checked(norm_before(45, 19, 7), target);
    checked(norm_before(300, 64, 16), target);
  }
}

TEST(ChainRowsTest, AnActivationBeforeAProduct) {
  for (const char* target : kTargets)
    checked(R"(HloModule m
ENTRY e {
  a = f32[3,17,20] parameter(0)
  w = f32[20,9] parameter(1)
  t = f32[3,17,20] tanh(a)
  r = f32[51,20] reshape(t)
  ROOT d = f32[51,9] dot(r, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})",
            target);
}

// Short lines of an image: a block has several of them.
TEST(ChainRowsTest, ShortLinesBeforeAProduct) {
  for (const char* target : kTargets)
    for (const char* rows : {"f32[98,20]", "f32[2,7,7,20]"}) {
      const bool counted = std::string(rows) == "f32[98,20]";
      checked(fmt::format(R"(HloModule m
ENTRY e {{
  a = f32[2,7,7,20] parameter(0)
  w = f32[20,33] parameter(1)
  t = f32[2,7,7,20] tanh(a)
  r = {0} reshape(t)
  ROOT d = {1} dot(r, w), lhs_contracting_dims={{{2}}}, rhs_contracting_dims={{0}}
}})",
                          rows, counted ? "f32[98,33]" : "f32[2,7,7,33]", counted ? 1 : 3),
              target);
    }
}

// Norm, product, activation, product, residual from the first norm, norm; two outputs.
TEST(ChainRowsTest, ATransformersHalf) {
  for (const char* target : kTargets)
    checked(
        kCombines + fmt::format(R"(ENTRY e {{
  a = f32[40,24] parameter(0)
  w = f32[24,50] parameter(1)
  v = f32[50,24] parameter(2)
{}  d = f32[40,50] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  t = f32[40,50] tanh(d)
  f = f32[40,24] dot(t, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  s = f32[40,24] add(f, x)
{}  ROOT o = (f32[40,24], f32[40,24]) tuple(y, x)
}})",
                                layer_norm("a", "x", 40, 24, 3), layer_norm("s", "y", 40, 24, 5)),
        target);
}

// Half of the columns gates the other half.
TEST(ChainRowsTest, GatedColumns) {
  for (const char* target : kTargets)
    checked(kCombines + std::string(R"(ENTRY e {
  a = f32[30,12] parameter(0)
  w = f32[12,40] parameter(1)
  d = f32[30,40] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  zero = f32[] constant(0)
  z = f32[30] reduce(d, zero), dimensions={1}, to_apply=add
  zs = f32[30,20] broadcast(z), dimensions={0}
  x = f32[30,20] slice(d), slice={[0:30], [0:20]}
  y = f32[30,20] slice(d), slice={[0:30], [20:40]}
  g = f32[30,20] logistic(y)
  h = f32[30,20] multiply(x, g)
  ROOT o = f32[30,20] add(h, zs)
})"),
            target);
}

TEST(ChainRowsTest, ReductionsOfARow) {
  for (const char* target : {"icelake", "avx2"})
    checked(kCombines + std::string(R"(ENTRY e {
  a = f32[4,30,12] parameter(0)
  w = f32[4,12,45] parameter(1)
  d = f32[4,30,45] dot(a, w), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  least = f32[] constant(-inf)
  zero = f32[] constant(0)
  m = f32[4,30] reduce(d, least), dimensions={2}, to_apply=max
  z = f32[4,30] reduce(d, zero), dimensions={2}, to_apply=add
  ROOT o = (f32[4,30], f32[4,30]) tuple(m, z)
})"),
            target);
}

// The first product has K = 1: it is a map of rows.
TEST(ChainRowsTest, AFirstProductOfOneElement) {
  for (const char* target : {"icelake", "avx2"})
    checked(R"(HloModule m
ENTRY e {
  a = f32[40,1] parameter(0)
  w = f32[1,24] parameter(1)
  v = f32[24,10] parameter(2)
  d = f32[40,24] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[40,24] tanh(d)
  ROOT f = f32[40,10] dot(t, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})",
            target);
}

TEST(ChainRowsTest, OnlyALaterProductIsBatched) {
  for (const char* target : {"icelake", "avx2"})
    checked(R"(HloModule m
ENTRY e {
  a = f32[54,20] parameter(0)
  b = f32[20,30] parameter(1)
  c = f32[3,30,9] parameter(2)
  d = f32[54,30] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[54,30] tanh(d)
  e = f32[3,18,30] reshape(t)
  ROOT f = f32[3,18,9] dot(e, c), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
})",
            target);
}

TEST(ChainRowsTest, OnlyTheFirstProductIsBatched) {
  for (const char* target : {"icelake", "avx2"})
    checked(R"(HloModule m
ENTRY e {
  a = f32[3,18,20] parameter(0)
  b = f32[3,20,30] parameter(1)
  c = f32[30,9] parameter(2)
  d = f32[3,18,30] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  t = f32[3,18,30] tanh(d)
  e = f32[54,30] reshape(t)
  ROOT f = f32[54,9] dot(e, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})",
            target);
}

TEST(ChainRowsTest, RefusalsHaveCodes) {
  // Rows that depend on each other.
  EXPECT_EQ(refused(kCombines + std::string(R"(ENTRY e {
  a = f32[20,20] parameter(0)
  b = f32[20,20] parameter(1)
  c = f32[20,20] parameter(2)
  d = f32[20,20] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  zero = f32[] constant(0)
  z = f32[20] reduce(d, zero), dimensions={0}, to_apply=add
  zs = f32[20,20] broadcast(z), dimensions={1}
  t = f32[20,20] multiply(d, zs)
  ROOT f = f32[20,20] dot(t, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})")),
            "chain-rows");
  EXPECT_EQ(refused(attention(1, 1, 64, 200000, 4)), "chain-residence");
}

// The number of kernels that cover a module; checks that the values do not change.
int cover(const std::string& text, fuse::Mode mode, std::vector<fuse::Refusal>* refusals) {
  auto target = target::find_target("icelake");
  auto before = parsed(text);
  auto module = before->clone();
  EXPECT_TRUE(fuse::pack_weights(module.get(), *target).has_value());
  EXPECT_TRUE(fuse::fuse(module.get(), *target, mode, refusals).has_value());
  EXPECT_TRUE(hlo::verify(*module).has_value());
  std::vector<tensor::Literal> arguments = interp::random_arguments(*before, 5);
  auto want = interp::evaluate(*before, arguments), got = interp::evaluate(*module, arguments);
  EXPECT_TRUE(want.has_value() && got.has_value());
  if (want && got) {
    auto same = tensor::compare(*got, *want, tensor::derived_tolerance(tensor::Type::f32, 4096));
    EXPECT_TRUE(same.equal) << same.describe();
  }
  const auto& instrs = module->entry()->instrs();
  return static_cast<int>(std::count_if(instrs.begin(), instrs.end(), [](const hlo::Instr* instr) {
    return instr->is(hlo::Opcode::fusion);
  }));
}

// Products have batches and heads as one dimension, the operators between them as two: windows of
// an image.
std::string windows(int64_t batch, int64_t heads, int64_t tokens, int64_t depth) {
  const int64_t all = batch * heads;
  return kCombines + fmt::format(R"(ENTRY e {{
  q = f32[{0},{3},{4}] parameter(0)
  k = f32[{0},{3},{4}] parameter(1)
  v = f32[{0},{3},{4}] parameter(2)
  bias = f32[{2},{3},{3}] parameter(3)
  mask = f32[{1},{3},{3}] parameter(4)
  s = f32[{0},{3},{3}] dot(q, k), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{2}}
  t = f32[{1},{2},{3},{3}] reshape(s)
  b = f32[{1},{2},{3},{3}] broadcast(bias), dimensions={{1,2,3}}
  c = f32[{1},{2},{3},{3}] broadcast(mask), dimensions={{0,2,3}}
  tb = f32[{1},{2},{3},{3}] add(t, b)
  u = f32[{1},{2},{3},{3}] add(tb, c)
  least = f32[] constant(-inf)
  m = f32[{1},{2},{3}] reduce(u, least), dimensions={{3}}, to_apply=max
  ms = f32[{1},{2},{3},{3}] broadcast(m), dimensions={{0,1,2}}
  d = f32[{1},{2},{3},{3}] subtract(u, ms)
  x = f32[{1},{2},{3},{3}] exponential(d)
  zero = f32[] constant(0)
  z = f32[{1},{2},{3}] reduce(x, zero), dimensions={{3}}, to_apply=add
  zs = f32[{1},{2},{3},{3}] broadcast(z), dimensions={{0,1,2}}
  p = f32[{1},{2},{3},{3}] divide(x, zs)
  w = f32[{0},{3},{3}] reshape(p)
  o = f32[{0},{3},{4}] dot(w, v), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}
  h = f32[{1},{2},{3},{4}] reshape(o)
  ROOT out = f32[{1},{3},{2},{4}] transpose(h), dimensions={{0,2,1,3}}
}})",
                                 all, batch, heads, tokens, depth);
}

TEST(ChainRowsTest, BatchesThatProductsCountThrough) {
  for (const char* target : kTargets) {
    checked(windows(4, 3, 49, 16), target);
    checked(windows(3, 2, 21, 9), target);
  }
}

TEST(ChainRowsTest, AttentionBecomesOneKernel) {
  std::vector<fuse::Refusal> refusals;
  EXPECT_EQ(cover(attention(1, 8, 64, 64, 32), fuse::Mode::stitch, &refusals), 1);
  EXPECT_EQ(cover(attention(1, 8, 64, 64, 32), fuse::Mode::greedy, &refusals), 3);
  EXPECT_EQ(cover(windows(8, 3, 49, 32), fuse::Mode::stitch, &refusals), 1);
}

// The norm's value is also read by a kernel that the second product depends on: it would leave the
// kernel and return.
TEST(ChainRowsTest, ValuesDoNotGoOutAndComeBack) {
  std::vector<fuse::Refusal> refusals;
  cover(kCombines + fmt::format(R"(ENTRY e {{
  a = f32[40,24] parameter(0)
  w = f32[24,50] parameter(1)
  v = f32[50,24] parameter(2)
{}  d = f32[40,50] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  f = f32[24,24] dot(x, x), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  ROOT o = f32[50,24] dot(v, f), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  g = f32[50,50] dot(d, d), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
}})",
                                layer_norm("a", "x", 40, 24, 3)),
        fuse::Mode::chains, &refusals);
}

}  // namespace
}  // namespace heddle::stitch
