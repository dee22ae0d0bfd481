#include "kernel/interp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "kernel/interp_exec.h"
#include "kernel/text.h"

namespace heddle::kernel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kBuffers[] = R"(
  dims n
  scratch 256
  buffer x: f32[8,20] global in
  buffer y: f32[8,20] global out
  buffer z: s32[n] global inout
  buffer t: f32[32] scratch at 0
  buffer u: s32[8] scratch at 64
  buffer acc: f32[2] reg lanes 16
  buffer one: f32[1] reg
)";

struct Ran {
  std::vector<float> x, y;
  std::vector<int32_t> z;
  InterpReport report;
  std::string faults;  // a line each
};

// `phases`: the text between the buffers and the kernel's end. Faults of output y are ignored.
// `sampled`: tasks of the last phase; 0: all.
Ran run(const std::string& phases, uint64_t seed = 0, int64_t sampled = 0) {
  Ran run{std::vector<float>(160), std::vector<float>(160), std::vector<int32_t>(24), {}, {}};
  std::iota(run.x.begin(), run.x.end(), 0.0f);
  std::iota(run.z.begin(), run.z.end(), 100);
  auto kernel =
      parse_kernel("heddle.kernel 1\nkernel k {" + std::string(kBuffers) + phases + "}\n");
  if (!kernel) {
    run.faults = "parse: " + kernel.error().message;
    return run;
  }
  const std::vector<void*> memory = {run.x.data(), run.y.data(), run.z.data()};
  run.report = sampled == 0 ? interpret(*kernel, memory, {24}, seed)
                            : interpret_sample(*kernel, memory, sampled, seed, {24});
  for (const std::string& fault : run.report.faults) {
    if (fault.find("output y") != 0) run.faults += fault + "\n";
  }
  return run;
}

Ran run_body(const std::string& body) { return run("phase { group { " + body + " } }"); }
Ran run_tasks(const std::string& body) {
  return run("phase { group grid (p 4) { " + body + " } }");
}

TEST(Interp, MovesAndCounts) {
  Ran r = run(
      "phase { group grid (p 8) { vector c 20 lanes 16 { y[p, c] = x[p, c]*2:f32 + x[p, 0] } } }");
  EXPECT_EQ(r.faults, "");
  EXPECT_THAT(r.report.faults, IsEmpty());
  for (size_t i = 0; i < 160; ++i) EXPECT_EQ(r.y[i], r.x[i] * 2 + r.x[i / 20 * 20]);
  const BufferCounts &x = r.report.buffers[0], &y = r.report.buffers[1];
  EXPECT_EQ(x.loads, 160 + 16);  // the uniform load once a step
  EXPECT_EQ(x.max_loads_per_elem, 3);
  EXPECT_EQ(x.distinct_loaded, 160);
  EXPECT_EQ(y.stores, 160);
  EXPECT_EQ(y.max_stores_per_elem, 1);
  EXPECT_EQ(y.distinct_stored, 160);
  EXPECT_EQ(r.report.op_counts[static_cast<size_t>(Op::mul)], 160);
  EXPECT_EQ(r.report.op_counts[static_cast<size_t>(Op::load)], 160 + 16);
}

TEST(Interp, SeedsOrderTheTasks) {
  // A legal kernel gives the same in any order; the last writer of a racy one shows the order.
  std::string legal = "phase { group grid (p 8) { serial c 20 { y[p, c] = x[7 - p, c] } } }";
  EXPECT_EQ(run(legal).y, run(legal, 3).y);
  std::string racy = "phase { group grid (p 8) { y[0, 0] = x[p, 0] } }";
  EXPECT_EQ(run(racy).y[0], 140);
  bool other = false;
  for (uint64_t seed = 1; seed < 5; ++seed) other = other || run(racy, seed).y[0] != 140;
  EXPECT_TRUE(other);
}

TEST(Interp, ASampleStoresItsPart) {
  // The first phase runs whole: a task of the second reads what any task of the first stored.
  const std::string phases =
      "phase { group grid (q 8) { z[q] = convert(q, s32) } }"
      "phase { group grid (p 8) { serial c 20 { y[p, c] = x[p, c] + convert(z[7 - p], f32) } } }";
  Ran all = run(phases), some = run(phases, 1, 3);
  EXPECT_EQ(some.faults, "");
  EXPECT_THAT(some.report.faults, IsEmpty());
  ASSERT_EQ(some.report.stored.size(), 3u);
  EXPECT_TRUE(some.report.stored[0].empty());
  int64_t rows = 0;
  for (size_t i = 0; i < 160; ++i) {
    if (!some.report.stored[1][i]) continue;
    EXPECT_EQ(some.y[i], all.y[i]);
    rows += i % 20 == 0 ? 1 : 0;
  }
  EXPECT_EQ(rows, 3);
  EXPECT_TRUE(some.report.stored[1][0] && some.report.stored[1][159]);
  EXPECT_TRUE(all.report.stored.empty());
}

