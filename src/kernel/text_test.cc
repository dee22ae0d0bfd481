#include "kernel/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <sstream>

namespace heddle::kernel {
namespace {

using ::testing::HasSubstr;

constexpr char kAll[] = R"(heddle.kernel 1
kernel all {
  target "avx512"
  schedule "schedule a on avx512"
  schedule "phase { \"x\" }"
  dims n, m
  scratch 4096
  buffer x: f32[n,768] global in aligned 64
  buffer y: f32[n,768] global out
  buffer idx: s32[m] global in
  buffer h: bf16[16] global inout
  buffer t: f32[768] scratch at 0
  buffer acc: f32[14,2] reg lanes 16
  buffer u: s64[] reg
  buffer fd: f32[2,4] fragment lanes 32
  buffer fa: f16[8] fragment lanes 32
  phase {
    group grid (mb floor_div(n + 3, 4), nb 12) threads 128 {
      u[] = mb*4 + nb - 7
      let r = max(mb, 3)
      serial k m - 1 unroll 4 {
        unrolled j 14 {
          vector c 768 lanes 16 {
            acc[j, 0] = fma(x[r*4, c], load_if(x[k, c + 1], c < 767, 0:f32), -2.5:f32) if c % 2 == 0
            if and(c < 5, not(c > 3)) {
              t[c] = select(x[r, c] < 1:f32, exp(x[r, c]), convert(idx[k], f32))
            } else {
              t[c] = x[r, c]*(x[r, c] + 1:f32) - (x[r, c] - x[r, 0]) streaming
            }
          }
        }
      }
      barrier
      let s = lane(shuffle_xor(acc[0, 1], 8), 3)
      h[0] = convert(s, bf16)
      prefetch x[r + 1, 0] level 1
      prefetch y[r, 0] level 2 write
      async_copy t[0] from x[r, 0] count 4
      async_wait 2
      mma sm_80_m16n8k16_f16_f32 fd[0], fa[], fa[], fd[1]
    }
    group {
      thread i 64 lanes 32 {
        y[0, i] = bitcast(u[] == 0, pred) + nothing if true
      }
    }
  }
}
)";

std::string all() {
  std::string text = kAll;
  std::string bad = "bitcast(u[] == 0, pred) + nothing if true";
  text.replace(text.find(bad), bad.size(), "0x7fc00001:f32 if u[] == 0");
  return text;
}

TEST(Text, PrintsWhatItRead) {
  auto kernel = parse_kernel(all());
  ASSERT_TRUE(kernel) << kernel.error().message;
  EXPECT_EQ(to_string(*kernel), all());
  EXPECT_EQ(kernel->schedule, "schedule a on avx512\nphase { \"x\" }");
  EXPECT_EQ(kernel->dims, (std::vector<std::string>{"n", "m"}));
  EXPECT_EQ(kernel->buffers[0].extents, (std::vector<int64_t>{-1, 768}));
  EXPECT_EQ(kernel->phases[0].groups[0].block_threads, 128);
  EXPECT_EQ(kernel->global_count(), 4);
}

std::string with_statement(const std::string& statement) {
  return "heddle.kernel 1\nkernel k {\n  dims n\n  buffer x: f32[8] global inout\n"
         "  buffer i: s32[8] global inout\n  phase {\n    group {\n      " +
         statement + "\n    }\n  }\n}\n";
}

std::string reprinted(const std::string& statement) {
  auto kernel = parse_kernel(with_statement(statement));
  if (!kernel) return kernel.error().message;
  std::string text = to_string(*kernel);
  size_t start = text.find("group {\n") + 14;
  return text.substr(start, text.find("\n    }\n", start) - start);
}

TEST(Text, ExpressionsKeepTheirTree) {
  for (const char* s : {
           "x[0] = x[1] + (x[2] + x[3])",
           "x[0] = x[1] + x[2] + x[3]",
           "x[0] = x[1] - (x[2] - x[3])*x[4]",
           "x[0] = x[1] / (x[2]*x[3])",
           "x[0] = (x[1] + x[2])*(x[3] - x[4]) / x[5]",
           "x[0] = neg(x[1]) + -1:f32",
           "x[n - 3] = 1e-30:f32",
           "x[0] = -0:f32",
           "x[0] = inf:f32",
           "x[0] = nan:f32",
           "x[0] = 0.1:f32",
           "x[0] = 3.4028235e+38:f32",
           "x[0] = 1e-45:f32",
           "i[0] = -2147483648:s32",
           "i[0] = i[1] + -2147483648:s32",
           "i[0] = i[1] - 2147483647:s32",
           "i[0] = convert(and(i[1] < i[2], true), s32)",
           "i[0] = shl(i[1], 3:s32)",
           "let a = 18446744073709551615:u64",
           "let a = convert(0.333251953125:f16, f32)",
           "let a = convert(0x7d01:f16, f32)",
           "let a = convert(448:f8e4m3fn, f32)",
           "let a = 0.1:f64",
       }) {
    std::string want = s;
    if (want.find("and(") != std::string::npos) want = "i[0] = convert(i[1] < i[2], s32)";
    EXPECT_EQ(reprinted(s), want);
  }
}

TEST(Text, AnIfOnTheNextLineIsAStatement) {
  std::string both = "x[0] = 1:f32 if n == 1\n      if n == 2 {\n        x[1] = 1:f32\n      }";
  EXPECT_EQ(reprinted(both), both);
}

TEST(Text, IntegersFold) {
  EXPECT_EQ(reprinted("x[2*3 + 1] = x[(n + 1) + 2]"), "x[7] = x[n + 3]");
  EXPECT_EQ(reprinted("x[0*n + 1] = x[1*n + 0]"), "x[1] = x[n]");
  EXPECT_EQ(reprinted("x[4 + n] = x[n / 1 - 0]"), "x[n + 4] = x[n]");
  EXPECT_EQ(reprinted("x[n % 1] = x[floor_div(-7, 2) + 4]"), "x[0] = x[0]");
  EXPECT_EQ(reprinted("x[n + 3 - 3] = load_if(x[2], 1 < 2, 0:f32)"), "x[n] = x[2]");
  EXPECT_EQ(reprinted("x[0] = select(2 < 1, x[1], x[2])"), "x[0] = x[2]");
  EXPECT_EQ(reprinted("i[0] = 2147483647:s32 + 1:s32"), "i[0] = -2147483648:s32");
  EXPECT_EQ(reprinted("i[0] = 7:s32 / 0:s32"), "i[0] = -1:s32");
  EXPECT_EQ(reprinted("i[0] = -7:s32 % 0:s32"), "i[0] = -7:s32");
  EXPECT_EQ(reprinted("x[0] = 1:f32 + 1:f32"), "x[0] = 1:f32 + 1:f32");
  EXPECT_EQ(reprinted("x[0] = x[1]*1:f32 + 0:f32"), "x[0] = x[1]*1:f32 + 0:f32");
}

// A tower of squarings is a path of nodes, but a tree of 2^n.
TEST(Text, SharedNodesArePrintedOnce) {
  Kernel kernel;
  kernel.name = "tower";
  BufferId x = kernel.add_buffer({"x", Type::f32, {4}, Space::global, Access::inout});
  ExprId value = kernel.load(x, {kernel.constant(1)});
  for (int i = 0; i < 300; ++i) value = kernel.binary(Op::mul, value, kernel.unary(Op::neg, value));
  for (int i = 0; i < 3000; ++i) value = kernel.unary(Op::exp, value);
  kernel.phases.push_back({{Group{{}, 1, {make_store(x, {kernel.constant(0)}, value)}}}});
  std::string text = to_string(kernel);
  EXPECT_LT(text.size(), 100000u);
  auto again = parse_kernel(text);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->exprs().size(), kernel.exprs().size());
  EXPECT_EQ(to_string(*again), text);
}

