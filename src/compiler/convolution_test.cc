// Convolutions of the GEMM family: every kind of window, layout and extent, checked by the kernel
// interpreter against the reference, with the kernel's weights in place and in panels.
#include <gtest/gtest.h>

#include <sstream>

#include "compiler/fusion_check.h"
#include "fuse/fuse.h"
#include "hlo/text.h"
#include "hlo/verify.h"
#include "interp/interp.h"
#include "interp/random_inputs.h"
#include "schedule/gemm.h"
#include "tensor/compare.h"

namespace heddle::stitch {
namespace {

using compiler::FusionCheck;

struct Case {
  const char* name;
  const char* input;  // extents
  const char* kernel;
  const char* output;
  const char* rest;  // window, labels, groups
  const char* target = "icelake";
  bool gemm = true;  // of the family
};

std::string body(const Case& c, const std::string& kernel) {
  return fmt::format(R"(HloModule m
ENTRY e {{
  x = f32[{}] parameter(0)
{}
  ROOT c = f32[{}] convolution(x, w), {}
}})",
                     c.input, kernel, c.output, c.rest);
}

FusionCheck check_text(const std::string& text, const char* target_name) {
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module.has_value()) << (module ? "" : module.error().message) << text;
  auto target = target::find_target(target_name);
  FusionCheck checked = compiler::check_fusion(**module, *target, 11, 4096);
  EXPECT_EQ(checked.failure, "") << text << checked.text;
  return checked;
}

// Instruction s: a sum over the dimensions of constants, different for every element.
std::string constant_sum(const std::string& extents) {
  std::string text, sum;
  double scale = 1.3;
  std::stringstream stream(extents);
  std::string extent;
  for (int d = 0; std::getline(stream, extent, ','); ++d) {
    std::string values;
    for (int i = 0; i < std::stoi(extent); ++i)
      values += fmt::format("{}{}", i ? ", " : "", scale * i);
    scale *= 2.7;
    std::string name = d ? fmt::format("t{}", d) : "s0";
    text += fmt::format("  c{} = f32[{}] constant({{{}}})\n", d, extent, values);
    text += fmt::format("  {} = f32[{}] broadcast(c{}), dimensions={{{}}}\n", name, extents, d, d);
    if (d) text += fmt::format("  s{} = f32[{}] add(s{}, {})\n", d, extents, d - 1, name);
    sum = fmt::format("s{}", d);
  }
  return text + fmt::format("  s = f32[{}] copy({})\n", extents, sum);
}