TEST(Interp, ManyGroupsAndPhases) {
  Ran r =
      run("phase { group grid (a 2, b 3) { z[a*3 + b] = convert(a*10 + b, s32) } group { z[6] = "
          "7:s32 } }"
          "phase { group grid (q 7) { z[q + 7] = z[q] } }");
  EXPECT_EQ(r.faults, "");
  EXPECT_THAT(std::vector<int>(r.z.begin(), r.z.begin() + 14),
              ElementsAre(0, 1, 2, 10, 11, 12, 7, 0, 1, 2, 10, 11, 12, 7));
}

TEST(Interp, LanesOfRegisters) {
  Ran r = run_body(
      "vector a 16 lanes 16 { acc[1] = x[0, a] }"
      "one[0] = lane(shuffle_xor(acc[1], 8) + acc[1], 2)"
      "vector b 16 lanes 16 { t[b] = acc[1] + one[0] + shuffle_xor(x[1, b], 1) }"
      "serial c 16 { z[c] = convert(t[c], s32) }");
  EXPECT_EQ(r.faults, "");
  for (int c = 0; c < 16; ++c) EXPECT_EQ(r.z[static_cast<size_t>(c)], c + 12 + 20 + (c ^ 1));
}

TEST(Interp, MasksAndBranches) {
  Ran r = run_body(
      "vector c 20 lanes 16 {"
      "  if c % 2 == 0 { z[c] = 1:s32 } else { if c > 10 { z[c] = 2:s32 } else { z[c] = 3:s32 } }"
      "  z[c] = z[c] + 10:s32 if c < 3"
      "  if c > 100 { z[c*1000] = 1:s32 }"
      "}"
      "if n == 24 { z[20] = -1:s32 } else { z[21] = -1:s32 }");
  EXPECT_EQ(r.faults, "");
  EXPECT_THAT(r.z, ElementsAre(11, 13, 11, 3, 1, 3, 1, 3, 1, 3, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, -1,
                               121, 122, 123));
  EXPECT_EQ(r.report.buffers[2].stores, 20 + 3 + 1);
  EXPECT_EQ(r.report.buffers[2].loads, 20);  // the mask guards the store, not the load
}

TEST(Interp, LockstepIsByStatement) {
  // Each statement is done by all lanes before the next one.
  Ran r = run_body(
      "vector c 16 lanes 16 { t[c] = x[0, c] t[c] = t[15 - c] z[c] = convert(t[c], s32) }");
  EXPECT_EQ(r.faults, "");
  for (int c = 0; c < 16; ++c) EXPECT_EQ(r.z[static_cast<size_t>(c)], 15 - c);
}

TEST(Interp, GuardedLoadsDoNotHappen) {
  Ran r = run_body(
      "vector c 20 lanes 16 { z[c] = convert(load_if(x[0, c + 10], c < 10, -1:f32), s32) }");
  EXPECT_EQ(r.faults, "");
  EXPECT_EQ(r.z[9], 19);
  EXPECT_EQ(r.z[10], -1);
  EXPECT_EQ(r.report.buffers[0].loads, 10);
}

struct Case {
  const char* phases;
  const char* fault;
};