struct Bad {
  const char* statement;
  const char* message;
};

TEST(Text, BadTextIsRefusedWithItsPlace) {
  for (const Bad& bad : {
           Bad{"x[0] = y", "8:14: 'y' is not the name"},
           Bad{"z[0] = 1:f32", "8:7: unknown buffer 'z'"},
           Bad{"x[0] = 1:f32 + 1", "operands of add are f32 and s64"},
           Bad{"x[0] = 300:s8", "'300' is not a value of s8"},
           Bad{"x[0] = 1.5", "'1.5' is not a value of s64"},
           Bad{"x[0] = 1:c64", "not a value of c64"},
           Bad{"x[0] = frob(x[1])", "unknown function 'frob'"},
           Bad{"x[0] = exp(x[1], x[2])", "expected ')'"},
           Bad{"x[0] = (x[1]", "expected ')', got '}'"},
           Bad{"x[0] = $3", "$3 is not defined"},
           Bad{"x[0] = 9999999999999999999999", "not a value of s64"},
           Bad{"serial n 3 { }", "'n' is defined twice"},
           Bad{"serial x 3 { }", "'x' is defined twice"},
           Bad{"let a = 1 let a = 2", "'a' is defined twice"},
           Bad{"serial j 3 { } x[j] = 1:f32", "'j' is not the name"},
           Bad{"vector j 3 lanes 0 { }", "expected a number of lanes"},
           Bad{"let true = 1", "'true' cannot name anything"},
           Bad{"frob", "unknown statement 'frob'"},
           Bad{"x[0] = 1:f32 @", "unexpected character 0x40"},
           Bad{"mma q x[0], x[]", "fragment 'x' of rank 1 takes 0 indices"},
       }) {
    auto kernel = parse_kernel(with_statement(bad.statement));
    ASSERT_FALSE(kernel) << bad.statement;
    EXPECT_THAT(kernel.error().message, HasSubstr(bad.message)) << bad.statement;
  }
  EXPECT_THAT(parse_kernel("").error().message, HasSubstr("1:1: the first line must be"));
  EXPECT_THAT(parse_kernel("heddle.kernel 2\n").error().message, HasSubstr("1:15"));
  EXPECT_THAT(parse_kernel("heddle.kernel 1 kernel \"a").error().message,
              HasSubstr("does not end"));
}

TEST(Text, DeepTextIsRefused) {
  std::string open(100000, '(');
  EXPECT_THAT(parse_kernel(with_statement("x[0] = " + open)).error().message, HasSubstr("nest"));
  std::string blocks;
  for (int i = 0; i < 10000; ++i) blocks += "if true { ";
  EXPECT_THAT(parse_kernel(with_statement(blocks)).error().message, HasSubstr("nest"));
}

TEST(Text, CutAndDamagedTextNeverCrashes) {
  std::string text = all();
  for (size_t length = 0; length < text.size(); ++length) {
    (void)parse_kernel(std::string_view(text).substr(0, length));
    std::string damaged = text;
    damaged[length] = "(]}=0x$\"%:a-"[length % 12];
    (void)parse_kernel(damaged);
  }
}

}  // namespace
}  // namespace heddle::kernel