const Case kCases[] = {
    {"plain", "1,6,20,5", "3,3,5,18", "1,4,18,18", "window={size=3x3}, dim_labels=b01f_01io->b01f"},
    {"padded", "2,5,33,3", "3,3,3,20", "2,5,33,20",
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"},
    {"inside_and_edges", "1,3,60,4", "3,3,4,16", "1,3,60,16",
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"},
    {"stride_2", "1,9,31,4", "3,3,4,33", "1,5,16,33",
     "window={size=3x3 stride=2x2 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"},
    {"stride_3_uneven", "1,8,29,2", "5,4,2,8", "1,3,10,8",
     "window={size=5x4 stride=3x3 pad=2_1x0_3}, dim_labels=b01f_01io->b01f"},
    {"first_layer", "1,16,40,3", "7,7,3,16", "1,8,20,16",
     "window={size=7x7 stride=2x2 pad=3_3x3_3}, dim_labels=b01f_01io->b01f"},
    {"dilated", "1,10,24,4", "3,3,4,16", "1,10,24,16",
     "window={size=3x3 pad=2_2x3_3 rhs_dilate=2x3}, dim_labels=b01f_01io->b01f"},
    {"small_map", "2,7,7,6", "3,3,6,40", "2,7,7,40",
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"},
    {"tiny_map", "1,2,2,6", "3,3,6,40", "1,2,2,40",
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"},
    {"larger_than_map", "1,3,3,4", "5,5,4,16", "1,3,3,16",
     "window={size=5x5 pad=2_2x2_2}, dim_labels=b01f_01io->b01f"},
    {"all_padding", "1,3,3,2", "3,3,2,4", "1,9,9,4",
     "window={size=3x3 pad=4_4x4_4}, dim_labels=b01f_01io->b01f"},
    {"negative_padding", "1,9,20,3", "3,3,3,16", "1,5,17,16",
     "window={size=3x3 pad=-1_-1x-1_0}, dim_labels=b01f_01io->b01f"},
    {"strided_point", "1,9,17,5", "1,1,5,16", "1,5,9,16",
     "window={size=1x1 stride=2x2}, dim_labels=b01f_01io->b01f"},
    {"padded_point", "1,4,4,5", "1,1,5,16", "1,6,7,16",
     "window={size=1x1 pad=1_1x1_2}, dim_labels=b01f_01io->b01f"},
    {"row_window", "1,5,30,4", "1,7,4,16", "1,5,30,16",
     "window={size=1x7 pad=0_0x3_3}, dim_labels=b01f_01io->b01f"},
    {"column_window", "1,30,5,4", "7,1,4,16", "1,30,5,16",
     "window={size=7x1 pad=3_3x0_0}, dim_labels=b01f_01io->b01f"},
    {"reversed", "1,6,20,3", "3,3,3,16", "1,6,20,16",
     "window={size=3x3 pad=1_1x1_1 rhs_reversal=1x1}, dim_labels=b01f_01io->b01f"},
    {"groups", "1,5,16,12", "3,3,4,36", "1,5,16,36",
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=3"},
    {"groups_of_vectors", "1,4,10,4", "3,3,2,64", "1,4,10,64",
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=2"},
    {"depthwise", "1,5,9,6", "3,3,1,6", "1,5,9,6",
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=6", "icelake",
     false},
    {"one_feature", "1,5,9,6", "3,3,6,1", "1,5,9,1",
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f", "icelake", false},
    {"one_dimension", "2,100,6", "5,6,18", "2,100,18",
     "window={size=5 pad=2_2}, dim_labels=b0f_0io->b0f"},
    {"long_line", "1,1500,2", "3,2,16", "1,1500,16",
     "window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f"},
    {"three_dimensions", "1,4,5,16,3", "3,3,3,3,16", "1,4,5,16,16",
     "window={size=3x3x3 pad=1_1x1_1x1_1}, dim_labels=b012f_012io->b012f"},
    {"features_first_small_map", "2,5,7,7", "35,5,3,3", "2,35,7,7",
     "window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01"},
    {"features_last_to_first", "1,6,20,5", "3,3,5,48", "1,48,6,20",
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->bf01"},
    {"features_last_to_first_joined", "2,5,6,20", "3,3,20,32", "2,32,5,6",
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->bf01"},
    {"features_first", "2,5,9,21", "24,5,3,3", "2,24,9,21",
     "window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01"},
    {"input_dilated", "1,4,5,3", "3,3,3,16", "1,7,9,16",
     "window={size=3x3 pad=1_1x1_1 lhs_dilate=2x2}, dim_labels=b01f_01io->b01f", "icelake", false},
    {"large_window", "1,7,7,2", "7,7,2,16", "1,7,7,16",
     "window={size=7x7 pad=3_3x3_3}, dim_labels=b01f_01io->b01f"},
    {"next_panel_fetched", "2,3,3,64", "3,3,64,256", "2,3,3,256",
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"},
    {"avx2", "1,6,23,5", "3,3,5,20", "1,6,23,20",
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f", "avx2"},
    {"avx2_small", "2,4,4,5", "3,3,5,20", "2,4,4,20",
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f", "avx2"},
    {"portable", "1,6,11,5", "3,3,5,10", "1,3,6,10",
     "window={size=3x3 stride=2x2 pad=1_1x1_1}, dim_labels=b01f_01io->b01f", "portable"},
};

class ConvolutionTest : public ::testing::TestWithParam<Case> {};

TEST_P(ConvolutionTest, InPlace) {
  const Case& c = GetParam();
  FusionCheck checked =
      check_text(body(c, fmt::format("  w = f32[{}] parameter(1)", c.kernel)), c.target);
  EXPECT_EQ(stage::is_gemm(checked.placed), c.gemm) << checked.text;
  auto parsed = stage::parse_schedule(
      stage::to_string(checked.placed.schedule, checked.placed.graph), checked.placed.graph);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(stage::to_string(*parsed, checked.placed.graph),
            stage::to_string(checked.placed.schedule, checked.placed.graph));
}

// The kernel depends on constants alone, and the convolution has an epilogue.
TEST_P(ConvolutionTest, InPanels) {
  const Case& c = GetParam();
  std::string text = fmt::format(R"(HloModule m
ENTRY e {{
  x = f32[{}] parameter(0)
{}  w = f32[{}] cosine(s)
  c = f32[{}] convolution(x, w), {}
  y = f32[{}] parameter(1)
  r = f32[{}] add(c, y)
  ROOT t = f32[{}] tanh(r)
}})",
                                 c.input, constant_sum(c.kernel), c.kernel, c.output, c.rest,
                                 c.output, c.output, c.output);
  auto module = hlo::parse_module(text);
  ASSERT_TRUE(module.has_value()) << module.error().message << text;
  auto target = target::find_target(c.target);
  std::unique_ptr<hlo::Module> fused = (*module)->clone();
  auto packed = fuse::pack_weights(fused.get(), *target);
  ASSERT_TRUE(packed.has_value());
  EXPECT_EQ(*packed, c.gemm);
  ASSERT_TRUE(fuse::fuse(fused.get(), *target, fuse::Mode::greedy).has_value());
  ASSERT_TRUE(hlo::verify(*fused).has_value());
  std::vector<tensor::Literal> arguments = interp::random_arguments(**module, 5);
  auto want = interp::evaluate(**module, arguments);
  auto got = interp::evaluate(*fused, arguments);
  ASSERT_TRUE(want.has_value() && got.has_value());
  auto same = tensor::compare(*got, *want, tensor::derived_tolerance(tensor::Type::f32, 4096));
  EXPECT_TRUE(same.equal) << same.describe() << hlo::to_string(*fused);
  int with_panels = 0;
  for (const hlo::Instr* instr : fused->entry()->instrs()) {
    if (!instr->is(hlo::Opcode::fusion)) continue;
    hlo::Module alone("fusion");
    alone.set_entry(alone.clone_computation(*instr->called()[0]));
    auto checked = compiler::check_fusion(alone, *target, 3, 4096);
    EXPECT_EQ(checked.failure, "") << hlo::to_string(alone) << checked.text;
    if (!stage::is_gemm(checked.placed)) continue;
    // The sum and the function are its epilogue.
    EXPECT_GE(checked.placed.graph.stages.size(), 2u) << hlo::to_string(*fused);
    for (size_t i = 0; i < checked.placed.graph.stages.size(); ++i) {
      if (checked.placed.graph.stages[i].kind != hlo::StageKind::conv) continue;
      auto match = schedule::match_gemm(checked.placed.graph, stage::StageId(i));
      // One panel alone looks like columns in place.
      const stage::Gemm& gemm =
          std::get<stage::Row>(checked.placed.schedule.nodes[0]).gemm()->record;
      with_panels += match.decision &&
                     (match.shape.b_panel > 0 || match.shape.n_extent <= gemm.nv * gemm.lanes);
    }
  }
  EXPECT_EQ(with_panels, c.gemm ? 1 : 0) << hlo::to_string(*fused);
}

// Filters in panels, for modules of other types.
TEST(ConvolutionTypesTest, SmallFloatsAndDoubles) {
  for (const char* type : {"f16", "bf16", "f64"}) {
    std::string text = fmt::format(R"(HloModule m
ENTRY e {{
  x = {0}[1,6,20,5] parameter(0)
{1}  w = f32[3,3,5,18] cosine(s)
  v = {0}[3,3,5,18] convert(w)
  c = {0}[1,6,20,18] convolution(x, v), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f
  ROOT t = {0}[1,6,20,18] negate(c)
}})",
                                   type, constant_sum("3,3,5,18"));
    auto module = hlo::parse_module(text);
    ASSERT_TRUE(module.has_value()) << module.error().message << text;
    auto target = target::find_target("icelake");
    auto packed = fuse::pack_weights(module->get(), *target);
    ASSERT_TRUE(packed.has_value());
    EXPECT_TRUE(*packed);
    ASSERT_TRUE(fuse::fuse(module->get(), *target, fuse::Mode::greedy).has_value());
    ASSERT_TRUE(hlo::verify(**module).has_value());
    int gemms = 0;
    for (const hlo::Instr* instr : (*module)->entry()->instrs()) {
      if (!instr->is(hlo::Opcode::fusion)) continue;
      hlo::Module alone("fusion");
      alone.set_entry(alone.clone_computation(*instr->called()[0]));
      auto checked = compiler::check_fusion(alone, *target, 3, 64);
      EXPECT_EQ(checked.failure, "") << hlo::to_string(alone) << checked.text;
      gemms += stage::is_gemm(checked.placed);
    }
    EXPECT_EQ(gemms, 1) << type;
  }
}

// Pairs of bf16 with a computed filter: copied into words, once for several images if each core has
// enough tasks; k in another order if the window is innermost.
struct WordCase {
  const char *input, *filter, *output, *rest;
  int64_t word, shared;
};

const WordCase kWordCases[] = {
    {"1,5,7,6", "3,3,6,20", "1,5,7,20", "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
     2, 1},
    {"9,4,4,6", "3,3,6,20", "9,4,4,20", "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
     2, 1},
    {"8,4,5,6", "3,3,6,40", "8,4,5,40", "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
     2, 2},
    {"8,7,9,4", "3,3,4,40", "8,4,5,40",
     "window={size=3x3 stride=2x2 pad=1_1x1_1}, dim_labels=b01f_01io->b01f", 2, 2},
    {"8,4,5,3", "3,3,3,40", "8,4,5,40", "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
     1, 2},
    {"4,8,4,64", "2,2,32,64", "4,7,3,64",
     "window={size=2x2}, dim_labels=b01f_01io->b01f, feature_group_count=2", 2, 2},
    // Gradients of filters, of a strided convolution too, in both layouts.
    {"12,5,7,4", "5,7,4,18", "12,3,3,18",
     "window={size=5x7 pad=1_1x1_1}, dim_labels=b01f_01io->b01f", 2, 3},
    {"16,5,7,4", "4,5,7,18", "16,3,3,18",
     "window={size=5x7 pad=1_1x1_1}, dim_labels=b01f_i01o->b01f", 2, 4},
    {"16,9,7,4", "5,4,4,40", "16,3,3,40",
     "window={size=5x4 pad=1_1x1_1 rhs_dilate=2x2}, dim_labels=b01f_01io->b01f", 2, 4},
    {"4,5,7,12", "4,5,7,18", "3,3,12,18",
     "window={size=5x7 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf", 2, 1},
    {"3,5,7,16", "3,5,7,18", "3,3,16,18",
     "window={size=5x7 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf", 1, 1},
    {"4,3,5,20", "4,3,5,18", "1,1,20,18", "window={size=3x5}, dim_labels=f01b_i01o->01bf", 2, 1},
};

TEST(ConvolutionWordsTest, ComputedFilters) {
  target::Target target = *target::find_target("zen5");
  target.cores = 1;
  for (const WordCase& c : kWordCases) {
    const std::string text = fmt::format(R"(HloModule m
ENTRY e {{
  x = bf16[{}] parameter(0)
  w = bf16[{}] parameter(1)
  ROOT c = f32[{}] convolution(x, w), {}
}})",
                                         c.input, c.filter, c.output, c.rest);
    auto module = hlo::parse_module(text);
    ASSERT_TRUE(module.has_value()) << module.error().message << text;
    const FusionCheck checked = compiler::check_fusion(**module, target, 11, 4096);
    EXPECT_EQ(checked.failure, "") << text << checked.text;
    ASSERT_TRUE(stage::is_gemm(checked.placed)) << text << checked.text;
    const stage::Gemm& gemm = std::get<stage::Row>(checked.placed.schedule.nodes[0]).gemm()->record;
    EXPECT_EQ(gemm.word(), c.word) << text << checked.text;
    EXPECT_EQ(gemm.shared, c.shared) << text << checked.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, ConvolutionTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace heddle::stitch