TEST(Interp, FaultsAreFound) {
  for (const Case& c : {
           Case{"y[8, 0] = 1:f32",
                "y[8, 0] = 1:f32: store of y[8, 0] is out of bounds, its extents are [8, 20]"},
           Case{"y[n - 25, 0] = 1:f32", "store of y[-1, 0] is out of bounds"},
           Case{"serial i 9 { z[0] = convert(x[i, 0], s32) }",
                "at i=8: read of x[8, 0] is out of bounds"},
           Case{"vector c 21 lanes 16 { t[c] = x[0, c] }",
                "at c=20: read of x[0, 20] is out of bounds"},
           Case{"t[32] = 1:f32", "store of t[32] is out of bounds"},
           Case{"one[0] = t[3]", "read of t[3], which nobody has written"},
           Case{"z[0] = convert(one[0], s32)", "read of one[0], which nobody has written"},
           Case{"vector c 16 lanes 16 { if c < 15 { acc[0] = 1:f32 } t[c] = acc[0] }",
                "at c=15: read of acc[0], which nobody has written"},
           Case{"one[0] = y[1, 2]", "read of y[1, 2], which nobody has written"},
           Case{"t[16] = 1:f32 u[0] = 3:s32 one[0] = t[16]",
                "read of t[16], whose bytes another buffer"},
           Case{"vector c 16 lanes 16 { t[c / 2] = 1:f32 }",
                "two lanes store t[0] in one statement"},
           Case{"z[0] = floor_div(z[1], z[2] - 102:s32)",
                "floor_div by a number that is not positive"},
           Case{"z[0] = floor_mod(z[1], -3:s32)", "floor_mod by a number that is not positive"},
           Case{"async_copy t[0] from x[0, 0] count 4", "the task ends before an async_wait"},
           Case{"async_copy t[0] from x[0, 0] count 4 async_wait 1",
                "the task ends before an async_wait"},
           Case{"async_copy t[0] from x[0, 0] count 4 one[0] = t[3] async_wait 0",
                "read of t[3] while an async copy to it is pending"},
           Case{"async_copy t[0] from x[0, 0] count 4 t[2] = 1:f32 async_wait 0",
                "store to t[2] while an async copy to it is pending"},
           Case{"async_copy t[0] from x[0, 18] count 4 async_wait 0",
                "copy of x[0, 18] (4 elements) is out"},
           Case{"async_copy t[30] from x[0, 0] count 4 async_wait 0",
                "copy of t[30] (4 elements) is out"},
           Case{"async_copy u[0] from z[0] count 2 z[1] = 5:s32 async_wait 0",
                "z[1] changed while"},
       }) {
    Ran r = run_body(c.phases);
    EXPECT_THAT(r.faults, HasSubstr(c.fault)) << c.phases;
    EXPECT_EQ(std::count(r.faults.begin(), r.faults.end(), '\n'), 1) << c.phases << "\n"
                                                                     << r.faults;
  }
}

TEST(Interp, TasksAreSeparate) {
  for (const Case& c : {
           Case{"y[0, 0] = 1:f32",
                "at p=1: store to y[0, 0], which another task of the phase reads or writes"},
           Case{"z[p] = z[p + 1]", "at p=1: store to z[1], which another task"},
           Case{"z[p + 1] = z[p]", "at p=1: read of z[1], which another task of the phase writes"},
           Case{"if p == 3 { z[0] = 1:s32 } else { y[p, 0] = convert(z[0], f32) }",
                "store to z[0], which"},
           Case{"if p == 0 { t[0] = 1:f32 } else { y[p, 0] = t[0] }",
                "at p=1: read of t[0], which nobody"},
           Case{"if p == 0 { one[0] = 1:f32 } else { y[p, 0] = one[0] }",
                "read of one[0], which nobody"},
       }) {
    Ran r = run_tasks(c.phases);
    EXPECT_THAT(r.faults, HasSubstr(c.fault)) << c.phases;
  }
  EXPECT_EQ(run_tasks("z[p] = z[p] + z[p + 10]").faults, "");
  EXPECT_EQ(run_tasks("y[p, 0] = x[0, 0]").faults, "");
  EXPECT_EQ(run_tasks("t[0] = x[p, 0] y[p, 0] = t[0]").faults, "");
  // Tasks of a later phase may read what others stored.
  EXPECT_EQ(run("phase { group grid (p 4) { z[p] = 1:s32 } } phase { group grid (q 3) { z[q + 4] = "
                "z[q + 1] } }")
                .faults,
            "");
  // Groups of one phase are independent tasks, too.
  EXPECT_THAT(run("phase { group { z[0] = 1:s32 } group { z[1] = z[0] } }").faults,
              HasSubstr("phase 0 group 1: z[1] = z[0]: read of z[0]"));
}

TEST(Interp, AsyncCopiesPipeline) {
  Ran r = run_body(
      "async_copy t[0] from x[0, 0] count 4 async_wait 1"
      " serial k 7 {"
      "   async_copy t[(k + 1) % 2*4] from x[k + 1, 0] count 4 async_wait 1"
      "   z[k] = convert(t[k % 2*4 + 3], s32)"
      " } async_wait 0");
  EXPECT_EQ(r.faults, "");
  for (int k = 0; k < 7; ++k) EXPECT_EQ(r.z[static_cast<size_t>(k)], k * 20 + 3);
  r = run_body(
      "vector c 4 lanes 4 { async_copy t[c*4] from x[c, 1] count 4 } async_wait 0 z[0] = "
      "convert(t[14], s32)");
  EXPECT_EQ(r.faults, "");
  EXPECT_EQ(r.z[0], 63);
}

