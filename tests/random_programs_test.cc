// Seeded random modules the whole way: O0 and O2, one thread and two, static and dynamic memory,
// against the reference interpreter; the bits do not depend on threads or memory.
#include <gtest/gtest.h>

#include <cstdlib>

#include "compiled_run.h"
#include "hlo/text.h"
#include "interp/interp.h"
#include "interp/random_inputs.h"
#include "pass/random_module.h"
#include "pass/random_order.h"
#include "target/target.h"
#include "tensor/compare.h"

namespace heddle {
namespace {

using tensor::Literal;

constexpr uint64_t kShards = 4;
constexpr uint64_t kSeeds = 1000;

// The coarsest float type that a module computes in sets the rounding of all its results.
void find_coarsest(const hlo::Module& module, tensor::Type* type) {
  double most = tensor::float_format(*type).unit_roundoff;
  for (const auto& computation : module.computations()) {
    for (const hlo::Instr* instr : computation->instrs()) {
      tensor::Type t = instr->shape().type();
      if (!instr->shape().is_array() || !tensor::is_float(t)) continue;
      double roundoff = tensor::float_format(t).unit_roundoff;
      if (roundoff <= most) continue;
      most = roundoff;
      *type = t;
    }
  }
}

int64_t number_of(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoll(text, nullptr, 10) : otherwise;
}

class RandomPrograms : public ::testing::TestWithParam<uint64_t> {};

void check(uint64_t seed) {
  pass::RandomModuleOptions shape;
  shape.steps = 4 + static_cast<int>(seed % 8);
  shape.control = seed % 5 == 0;
  std::unique_ptr<hlo::Module> module = pass::random_module(seed, shape);
  std::vector<Literal> arguments = interp::random_arguments(*module, seed), leaves;
  for (const Literal& argument : arguments) append_leaves(argument, &leaves);
  auto want = interp::evaluate(*module, arguments);
  ASSERT_TRUE(want.has_value()) << want.error().message;
  std::vector<Literal> wanted;
  append_leaves(*want, &wanted);
  const target::Target target = target::host_target();
  std::vector<Literal> first;
  for (compiler::Level level : {compiler::Level::O0, compiler::Level::O2}) {
    if (level == compiler::Level::O0 && seed % 4 != 0) continue;  // the slower one, on a quarter
    for (int threads : {1, 2}) {
      if (threads == 2 && seed % 8 != 0) continue;
      compiler::Options options;
      options.level = level;
      options.memory = threads == 1 ? compiler::Memory::planned : compiler::Memory::pooled;
      std::string failure;
      std::vector<Literal> got =
          compile_and_run(module->clone(), leaves, target, options, threads, &failure);
      ASSERT_EQ(failure, "") << "seed " << seed << "\n" << hlo::to_string(*module);
      ASSERT_EQ(got.size(), wanted.size());
      for (size_t i = 0; i < wanted.size(); ++i) {
        tensor::Type type = wanted[i].type();
        if (tensor::is_float(type)) find_coarsest(*module, &type);
        tensor::Tolerance tolerance = tensor::derived_tolerance(type, 4096);
        // Arguments are of order one: what cancels may leave that much rounding behind.
        tolerance.relative_to_max = tolerance.absolute = tolerance.relative;
        auto comparison = tensor::compare(got[i], wanted[i], tolerance);
        ASSERT_TRUE(comparison.equal)
            << "seed " << seed << " level " << static_cast<int>(level) << " threads " << threads
            << " output " << i << ": " << comparison.describe() << "\n"
            << hlo::to_string(*module);
        if (threads == 2) {
          ASSERT_TRUE(got[i] == first[i]) << "bits differ, seed " << seed;
        }
      }
      if (threads == 1) first = got;
    }
  }
}

TEST_P(RandomPrograms, ComputeWhatTheInterpreterDoes) {
  for (uint64_t seed = GetParam(); seed < kSeeds && !HasFatalFailure(); seed += kShards)
    check(seed);
}

// Sorts, top-ks and products in a row between what shares kernels, with control edges
// (pass/random_order.h), under each way of fusing. HEDDLE_RANDOM_GRAPHS: how many;
// HEDDLE_RANDOM_SEED: from where on.
TEST(RandomOrders, ComputeWhatTheInterpreterDoes) {
  const int64_t first = number_of("HEDDLE_RANDOM_SEED", 0),
                count = number_of("HEDDLE_RANDOM_GRAPHS", 30);
  for (int64_t seed = first; seed < first + count; ++seed) {
    const auto module = pass::random_order_module(static_cast<uint64_t>(seed), 96);
    const std::vector<Literal> arguments =
        interp::random_arguments(*module, static_cast<uint64_t>(seed));
    const auto want = interp::evaluate(*module, arguments);
    ASSERT_TRUE(want.has_value()) << want.error().message;
    std::vector<Literal> wanted;
    append_leaves(*want, &wanted);
    for (const compiler::Fuse fuse :
         {compiler::Fuse::stitch, compiler::Fuse::greedy, compiler::Fuse::xla}) {
      if (fuse != compiler::Fuse::stitch && seed % 5 != 0) continue;
      compiler::Options options;
      options.level = compiler::Level::O2;
      options.fuse = fuse;
      std::string failure;
      const std::vector<Literal> got =
          compile_and_run(module->clone(), arguments, target::host_target(), options, 1, &failure);
      ASSERT_EQ(failure, "") << "seed " << seed << "\n" << hlo::to_string(*module);
      ASSERT_EQ(got.size(), wanted.size());
      for (size_t i = 0; i < wanted.size(); ++i) {
        tensor::Tolerance tolerance = tensor::derived_tolerance(tensor::Type::f32, 4096);
        tolerance.relative_to_max = tolerance.absolute = tolerance.relative;
        const auto comparison = tensor::compare(got[i], wanted[i], tolerance);
        ASSERT_TRUE(comparison.equal)
            << "seed " << seed << " output " << i << ": " << comparison.describe() << "\n"
            << hlo::to_string(*module);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, RandomPrograms, ::testing::Range<uint64_t>(0, kShards));

}  // namespace
}  // namespace heddle
