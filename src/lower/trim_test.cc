// Which loops stop at the extent, and what is refused. That results are right is proved on programs
// (tests/bounded_programs_test.cc).
#include "lower/trim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/text.h"
#include "kernel/verify.h"
#include "lower/passes.h"

namespace heddle::lower {
namespace {

using kernel::BufferId;
using kernel::Kernel;
using ::testing::HasSubstr;
using ::testing::Not;
using Reads = std::vector<std::vector<int64_t>>;  // by buffer and digit

Kernel parsed(const std::string& text) {
  auto kernel = kernel::parse_kernel(text);
  HEDDLE_CHECK(kernel, "{}", kernel.error().message);
  return std::move(*kernel);
}

// in0 is f32[64,8] with 64 rows at most, in1 the extent, out0 of the form `out`.
Kernel rows(const std::string& out, const std::string& body) {
  return parsed(
      "heddle.kernel 1\nkernel k {\n  buffer in0: f32[512] global in\n"
      "  buffer in1: s32[1] global in\n  buffer out0: " +
      out + " global out\n  buffer acc: f32[1] reg\n  phase {\n    group {\n" + body +
      "    }\n  }\n}\n");
}

TrimRequest request(bool reduced, bool out_follows) {
  TrimRequest result;
  result.groups = {{BufferId(size_t{1}), 64, reduced}};
  result.globals = {{{8, 0}}, {}, {}};
  if (out_follows) result.globals[2] = {{8, 0}};
  return result;
}

std::string trimmed(Kernel kernel, const TrimRequest& request, Reads* reads) {
  Trim wanted{request};
  Context context;
  context.trim = &wanted;
  const std::string before = to_string(kernel);
  const Result<bool> changed = trim(kernel, context);
  *reads = wanted.reads;
  if (!wanted.done) return wanted.done.code();
  EXPECT_TRUE(kernel::verify(kernel));
  EXPECT_EQ(*changed, to_string(kernel) != before);
  return to_string(kernel);
}

TEST(Trim, RowsStopAtTheExtent) {
  Reads reads;
  const std::string text =
      trimmed(rows("f32[512]",
                   "serial tile 16 { serial i 4 { serial c 8 {\n"
                   "out0[tile*32 + i*8 + c] = in0[tile*32 + i*8 + c]\n} } }\n"),
              request(false, true), &reads);
  EXPECT_THAT(text, HasSubstr("let limit = max(min(convert(in1[0], s64), 64), 0)"));
  EXPECT_THAT(text, HasSubstr("let trips = max(min(floor_div(limit + 3, 4), 16), 0)"));
  EXPECT_THAT(text, HasSubstr("serial tile trips {"));
  EXPECT_THAT(text, HasSubstr("serial c 8 {"));
  EXPECT_EQ(reads, (Reads{{1}, {}, {1}}));
}

// A loop of one turn is always 0, whatever it is multiplied by.
TEST(Trim, OneTurnLinesUpWithAnything) {
  Reads reads;
  const std::string text = trimmed(rows("f32[512]",
                                        "serial one 1 { serial i 64 { serial c 8 {\n"
                                        "out0[one*12 + i*8 + c] = in0[i*8 + c]\n} } }\n"),
                                   request(false, true), &reads);
  EXPECT_THAT(text, HasSubstr("serial i trips {"));
}

// Columns of a transposed tile: of 16 lanes the first four store, so tiles do not run into the next
// row of [8,64].
TEST(Trim, LanesThatStoreNothing) {
  Reads reads;
  TrimRequest columns = request(false, false);
  columns.globals[2] = {{1, 0}};
  const std::string text = trimmed(rows("f32[512]",
                                        "serial tile 16 { vector l 16 lanes 16 {\n"
                                        "if l < 4 {\nout0[tile*4 + l] = in0[tile*32]\n"
                                        "out0[tile*4 + 64 + l] = in0[tile*32]\n} } }\n"),
                                   columns, &reads);
  EXPECT_THAT(text, HasSubstr("let trips = max(min(floor_div(limit + 3, 4), 16), 0)"));
  EXPECT_THAT(text, HasSubstr("serial tile trips {"));
  EXPECT_THAT(text, HasSubstr("vector l 16 lanes 16 {"));
}

// Squares of a tile that are transposed in registers are whole, the tiles stop.
TEST(Trim, LanesThatReadEachOther) {
  Reads reads;
  TrimRequest columns = request(false, false);
  columns.globals[2] = {{1, 0}};
  const std::string text = trimmed(rows("f32[512]",
                                        "serial tile 8 { vector l 8 lanes 8 {\n"
                                        "let x = in0[tile*64 + l]\n"
                                        "out0[tile*8 + l] = shuffle_xor(x, 1)\n} }\n"),
                                   columns, &reads);
  EXPECT_THAT(text, HasSubstr("serial tile trips {\n        vector l 8 lanes 8 {"));
}

// Four rows at a time: what is read reaches to the end of the four.
// All rows of the bound are one tile, that is written out: it has bodies for fewer. A loop of one
// step around the rows that is no tile, as over a batch of 1, says nothing.
TEST(Trim, TheOnlyTileIsMadeForFewerRows) {
  Reads reads;
  const auto with_rows = [&](const char* loop) {
    return trimmed(
        rows("f32[512]", "serial tile 1 { " + std::string(loop) +
                             " i 64 { vector c 8 lanes 8 {\n"
                             "out0[tile*512 + i*8 + c] = in0[tile*512 + i*8 + c]\n} } }\n"),
        request(false, true), &reads);
  };
  const std::string unrolled = with_rows("unrolled");
  EXPECT_THAT(unrolled, HasSubstr("if height > 51 {"));
  EXPECT_THAT(unrolled, HasSubstr("i_1 64 {"));
  for (const char* height : {" 1 {", " 2 {", " 3 {", " 4 {", " 51 {"})
    EXPECT_THAT(unrolled, HasSubstr(height));
  const std::string serial = with_rows("serial");
  EXPECT_THAT(serial, HasSubstr("serial tile 1 {"));
  EXPECT_THAT(serial, HasSubstr("serial i trips {"));
}

TEST(Trim, ReductionsStopWhereTheirStepsEnd) {
  Reads reads;
  const std::string text = trimmed(
      rows(
          "f32[8]",
          "serial c 8 {\nacc[0] = 0:f32\nserial b 16 { prefetch in0[b*32] level 1\nunrolled u 4 {\n"
          "acc[0] = acc[0] + in0[b*32 + u*8 + c]\n} }\nout0[c] = acc[0]\n}\n"),
      request(true, false), &reads);
  EXPECT_THAT(text, HasSubstr("floor_div(convert(in1[0], s64) + 3, 4)*4"));
  EXPECT_THAT(text, Not(HasSubstr("serial b 16")));
  EXPECT_EQ(reads[0], std::vector<int64_t>{4});
}

// Where one loop reads by threes and another one by twos, what is read reaches to whole sixes.
TEST(Trim, StepsThatDoNotDivideEachOther) {
  Reads reads;
  const std::string text = trimmed(
      rows(
          "f32[8]",
          "serial c 8 {\nacc[0] = 0:f32\nserial b 21 { prefetch in0[b*24] level 1\nunrolled u 3 {\n"
          "acc[0] = acc[0] + in0[b*24 + u*8 + c]\n} }\nserial d 31 { prefetch in0[d*16] level "
          "1\nunrolled v 2 {\n"
          "acc[0] = acc[0] + in0[d*16 + v*8 + c]\n} }\nout0[c] = acc[0]\n}\n"),
      request(true, false), &reads);
  EXPECT_THAT(text, HasSubstr("floor_div(convert(in1[0], s64) + 2, 3)*3"));
  EXPECT_THAT(text, HasSubstr("floor_div(convert(in1[0], s64) + 1, 2)*2"));
  EXPECT_EQ(reads[0], std::vector<int64_t>{6});
}

// Steps that are written out, and nothing else: those of the last one that are there are a loop.
TEST(Trim, TheLastStepOfASumIsALoop) {
  Reads reads;
  const std::string text =
      trimmed(rows("f32[8]",
                   "serial c 8 {\nacc[0] = 0:f32\nserial b 16 { unrolled u 4 {\n"
                   "acc[0] = acc[0] + in0[b*32 + u*8 + c]\n} }\nout0[c] = acc[0]\n}\n"),
              request(true, false), &reads);
  EXPECT_THAT(text, HasSubstr("serial b whole {"));
  EXPECT_THAT(text, HasSubstr("serial u_1 rest {"));
  EXPECT_THAT(text, HasSubstr("in0[whole*32 + u_1*8 + c]"));
  EXPECT_EQ(reads[0], std::vector<int64_t>{1});
}

// Four vectors a step: the last step may be fewer of them.
TEST(Trim, TheLastStepOfASumIsOfItsParts) {
  Reads reads;
  Kernel kernel = parsed(
      "heddle.kernel 1\nkernel k {\n  buffer in0: f32[256] global in\n"
      "  buffer in1: s32[1] global in\n  buffer out0: f32[64] global out\n"
      "  buffer acc: f32[4] reg lanes 16\n  phase {\n    group {\n"
      "unrolled z 4 { vector l 16 lanes 16 { acc[z] = 0:f32 } }\n"
      "serial b 4 { unrolled u 4 { vector l_1 16 lanes 16 {\n"
      "acc[u] = acc[u] + in0[b*64 + u*16 + l_1]\n} } }\n"
      "unrolled y 4 { vector l_2 16 lanes 16 { out0[y*16 + l_2] = acc[y] } }\n"
      "    }\n  }\n}\n");
  TrimRequest wanted;
  wanted.groups = {{BufferId(size_t{1}), 256, true}};
  wanted.globals = {{{1, 0}}, {}, {}};
  const std::string text = trimmed(std::move(kernel), wanted, &reads);
  for (const char* part : {"floor_div(convert(in1[0], s64) + 15, 16)*16", "serial b whole {",
                           "if rest > 0 {", "if rest > u_1*16 {", "in0[whole*64 + u_1*16 + l_1_1]"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_EQ(reads[0], std::vector<int64_t>{16});
}

// Tiles of columns, of which the last one is cut, stay in their row: 3 rows of 12 in tiles of 8.
TEST(Trim, TilesThatAreCutStayInTheirRow) {
  Reads reads;
  const auto summed = [&](const std::string& columns) {
    TrimRequest wanted;
    wanted.groups = {{BufferId(size_t{1}), 3, true}};
    wanted.globals = {{{12, 0}}, {}, {}};
    return trimmed(parsed("heddle.kernel 1\nkernel k {\n  buffer in0: f32[36] global in\n"
                          "  buffer in1: s32[1] global in\n  buffer out0: f32[12] global out\n"
                          "  buffer acc: f32[1] reg lanes 8\n  phase {\n    group grid (t 2) {\n"
                          "vector l " +
                          columns +
                          " lanes 8 { acc[0] = 0:f32 }\n"
                          "serial r 3 { vector l_1 " +
                          columns +
                          " lanes 8 {\n"
                          "acc[0] = acc[0] + in0[r*12 + t*8 + l_1]\n} }\n"
                          "vector l_2 " +
                          columns +
                          " lanes 8 { out0[t*8 + l_2] = acc[0] }\n"
                          "    }\n  }\n}\n"),
                   wanted, &reads);
  };
  EXPECT_THAT(summed("max(min(12 - t*8, 8), 0)"), HasSubstr("serial r trips {"));
  EXPECT_EQ(summed("max(min(13 - t*8, 8), 0)"), "trim-digit") << "one of the next row";
}

// Rows of eight in vectors of sixteen: the lanes that a load leaves out are not in the next row.
TEST(Trim, LanesThatALoadLeavesOut) {
  Reads reads;
  Kernel kernel = parsed(
      "heddle.kernel 1\nkernel k {\n  buffer in0: f32[512] global in\n"
      "  buffer in1: s32[1] global in\n  buffer out0: f32[8] global out\n"
      "  buffer acc: f32[1] reg lanes 16\n  phase {\n    group {\n"
      "vector l 16 lanes 16 { acc[0] = 0:f32 }\nserial b 64 { vector l_1 16 lanes 16 {\n"
      "acc[0] = acc[0] + load_if(in0[b*8 + l_1], l_1 < 8, 0:f32)\n} }\n"
      "vector l_2 8 lanes 16 { out0[l_2] = acc[0] }\n    }\n  }\n}\n");
  const std::string text = trimmed(std::move(kernel), request(true, false), &reads);
  EXPECT_THAT(text, HasSubstr("serial b trips {"));
  EXPECT_EQ(reads[0], std::vector<int64_t>{1});
}

TEST(Trim, RefusesWhatWouldNotStop) {
  Reads reads;
  // Rows by threes from the second one on; all rows and their elements in one loop; an index that
  // is no sum.
  EXPECT_EQ(trimmed(rows("f32[8]",
                         "serial c 8 {\nacc[0] = 0:f32\nserial b 20 { unrolled u 3 {\n"
                         "acc[0] = acc[0] + in0[b*24 + u*8 + c + 8]\n} }\nout0[c] = acc[0]\n}\n"),
                    request(true, false), &reads),
            "trim-reduced");
  EXPECT_EQ(trimmed(rows("f32[8]",
                         "acc[0] = 0:f32\nserial i 512 {\nacc[0] = acc[0] + in0[i]\n}\n"
                         "serial c 8 {\nout0[c] = acc[0]\n}\n"),
                    request(true, false), &reads),
            "trim-reduced");
  EXPECT_EQ(trimmed(rows("f32[8]",
                         "acc[0] = 0:f32\nserial i 512 {\n"
                         "acc[0] = acc[0] + in0[floor_mod(i*3, 8)*64]\n}\n"
                         "serial c 8 {\nout0[c] = acc[0]\n}\n"),
                    request(true, false), &reads),
            "trim-index");
}

// A kernel of two extents from text, and what it is asked.
std::string trimmed_by(const std::string& buffers, const std::string& body,
                       const std::string& request, Trim* wanted) {
  Kernel kernel = parsed("heddle.kernel 1\nkernel k {\n  scratch 256\n" + buffers +
                         "  buffer n: s32[1] global in\n  buffer m: s32[1] global in\n"
                         "  buffer out0: f32[4096] global out\n"
                         "  buffer s0: f32[64] scratch at 0\n  buffer acc: f32[1] reg\n"
                         "  phase {\n" +
                         body + "  }\n}\n");
  const auto read = parse_trim_request(kernel, request);
  HEDDLE_CHECK(read, "{}", read.error().message);
  wanted->request = *read;
  Context context;
  context.trim = wanted;
  EXPECT_TRUE(trim(kernel, context));
  EXPECT_TRUE(kernel::verify(kernel));
  return to_string(kernel);
}

// A sum over the rows of two sequences, of which each has fewer than its bound: a loop for each.
TEST(Trim, RowsOfAFixedNumberOfSequences) {
  Trim wanted;
  const std::string text = trimmed_by("  buffer in0: f32[256] global in\n",
                                      "group {\nserial c 8 {\nacc[0] = 0:f32\nserial b 32 {\n"
                                      "acc[0] = acc[0] + in0[b*8 + c]\n}\nout0[c] = acc[0]\n} }\n",
                                      "extent n bound 16 reduced; in0 8", &wanted);
  EXPECT_TRUE(wanted.done) << wanted.done.reason();
  EXPECT_THAT(text, HasSubstr("serial s 2 {"));
  EXPECT_THAT(text, HasSubstr("serial r trips {"));
}

// Columns cannot stop, as their steps begin with the second one; rows do, and of rows nothing more
// is counted on.
TEST(Trim, AGroupThatCannotStopIsLeft) {
  Trim wanted;
  const std::string text =
      trimmed_by("  buffer in0: f32[4096] global in\n",
                 "group {\nserial r 64 {\nacc[0] = 0:f32\nserial b 21 { unrolled u 3 {\n"
                 "acc[0] = acc[0] + in0[r*64 + b*3 + u + 1]\n} }\nout0[r*64] = acc[0]\n} }\n",
                 "extent n bound 64; in0 64; out0 64; extent m bound 64 reduced; in0 1", &wanted);
  EXPECT_TRUE(wanted.done) << wanted.done.reason();
  ASSERT_EQ(wanted.left.count(1), 1u);
  EXPECT_EQ(wanted.left.at(1).code(), "trim-reduced");
  EXPECT_EQ(wanted.reads[0], (std::vector<int64_t>{1, 64}));
  EXPECT_THAT(text, HasSubstr("serial r trips {"));
  EXPECT_THAT(text, HasSubstr("serial b 21 {"));
}

// What a sum that is not trimmed reads is made whole, also where its maker's loop could stop.
TEST(Trim, WhatALeftSumReadsIsMadeWhole) {
  const std::string buffers =
      "  buffer in0: f32[64] global in\n  buffer in1: f32[4096] global in\n";
  const auto body = [](const std::string& sum) {
    return "group {\nserial i 64 { s0[i] = convert(convert(i, s32) < n[0], f32) }\n"
           "serial j 64 { out0[j] = s0[j]*in1[j] }\nacc[0] = 0:f32\n" +
           sum + "out0[64] = acc[0]\n}\n";
  };
  const std::string request = "extent n bound 64; in1 1; out0 1; extent m bound 64 reduced; in0 1";
  Trim wanted;
  const std::string text = trimmed_by(
      buffers,
      body("serial b 21 { unrolled u 3 {\nacc[0] = acc[0] + s0[b*3 + u]*in0[b*3 + u]\n} }\n"),
      request, &wanted);
  EXPECT_EQ(wanted.left.size(), 1u);
  for (const char* part : {"let trips = 64", "serial i trips {", "serial j trips_1 {"})
    EXPECT_THAT(text, HasSubstr(part));
}

// Also of an input that belongs to another group, which the same variable reads.
TEST(Trim, WhatALeftSumReadsIsCountedOnWhole) {
  Trim wanted;
  const std::string text =
      trimmed_by("  buffer in0: f32[64] global in\n  buffer in1: f32[64] global in\n",
                 "group {\nacc[0] = 0:f32\nserial b 21 { unrolled u 3 {\n"
                 "acc[0] = acc[0] + in0[b*3 + u]*in1[b*3 + u]\n} }\nout0[64] = acc[0]\n"
                 "serial j 64 { out0[j] = in1[j] }\n}\n",
                 "extent n bound 64; in1 1; out0 1; extent m bound 64 reduced; in0 1", &wanted);
  ASSERT_EQ(wanted.left.size(), 1u);
  EXPECT_EQ(wanted.reads[0], std::vector<int64_t>{64});
  EXPECT_EQ(wanted.reads[1], std::vector<int64_t>{64});
  EXPECT_THAT(text, HasSubstr("serial b 21 {"));
}

// Rows of a batch and what is inside of it as one loop: it counts parts of the batch.
TEST(Trim, LoopsThroughABatchStopAtItsEnd) {
  Trim wanted;
  const std::string text =
      trimmed_by("  buffer in0: f32[4096] global in\n",
                 "group grid (t 64) {\nserial c 64 {\n"
                 "out0[floor_div(t, 4)*256 + floor_mod(t, 4)*16 + floor_mod(c, 16) + "
                 "floor_div(c, 16)*64] = in0[t*64 + c]\n} }\n",
                 "extent n bound 16; in0 256; out0 256; extent m bound 4; in0 64", &wanted);
  EXPECT_TRUE(wanted.done) << wanted.done.reason();
  EXPECT_TRUE(wanted.left.empty());
  // The loop over both becomes two, of which one stops: nothing is known of the other in out0.
  for (const char* part : {"grid (task 64)", "let limit = max(min(convert(n[0], s64), 16), 0)",
                           "let there = trips*4", "in0[(s*4 + r)*64 + c]"})
    EXPECT_THAT(text, HasSubstr(part));
}

// The same of what stands in scratch, all of the batch, and is summed up behind it.
TEST(Trim, LoopsThroughABatchInScratchStopAtItsEnd) {
  Trim wanted;
  const std::string text =
      trimmed_by("  buffer in0: f32[64] global in\n",
                 "group {\nserial t 16 { serial c 4 { s0[t*4 + c] = in0[t*4 + c] } }\n"
                 "serial i 4 { serial h 4 {\nacc[0] = 0:f32\n"
                 "serial j 4 { acc[0] = acc[0] + s0[i*16 + h*4 + j] }\n"
                 "out0[i*16 + h*4] = acc[0]\n} }\n}\n",
                 "extent n bound 4; in0 16; out0 16; extent m bound 4 reduced; in0 1", &wanted);
  EXPECT_TRUE(wanted.done) << wanted.done.reason();
  EXPECT_TRUE(wanted.left.empty());
  for (const char* part : {"let trips_1 = max(min(limit_1*4, 16), 0)", "serial t trips_1 {"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(Trim, LoopsOverTwoDynamicDimensionsAreTwo) {
  Trim wanted;
  const std::string text = trimmed_by(
      "  buffer in0: f32[4096] global in\n",
      "group grid (t 64) {\nserial c 64 {\nout0[t*64 + c] = in0[t*64 + c]\n} }\n",
      "extent n bound 16; in0 256; out0 256; extent m bound 4; in0 64; out0 64", &wanted);
  EXPECT_TRUE(wanted.done) << wanted.done.reason();
  EXPECT_TRUE(wanted.left.empty());
  for (const char* part : {"max(min(convert(n[0], s64), 16), 0)",
                           "max(min(convert(m[0], s64), 4), 0)", "(s*4 + r)*64 + c"})
    EXPECT_THAT(text, HasSubstr(part));
}

// A box of rows that is put into each of a batch where a run says.
TEST(Trim, ABoxAtARunTimePlaceStandsInItsBatch) {
  Trim wanted;
  const std::string text =
      trimmed_by("  buffer in0: f32[256] global in\n",
                 "group grid (t 16) {\nserial c 16 {\n"
                 "out0[t*256 + min(max(convert(m[0], s64), 0), 15)*16 + c] = in0[t*16 + c]\n} }\n",
                 "extent n bound 16; in0 16; out0 256", &wanted);
  EXPECT_TRUE(wanted.done) << wanted.done.reason();
  EXPECT_THAT(text, HasSubstr("grid (task 16)"));
}

// A place that could be in the next row says nothing of rows.
TEST(Trim, APlaceBeyondItsRowIsNoBox) {
  Trim wanted;
  const std::string text =
      trimmed_by("  buffer in0: f32[256] global in\n",
                 "group grid (t 15) {\nserial c 16 {\n"
                 "out0[t*256 + min(max(convert(m[0], s64), 0), 16)*16 + c] = in0[t*16 + c]\n} }\n",
                 "extent n bound 16; in0 16; out0 256", &wanted);
  EXPECT_THAT(text, HasSubstr("grid (t 15)"));
}

// What a window reads stands around the row that is computed, so it says nothing of the loops; and
// two rows behind the extent are wanted.
TEST(Trim, RowsOfWindowsAreThoseThatAreStored) {
  Trim wanted;
  const std::string text =
      trimmed_by("  buffer in0: f32[288] global in\n",
                 "group {\nserial r 16 {\nserial w 3 {\nserial c 16 {\n"
                 "out0[r*16 + c] = max(out0[r*16 + c], in0[r*16 + w*16 + c])\n}\n}\n}\n}\n",
                 "extent n bound 16 beyond 2; in0 16 window; out0 16", &wanted);
  EXPECT_TRUE(wanted.done) << wanted.done.reason();
  EXPECT_THAT(text, HasSubstr("+ 2"));
  EXPECT_THAT(text, HasSubstr("serial r trips"));
  EXPECT_THAT(text, HasSubstr("serial w 3"));
}

// Behind the extent they are zeros: no products are added up for them. Loops over all that there is
// of something else stay as they are.
TEST(Trim, NoProductsForRowsBehindTheExtent) {
  Trim wanted;
  const std::string text =
      trimmed_by("  buffer in0: f32[288] global in\n",
                 "group {\nserial r 16 {\nserial w min(17 - r, 3) {\nserial c 16 {\n"
                 "acc[0] = fma(in0[r*16 + w*16 + c], in0[c], acc[0])\n}\n}\n"
                 "out0[r*16] = acc[0]\n}\n}\n",
                 "extent n bound 16 beyond 2; in0 16 window; out0 16", &wanted);
  EXPECT_TRUE(wanted.done) << wanted.done.reason();
  EXPECT_THAT(text, HasSubstr("serial w min(min(17 - r, 3), "
                              "max(convert(n[0], s64) - r, 0)*1073741824)"));
  EXPECT_THAT(text, HasSubstr("serial c 16"));
}

// The parts that the first tiles fetch: by fewer tiles each one fetches several, nested, so that a
// tile with one part makes one test.
TEST(Trim, TilesThatAreLeftFetchThePartsOfOthers) {
  const auto with = [](const char* fetch) {
    Trim wanted;
    return trimmed_by("  buffer in0: f32[512] global in\n  buffer in1: f32[512] global in\n",
                      std::string("group {\nserial tile 8 {\n") + fetch +
                          "unrolled i 8 { vector c 8 lanes 8 {\n"
                          "out0[tile*64 + i*8 + c] = in0[tile*64 + i*8 + c]\n} } }\n}\n",
                      "extent n bound 64; in0 8; out0 8", &wanted);
  };
  const std::string all = with("prefetch in1[tile*16] level 2\n");
  EXPECT_THAT(all, HasSubstr("floor_div(max(tiles, 1) + 7, max(tiles, 1))"));
  EXPECT_THAT(all, HasSubstr("if fetched > 7 {"));
  const std::string first = with("if tile < 3 { prefetch in1[tile*16] level 2 }\n");
  EXPECT_THAT(first, HasSubstr("floor_div(max(tiles, 1) + 2, max(tiles, 1))"));
  EXPECT_THAT(first, HasSubstr("max(min(share, 3 - tile*share), 0)"));
  EXPECT_THAT(first, HasSubstr("if fetched > 2 {"));
  EXPECT_THAT(first, Not(HasSubstr("if fetched > 3 {")));
  EXPECT_THAT(first, HasSubstr("prefetch in1[(tile*share + 2)*16] level 2"));
}

TEST(Trim, RequestsHaveText) {
  const Kernel kernel = rows("f32[512]", "serial i 512 { out0[i] = in0[i] }\n");
  const auto parsed = parse_trim_request(
      kernel,
      "extent in1 bound 64 least 17 times 2 beyond 3 reduced; in0 8 window; out0 8 reach 4");
  ASSERT_TRUE(parsed) << parsed.error().message;
  ASSERT_EQ(parsed->groups.size(), 1u);
  EXPECT_EQ(parsed->groups[0].extent, BufferId(size_t{1}));
  EXPECT_EQ(parsed->groups[0].bound, 64);
  EXPECT_EQ(parsed->groups[0].least, 17);
  EXPECT_EQ(parsed->groups[0].times, 2);
  EXPECT_EQ(parsed->groups[0].beyond, 3);
  EXPECT_TRUE(parsed->groups[0].reduced);
  ASSERT_EQ(parsed->globals.size(), 3u);
  EXPECT_EQ(parsed->globals[0].at(0).stride, 8);
  EXPECT_TRUE(parsed->reads_windows(0));
  EXPECT_TRUE(parsed->globals[1].empty());
  EXPECT_EQ(parsed->globals[2][0].reach, 4);
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {"in0 8", "before any extent"},
           {"extent", "which buffer"},
           {"extent acc bound 4", "no global buffer `acc`"},
           {"extent in1 bound", "a number"},
           {"extent in1 bound x", "a number from 1 on was expected at `x`"},
           {"extent in1 breadth 4", "an extent has no `breadth`"},
           {"extent in1 bound 64; in0 8 9", "a buffer has no `9`"}}) {
    const auto wrong = parse_trim_request(kernel, text);
    ASSERT_FALSE(wrong) << text;
    EXPECT_THAT(wrong.error().message, HasSubstr(part));
  }
}

}  // namespace
}  // namespace heddle::lower
