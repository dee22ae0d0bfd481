// Statements, loops, places and lanes: kernels as text, run by the interpreter and as machine code
// for every target that runs here; all buffers must agree to the bit.
#include "emit/llvm/kernel_emitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>

#include "emit/llvm/test_code.h"
#include "kernel/interp.h"
#include "kernel/random_kernel.h"
#include "kernel/text.h"

namespace heddle::emit {
namespace {

using ::testing::HasSubstr;

// x, y, v: floats; z, w: integers; b: bytes; p: pred. n is 37 and m 16 in the run.
constexpr char kBuffers[] = R"(
  dims n, m
  scratch 1024
  buffer x: f32[40,37] global in
  buffer v: f32[40,n] global in
  buffer w: s32[64] global in
  buffer y: f32[40,37] global inout
  buffer z: s32[40,n] global inout
  buffer d: f64[100] global inout aligned 64
  buffer b: u8[200] global inout
  buffer p: pred[70] global inout
  buffer h: bf16[90] global inout
  buffer t: f32[64] scratch at 0
  buffer u: s32[16] scratch at 256
  buffer row: f32[37] scratch at 512
  buffer acc: f32[3] reg lanes 16
  buffer wide: f64[2] reg lanes 8
  buffer flags: pred[1] reg lanes 16
  buffer one: f32[2] reg
  buffer few: s64[2] reg
)";

struct Memory {
  std::vector<float> x = std::vector<float>(40 * 37), v = x, y = x;
  std::vector<int32_t> w = std::vector<int32_t>(64), z = std::vector<int32_t>(40 * 37);
  struct alignas(64) Aligned {
    double d[104];
  };
  std::vector<Aligned> d = std::vector<Aligned>(1);
  std::vector<uint8_t> b = std::vector<uint8_t>(200), p = std::vector<uint8_t>(70);
  std::vector<uint16_t> h = std::vector<uint16_t>(90);

  Memory() {
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) / 4;
      v[i] = static_cast<float>(i) / 8;
      y[i] = 1000 + static_cast<float>(i);
      z[i] = static_cast<int32_t>(i * 7919 % 1013) - 500;
    }
    for (size_t i = 0; i < 64; ++i) w[i] = static_cast<int32_t>(i * 29 % 37);
    for (size_t i = 0; i < 104; ++i) d[0].d[i] = static_cast<double>(i) * 1.5 - 20;
    for (size_t i = 0; i < 200; ++i) b[i] = static_cast<uint8_t>(i * 11);
    for (size_t i = 0; i < 70; ++i) p[i] = i % 3 == 0;
    for (size_t i = 0; i < 90; ++i) h[i] = static_cast<uint16_t>(0x3f00 + i);
  }
  std::vector<void*> pointers() {
    return {x.data(), v.data(), w.data(), y.data(), z.data(),
            d.data(), b.data(), p.data(), h.data()};
  }
  std::string difference(const Memory& want) const {
    auto compare = [](const char* name, const auto& a, const auto& b) -> std::string {
      for (size_t i = 0; i < a.size(); ++i) {
        if (std::memcmp(&a[i], &b[i], sizeof(a[i])) == 0) continue;
        return fmt::format("{}[{}]: got {}, want {}\n", name, i, a[i], b[i]);
      }
      return "";
    };
    std::string result = compare("y", y, want.y) + compare("z", z, want.z) +
                         compare("b", b, want.b) + compare("p", p, want.p) +
                         compare("h", h, want.h);
    for (size_t i = 0; i < 100; ++i) {
      if (std::memcmp(&d[0].d[i], &want.d[0].d[i], 8) != 0) {
        result += fmt::format("d[{}]: got {}, want {}\n", i, d[0].d[i], want.d[0].d[i]);
        break;
      }
    }
    return result;
  }
};

