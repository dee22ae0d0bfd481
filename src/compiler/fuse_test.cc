// The cover on random modules: the fused module computes the same, and every kernel of it is
// correct and without faults in the kernel interpreter.
#include "fuse/fuse.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "compiler/fusion_check.h"
#include "cost/strides.h"
#include "fuse/groups.h"
#include "hlo/text.h"
#include "hlo/verify.h"
#include "interp/interp.h"
#include "interp/random_inputs.h"
#include "pass/random_module.h"
#include "schedule/place.h"
#include "tensor/compare.h"

namespace heddle::fuse {
namespace {

using tensor::Literal;

void expect_close(const Literal& got, const Literal& want, const std::string& what) {
  if (want.shape().is_tuple()) {
    for (size_t i = 0; i < want.elements().size(); ++i)
      expect_close(got.elements()[i], want.elements()[i], what);
    return;
  }
  tensor::Tolerance tolerance = tensor::derived_tolerance(want.type(), 4096);
  tolerance.relative_to_max = tolerance.absolute = tolerance.relative;
  auto comparison = tensor::compare(got, want, tolerance);
  EXPECT_TRUE(comparison.equal) << comparison.describe() << "\n" << what;
}

// The fusions of a cover; of a composite, its parts.
std::vector<const hlo::Instr*> parts_of(const hlo::Computation& computation) {
  std::vector<const hlo::Instr*> found;
  for (const hlo::Instr* instr : computation.instrs()) {
    if (!instr->is(hlo::Opcode::fusion)) continue;
    const std::vector<const hlo::Instr*> inner = parts_of(*instr->called()[0]);
    found.insert(found.end(), inner.begin(), inner.end());
    if (inner.empty()) found.push_back(instr);
  }
  return found;
}

// An instruction is in one fusion, unless it is cheap enough to be computed again. (That a cover
// has no cycle is checked where the computation is rebuilt.)
void expect_disjoint(const hlo::Module& module, const hlo::Module& fused) {
  std::map<std::string, int> holders;
  for (const hlo::Instr* part : parts_of(*fused.entry()))
    for (const hlo::Instr* member : part->called()[0]->instrs())
      if (!member->is(hlo::Opcode::parameter) && !member->is(hlo::Opcode::constant) &&
          !member->is(hlo::Opcode::tuple))
        ++holders[member->name()];
  int found = 0;
  for (const hlo::Instr* instr : module.entry()->instrs()) {
    if (instr->is(hlo::Opcode::parameter) || !holders.count(instr->name())) continue;
    ++found;
    EXPECT_TRUE(holders.at(instr->name()) == 1 || is_duplicable(instr))
        << instr->name() << " is in " << holders.at(instr->name()) << " kernels\n"
        << hlo::to_string(fused);
  }
  EXPECT_TRUE(found > 0 || holders.empty());
}

void check_module(const hlo::Module& module, const target::Target& target, Mode mode, uint64_t seed,
                  int* parts = nullptr) {
  std::unique_ptr<hlo::Module> fused = module.clone();
  auto changed = fuse(fused.get(), target, mode);
  ASSERT_TRUE(changed.has_value());
  auto verified = hlo::verify(*fused);
  ASSERT_TRUE(verified.has_value()) << verified.error().message << hlo::to_string(module);
  if (mode == Mode::stitch) expect_disjoint(module, *fused);
  std::vector<Literal> arguments = interp::random_arguments(module, seed);
  auto want = interp::evaluate(module, arguments);
  ASSERT_TRUE(want.has_value()) << want.error().message;
  auto got = interp::evaluate(*fused, arguments);
  ASSERT_TRUE(got.has_value()) << got.error().message;
  expect_close(*got, *want, hlo::to_string(module));
  for (const hlo::Instr* part : parts_of(*fused->entry())) {
    const Decision decision = schedule::place(*part->called()[0], target).decision;
    ASSERT_TRUE(decision) << "seed " << seed << ": " << decision.reason() << "\n"
                          << hlo::to_string(*fused);
    if (parts) ++*parts;
  }
  for (const hlo::Instr* instr : fused->entry()->instrs()) {
    if (!instr->is(hlo::Opcode::fusion)) continue;
    hlo::Module alone("fusion");
    alone.set_entry(alone.clone_computation(*instr->called()[0]));
    auto check = compiler::check_fusion(alone, target, seed, 4096, {}, hlo::join_of(*instr));
    EXPECT_EQ(check.failure, "") << "seed " << seed << "\n" << hlo::to_string(alone) << check.text;
  }
}

TEST(FuseTest, RandomModulesComputeTheSame) {
  auto target = target::find_target("icelake");
  ASSERT_TRUE(target.has_value());
  for (uint64_t seed = 0; seed < 150; ++seed) {
    auto module = pass::random_module(seed);
    check_module(*module, *target, Mode::greedy, seed);
    check_module(*module, *target, seed % 2 ? Mode::chains : Mode::stitch, seed);
    if (seed % 4 == 0) check_module(*module, *target, Mode::off, seed);
    if (HasFailure()) break;
  }
}

// Every output that is an array of an input's shape may overwrite it.
void give_away_inputs(hlo::Module* module) {
  const hlo::Instr* root = module->entry()->root();
  const bool tuple = root->shape().is_tuple();
  std::vector<tensor::Shape> outputs =
      tuple ? root->shape().elements() : std::vector<tensor::Shape>{root->shape()};
  std::vector<bool> taken(outputs.size(), false);
  for (const hlo::Instr* parameter : module->entry()->parameters()) {
    for (size_t o = 0; o < outputs.size(); ++o) {
      if (taken[o] || !(outputs[o] == parameter->shape())) continue;
      taken[o] = true;
      hlo::Alias alias;
      if (tuple) alias.output_index = {static_cast<int64_t>(o)};
      alias.parameter = parameter->parameter_number();
      module->input_output_alias.push_back(alias);
      break;
    }
  }
}

// The search, on graphs with reductions and index operators, some with their first input donated;
// XLA's rules on some of them. HEDDLE_RANDOM_GRAPHS: how many; HEDDLE_RANDOM_SEED: the first.
TEST(FuseTest, SearchedCoversComputeTheSame) {
  const char* wanted = std::getenv("HEDDLE_RANDOM_GRAPHS");
  const uint64_t count = wanted ? std::strtoull(wanted, nullptr, 10) : 60;
  const char* from = std::getenv("HEDDLE_RANDOM_SEED");
  const uint64_t first = from ? std::strtoull(from, nullptr, 10) : 1000;
  auto target = target::find_target("icelake");
  ASSERT_TRUE(target.has_value());
  int parts = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    pass::RandomModuleOptions shape;
    shape.steps = 6 + static_cast<int>(seed % 30);
    shape.contractions = seed % 3 == 0;
    auto module = pass::random_module(seed, shape);
    give_away_inputs(module.get());
    check_module(*module, *target, Mode::stitch, seed, &parts);
    if (seed % 4 == 0) check_module(*module, *target, Mode::xla, seed);
    if (HasFailure()) break;
  }
  EXPECT_GE(parts, static_cast<int>(count));
}

// A window reads and writes along its lanes: transposes around it are separate kernels.
TEST(FuseTest, TransposesStayOutsideOfWindows) {
  auto target = target::find_target("icelake");
  ASSERT_TRUE(target.has_value());
  const char* windows[] = {
      R"(  w = f32[3,3,1,32] parameter(1)
  y = f32[1,28,28,32] convolution(t, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=32
)",
      R"(  least = f32[] constant(-inf)
  y = f32[1,28,28,32] reduce-window(t, least), window={size=1x3x3x1 pad=0_0x1_1x1_1x0_0}, to_apply=larger
)"};
  for (const std::string window : windows) {
    const std::string text =
        "HloModule m\nlarger {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
        "  ROOT c = f32[] maximum(a, b)\n}\nENTRY e {\n  x = f32[1,32,28,28] parameter(0)\n"
        "  t = f32[1,28,28,32] transpose(x), dimensions={0,2,3,1}\n" +
        window +
        "  zero = f32[] constant(0)\n  zeros = f32[1,28,28,32] broadcast(zero), dimensions={}\n"
        "  r = f32[1,28,28,32] maximum(y, zeros)\n"
        "  ROOT o = f32[1,32,28,28] transpose(r), dimensions={0,3,1,2}\n}\n";
    auto module = hlo::parse_module(text);
    ASSERT_TRUE(module.has_value()) << module.error().message;
    check_module(**module, *target, Mode::greedy, 3);
    std::vector<Refusal> refusals;
    ASSERT_TRUE(fuse(module->get(), *target, Mode::greedy, &refusals).has_value());
    int64_t fusions = 0;
    for (const hlo::Instr* instr : (*module)->entry()->instrs())
      fusions += instr->is(hlo::Opcode::fusion) ? 1 : 0;
    EXPECT_EQ(fusions, 3) << hlo::to_string(**module);
    EXPECT_TRUE(std::any_of(refusals.begin(), refusals.end(),
                            [](const Refusal& refusal) { return refusal.code == "window-lanes"; }));
  }
}

// Values that would be stored, or loaded, with strided lanes are transposed by a separate kernel.
TEST(FuseTest, NothingMovesAcrossTheLanes) {
  auto target = target::find_target("icelake");
  ASSERT_TRUE(target.has_value());
  const char* head =
      "HloModule m\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
      "  ROOT c = f32[] add(a, b)\n}\nENTRY e {\n  x = f32[40,36,64] parameter(0)\n";
  const char* bodies[] = {
      R"(  y = f32[40,36,64] parameter(1)
  s = f32[40,36,64] add(x, y)
  t = f32[64,40,36] transpose(s), dimensions={2,0,1}
  ROOT r = (f32[40,36,64], f32[64,40,36]) tuple(s, t)
})",
      R"(  t = f32[64,40,36] transpose(x), dimensions={2,0,1}
  zero = f32[] constant(0)
  n = f32[64] reduce(t, zero), dimensions={1,2}, to_apply=sum
  m = f32[64,40,36] broadcast(n), dimensions={0}
  ROOT r = f32[64,40,36] subtract(t, m)
})"};
  for (const std::string body : bodies) {
    auto module = hlo::parse_module(head + body);
    ASSERT_TRUE(module.has_value()) << module.error().message;
    check_module(**module, *target, Mode::greedy, 3);
    std::vector<Refusal> refusals;
    ASSERT_TRUE(fuse(module->get(), *target, Mode::greedy, &refusals).has_value());
    EXPECT_TRUE(std::any_of(refusals.begin(), refusals.end(), [](const Refusal& refusal) {
      return refusal.code == "across-lanes";
    })) << hlo::to_string(**module);
    // A single transpose works on squares: no access is strided.
    for (const hlo::Instr* instr : (*module)->entry()->instrs()) {
      if (!instr->is(hlo::Opcode::fusion)) continue;
      EXPECT_EQ(cost::strided_elems(schedule::place(*instr->called()[0], *target)), 0)
          << hlo::to_string(**module);
    }
  }
}

// A power that feeds a pool with overlapping windows is computed once.
TEST(FuseTest, CostlyOperatorsStayOutsideOfWindows) {
  auto target = target::find_target("icelake");
  ASSERT_TRUE(target.has_value());
  auto module = hlo::parse_module(R"(HloModule m
larger {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}
ENTRY e {
  x = f32[1,16,16,32] parameter(0)
  p = f32[1,16,16,32] exponential(x)
  least = f32[] constant(-inf)
  ROOT y = f32[1,7,7,32] reduce-window(p, least), window={size=1x3x3x1 stride=1x2x2x1}, to_apply=larger
})");
  ASSERT_TRUE(module.has_value()) << module.error().message;
  check_module(**module, *target, Mode::greedy, 3);
  ASSERT_TRUE(fuse(module->get(), *target, Mode::greedy, nullptr).has_value());
  const auto& all = (*module)->entry()->instrs();
  EXPECT_EQ(std::count_if(all.begin(), all.end(),
                          [](const hlo::Instr* x) { return x->is(hlo::Opcode::fusion); }),
            2);
}

}  // namespace
}  // namespace heddle::fuse
