// Many arrays, one kernel: which modules become a table, its phases, and its results.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/compiler.h"
#include "compiler/fusion_check.h"
#include "fuse/fuse.h"
#include "hlo/text.h"
#include "program/side_by_side.h"
#include "target/target.h"

namespace heddle::compiler {
namespace {

std::string lines_of(const std::vector<std::string>& shapes, const std::string& line) {
  std::string text;
  for (size_t i = 0; i < shapes.size(); ++i)
    text += fmt::format(fmt::runtime(line), fmt::arg("i", i), fmt::arg("s", shapes[i])) + "\n";
  return text;
}

std::string joined(const std::vector<std::string>& shapes, const std::string& piece) {
  std::string text;
  for (size_t i = 0; i < shapes.size(); ++i)
    text += (i > 0 ? ", " : "") +
            fmt::format(fmt::runtime(piece), fmt::arg("i", i), fmt::arg("s", shapes[i]));
  return text;
}

// More shapes than a composite holds, no two equal: equal ones would be packed.
std::vector<std::string> many_shapes() {
  std::vector<std::string> shapes;
  for (int i = 0; i < 5; ++i)
    for (const char* shape : {"f32[{},40]", "f32[{}]", "f32[{},4,3]", "f32[2{}1]"})
      shapes.push_back(fmt::format(fmt::runtime(shape), 100 + 7 * i));
  return shapes;
}
const std::vector<std::string> kShapes = many_shapes();

// x - rate * g of all.
std::string descent(const std::vector<std::string>& shapes, const std::string& alias = "") {
  return "HloModule m" + alias + "\n\nENTRY e {\n" +
         lines_of(shapes, "  x{i} = {s} parameter({i})") +
         fmt::format("  rate = f32[] parameter({})\n", 2 * shapes.size()) +
         [&] {
           std::string text;
           for (size_t i = 0; i < shapes.size(); ++i)
             text += fmt::format("  g{} = {} parameter({})\n", i, shapes[i], shapes.size() + i);
           return text;
         }() +
         lines_of(shapes,
                  "  r{i} = {s} broadcast(rate), dimensions={{}}\n"
                  "  m{i} = {s} multiply(g{i}, r{i})\n"
                  "  y{i} = {s} subtract(x{i}, m{i})") +
         "  ROOT t = (" + joined(shapes, "{s}") + ") tuple(" + joined(shapes, "y{i}") + ")\n}\n";
}

program::Program compiled(const std::string& text, const Options& options = {}) {
  auto module = hlo::parse_module(text);
  HEDDLE_CHECK(module, "{}", module.error().message);
  auto program = compile(std::move(*module), {}, *target::find_target("spr"), options);
  HEDDLE_CHECK(program, "{}", program.error().message);
  return std::move(*program);
}

TEST(Table, UpdatesOfAllArraysAreOneKernelAndOneLaunch) {
  const program::Program program = compiled(descent(kShapes));
  ASSERT_EQ(program.kernels.size(), 1u);
  EXPECT_EQ(program.commands.size(), 1u);
  EXPECT_EQ(program.kernels[0].phases.size(), 1u);
  EXPECT_EQ(program::launch_count(program), 1);
  // Arrays of all ranks are flat, and the same code where only extents differ.
  EXPECT_NE(program.kernels[0].text.find("row (in"), std::string::npos);
  EXPECT_EQ(program.memory.plan_bytes, 0);
}

int64_t inner_kernels(const program::Program& program) {
  const std::string& text = program.kernels[0].text;
  int64_t count = 0;
  for (size_t at = 0; (at = text.find("\n  inner ", at)) != std::string::npos; ++at) ++count;
  return count;
}

// The switch of the pass that opens extents reaches the rows of a table.
TEST(Table, ExtentsAreOpenedByThePass) {
  const int64_t shared = inner_kernels(compiled(descent(kShapes)));
  Options options;
  options.disable = {"open_extents"};
  const int64_t own = inner_kernels(compiled(descent(kShapes), options));
  EXPECT_GT(shared, 0);
  EXPECT_LT(shared, own);
  EXPECT_EQ(own, std::ssize(kShapes));
}

// The kernel interpreter sees every row, and finds no race between them.
TEST(Table, IsRightInTheInterpreter) {
  auto module = hlo::parse_module(descent(kShapes));
  ASSERT_TRUE(module);
  const target::Target target = *target::find_target("spr");
  ASSERT_TRUE(fuse::fuse(module->get(), target, fuse::Mode::stitch));
  int tables = 0;
  for (const hlo::Instr* instr : (*module)->entry()->instrs()) {
    if (!instr->is(hlo::Opcode::fusion)) continue;
    ++tables;
    hlo::Module alone("fusion");
    alone.set_entry(alone.clone_computation(*instr->called()[0]));
    const FusionCheck check = check_fusion(alone, target, 3, 64, {}, hlo::join_of(*instr));
    EXPECT_EQ(check.failure, "") << check.text;
    EXPECT_FALSE(check.kernel.inner.empty());
  }
  EXPECT_EQ(tables, 1);
}

// An array that dies earlier must not be kept alive for the table.
TEST(Table, LargeValuesAreNotKeptForIt) {
  std::string text = descent(kShapes);
  const std::string from = "  g3 = f32[21001] parameter(23)\n";
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, from.size(),
               "  a = f32[21001,16] parameter(23)\n  b = f32[16,1] parameter(41)\n"
               "  d = f32[21001,1] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
               "  c = f32[21001] reshape(d)\n"
               "  w = f32[21001] sine(c)\n  g3 = f32[21001] cosine(w)\n");
  const program::Program program = compiled(text);
  int tables = 0;
  for (const program::Kernel& kernel : program.kernels)
    if (const size_t row = kernel.text.find("inner i0"); row != std::string::npos) ++tables;
  EXPECT_EQ(tables, 1);
  EXPECT_GE(program.commands.size(), 2u);
}

TEST(Table, DonatedArraysAreOverwritten) {
  std::string alias;
  for (size_t i = 0; i < kShapes.size(); ++i)
    alias += fmt::format("{}{{{}}}: ({}, {{}})", i > 0 ? ", " : "", i, i);
  const program::Program program =
      compiled(descent(kShapes, ", input_output_alias={ " + alias + " }"));
  ASSERT_EQ(program.commands.size(), 1u);  // no copy
  const auto& launch = std::get<program::Launch>(program.commands[0]);
  ASSERT_EQ(launch.in_place.size(), kShapes.size());
  for (const int64_t from : launch.in_place) EXPECT_GE(from, 0);
}

// All arrays divided by their global norm: sums, the norm, products.
TEST(Table, AGlobalNormIsThreePhases) {
  std::vector<std::string> shapes;
  for (int i = 0; i < 20; ++i)
    shapes.push_back(i % 3 == 0 ? fmt::format("f32[{},{}]", 100 + i, 300)
                                : fmt::format("f32[{}]", 70 + i));
  std::string chain = "  sum0 = f32[] add(zero, total0)\n";
  for (size_t i = 1; i < shapes.size(); ++i)
    chain += fmt::format("  sum{0} = f32[] add(sum{1}, total{0})\n", i, i - 1);
  const std::string text =
      "HloModule m\n\nplus {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
      "  ROOT s = f32[] add(a, b)\n}\n\nENTRY e {\n" +
      lines_of(shapes, "  x{i} = {s} parameter({i})") + "  zero = f32[] constant(0)\n" +
      [&] {
        std::string sums;
        for (size_t i = 0; i < shapes.size(); ++i)
          sums += fmt::format(
              "  q{0} = {1} multiply(x{0}, x{0})\n"
              "  total{0} = f32[] reduce(q{0}, zero), dimensions={{{2}}}, "
              "to_apply=plus\n",
              i, shapes[i], i % 3 == 0 ? "0,1" : "0");
        return sums;
      }() +
      chain + fmt::format("  norm = f32[] sqrt(sum{})\n", shapes.size() - 1) +
      lines_of(shapes,
               "  n{i} = {s} broadcast(norm), dimensions={{}}\n"
               "  y{i} = {s} divide(x{i}, n{i})") +
      "  ROOT t = (" + joined(shapes, "{s}") + ") tuple(" + joined(shapes, "y{i}") + ")\n}\n";
  const program::Program program = compiled(text);
  ASSERT_EQ(program.kernels.size(), 1u);
  EXPECT_EQ(program.commands.size(), 1u);
  EXPECT_LE(program.kernels[0].phases.size(), 3u);
  EXPECT_GE(program.kernels[0].phases.size(), 2u);
}

}  // namespace
}  // namespace heddle::compiler
