// Chains of products as one kernel: checked by the kernel interpreter against the reference.
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

FusionCheck checked(const std::string& text, const char* target_name = "icelake") {
  FusionCheck check = proved(text, target_name, 7, 4096);
  EXPECT_TRUE(is_chain(check.placed)) << text;
  return check;
}

// D0 = relu(A·W0 + b0), D1 = relu(D0·W1 + b1), …: extents[0] is K of the first.
std::string products(int64_t m, const std::vector<int64_t>& extents, const char* type = "f32") {
  std::string text = "HloModule m\nENTRY e {\n";
  std::string last = "a";
  text += fmt::format("  a = {}[{},{}] parameter(0)\n  zero = {}[] constant(0)\n", type, m,
                      extents[0], type);
  int parameter = 1;
  for (size_t i = 0; i + 1 < extents.size(); ++i) {
    const int64_t k = extents[i], n = extents[i + 1];
    const std::string out = fmt::format("{}[{},{}]", type, m, n);
    text += fmt::format("  w{} = {}[{},{}] parameter({})\n", i, type, k, n, parameter++);
    text += fmt::format("  b{} = {}[{}] parameter({})\n", i, type, n, parameter++);
    text += fmt::format("  c{0} = {1} broadcast(b{0}), dimensions={{1}}\n", i, out);
    text += fmt::format(
        "  d{0} = {1} dot({2}, w{0}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n", i,
        out, last);
    text += fmt::format(
        "  s{0} = {1} add(d{0}, c{0})\n  z{0} = {1} broadcast(zero), dimensions={{}}\n", i, out);
    const bool is_last = i + 2 == extents.size();
    text += fmt::format("  {2}e{0} = {1} maximum(s{0}, z{0})\n", i, out, is_last ? "ROOT " : "");
    last = fmt::format("e{}", i);
  }
  return text + "}\n";
}

TEST(ChainTest, TwoProducts) {
  for (const char* target : {"icelake", "avx2", "portable"}) {
    checked(products(64, {24, 32, 16}), target);
    checked(products(37, {19, 21, 50}), target);
    checked(products(3, {5, 7, 2}), target);
  }
}

TEST(ChainTest, AnyNumberOfProducts) {
  for (const char* target : {"icelake", "avx2"}) {
    checked(products(45, {20, 33, 17, 40}), target);
    checked(products(70, {8, 16, 24, 9, 48, 3}), target);
  }
}

// Rows, widths and their number at random; some blocks of rows are not full, some panels narrow.
TEST(ChainTest, RandomExtents) {
  uint64_t state = 12345;
  auto below = [&](uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state >> 33) % n);
  };
  for (int round = 0; round < 60 && !HasFailure(); ++round) {
    std::vector<int64_t> extents;
    const int64_t count = 3 + below(3);
    for (int64_t i = 0; i < count; ++i) extents.push_back(2 + below(i % 2 ? 70 : 20));
    checked(products(2 + below(round % 3 == 0 ? 700 : 60), extents),
            round % 4 == 0 ? "avx2" : "icelake");
  }
}

TEST(ChainTest, Types) {
  for (const char* type : {"f64", "f16", "bf16", "s32"})
    for (const char* target : {"icelake", "avx2"})
      checked(products(21, {11, 20, 13}, type), target);
}

TEST(ChainTest, BatchesOfProducts) {
  // The right sides differ by batch, the first is a row of B for each column.
  checked(R"(HloModule m
ENTRY e {
  a = f32[3,18,20] parameter(0)
  b = f32[3,30,20] parameter(1)
  c = f32[3,30,9] parameter(2)
  d = f32[3,18,30] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
  e = f32[3,18,30] tanh(d)
  ROOT f = f32[3,18,9] dot(e, c), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
})");
}

