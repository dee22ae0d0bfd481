// XLA's own HLO files (HEDDLE_CORPORA/xla-hlo, if that variable is set): every module that verifies
// and whose work is bounded evaluates on random arguments, or is refused by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>

#include "hlo/text.h"
#include "hlo/verify.h"
#include "interp/interp.h"
#include "interp/random_inputs.h"

namespace heddle::interp {
namespace {

using hlo::Opcode;
using tensor::Shape;

constexpr double kMaxWork = 3e8;  // scalar operations of one module, loops counted once

double elems_of(const Shape& shape) {
  if (!shape.is_tuple()) return shape.is_array() ? static_cast<double>(shape.elems()) : 0;
  double sum = 0;
  for (const Shape& element : shape.elements()) sum += elems_of(element);
  return sum;
}

double work_of(const hlo::Instr& instr) {
  double elems = elems_of(instr.shape());
  for (const hlo::Instr* operand : instr.operands()) elems += elems_of(operand->shape());
  if (instr.is(Opcode::dot)) {
    for (int64_t d : instr.attrs_as<hlo::DotAttrs>().lhs_contracting_dims)
      elems += elems_of(instr.shape()) * static_cast<double>(instr.operand(0)->shape().dim(d));
  }
  if (instr.is(Opcode::convolution)) {
    const hlo::Instr* kernel = instr.operand(1);
    const auto& attrs = instr.attrs_as<hlo::ConvolutionAttrs>();
    elems += elems_of(instr.shape()) * elems_of(kernel->shape()) /
             static_cast<double>(kernel->shape().dim(attrs.dims.kernel_output_feature));
  }
  if (instr.is(Opcode::reduce_window) || instr.is(Opcode::select_and_scatter)) {
    for (const auto& dim : instr.attrs_as<hlo::WindowAttrs>().window.dims)
      elems *= static_cast<double>(dim.size);
  }
  return elems;
}

double work_of(const hlo::Module& module) {
  double sum = 0;
  for (const auto& computation : module.computations()) {
    for (const hlo::Instr* instr : computation->instrs()) sum += work_of(*instr);
  }
  return sum;
}

// The outcome for a module: "evaluated", or the reason why not.
std::string outcome(const hlo::Module& module) {
  if (!hlo::verify(module)) return "invalid";
  if (work_of(module) > kMaxWork) return "too much work";
  auto refused = unsupported(module);
  auto arguments = random_arguments(module, 1);
  Options options{.max_steps = 2'000'000};
  auto result = evaluate(module, arguments, options);
  if (!refused.empty()) {
    EXPECT_FALSE(result) << "unsupported() names " << refused[0];
    return "refused: " + refused[0].substr(0, refused[0].find(" ("));
  }
  if (!result) return "error: " + result.error().message;
  EXPECT_EQ(*result, *evaluate(module, arguments, options)) << "evaluated twice";
  options.widen = true;
  auto wide = evaluate(module, arguments, options);
  EXPECT_TRUE(wide) << wide.error().message;
  EXPECT_TRUE(!wide || wide->shape().compatible(result->shape()));
  return "evaluated";
}

TEST(Corpus, EveryModuleEvaluatesOrIsRefusedByName) {
  const char* corpora = std::getenv("HEDDLE_CORPORA");
  // Third-party data is not part of the project; script/test sets the variable if the data is
  // available.
  if (corpora == nullptr)
    GTEST_SKIP() << "HEDDLE_CORPORA is not set: no third-party HLO files to evaluate";
  std::map<std::string, int> outcomes;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::string(corpora) + "/xla-hlo")) {
    if (entry.path().extension() == ".hlo") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  ASSERT_FALSE(paths.empty());
  for (const auto& path : paths) {
    SCOPED_TRACE(path.string());
    std::ifstream in(path);
    auto modules = hlo::parse_modules(std::string(std::istreambuf_iterator<char>(in), {}));
    if (!modules) continue;
    for (const auto& module : *modules) {
      const std::string what = outcome(*module);
      ++outcomes[what];
      if (std::getenv("HEDDLE_CORPUS_VERBOSE") != nullptr)
        std::cout << path.filename().string() << " " << module->name() << ": " << what << std::endl;
    }
  }
  for (const auto& [what, count] : outcomes) std::cout << count << " " << what << "\n";
  EXPECT_GE(outcomes["evaluated"], 1);
}

}  // namespace
}  // namespace heddle::interp
