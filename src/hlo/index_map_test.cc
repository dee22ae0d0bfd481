#include "hlo/index_map.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "hlo/index_access.h"
#include "hlo/text.h"

namespace heddle::hlo {
namespace {

constexpr const char* kHead = R"(HloModule m
add { p = f32[] parameter(0) q = f32[] parameter(1) ROOT s = f32[] add(p, q) }
two { p = f32[] parameter(0) q = f32[] parameter(1) r = f32[] parameter(2) s = f32[] parameter(3)
  ROOT t = (f32[], f32[]) tuple(p, q) }
ENTRY e {
)";

// Parses an operator whose operands are the parameters, in order.
std::unique_ptr<Module> parsed(const std::vector<std::string>& shapes, const std::string& op) {
  std::string text = kHead, operands;
  for (size_t i = 0; i < shapes.size(); ++i) {
    text += fmt::format("  p{} = {} parameter({})\n", i, shapes[i], i);
    operands += fmt::format("{}p{}", i ? ", " : "", i);
  }
  const size_t end = op.find("()") + 1;
  text += "  ROOT x = " + op.substr(0, end) + operands + op.substr(end) + "\n}\n";
  auto module = parse_module(text);
  EXPECT_TRUE(module) << text << (module ? "" : module.error().message);
  return module ? std::move(*module) : nullptr;
}

// The links of operand k.
std::string links(const std::vector<std::string>& shapes, const std::string& op, size_t k = 0) {
  const auto module = parsed(shapes, op);
  return module ? to_string(index_map(*module->entry()->root(), k)) : "";
}

TEST(IndexMap, Elementwise) {
  EXPECT_EQ(links({"f32[2,3]", "f32[2,3]"}, "f32[2,3] add()", 1), "d0=r0 d1=r1");
  EXPECT_EQ(links({"f32[2]"}, "f32[2] copy()"), "d0=r0");
  EXPECT_EQ(links({"pred[]", "f32[2]", "f32[2]"}, "f32[2] select()"), "");  // for every element
  EXPECT_EQ(links({"f32[2]"}, "u8[2,4] bitcast-convert()"), "opaque");
}

TEST(IndexMap, Movement) {
  EXPECT_EQ(links({"f32[2,3]"}, "f32[2,5,3] broadcast(), dimensions={0,2}"), "d0=r0 d1=r2");
  EXPECT_EQ(links({"f32[2,3,4]"}, "f32[4,2,3] transpose(), dimensions={2,0,1}"),
            "d2=r0 d0=r1 d1=r2");
  EXPECT_EQ(links({"f32[5,2,3,1,4]"}, "f32[5,6,1,2,2] reshape()"), "d0=r0 d1,d2~r1 d3=r2 d4~r3,r4");
  EXPECT_EQ(links({"f32[1,5]"}, "f32[5] reshape()"), "d1=r0");
  EXPECT_EQ(links({"f32[0,5]"}, "f32[5,0] reshape()"), "opaque");
  EXPECT_EQ(links({"f32[4]"}, "s32[2,2] bitcast()"), "d0~r0,r1");
}

TEST(IndexMap, CutsAndParts) {
  EXPECT_EQ(links({"f32[9,4]"}, "f32[3,4] slice(), slice={[2:7:2], [0:4]}"), "d0=(r0*2+2)/1 d1=r1");
  EXPECT_EQ(links({"f32[9,1,4]"}, "f32[9,1,4] reverse(), dimensions={0,1}"),
            "d0=(r0*-1+8)/1 d1=r1 d2=r2");
  const std::vector<std::string> padded{"f32[3,4]", "f32[]"};
  EXPECT_EQ(links(padded, "f32[8,4] pad(), padding=1_2_1x0_0"), "d0=(r0*1-1)/2? d1=r1");
  EXPECT_EQ(links(padded, "f32[8,4] pad(), padding=1_2_1x0_0", 1), "");
  const std::vector<std::string> parts{"f32[3,4]", "f32[3,2]"};
  EXPECT_EQ(links(parts, "f32[3,6] concatenate(), dimensions={1}", 0), "d0=r0 d1=(r1*1+0)/1?");
  EXPECT_EQ(links(parts, "f32[3,6] concatenate(), dimensions={1}", 1), "d0=r0 d1=(r1*1-4)/1?");
}

TEST(IndexMap, Positions) {
  const std::vector<std::string> cut{"f32[9,4]", "s32[]", "s32[]"};
  EXPECT_EQ(links(cut, "f32[3,4] dynamic-slice(), dynamic_slice_sizes={3,4}"), "d0=r0+p1<=6 d1=r1");
  EXPECT_EQ(links({"f32[9,4]", "s32[2]"}, "f32[3,4] dynamic-slice(), dynamic_slice_sizes={3,4}"),
            "d0=r0+p1.0<=6 d1=r1");
  const std::vector<std::string> put{"f32[9,4]", "f32[3,4]", "s32[]", "s32[]"};
  EXPECT_EQ(links(put, "f32[9,4] dynamic-update-slice()", 0), "d0=r0 overlaid d1=r1");
  EXPECT_EQ(links(put, "f32[9,4] dynamic-update-slice()", 1), "d0=r0-p2<=6 d1=r1");
}

TEST(IndexMap, Gather) {
  const std::vector<std::string> rows{"f32[50,8]", "s32[2,3]"};
  const std::string take =
      "f32[2,3,8] gather(), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, "
      "index_vector_dim=2, slice_sizes={1,8}";
  EXPECT_EQ(links(rows, take, 0), "d0=+p1<=49 d1=r2");
  EXPECT_EQ(links(rows, take, 1), "d0=r0 d1=r1");
  // Slices at [row, column], of part of the columns, batch by batch.
  const std::vector<std::string> boxes{"f32[7,50,8,6]", "s32[7,2]"};
  const std::string cut =
      "f32[7,3,6] gather(), offset_dims={1,2}, collapsed_slice_dims={1}, start_index_map={1,2}, "
      "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=1, "
      "slice_sizes={1,1,3,6}";
  EXPECT_EQ(links(boxes, cut, 0), "d0=r0 d1=+p1.0<=49 d2=r1+p1.1<=5 d3=r2");
  EXPECT_EQ(links(boxes, cut, 1), "d0=r0 d1 opaque");
}

TEST(IndexMap, Sums) {
  EXPECT_EQ(links({"f32[2,3,4]", "f32[]"}, "f32[2,4] reduce(), dimensions={1}, to_apply=add"),
            "d0=r0 d1 reduced d2=r1");
  EXPECT_EQ(links({"f32[2,3]", "f32[2,3]", "f32[]", "f32[]"},
                  "(f32[3], f32[3]) reduce(), dimensions={0}, to_apply=two", 1),
            "d0 reduced with 0.0 d1=r0");
  const std::string dot =
      "f32[5,2,4,7,1] dot(), lhs_batch_dims={1}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
      "rhs_contracting_dims={3}";
  const std::vector<std::string> sides{"f32[2,5,3,4]", "f32[5,7,1,3]"};
  EXPECT_EQ(links(sides, dot, 0), "d0=r1 d1=r0 d2 reduced with 1.3 d3=r2");
  EXPECT_EQ(links(sides, dot, 1), "d0=r0 d1=r3 d2=r4 d3 reduced with 0.2");
}

TEST(IndexMap, Windows) {
  EXPECT_EQ(links({"f32[2,8]", "f32[]"},
                  "f32[2,4] reduce-window(), window={size=1x2 stride=1x2}, to_apply=add"),
            "d0=r0 d1 window r1");
  const std::string convolution =
      "f32[2,7,7,16] convolution(), window={size=3x3}, dim_labels=b01f_01io->b01f";
  const std::vector<std::string> image{"f32[2,9,9,8]", "f32[3,3,8,16]"};
  EXPECT_EQ(links(image, convolution, 0),
            "d0=r0 d3 reduced with 1.2 d1 window r1 by 1 d2 window r2 by 1");
  EXPECT_EQ(links(image, convolution, 1), "d3=r3 d2 reduced with 0.3 d0 opaque d1 opaque");
  EXPECT_EQ(links({"f32[2,9,9,8]", "f32[3,3,1,8]"},
                  "f32[2,7,7,8] convolution(), window={size=3x3}, dim_labels=b01f_01io->b01f, "
                  "feature_group_count=8",
                  0),
            "d0=r0 d3 opaque d1 window r1 by 1 d2 window r2 by 1");
}

// Every opcode whose row has a class with links: an opcode without an example here is not handled.
// For class `same` the row is sufficient.
TEST(IndexMap, EveryOpcodeOfTheTableIsHandled) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> examples = {
      {{"f32[2]"}, "f32[2,3] broadcast(), dimensions={0}"},
      {{"f32[2,3]"}, "f32[3,2] transpose(), dimensions={1,0}"},
      {{"f32[2,3]"}, "f32[6] reshape()"},
      {{"f32[2,3]"}, "f32[6] bitcast()"},
      {{"f32[2]"}, "f32[2] reverse(), dimensions={0}"},
      {{"f32[2]"}, "f32[1] slice(), slice={[0:1]}"},
      {{"f32[2]", "f32[]"}, "f32[3] pad(), padding=0_1"},
      {{"f32[2]"}, "f32[2] concatenate(), dimensions={0}"},
      {{"f32[2]", "f32[]"}, "f32[] reduce(), dimensions={0}, to_apply=add"},
      {{"f32[4]", "f32[]"}, "f32[2] reduce-window(), window={size=2 stride=2}, to_apply=add"},
      {{"f32[1,4,1]", "f32[2,1,1]"},
       "f32[1,3,1] convolution(), window={size=2}, dim_labels=b0f_0io->b0f"},
      {{"f32[2,3]", "f32[3,2]"},
       "f32[2,2] dot(), lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
      {{"f32[4]", "s32[]"}, "f32[2] dynamic-slice(), dynamic_slice_sizes={2}"},
      {{"f32[4]", "f32[2]", "s32[]"}, "f32[4] dynamic-update-slice()"},
      {{"f32[4]", "s32[2]"},
       "f32[2] gather(), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, "
       "index_vector_dim=1, slice_sizes={1}"}};
  std::set<Opcode> handled;
  for (const auto& [shapes, op] : examples) {
    const auto module = parsed(shapes, op);
    ASSERT_TRUE(module);
    const Instr& instr = *module->entry()->root();
    for (size_t k = 0; k < instr.operands().size(); ++k)
      EXPECT_FALSE(index_map(instr, k).is_opaque) << op;
    handled.insert(instr.opcode());
  }
  for (int i = 0; i < kOpcodeCount; ++i) {
    const OpcodeInfo& info = opcode_info(static_cast<Opcode>(i));
    const bool has_links = info.mapping != Mapping::none && info.mapping != Mapping::whole &&
                           info.mapping != Mapping::generate && info.mapping != Mapping::same;
    EXPECT_EQ(has_links, handled.count(static_cast<Opcode>(i)) > 0) << info.text;
    EXPECT_TRUE(info.mapping == Mapping::same || !(info.traits & Trait::elementwise)) << info.text;
  }
}

std::string text_of(const Access& access) {
  std::string text;
  for (const index::Expr& x : access.at) text += "[" + index::to_string(x) + "]";
  for (const index::Guard& guard : access.inside)
    text += fmt::format(" {} in {}..{}", index::to_string(guard.value), guard.low, guard.high);
  return text;
}

// The operand's element for the result's element [d0, d1, …]; positions are shown as the number of
// their operand.
std::string element(const std::vector<std::string>& shapes, const std::string& op, size_t k = 0) {
  const auto module = parsed(shapes, op);
  const Instr& instr = *module->entry()->root();
  const Ints box = instr.shape().extents();
  return text_of(access(instr, k, index::identity(box).results, box,
                        [](const DimLink& link) { return index::Expr(100 * link.other); }));
}

TEST(IndexAccess, WritesLinksOut) {
  EXPECT_EQ(element({"f32[3,4]"}, "f32[12] reshape()"), "[((d0) floordiv 4)][((d0) mod 4)]");
  EXPECT_EQ(element({"f32[9,1]"}, "f32[9,1] reverse(), dimensions={0}"), "[-d0 + 8][0]");
  EXPECT_EQ(element({"f32[3]", "f32[2]"}, "f32[5] concatenate(), dimensions={0}", 1),
            "[d0 - 3] d0 in 3..5");
  EXPECT_EQ(element({"f32[3]", "f32[]"}, "f32[6] pad(), padding=1_0_1"),
            "[((d0 + 1) floordiv 2) - 1] d0 - 1 in 0..5 ((d0 + 1) mod 2) in 0..1");
  EXPECT_EQ(element({"f32[9]", "f32[3]", "s32[]"}, "f32[9] dynamic-update-slice()", 1),
            "[d0 - 200] d0 - 200 in 0..3");
}

TEST(IndexAccess, LayersLieOverOneAnother) {
  const auto last_first = parsed({"f32[3]", "f32[2]"}, "f32[5] concatenate(), dimensions={0}");
  EXPECT_EQ(layers(*last_first->entry()->root()), (std::vector<size_t>{1, 0}));
  const auto put = parsed({"f32[9]", "f32[3]", "s32[]"}, "f32[9] dynamic-update-slice()");
  EXPECT_EQ(layers(*put->entry()->root()), (std::vector<size_t>{0, 1}));
}

}  // namespace
}  // namespace heddle::hlo