void run_phases(const std::string& phases) {
  auto kernel =
      kernel::parse_kernel("heddle.kernel 1\nkernel k {" + std::string(kBuffers) + phases + "}\n");
  ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
  std::vector<int64_t> dims = {37, 16};
  Memory before, want;
  kernel::InterpReport report = kernel::interpret(*kernel, want.pointers(), dims);
  ASSERT_TRUE(report.faults.empty()) << report.faults[0];
  EXPECT_NE(before.difference(want), "") << "the kernel does nothing";
  for (const target::Target& target : runnable_targets()) {
    auto code = TestCode::make(*kernel, target);
    ASSERT_TRUE(code.has_value()) << code.error().message;
    for (int parts : {1, 3}) {
      Memory got;
      (*code)->run(got.pointers(), dims, parts);
      EXPECT_EQ(got.difference(want), "") << target.name << ", " << parts << " parts\n" << phases;
    }
  }
}

void run_body(const std::string& body) { run_phases("phase { group { " + body + " } }"); }

TEST(Emitter, GridsGroupsAndPhases) {
  run_phases(
      "phase { group grid (i 5, j 8, k 1) { y[i*8 + j, k + 3] = x[j, i] }"
      "  group { z[0, 0] = 5:s32 } group grid (q n) { z[q, 1] = convert(q, s32) } }"
      "phase { group grid (r m, s n) { z[r, s] = z[r, s] * 2:s32 + z[39, 5] } }");
  run_phases("phase { group grid (i 0) { z[i, 0] = 1:s32 } group grid (j 1) { z[j, 2] = 9:s32 } }");
}

TEST(Emitter, SerialLoops) {
  for (const char* extent : {"37", "n", "n - 21", "min(n, 5)", "n - 40", "1"}) {
    for (const char* unroll : {"", "unroll 4", "unroll 7"}) {
      run_body(fmt::format("b[199] = 3:u8 serial i {} {} {{ y[i, 2] = y[i, 2] + x[i, 1]*2:f32 }}",
                           extent, unroll));
    }
  }
  run_body(
      "one[0] = 0:f32 serial i 9 { serial j i { one[0] = one[0] + x[i, j] } } y[0, 0] = one[0]");
}

TEST(Emitter, VectorLoopsWithEveryTail) {
  for (int extent : {1, 4, 15, 16, 17, 31, 32, 33, 37}) {
    for (int lanes : {1, 4, 8, 16, 32}) {
      run_body(fmt::format(
          "vector i {} lanes {} {{ y[3, i] = x[3, i]*x[2, i] z[2, i] = convert(i, s32) }}", extent,
          lanes));
    }
  }
  run_body("vector i n lanes 16 { y[3, i] = x[3, i] + v[2, i] }");
  run_body("vector i n - m lanes 8 { y[3, i] = x[3, i] + v[2, i] }");
  run_body("y[0, 0] = 1:f32 vector i n - 40 lanes 8 { y[3, i] = x[3, i] + v[2, i] }");
}

TEST(Emitter, UnrolledLoopsAreCopies) {
  run_body(
      "unrolled i 3 { unrolled j 2 { let s = x[i, j] + x[i + j, 3]"
      "  vector k 16 lanes 16 { acc[i] = s + x[j, k] y[i*2 + j, k] = acc[i]*s } } }");
  run_body("unrolled i 4 { if i % 2 == 0 { y[i, 0] = x[i, 1] } else { y[i, 1] = x[i, 2] } }");
}

TEST(Emitter, StridesGathersAndReversal) {
  run_body("vector i 18 lanes 16 { y[0, i*2] = x[1, i*2 + 1] }");  // stride 2
  run_body("vector i 9 lanes 8 { y[0, i*4] = x[1, i*3] }");        // strides 3, 4
  run_body("vector i 37 lanes 16 { y[0, 36 - i] = x[1, i] }");     // backwards
  run_body("vector i 37 lanes 16 { y[0, i] = x[1, 36 - i] }");
  run_body("vector i n lanes 16 { y[i, 3] = v[i, 5] }");  // run-time stride
  run_body("vector i 40 lanes 8 { y[39 - i, 3] = x[i, 36] + v[i, 0] }");
  run_body("vector i 37 lanes 16 { y[4, i] = x[2, convert(w[i], s64)] }");  // gather
  run_body("vector i 37 lanes 16 { y[4, convert(w[i], s64)] = x[2, i] }");  // scatter
  run_body("vector i 37 lanes 8 { y[4, i] = x[floor_mod(i*7, 40), floor_div(i*i, 50)] }");
  run_body("vector i 37 lanes 16 { y[4, i] = x[4, 5] }");  // broadcast
  run_body("vector i 60 lanes 16 { b[i*3] = b[199 - i] p[i] = p[69 - i] }");
  run_body("vector i 45 lanes 16 { h[i*2] = h[89 - i] }");
}

