// Groups with threads: kernels of testdata/ run without faults, and errors that are put into them
// by hand are found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "kernel/interp.h"
#include "kernel/interp_traffic.h"
#include "kernel/text.h"
#include "kernel/verify.h"

namespace heddle::kernel {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string read_kernel(const std::string& name) {
  std::ifstream file(HEDDLE_SOURCE_DIR "/src/kernel/testdata/" + name + ".kernel");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The text with the n-th `from` (from 0) replaced by `to`.
std::string broken(std::string text, const std::string& from, const std::string& to, int n = 0) {
  size_t at = text.find("kernel ", text.find("\nkernel "));  // after the comment
  for (at = text.find(from, at); n > 0; --n) at = text.find(from, at + from.size());
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

struct Ran {
  std::vector<float> x, y;
  InterpReport report;
  std::string faults;
};

Ran run(const std::string& text, size_t in, size_t out) {
  Ran ran{std::vector<float>(in), std::vector<float>(out), {}, {}};
  for (size_t i = 0; i < in; ++i) ran.x[i] = static_cast<float>(i * 37 % 101);
  auto kernel = parse_kernel(text);
  if (!kernel) {
    ran.faults = "parse: " + kernel.error().message;
    return ran;
  }
  ran.report = interpret(*kernel, {ran.x.data(), ran.y.data()}, {}, 3);
  for (const std::string& fault : ran.report.faults) ran.faults += fault + "\n";
  return ran;
}

void expect_row_sums(const Ran& ran, size_t columns) {
  for (size_t r = 0; r < ran.y.size(); ++r) {
    float sum = 0;
    for (size_t c = 0; c < columns; ++c) sum += ran.x[r * columns + c];
    EXPECT_EQ(ran.y[r], sum) << r;  // whole numbers: any order gives it
  }
}

TEST(InterpBlocks, ARowASubgroup) {
  const Ran ran = run(read_kernel("row_sum_subgroup"), 960, 10);
  EXPECT_EQ(ran.faults, "");
  expect_row_sums(ran, 96);
  EXPECT_EQ(ran.report.barriers + ran.report.subgroup_barriers, 0);
  EXPECT_EQ(ran.report.buffers[0].requests, 30);
  EXPECT_EQ(ran.report.buffers[0].sectors, 120);
  EXPECT_EQ(ran.report.buffers[0].least_sectors, 120);
}

TEST(InterpBlocks, ARowABlock) {
  const Ran ran = run(read_kernel("row_sum_block"), 6 * 256, 6);
  EXPECT_EQ(ran.faults, "");
  expect_row_sums(ran, 256);
  EXPECT_EQ(ran.report.barriers, 3 * 2 * 2);
  EXPECT_EQ(ran.report.bank_conflicts(), 0);
}

TEST(InterpBlocks, AMissingBarrierIsARace) {
  const std::string good = read_kernel("row_sum_block");
  EXPECT_THAT(run(broken(good, "barrier", "", 1), 6 * 256, 6).faults,
              HasSubstr("part[0], which another thread of the block writes without a barrier"));
  EXPECT_THAT(run(broken(good, "barrier", "", 0), 6 * 256, 6).faults,
              HasSubstr("which another thread of the block reads or writes without a barrier"));
  EXPECT_THAT(run(broken(read_kernel("transpose_scratch"), "barrier", ""), 6144, 6144).faults,
              HasSubstr("without a barrier between"));
  EXPECT_THAT(run(broken(good, "subgroup first 1", "subgroup first 2"), 6 * 256, 6).faults,
              HasSubstr("store to y[0], which another thread of the block"));
}

TEST(InterpBlocks, ADivergentBarrierIsAFault) {
  const std::string text = broken(read_kernel("row_sum_block"), "subgroup first 1 {",
                                  "if part[0] > 0:f32 { barrier } subgroup first 1 {");
  EXPECT_EQ(run(text, 6 * 256, 6).faults, "");  // all take the same branch
  const std::string apart = R"(heddle.kernel 1
kernel k {
  scratch 16
  buffer x: f32[4] global in
  buffer y: f32[1] global out
  buffer which: s64[1] reg
  phase { group threads 64 {
    which[0] = 0
    subgroup w 2 { which[0] = w }
    if which[0] == 0 { barrier }
    subgroup v 1 { y[0] = x[0] }
  } }
})";
  EXPECT_THAT(run(apart, 4, 1).faults,
              HasSubstr("subgroups take different paths around a barrier"));
}

TEST(InterpBlocks, APadKeepsBanksApart) {
  const std::string padded = read_kernel("transpose_scratch");
  Ran ran = run(padded, 6144, 6144);
  EXPECT_EQ(ran.faults, "");
  for (size_t r = 0; r < 64; ++r)
    for (size_t c = 0; c < 96; ++c) ASSERT_EQ(ran.y[c * 64 + r], ran.x[r * 96 + c]);
  EXPECT_EQ(ran.report.bank_conflicts(), 0);
  EXPECT_EQ(ran.report.sector_excess(), 1);
  ran = run(broken(padded, "f32[32,33]", "f32[32,32]"), 6144, 6144);
  EXPECT_EQ(ran.faults, "");
  EXPECT_EQ(ran.report.bank_conflicts(), 6 * 32 * 31);  // every column in one bank
}

TEST(InterpBlocks, ATransposeWithoutScratchIsUncoalesced) {
  const std::string text = R"(heddle.kernel 1
kernel k {
  buffer x: f32[64,96] global in
  buffer y: f32[96,64] global out
  phase { group grid (c 96) threads 64 { thread r 64 lanes 64 { y[c, r] = x[r, c] } } }
})";
  const Ran ran = run(text, 6144, 6144);
  EXPECT_EQ(ran.faults, "");
  EXPECT_EQ(ran.report.buffers[0].sectors, 6144);
  EXPECT_EQ(ran.report.buffers[0].least_sectors, 6144 / 8);
  EXPECT_EQ(ran.report.buffers[1].sectors, 6144 / 8);
}

// Four adjacent elements that a lane accesses in one body count as one access; in a loop's
// iterations they do not.
TEST(InterpBlocks, NeighboursOfALaneAreOneAccess) {
  const std::string text = R"(heddle.kernel 1
kernel k {
  buffer x: f32[256] global in
  buffer y: f32[256] global out
  phase { group grid (c 2) threads 32 { thread l 32 lanes 32 {
    y[c*128 + l*4] = x[c*128 + l*4]
    y[c*128 + 1 + l*4] = x[c*128 + 1 + l*4]
    y[c*128 + 2 + l*4] = x[c*128 + 2 + l*4]
    y[c*128 + 3 + l*4] = x[c*128 + 3 + l*4]
  } } }
})";
  const Ran ran = run(text, 256, 256);
  EXPECT_EQ(ran.faults, "");
  EXPECT_EQ(ran.report.buffers[0].requests, 2);
  EXPECT_EQ(ran.report.buffers[0].sectors, 32);
  EXPECT_EQ(ran.report.sector_excess(), 1);
  const std::string loop = R"(heddle.kernel 1
kernel k {
  buffer x: f32[256] global in
  buffer y: f32[256] global out
  phase { group grid (c 2) threads 32 { serial i 4 { thread l 32 lanes 32 {
    y[c*128 + i + l*4] = x[c*128 + i + l*4]
  } } } }
})";
  EXPECT_EQ(run(loop, 256, 256).report.sector_excess(), 4);
}