TEST(ChainTest, NothingBetweenAndAResidual) {
  checked(R"(HloModule m
ENTRY e {
  a = f32[50,20] parameter(0)
  b = f32[20,12] parameter(1)
  c = f32[12,20] parameter(2)
  d = f32[50,12] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[50,20] dot(d, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT f = f32[50,20] add(e, a)
})");
}

// The sum overwrites the residual, for any blocks of rows; not if the residual has other readers.
TEST(ChainTest, ASumInPlaceOfItsResidual) {
  for (const char* target : {"icelake", "avx2"})
    for (const int64_t m : {16, 37, 161, 330}) {
      const std::string text = fmt::format(R"(HloModule m
ENTRY e {{
  a = f32[{0},12] parameter(0)
  b = f32[12,20] parameter(1)
  r = f32[{0},20] parameter(2)
  c = f32[20,12] parameter(3)
  d = f32[{0},20] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  s = f32[{0},20] add(d, r)
  e = f32[{0},20] tanh(s)
  f = f32[{0},12] dot(e, c), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
)",
                                           m);
      EXPECT_EQ(
          checked(text + fmt::format("  ROOT t = (f32[{0},20], f32[{0},12]) tuple(e, f)\n}}", m),
                  target)
              .in_place,
          (std::vector<int>{2, -1}));
      EXPECT_EQ(checked(text + fmt::format("  g = f32[{0},12] add(f, a)\n"
                                           "  ROOT t = (f32[{0},20], f32[{0},12]) tuple(e, g)\n}}",
                                           m),
                        target)
                    .in_place,
                (std::vector<int>{2, -1}));
    }
}

// D = relu(alpha·A·W + beta·C), twice.
TEST(ChainTest, AlphaBetaAndC) {
  const char* const text = R"(HloModule m
ENTRY e {
  a = f32[75,20] parameter(0)
  w0 = f32[20,24] parameter(1)
  c0 = f32[75,24] parameter(2)
  w1 = f32[24,10] parameter(3)
  c1 = f32[75,10] parameter(4)
  alpha = f32[] constant(0.75)
  beta = f32[] constant(-1.5)
  zero = f32[] constant(0)
  alphas0 = f32[75,24] broadcast(alpha), dimensions={}
  betas0 = f32[75,24] broadcast(beta), dimensions={}
  zeros0 = f32[75,24] broadcast(zero), dimensions={}
  alphas1 = f32[75,10] broadcast(alpha), dimensions={}
  betas1 = f32[75,10] broadcast(beta), dimensions={}
  zeros1 = f32[75,10] broadcast(zero), dimensions={}
  d0 = f32[75,24] dot(a, w0), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ad0 = f32[75,24] multiply(d0, alphas0)
  bc0 = f32[75,24] multiply(c0, betas0)
  s0 = f32[75,24] add(ad0, bc0)
  e0 = f32[75,24] maximum(s0, zeros0)
  d1 = f32[75,10] dot(e0, w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ad1 = f32[75,10] multiply(d1, alphas1)
  bc1 = f32[75,10] multiply(c1, betas1)
  s1 = f32[75,10] add(ad1, bc1)
  ROOT e1 = f32[75,10] maximum(s1, zeros1)
})";
  for (const char* target : {"icelake", "avx2", "portable"}) checked(text, target);
}

// A convolution, an activation, and a second convolution.
std::string convolutions(const char* input, const char* kernel, const char* middle,
                         const std::string& window, const char* second, const char* output,
                         const char* window_1 = "1x1") {
  return fmt::format(R"(HloModule m
ENTRY e {{
  x = f32[{0}] parameter(0)
  w = f32[{1}] parameter(1)
  v = f32[{4}] parameter(2)
  zero = f32[] constant(0)
  c = f32[{2}] convolution(x, w), window={{{3}}}, dim_labels=b01f_01io->b01f
  z = f32[{2}] broadcast(zero), dimensions={{}}
  r = f32[{2}] maximum(c, z)
  d = f32[{5}] convolution(r, v), window={{size={6}}}, dim_labels=b01f_01io->b01f
  ROOT e = f32[{5}] tanh(d)
}})",
                     input, kernel, middle, window, second, output, window_1);
}

TEST(ChainTest, Convolutions) {
  for (const char* target : {"icelake", "avx2"}) {
    checked(convolutions("1,12,20,3", "3,3,3,18", "1,12,20,18", "size=3x3 pad=1_1x1_1", "1,1,18,20",
                         "1,12,20,20"),
            target);
    checked(convolutions("2,17,31,4", "3,3,4,9", "2,9,16,9", "size=3x3 stride=2x2 pad=1_1x1_1",
                         "1,1,9,21", "2,9,16,21"),
            target);
    checked(convolutions("3,7,7,4", "3,3,4,40", "3,7,7,40", "size=3x3 pad=1_1x1_1", "1,1,40,10",
                         "3,7,7,10"),
            target);
    checked(convolutions("1,2,70,4", "1,1,4,5", "1,2,70,5", "size=1x1", "1,1,5,6", "1,2,70,6"),
            target);
  }
}

TEST(ChainTest, RandomConvolutions) {
  uint64_t state = 4321;
  auto below = [&](uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state >> 33) % n);
  };
  for (int round = 0; round < 40 && !HasFailure(); ++round) {
    const int64_t batch = 1 + below(3), height = 2 + below(14), width = 3 + below(40);
    const int64_t in = 2 + below(6), between = 4 + below(36), out = 2 + below(40);
    const int64_t size = 1 + 2 * below(3), stride = 1 + below(2), pad = size / 2;
    const int64_t lines = (height - 1) / stride + 1, rows = (width - 1) / stride + 1;
    const std::string middle = fmt::format("{},{},{},{}", batch, lines, rows, between);
    checked(convolutions(
                fmt::format("{},{},{},{}", batch, height, width, in).c_str(),
                fmt::format("{0},{0},{1},{2}", size, in, between).c_str(), middle.c_str(),
                fmt::format("size={0}x{0} stride={1}x{1} pad={2}_{2}x{2}_{2}", size, stride, pad),
                fmt::format("1,1,{},{}", between, out).c_str(),
                fmt::format("{},{},{},{}", batch, lines, rows, out).c_str()),
            round % 4 == 0 ? "avx2" : "icelake");
  }
}

