// The O2 pipeline on files: the operators' own test data, and XLA's HLO files in HEDDLE_CORPORA.
// Verifies after each pass, a second run changes nothing, and values stay the same where the
// interpreter can check that in bounded work.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "hlo/text.h"
#include "hlo/verify.h"
#include "interp/interp.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/pipeline.h"
#include "opt/test_util.h"

namespace heddle::opt {
namespace {

constexpr double kMaxElems = 1e6;  // in all values of an evaluated module
constexpr double kMaxProducts = 1e8;

bool is_small(const hlo::Module& module) {
  double elems = 0, products = 0;
  for (const auto& computation : module.computations()) {
    for (const hlo::Instr* instr : computation->instrs()) {
      if (!instr->shape().is_array()) continue;
      const double n = static_cast<double>(instr->shape().elems());
      elems += n;
      for (const hlo::Instr* operand : instr->operands())
        if ((instr->is(Opcode::dot) || instr->is(Opcode::convolution)) &&
            operand->shape().is_array())
          products += n * std::sqrt(static_cast<double>(operand->shape().elems()));
    }
  }
  return elems < kMaxElems && products < kMaxProducts;
}

// Operators that the pipelines promise to remove.
void expect_primitives(const hlo::Module& module, const std::string& name) {
  for (const auto& computation : module.computations())
    for (const hlo::Instr* instr : computation->instrs())
      EXPECT_FALSE(is_lowered(instr->opcode())) << name << ": " << hlo::to_string(*instr);
}

struct Counts {
  int modules = 0, evaluated = 0;
};

void check_module(hlo::Module& module, const std::string& name, Counts& counts) {
  if (!hlo::verify(module)) return;
  ++counts.modules;
  auto before = module.clone();
  const std::string pipeline = pipeline_for(Level::O2);
  const pass::RunReport first = run(module, pipeline);
  EXPECT_TRUE(first.converged) << name;
  expect_primitives(module, name);
  const pass::RunReport second = run(module, pipeline);
  EXPECT_FALSE(second.changed) << name << ": " << second.changes[0];
  if (!is_small(*before) || !interp::unsupported(*before).empty()) return;
  ++counts.evaluated;
  expect_same_values(*before, module, 1, /*inexact=*/true, name);
}

Counts check_directory(const std::string& directory) {
  Counts counts;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
    if (entry.path().extension() == ".hlo") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    std::ifstream stream(file);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    auto modules = hlo::parse_modules(text);
    if (!modules) continue;  // some files are meant to be refused
    for (size_t i = 0; i < modules->size(); ++i)
      check_module(*(*modules)[i], fmt::format("{} module {}", file.string(), i), counts);
  }
  return counts;
}

TEST(Corpus, OperatorsTestData) {
  const Counts counts = check_directory(HEDDLE_SOURCE_DIR "/src/hlo/testdata");
  EXPECT_GT(counts.modules, 0);
}

TEST(Corpus, XlaFiles) {
  const char* corpora = std::getenv("HEDDLE_CORPORA");
  // Third-party data is not part of the project; script/test sets the variable if the data is
  // available.
  if (!corpora) GTEST_SKIP() << "HEDDLE_CORPORA is not set: no third-party HLO files to rewrite";
  const Counts counts = check_directory(std::string(corpora) + "/xla-hlo");
  std::cout << counts.modules << " modules, " << counts.evaluated << " evaluated\n";
  EXPECT_GT(counts.evaluated, 0);
}

}  // namespace
}  // namespace heddle::opt