TEST(InterpBlocks, AsyncCopiesNeedTheirWaitAndABarrier) {
  const std::string good = read_kernel("async_rows");
  const Ran ran = run(good, 256, 256);
  EXPECT_EQ(ran.faults, "");
  for (size_t i = 0; i < 256; ++i) EXPECT_EQ(ran.y[i], ran.x[i] * 2);
  EXPECT_THAT(run(broken(good, "barrier", ""), 256, 256).faults,
              HasSubstr("which another thread of the block writes without a barrier"));
  EXPECT_THAT(run(broken(good, "barrier", "", 1), 256, 256).faults,
              HasSubstr("without a barrier between"));
  EXPECT_THAT(run(broken(good, "async_wait 2", "async_wait 3", 1), 256, 256).faults,
              HasSubstr("while an async copy to it is pending"));
}

TEST(InterpBlocks, ShuffledLanesStayInTheSubgroup) {
  const std::string text = R"(heddle.kernel 1
kernel k {
  buffer x: f32[128] global in
  buffer y: f32[128] global out
  phase { group threads 128 { thread i 128 lanes 128 { y[i] = shuffle_xor(x[i], 32) } } }
})";
  EXPECT_THAT(run(text, 128, 128).faults, HasSubstr("beyond the subgroup"));
}