TEST(ChainTest, RowsOfAConvolutionAreCountedThrough) {
  for (const char* batch : {"1", "3"}) {
    for (int lines : {5, 12}) {
      const int rows = std::stoi(batch) * lines * 9;
      checked(fmt::format(R"(HloModule m
ENTRY e {{
  x = f32[{0},{1},9,4] parameter(0)
  w = f32[3,3,4,19] parameter(1)
  v = f32[19,8] parameter(2)
  u = f32[8,33] parameter(3)
  c = f32[{0},{1},9,19] convolution(x, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f
  t = f32[{0},{1},9,19] tanh(c)
  r = f32[{2},19] reshape(t)
  d = f32[{2},8] dot(r, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  f = f32[{2},8] negate(d)
  g = f32[{2},33] dot(f, u), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT h = f32[{0},{1},9,33] reshape(g)
}})",
                          batch, lines, rows));
    }
  }
}

// The last product's rows are stored with other dimensions, which no loop runs over.
TEST(ChainTest, RowsLeaveInOtherDimensions) {
  checked(R"(HloModule m
ENTRY e {
  a = f32[60,20] parameter(0)
  b = f32[20,12] parameter(1)
  c = f32[12,16] parameter(2)
  d = f32[60,12] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[60,16] dot(d, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  f = f32[4,15,2,8] reshape(e)
  ROOT g = f32[4,2,15,8] transpose(f), dimensions={0,2,1,3}
})");
}

// A value between the products is read again by the last one's epilogue, or is an output, or both.
TEST(ChainTest, ValuesBetweenAreReadAgain) {
  for (const char* target : {"icelake", "avx2", "portable"}) {
    for (const char* last :
         {"ROOT g = f32[33,20] add(f, t)", "ROOT g = (f32[33,20], f32[33,20]) tuple(f, t)",
          "g = f32[33,20] add(f, t)\n  ROOT h = (f32[33,20], f32[33,20], f32[33,20]) tuple(g, t, "
          "d)"})
      checked(fmt::format(R"(HloModule m
ENTRY e {{
  a = f32[33,20] parameter(0)
  b = f32[20,20] parameter(1)
  c = f32[20,20] parameter(2)
  d = f32[33,20] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  t = f32[33,20] tanh(d)
  f = f32[33,20] dot(t, c), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  {}
}})",
                          last),
              target);
  }
}

// The rows of one register tile if the weights fit the first-level cache, else a block for the
// second level.
TEST(ChainTest, Residence) {
  auto rows = [](int64_t m, std::vector<int64_t> extents, stage::Space* space) {
    stage::PlacedFusion placed =
        schedule::place(*parsed(products(m, extents))->entry(), *target::find_target("icelake"));
    EXPECT_TRUE(static_cast<bool>(placed.decision)) << placed.decision.reason();
    for (size_t i = 0; i < placed.graph.stages.size(); ++i)
      if (placed.graph.stages[i].name == "e0") *space = placed.placement.stages[i].space;
    return std::get<stage::Row>(placed.schedule.nodes[0]).gemm()->record.m_block;
  };
  const int64_t first_cache = target::find_target("icelake")->caches[0].bytes;
  stage::Space space = stage::Space::reg;
  EXPECT_LE(rows(128320, {96, 16, 32}, &space) * (96 + 16 + 32) * 4, first_cache / 2);
  EXPECT_EQ(space, stage::Space::scratch);
  EXPECT_GE(rows(16384, {256, 64, 16}, &space) * (256 + 64 + 16) * 4, first_cache);
  EXPECT_EQ(space, stage::Space::scratch);
}

struct Cover {
  int products = 0;  // kernels with a product
  std::vector<fuse::Refusal> refusals;
  bool refused(const std::string& code) const {
    return std::any_of(refusals.begin(), refusals.end(),
                       [&](const fuse::Refusal& refusal) { return refusal.code == code; });
  }
};

// Covers the module with fusions; checks that the values do not change.
Cover cover(const std::string& text) {
  Cover result;
  auto target = target::find_target("icelake");
  auto before = parsed(text);
  auto module = before->clone();
  EXPECT_TRUE(fuse::pack_weights(module.get(), *target).has_value());
  EXPECT_TRUE(fuse::fuse(module.get(), *target, fuse::Mode::stitch, &result.refusals).has_value());
  EXPECT_TRUE(hlo::verify(*module).has_value());
  for (const hlo::Instr* instr : module->entry()->instrs()) {
    if (!instr->is(hlo::Opcode::fusion)) continue;
    const auto members = instr->called()[0]->instrs();
    result.products += std::any_of(members.begin(), members.end(), [](const hlo::Instr* member) {
      return member->is(hlo::Opcode::dot) || member->is(hlo::Opcode::convolution);
    });
  }
  std::vector<tensor::Literal> arguments = interp::random_arguments(*before, 5);
  auto want = interp::evaluate(*before, arguments), got = interp::evaluate(*module, arguments);
  EXPECT_TRUE(want.has_value() && got.has_value());
  if (want && got) {
    auto same = tensor::compare(*got, *want, tensor::derived_tolerance(tensor::Type::f32, 4096));
    EXPECT_TRUE(same.equal) << same.describe();
  }
  return result;
}

// A product with one column is a reduction in rows.
TEST(ChainTest, AMatrixTimesAVectorIsNoLink) {
  Cover one = cover(products(64, {20, 30, 1}));
  EXPECT_EQ(one.products, 2);
  EXPECT_TRUE(one.refused("gemm-family"));
  EXPECT_EQ(cover(products(64, {20, 1, 30})).products, 2);
  EXPECT_EQ(cover(products(1, {20, 40, 30})).products, 2);
}

}  // namespace
}  // namespace heddle::stitch