// Lanes indexed by quotients and remainders of their number: loads of the whole range, shuffled.
TEST(Emitter, LanesByGroups) {
  // One element for each group of lanes, in every one of its places.
  for (int inner = 0; inner < 4; ++inner)
    run_body(fmt::format(
        "serial k 2 {{ vector i 16 lanes 16 {{ y[k, i] = x[3, k*16 + floor_div(i, 4)*4 + {}] }} }}",
        inner));
  run_body("vector i 16 lanes 16 { y[0, i] = x[39, floor_div(i, 4)*4 + 24] }");  // the very end
  run_body("vector i 16 lanes 16 { y[0, i] = x[0, floor_div(i, 4)*4] }");
  run_body("vector i 37 lanes 16 { y[0, i] = x[5, floor_div(i, 2)] }");  // twice each
  run_body("vector i 37 lanes 8 { y[0, i] = x[5, floor_div(i, 8)*5] + x[6, floor_div(i, 4)*4] }");
  run_body("vector i 16 lanes 16 { y[0, i] = x[5, floor_div(i, 8)*16 + 3] }");  // beyond a vector
  run_body("vector i 16 lanes 16 { y[0, i] = x[5, floor_div(i, 8)*24 + 3] }");  // two of them
  run_body("vector i 8 lanes 8 { y[0, i] = x[5, floor_div(i, 2)*12] }");        // and far apart
  run_body("vector i 13 lanes 16 { y[0, i] = x[5, floor_div(i, 3)*3 + floor_mod(i, 2)] }");
  run_body(
      "vector i 24 lanes 8 { y[0, i] = x[5, floor_mod(i, 3) + 2] + x[6, floor_div(i + 5, 3)] }");
  run_body("vector i 24 lanes 8 { y[0, i] = x[5, 30 - floor_div(i, 3)*2] }");
  run_body("serial k n { vector i 16 lanes 16 { y[k, i] = v[k, floor_div(i, 4)] } }");
  run_body(
      "vector i 16 lanes 16 { p[i] = p[20 + floor_div(i, 4)] h[i] = h[40 + floor_div(i, 3)] }");
  run_body("vector i 16 lanes 16 { y[1, i] = load_if(x[5, floor_div(i, 4)*4], i < 9, 3:f32) }");
  run_body("vector i 37 lanes 16 { y[floor_div(i, 5), i] = x[floor_mod(i, 3), floor_div(i, 4)] }");
  run_body("vector i 16 lanes 16 { y[0, i] = x[convert(w[i], s64), floor_div(i, 4)] }");
}

// Three elements of four, in bytes, halves and floats, under a condition that a row has as a whole.
TEST(Emitter, LanesByGroupsUnderAMask) {
  for (const char* row : {"r > 1", "r < 9"})
    for (int lanes : {8, 16, 32})
      for (const char* array : {"b", "p", "h"})
        run_body(fmt::format(
            "serial r 3 {{ vector i 32 lanes {0} {{ let q = and({1}, floor_mod(i, 4) < 3) "
            "{2}[36 + i] = load_if({2}[floor_div(i, 4)*3 + floor_mod(i, 4)], q, {2}[36 + i]) }} }}",
            lanes, row, array));
  run_body(
      "serial r 3 { vector i 37 lanes 16 { y[r, i] = load_if(x[r, floor_div(i, 4)*3 + floor_mod(i, "
      "4)], and(r > 0, and(floor_mod(i + r, 4) < 3, i > 5)), 7:f32) } }");
}

// A narrower access of one lane made LLVM select instructions for one-bit masks, which it cannot.
TEST(Emitter, FewLanesOfARegisterCompareAndSelect) {
  for (int lanes : {17, 18, 20, 24, 29, 33}) {
    const std::string difference = "(x[g, i] - x[g, g])";
    run_phases(
        fmt::format("phase {{ group grid (g 9) {{ vector i {0} lanes 16 {{ y[g, i] = select({1} == "
                    "0:f32, 0:f32, select({1} != 0:f32, -100:f32, {1})) }} }} }}",
                    lanes, difference));
    run_body(fmt::format("vector i {} lanes 16 {{ y[2, i] = y[2, i] + x[3, i] }}", lanes));
  }
}