TEST(InterpBlocks, LanesDoNotSeeEachOtherWithoutABarrier) {
  const auto text = [](const char* between) {
    return std::string(R"(heddle.kernel 1
kernel k {
  scratch 128
  buffer x: f32[32] global in
  buffer y: f32[32] global out
  buffer t: f32[32] scratch at 0
  phase { group threads 32 { subgroup w 1 {
    thread i 32 lanes 32 { t[i] = x[i] }
    )") + between +
           R"(
    thread j 32 lanes 32 { y[j] = t[31 - j] }
  } } }
})";
  };
  EXPECT_THAT(run(text(""), 32, 32).faults, HasSubstr("without a barrier"));
  const Ran ran = run(text("barrier"), 32, 32);
  EXPECT_EQ(ran.faults, "");
  EXPECT_EQ(ran.y[0], ran.x[31]);
  EXPECT_EQ(ran.report.subgroup_barriers, 1);
}

TEST(InterpBlocks, TheRulesAreVerified) {
  const auto problem = [](const std::string& group) {
    auto kernel = parse_kernel(R"(heddle.kernel 1
kernel k { buffer y: f32[64] global out buffer s: f32[1] reg lanes 64 buffer u: f32[1] reg
  phase { group )" + group + " } }");
    EXPECT_TRUE(kernel) << kernel.error().message;
    const Status status = verify(*kernel);
    return status ? std::string() : status.error().message;
  };
  EXPECT_EQ(problem("threads 64 { thread i 64 lanes 64 { y[i] = 1:f32 } }"), "");
  EXPECT_THAT(problem("threads 48 { }"), HasSubstr("multiple of 32"));
  EXPECT_THAT(problem("threads 64 { thread i 64 lanes 32 { y[i] = 1:f32 } }"),
              HasSubstr("wanted 64 here"));
  EXPECT_THAT(problem("threads 64 { subgroup w 2 { thread i 64 lanes 64 { y[i] = 1:f32 } } }"),
              HasSubstr("wanted 32 here"));
  EXPECT_THAT(problem("threads 64 { vector i 64 lanes 64 { y[i] = 1:f32 } }"),
              HasSubstr("a vector loop in a group with threads"));
  EXPECT_THAT(problem("{ subgroup w 2 { y[w] = 1:f32 } }"), HasSubstr("group without threads"));
  EXPECT_THAT(problem("threads 64 { subgroup w 2 { subgroup v 2 { y[w] = 1:f32 } } }"),
              HasSubstr("inside a subgroup loop"));
  EXPECT_THAT(problem("threads 64 { thread i 64 lanes 64 { s[0] = 1:f32 } u[0] = lane(s[0], 40) }"),
              HasSubstr("which several subgroups hold"));
}

TEST(InterpTraffic, CountsWhatBanksAndSectorsDo) {
  std::vector<int64_t> unit, same, wide, strided;
  for (int64_t l = 0; l < 32; ++l) {
    unit.push_back(l * 4);
    same.push_back(0);
    wide.push_back(l * 8);
    strided.push_back(l * 8);
  }
  EXPECT_EQ(count_bank_passes(unit, 4), 1);
  EXPECT_EQ(count_bank_passes(same, 4), 1);
  EXPECT_EQ(count_bank_passes(wide, 8), 1);
  EXPECT_EQ(count_bank_passes(strided, 4), 2);
  EXPECT_EQ(count_sectors(unit, 4).touched, 4);
  EXPECT_EQ(count_sectors(same, 4).least, 1);
  EXPECT_EQ(count_sectors(strided, 4).touched, 8);
  EXPECT_EQ(count_sectors(strided, 4).least, 4);
}

}  // namespace
}  // namespace heddle::kernel