TEST(Interp, PrefetchIsNoAccess) {
  Ran r = run_body(
      "prefetch x[9, 0] level 1 vector c 4 lanes 4 { prefetch y[0, c + 30] level 2 write } "
      "barrier");
  EXPECT_EQ(r.faults, "");
  EXPECT_EQ(r.report.prefetches, 5);
  EXPECT_EQ(r.report.barriers, 1);
  EXPECT_EQ(r.report.buffers[0].loads, 0);
}

TEST(Interp, OutputsAreComplete) {
  Ran r = run("phase { group grid (p 8) { serial c 19 { y[p, c] = x[p, c] } } }");
  EXPECT_THAT(r.report.faults,
              ElementsAre("output y: 8 of 160 elements are never stored, the first is y[0, 19]"));
}

TEST(Interp, BuffersAtOneAddress) {
  auto parse = [](const std::string& body) {
    return *parse_kernel(
        "heddle.kernel 1 kernel k { buffer a: f32[8] global in buffer b: f32[8] global out "
        "phase { group grid (p 8) { " +
        body + " } } }");
  };
  std::vector<float> memory = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_THAT(interpret(parse("b[p] = a[p] + a[p]"), {memory.data(), memory.data()}).faults,
              IsEmpty());
  EXPECT_EQ(memory[7], 16);
  EXPECT_THAT(interpret(parse("b[p] = a[7 - p]"), {memory.data(), memory.data()}).faults[0],
              HasSubstr("another task"));
  EXPECT_THAT(
      interpret(parse("b[p] = 1:f32 if a[p] < 0:f32 b[p] = a[p]"), {memory.data(), memory.data()})
          .faults,
      IsEmpty());
  EXPECT_THAT(
      interpret(parse("b[p] = 1:f32 b[p] = a[p]"), {memory.data(), memory.data()}).faults[0],
      HasSubstr("read of a[0], whose bytes another buffer has overwritten"));
  std::vector<float> longer(12);
  EXPECT_THAT(interpret(parse("b[p] = a[p]"), {longer.data(), longer.data() + 4}).faults[0],
              HasSubstr("overlap in part"));
}

TEST(Interp, BadCallsAreFaults) {
  Kernel kernel = *parse_kernel(
      "heddle.kernel 1 kernel k { dims n buffer a: f32[n] global in phase { group { } } }");
  float a[4];
  EXPECT_THAT(interpret(kernel, {a}, {4}).faults, IsEmpty());
  EXPECT_THAT(interpret(kernel, {}, {4}).faults[0], HasSubstr("0 buffers are given, 1 wanted"));
  EXPECT_THAT(interpret(kernel, {a}, {}).faults[0], HasSubstr("0 run-time dimensions"));
  EXPECT_THAT(interpret(kernel, {a}, {-1}).faults[0], HasSubstr("dimension n is -1"));
  EXPECT_THAT(interpret(kernel, {nullptr}, {4}).faults[0], HasSubstr("null"));
  EXPECT_THAT(interpret(kernel, {a}, {int64_t{1} << 40}).faults[0], HasSubstr("too big"));
  kernel.buffers[0].name = "";
  EXPECT_THAT(interpret(kernel, {a}, {4}).faults[0], HasSubstr("not valid: invariant 10"));
}

TEST(Interp, FaultsAreAtMostTwenty) {
  std::string body;
  for (int i = 0; i < 30; ++i) body += "y[8, " + std::to_string(i) + "] = 1:f32 ";
  EXPECT_EQ(run_body(body).report.faults.size(), 20u);
  std::string repeated = run_body("serial i 30 { y[8 + i, 0] = 1:f32 }").faults;
  EXPECT_EQ(std::count(repeated.begin(), repeated.end(), '\n'), 1);  // one for each place
}

TEST(Interp, EndlessLoopsEnd) {
  for (const char* body :
       {"serial i n*1000000000000 { }", "serial i n*1000000000000 { z[0] = z[0] }",
        "vector i n*1000000000000 lanes 4 { }"}) {
    Kernel kernel = *parse_kernel(
        "heddle.kernel 1 kernel k { dims n buffer z: f32[4] global inout phase { group { " +
        std::string(body) + " } } }");
    float z[4] = {};
    std::vector<std::string> problems;
    InterpMemory memory(kernel, {z}, {4}, problems);
    InterpExec exec(kernel, make_program(kernel, {4}), memory, 20, 1000);
    memory.begin_phase(1);
    exec.run_task(0, 0);
    EXPECT_TRUE(exec.stopped());
    EXPECT_THAT(exec.take_report().faults, ElementsAre("given up after 1000 statements"));
  }
}

}  // namespace
}  // namespace heddle::kernel