TEST(Emitter, FlattenedLoopsSplitTheirIndex) {
  // 40 x 32 as one loop; digits by division, with and without lanes that cross a row.
  run_body(
      "vector i 1280 lanes 16 { y[floor_div(i, 32), floor_mod(i, 32)] = x[floor_div(i, 32), "
      "floor_mod(i, 32)]*3:f32 }");
  run_body(
      "vector i 1480 lanes 16 { y[floor_div(i, 37), floor_mod(i, 37)] = x[floor_div(i, 37), 36 - "
      "floor_mod(i, 37)] }");
  run_body(
      "serial k 3 { vector i 64 lanes 16 { z[floor_div(k*64 + i, 32), floor_mod(k*64 + i, 32)] = "
      "convert(i + k, s32) } }");
  run_body(
      "vector i 400 lanes 8 { y[floor_div(i, 10), floor_mod(i, 10)] = x[floor_div(i, 10), "
      "floor_mod(i + 3, 10)] }");
}

TEST(Emitter, RegistersAndLanes) {
  run_body(
      "vector i 16 lanes 16 { acc[0] = x[0, i] acc[1] = 0:f32 flags[0] = x[0, i] > 0:f32 }"
      "serial k 20 { vector j 16 lanes 16 { acc[1] = fma(acc[0], x[k, j], acc[1]) } }"
      "vector q 16 lanes 16 { y[0, q] = acc[1] + shuffle_xor(acc[1], 5) p[q] = flags[0]"
      "  y[1, q] = select(flags[0], acc[0], lane(acc[1], 3)) }"
      "one[1] = lane(acc[1] + shuffle_xor(acc[1], 8)*2:f32, 6) y[2, 2] = one[1]");
  // Register buffers keep the values of lanes that a partial iteration turns off.
  run_body(
      "vector i 16 lanes 16 { acc[0] = 1:f32 } vector j 21 lanes 16 { acc[0] = acc[0] + x[0, j] }"
      "vector k 16 lanes 16 { y[0, k] = acc[0] }");
  // Also if those lanes compute zero by zero.
  for (const char* extent : {"2", "4", "6", "8", "12"})
    run_body(std::string("vector i 16 lanes 16 { acc[0] = 0:f32 } vector j ") + extent +
             " lanes 16 { acc[0] = acc[0] + x[0, j]/v[1, j] }"
             "vector k 16 lanes 16 { y[0, k] = acc[0] }");
  run_body(
      "vector i 8 lanes 8 { wide[0] = d[i] wide[1] = wide[0]*d[8 + i] }"
      "vector j 8 lanes 8 { d[16 + j] = wide[1] + lane(wide[0], 7) }");
  run_body(
      "few[0] = 3 few[1] = few[0]*n vector i 16 lanes 16 { z[few[0], i] = convert(few[1] + i, s32)"
      " z[4, i] = convert(lane(i, 5) + shuffle_xor(i, 3), s32) }");
}

TEST(Emitter, BranchesAndMasks) {
  run_body(
      "vector c 37 lanes 16 {"
      "  if c % 3 == 1 { z[0, c] = 1:s32\n if c > 20 { z[1, c] = 2:s32 } }"
      "  else { if x[0, c] > 0:f32 { z[0, c] = 3:s32 } else { z[2, c] = 4:s32 } }"
      "  if c > 100 { z[c*1000, 0] = 1:s32 }"
      "  y[5, c] = x[5, c] if x[5, c] < y[5, c] - 1001:f32"
      "  y[6, c] = x[6, c] if c < n - 20 }\n"
      "if n == 37 { z[3, 0] = -1:s32 } else { z[3, 1] = -1:s32 }"
      "if m > 20 { z[3, 2] = -1:s32 } else { z[3, 3] = convert(m, s32) }"
      "z[3, 4] = 8:s32 if n > 3 z[3, 5] = 8:s32 if n > 300");
  run_body(
      "vector i 16 lanes 16 { acc[0] = 0:f32\n if x[0, i] > 0:f32 { acc[0] = x[0, i]"
      "  serial k 3 { acc[0] = acc[0]*2:f32 + x[k, i] } } y[0, i] = acc[0] acc[0] = 7:f32 if i < 5 "
      "y[1, i] = acc[0] }");
}

