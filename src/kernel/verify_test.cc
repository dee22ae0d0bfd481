#include "kernel/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/mma.h"
#include "kernel/text.h"

namespace heddle::kernel {
namespace {

using ::testing::HasSubstr;

// A kernel with one group of this body.
std::string kernel_text(const std::string& body, const std::string& group = "group") {
  return R"(heddle.kernel 1
kernel k {
  dims n
  scratch 256
  buffer x: f32[8,64] global in
  buffer y: f32[8,64] global out
  buffer z: s32[n] global inout
  buffer h: bf16[64] global inout
  buffer t: f32[64] scratch at 0
  buffer acc: f32[4,2] reg lanes 16
  buffer one: f32[2] reg
  buffer fd: s32[2,4] fragment lanes 32
  buffer fa: s8[16] fragment lanes 32
  buffer fb: s8[8] fragment lanes 32
  phase {
)" + group +
         " {\n" + body + "\n}\n}\n}\n";
}

std::string problems(const std::string& body, const std::string& group = "group") {
  auto kernel = parse_kernel(kernel_text(body, group));
  if (!kernel) return "parse: " + kernel.error().message;
  Status status = verify(*kernel);
  return status ? "" : status.error().message;
}

TEST(Verify, GoodKernelsPass) {
  for (const char* body : {
           "",
           "vector c 64 lanes 16 { acc[0, 0] = x[0, c] }",
           "unrolled j 4 { unrolled i 2 { vector c 16 lanes 16 { acc[3 - j, i] = 0:f32 } } }",
           "vector c 60 lanes 16 { y[0, c] = x[0, c]*x[0, 3] if c % 2 == 0 }",
           "one[0] = lane(shuffle_xor(acc[0, 0], 8) + acc[0, 0], 3)",
           "vector c 64 lanes 16 { y[0, c] = lane(x[0, c], 2) + shuffle_xor(x[0, c], 1) + one[0] }",
           "vector c 64 lanes 16 { let a = x[0, c] serial k n { y[k, c] = a } }",
           "vector c 50 lanes 16 { if c < 9 { y[0, c] = 1:f32 } else { prefetch x[0, c] level 1 } "
           "}",
           "serial i n unroll 4 { z[i] = z[i] + 1:s32 }",
           "h[0] = convert(convert(h[1], f32) + 1:f32, bf16)",
           "async_copy t[0] from x[0, 0] count 8 async_wait 0",
           "mma sm_80_m16n8k32_s8_s32 fd[1], fa[], fb[], fd[0]",
           "z[0] = dot(7:u32, bitcast(x[0, 0], u32), z[1], dpbusd)",
           "let b = bitcast(x[0, 0], u32) z[0] = convert(b, s32) barrier",
       }) {
    EXPECT_EQ(problems(body), "") << body;
  }
  EXPECT_EQ(problems("y[a, 0] = x[b, 0]", "group grid (a 8, b floor_div(n + 7, 8)) threads 64"),
            "");
}

struct Case {
  int invariant;
  const char* body;
  const char* message;
};

TEST(Verify, EachInvariantIsSeen) {
  for (const Case& c : {
           Case{1, "let a = exp(1)", "exp of s64"},
           Case{1, "y[0, 0] = 1", "s64 stored in a buffer of f32"},
           Case{1, "h[0] = h[1] + h[2]", "add of bf16"},
           Case{1, "h[0] = select(n < 1, h[1], h[2])", "select of bf16"},
           Case{1, "let a = select(0:s32 == z[0], 1, 2:f32)", "do not agree"},
           Case{1, "y[0, 0] = fma(x[0, 0], x[0, 1], 1)", "do not agree"},
           Case{1, "y[0, 0] = x[0, 1] if 3", "the mask is not pred"},
           Case{1, "y[0, 0] = load_if(x[0, 1], n, 1:f32)", "load_if of f32 with mask s64"},
           Case{1, "y[z[0], 0] = 1:f32", "index 0 of 'y' is s32"},
           Case{1, "if n { }", "the condition is not pred"},
           Case{1, "serial i z[0] { }", "the extent is s32"},
           Case{1, "let a = bitcast(n, f32)", "bitcast of s64 to f32"},
           Case{1, "let a = not(1:f32)", "not of f32"},
           Case{1, "let a = shl(1:f32, 2:f32)", "shl of f32"},
           Case{1, "let a = pow(2, 3)", "pow of s64"},
           Case{3, "y[0] = 1:f32", "'y' of rank 2 has 1 indices"},
           Case{3, "y[0, 0] = x[0, 0, 0]", "'x' of rank 2 has 3 indices"},
           Case{3, "y[0, 0] = load_if(x[0], true, 1:f32)", "'x' of rank 2 has 1 indices"},
           Case{3, "prefetch x[0]", "'x' of rank 2 has 1 indices"},
           Case{4, "serial i 2 { one[i] = 1:f32 }", "index i of 'one' is not constant"},
           Case{4, "one[n] = 1:f32", "index n of 'one' is not constant"},
           Case{4, "unrolled i 3 { one[i] = 1:f32 }", "becomes 2, outside its extent 2"},
           Case{4, "unrolled i 2 { unrolled j 4 { one[i*2 + j - 3] = 1:f32 } }", "becomes -3"},
           Case{4, "vector c 16 lanes 16 { acc[c, 0] = 1:f32 }",
                "index c of 'acc' is not constant"},
           Case{5, "acc[0, 0] = 1:f32", "a register of 16 lanes is stored where 0 run"},
           Case{5, "vector c 16 lanes 8 { acc[0, 0] = 1:f32 }", "is stored where 8 run"},
           Case{5, "vector c 16 lanes 16 { one[0] = 1:f32 }", "a register of 0 lanes is stored"},
           Case{5, "vector c 16 lanes 16 { y[0, 0] = 1:f32 }", "a uniform store"},
           Case{5, "vector c 16 lanes 16 { t[n] = x[0, c] }", "a uniform store"},
           Case{5, "vector c 16 lanes 16 { vector d 4 lanes 4 { } }", "do not nest"},
           Case{5, "vector c 16 lanes 16 { thread d 4 lanes 4 { } }", "do not nest"},
           Case{5, "vector c 16 { }", "wants lanes"},
           Case{5, "serial c 16 lanes 4 { }", "lanes of a serial loop"},
           Case{5, "vector c 16 lanes 16 { serial i c { } }", "the extent varies"},
           Case{5, "one[0] = acc[0, 0]", "has 16 lanes outside a vector loop"},
           Case{5, "vector c 16 lanes 8 { t[c] = acc[0, 0] }", "16 lanes in a loop of 8"},
           Case{5, "one[0] = shuffle_xor(acc[0, 0], 1)", "outside a vector loop"},
           Case{5, "one[0] = lane(acc[0, 0], 16)", "lane with 16 of 16 lanes"},
           Case{5, "one[0] = lane(x[0, 0], 0)", "a value without lanes"},
           Case{5, "vector c 15 lanes 16 { t[c] = lane(x[0, c], 2) }", "may be inactive"},
           Case{5, "vector c 16 lanes 16 { if c < 3 { t[c] = shuffle_xor(x[0, c], 2) } }",
                "may be inactive"},
           Case{5, "vector c 12 lanes 12 { t[c] = shuffle_xor(x[0, c], 2) }", "not a power of two"},
           Case{5, "vector c 16 lanes 16 { barrier }", "outside vector"},
           Case{5, "vector c 16 lanes 16 { async_wait 0 }", "outside vector"},
           Case{5, "vector c 16 lanes 16 { mma sm_80_m16n8k32_s8_s32 fd[1], fa[], fb[], fd[0] }",
                "outside vector"},
           Case{6, "x[0, 0] = 1:f32", "'x' is an input"},
           Case{8, "parallel i 4 { }", "parallel loops stand only"},
           Case{8, "block i 4 { }", "block loops stand only"},
           Case{9, "unrolled i n { }", "an unrolled extent is a constant"},
           Case{9, "unrolled i 65 { unrolled j 64 { } }", "at most 4096"},
           Case{12, "prefetch one[0]", "registers cannot be prefetched"},
           Case{13, "async_copy y[0, 0] from x[0, 0] count 1", "not from global to scratch"},
           Case{13, "async_copy t[0] from z[0] count 1", "s32 is copied to f32"},
           Case{14, "mma dpbusd fd[0], fa[], fb[], fd[0]", "is for each lane"},
           Case{14, "z[0] = dot(z[0], 1:u32, z[1], dpbusd)", "dot dpbusd of s32, u32 and s32"},
           Case{14, "mma frobnicate fd[0], fa[], fb[], fd[0]", "is called 'frobnicate'"},
           Case{14, "mma sm_80_m16n8k32_s8_s32 fd[0], fb[], fb[], fd[0]", "fragment a is"},
           Case{14, "mma sm_80_m16n8k32_s8_s32 fd[0], fa[]", "wants fragments"},
           Case{4, "mma sm_80_m16n8k32_s8_s32 fd[2], fa[], fb[], fd[0]", "becomes 2"},
       }) {
    std::string got = problems(c.body);
    EXPECT_THAT(got, HasSubstr("invariant " + std::to_string(c.invariant) + ": ")) << c.body;
    EXPECT_THAT(got, HasSubstr(c.message)) << c.body;
    EXPECT_EQ(got.find('\n'), std::string::npos) << c.body << "\n" << got;
  }
  EXPECT_THAT(problems("", "group grid (i z[0])"), HasSubstr("invariant 8"));
  EXPECT_THAT(problems("y[0] = 1 + x[0]"), HasSubstr("parse: "));
}

Kernel good() {
  return *parse_kernel(kernel_text("serial i n { vector c 64 lanes 16 { y[i, c] = x[i, c] } }"));
}

std::string after(void (*change)(Kernel& kernel)) {
  Kernel kernel = good();
  EXPECT_TRUE(verify(kernel));
  change(kernel);
  Status status = verify(kernel);
  return status ? "" : status.error().message;
}

std::vector<Stmt>& body(Kernel& kernel) { return kernel.phases[0].groups[0].body; }

TEST(Verify, WhatTextCannotSay) {
  EXPECT_THAT(after([](Kernel& k) { body(k).push_back(body(k)[0]); }), HasSubstr("invariant 10"));
  EXPECT_THAT(after([](Kernel& k) {
                ExprId i = k.ref(body(k)[0].var);
                body(k).push_back(make_store(BufferId(1), {i, i}, k.constant(Type::f32, 1)));
              }),
              HasSubstr("invariant 2: phase 0 group 0: y[i, i] = 1:f32: variable 'i'"));
  EXPECT_THAT(after([](Kernel& k) { k.vars[0].name = "x"; }),
              HasSubstr("two things are called 'x'"));
  EXPECT_THAT(after([](Kernel& k) { k.buffers[0].name = "a b"; }), HasSubstr("not an identifier"));
  EXPECT_THAT(after([](Kernel& k) { k.scratch_bytes = 255; }), HasSubstr("invariant 7"));
  EXPECT_THAT(after([](Kernel& k) { k.buffers[4].offset_bytes = -4; }), HasSubstr("invariant 7"));
  EXPECT_THAT(after([](Kernel& k) {
                k.scratch_bytes = 1000;
                k.buffers[4].offset_bytes = 2;
              }),
              HasSubstr("invariant 7: buffer t: offset 2 is not aligned"));
  EXPECT_THAT(after([](Kernel& k) { std::swap(k.buffers[2], k.buffers[4]); }),
              HasSubstr("invariant 11"));
  EXPECT_THAT(after([](Kernel& k) { k.buffers[4].extents = {-1}; }), HasSubstr("invariant 11"));
  EXPECT_THAT(after([](Kernel& k) { k.buffers[0].extents[0] = -2; }), HasSubstr("no dimension 1"));
  EXPECT_THAT(after([](Kernel& k) { k.buffers[0].extents = {INT64_MAX, 4}; }),
              HasSubstr("too many"));
  EXPECT_THAT(after([](Kernel& k) { k.buffers[0].type = Type::c64; }), HasSubstr("no c64"));
  EXPECT_THAT(after([](Kernel& k) { k.buffers[4].lanes = 4; }), HasSubstr("lanes 4 in scratch"));
  EXPECT_THAT(after([](Kernel& k) { body(k)[0].extent = {}; }), HasSubstr("invariant 12"));
  EXPECT_THAT(after([](Kernel& k) { body(k)[0].body[0].body[0].buffer = {}; }),
              HasSubstr("no buffer"));
  EXPECT_THAT(after([](Kernel& k) { body(k)[0].body[0].body[0].value = {}; }),
              HasSubstr("no value"));
  EXPECT_THAT(after([](Kernel& k) { body(k)[0].unroll = 0; }), HasSubstr("unroll 0"));
  EXPECT_THAT(after([](Kernel& k) { k.phases[0].groups[0].block_threads = 0; }),
              HasSubstr("block_threads"));
  EXPECT_THAT(after([](Kernel& k) { body(k)[0].extent = k.add({Op::add, Type::s64, {k.dim(0)}}); }),
              HasSubstr("add has 1 operands"));
  EXPECT_THAT(after([](Kernel& k) { body(k)[0].extent = k.dim(7); }), HasSubstr("no dimension 7"));
  EXPECT_THAT(after([](Kernel& k) {
                VarId v = k.add_var("v", Type::s32);
                body(k).push_back(make_let(v, k.dim(0)));
              }),
              HasSubstr("the variable is s32, its value s64"));
  EXPECT_THAT(after([](Kernel& k) {
                Stmt prefetch{StmtKind::prefetch};
                prefetch.buffer = BufferId(0);
                prefetch.indices = {k.constant(0), k.constant(0)};
                prefetch.level = 4;
                body(k).push_back(prefetch);
              }),
              HasSubstr("level 4"));
}

TEST(Verify, AllProblemsAreGiven) {
  std::string all = problems("y[0] = 1:f32 x[0, 0] = 2:f32 parallel i 3 { one[2] = exp(1) }");
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 5);
  EXPECT_THAT(all, HasSubstr("invariant 3: phase 0 group 0: y[0] = 1:f32: "));
  EXPECT_THAT(all, HasSubstr("\ninvariant 6: phase 0 group 0: x[0, 0] = 2:f32: "));
}

TEST(Mma, MapsAreBijections) {
  EXPECT_GE(mma_table().size(), 6u);
  for (const MmaDescriptor& mma : mma_table()) {
    auto check = [&](const MmaMap& map, int rows, int columns) {
      ASSERT_EQ(1 << map.lane_bits.size(), mma.lanes) << mma.name;
      std::vector<int> hits(static_cast<size_t>(mma.batch * rows * columns));
      ASSERT_EQ(static_cast<size_t>(mma.lanes * map.registers()), hits.size()) << mma.name;
      for (int lane = 0; lane < mma.lanes; ++lane) {
        for (int reg = 0; reg < map.registers(); ++reg) {
          MmaPlace at = map.at(lane, reg);
          ASSERT_TRUE(at.batch < mma.batch && at.row < rows && at.column < columns) << mma.name;
          ++hits[static_cast<size_t>((at.batch * rows + at.row) * columns + at.column)];
        }
      }
      for (int count : hits) EXPECT_EQ(count, 1) << mma.name;
    };
    check(mma.map_d, mma.m, mma.n);
    check(mma.map_a, mma.m, mma.k);
    check(mma.map_b, mma.k, mma.n);
    EXPECT_EQ(find_mma(mma.name), &mma);
  }
  EXPECT_EQ(find_mma("none"), nullptr);
}

}  // namespace
}  // namespace heddle::kernel