TEST(Emitter, GuardedLoads) {
  run_body(
      "vector c 37 lanes 16 {"
      "  y[0, c] = load_if(x[0, c + 30], c < 7, -1:f32)"
      "  y[1, c] = load_if(x[c*100, 0], c < 0, 5:f32)"
      "  y[2, c] = load_if(x[n*7 - 250, 1], n < 40, x[1, c])"
      "  y[3, c] = load_if(x[n*7, 1], n > 40, 2:f32)"
      "  y[4, c] = load_if(x[1, 36 - c*2], c < 19, x[0, c])"
      "  y[5, c] = load_if(x[3, 4], x[0, c] > 0:f32, 9:f32)"
      "  y[6, c] = load_if(v[convert(w[c], s64) + 20, 3], w[c] < 20:s32, 0:f32) }"
      "y[7, 0] = load_if(x[n + 100, 0], n > 100, 4:f32) y[7, 1] = load_if(x[n - 7, 0], n > 30, "
      "4:f32)");
}

TEST(Emitter, ScratchAndLockstep) {
  run_phases(
      "phase { group grid (r 40) {"
      "  vector i 37 lanes 16 { row[i] = x[r, i] }"
      "  vector j 37 lanes 16 { y[r, j] = row[36 - j] }"
      "  vector k 16 lanes 16 { t[k] = x[r, k] t[k] = t[15 - k] y[r, k] = y[r, k] + t[k] }"
      "  serial q 16 { u[q] = convert(t[q], s32) } barrier"
      "  serial s 16 { z[r, s] = u[floor_mod(s + 3, 16)] } } }");
}

TEST(Emitter, PrefetchStreamAndCopy) {
  run_body(
      "prefetch x[0, 0] level 1 prefetch y[1000, 0] level 3 write "
      "vector i 96 lanes 16 { prefetch x[i, 0] d[i] = d[i]*2:f64 streaming }"
      "vector j 37 lanes 16 { prefetch x[convert(w[j], s64), 0] level 2 y[0, j] = x[1, j] "
      "streaming }"
      "async_copy t[0] from x[3, 0] count 37 async_wait 0 "
      "vector k 37 lanes 16 { y[2, k] = t[k] }");
  run_body(
      "vector i 6 lanes 4 { async_copy t[i*10] from x[i, i] count 10 } async_wait 0 "
      "vector k 60 lanes 16 { y[floor_div(k, 20), floor_mod(k, 20)] = t[k] }");
  run_body(
      "serial r 3 { vector i 16 lanes 16 { if i % 5 == r { async_copy t[i*4] from x[i, 2] count 4 "
      "} } async_wait 0 "
      "  vector j 16 lanes 16 { if j % 5 == r { y[r, j] = t[j*4 + 3] } } }");
}

TEST(Emitter, LetsAndSharedExpressions) {
  run_body(
      "let a = x[0, 0]*2:f32 let k = n - 30"
      "serial i 5 { let b0 = a + x[i, k] let e = k + i serial j 4 { let c0 = b0*x[j, e] y[i, j] = "
      "c0 + a } }"
      "y[9, 9] = a");
  // A value read before a store does not change.
  run_body("serial i 5 { let old = y[i, 0] y[i, 0] = 3:f32 y[i, 1] = old + y[i, 0] }");
}

TEST(Emitter, HighExpressions) {
  // Two thousand nested operations, of lanes and of scalars.
  for (bool lanes : {false, true}) {
    kernel::Kernel k;
    k.name = "high";
    auto x = k.add_buffer({"x", tensor::Type::s32, {16}});
    auto y =
        k.add_buffer({"y", tensor::Type::s32, {16}, kernel::Space::global, kernel::Access::out});
    auto i = k.add_var("i");
    auto value = k.load(x, {k.ref(i)});
    for (int j = 0; j < 2000; ++j) {
      auto next = k.convert(k.constant(j), tensor::Type::s32);
      value = k.binary(j % 2 ? kernel::Op::add : kernel::Op::xor_, value, next);
    }
    auto kind = lanes ? kernel::LoopKind::vector : kernel::LoopKind::serial;
    k.phases = {
        {{{{},
           1,
           {kernel::make_loop(kind, i, k.constant(16), {kernel::make_store(y, {k.ref(i)}, value)},
                              lanes ? 16 : 0)}}}}};
    auto code = TestCode::make(k, *target::find_target("avx2"));
    ASSERT_TRUE(code.has_value()) << code.error().message;
    if (runnable_targets().size() < 2) return;
    std::vector<int32_t> in(16, 5), out(16);
    (*code)->run({in.data(), out.data()}, {});
    int32_t want = 5;
    for (int j = 0; j < 2000; ++j) want = j % 2 ? want + j : want ^ j;
    EXPECT_EQ(out[7], want);
  }
}

TEST(Emitter, Examples) {
  for (const char* name : {"softmax", "layer_norm", "gemm_14x32"}) {
    std::ifstream file(std::string(HEDDLE_SOURCE_DIR) + "/src/kernel/testdata/" + name + ".kernel");
    std::stringstream text;
    text << file.rdbuf();
    auto kernel = kernel::parse_kernel(text.str());
    ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
    std::vector<int64_t> dims(kernel->dims.size(), 11);
    auto fresh = [&] {
      std::vector<kernel::HostBuffer> memory;
      for (int64_t i = 0; i < kernel->global_count(); ++i) {
        int64_t size = 1;
        for (int64_t e : kernel->buffers[static_cast<size_t>(i)].extents) size *= e < 0 ? 11 : e;
        kernel::HostBuffer& buffer = memory.emplace_back();
        buffer.bytes = size * 4;
        buffer.lines.resize(static_cast<size_t>(buffer.bytes + 63) / 64);
        auto* row = static_cast<float*>(buffer.data());
        for (int64_t j = 0; j < size; ++j) row[j] = static_cast<float>(j * 31 % 97) / 50 - 1;
      }
      return memory;
    };
    std::vector<kernel::HostBuffer> want = fresh();
    std::vector<void*> want_at = kernel::pointers(want);
    kernel::InterpReport report = kernel::interpret(*kernel, want_at, dims);
    ASSERT_TRUE(report.faults.empty()) << report.faults[0];
    for (const target::Target& target : runnable_targets()) {
      auto code = TestCode::make(*kernel, target);
      ASSERT_TRUE(code.has_value()) << code.error().message;
      std::vector<kernel::HostBuffer> got = fresh();
      std::vector<void*> got_at = kernel::pointers(got);
      (*code)->run(got_at, dims, 2);
      size_t last = want.size() - 1, size = static_cast<size_t>(want[last].bytes) / 4;
      for (size_t j = 0; j < size; ++j) {
        float a = static_cast<float*>(got_at[last])[j], b = static_cast<float*>(want_at[last])[j];
        ASSERT_NEAR(a, b, 2e-6 * std::max(1.0f, std::abs(b)))
            << name << " " << target.name << " " << j;
      }
    }
  }
}

std::string error_of(const std::string& body) {
  auto kernel = kernel::parse_kernel("heddle.kernel 1\nkernel k {" + std::string(kBuffers) +
                                     "phase { group { " + body + " } } }\n");
  if (!kernel) return kernel.error().message;
  auto compiled = compile({&*kernel}, *target::find_target("avx2"));
  return compiled ? "no error" : compiled.error().message;
}

TEST(Emitter, WhatACpuCannotDoIsAnError) {
  EXPECT_THAT(error_of("thread i 32 lanes 32 { y[0, i] = x[0, i] }"), HasSubstr("not for a CPU"));
  EXPECT_THAT(error_of("vector i 400 lanes 128 { b[i] = 1:u8 }"), HasSubstr("128 lanes"));
  EXPECT_THAT(error_of("y[0, q] = 1:f32"), HasSubstr("q"));
  EXPECT_THAT(
      error_of(
          "serial i 1000000 { serial j 1000000 unroll 4096 { serial k 10 unroll 4096 {"
          "serial l 10000 unroll 4096 { serial o 1000 unroll 4096 { y[0, 0] = 1:f32 } } } } }"),
      HasSubstr("after unrolling"));
}

}  // namespace
}  // namespace heddle::emit
