// StableHLO files, from text to numbers: models of JAX (testdata/make_stablehlo.py), damaged texts,
// and StableHLO's own tests (HEDDLE_CORPORA/stablehlo-*, where that is set), with the interpreter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "hlo/verify.h"
#include "import/stablehlo.h"
#include "interp/interp.h"
#include "root_folder.h"
#include "tensor/compare.h"
#include "tensor/npz.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;
using tensor::Literal;

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<fs::path> texts_in(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".mlir") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

fs::path models() { return fs::path(root_folder()) / "tests/testdata/stablehlo"; }

std::map<std::string, Literal> read_values(const fs::path& path) {
  const auto values = tensor::read_npz(path.string());
  EXPECT_TRUE(values) << (values ? "" : values.error().message);
  return values ? std::map<std::string, Literal>(values->begin(), values->end())
                : std::map<std::string, Literal>();
}

class StablehloModel : public ::testing::TestWithParam<std::string> {};

TEST_P(StablehloModel, GivesWhatJaxGives) {
  const std::string path = (models() / GetParam()).string();
  const auto inputs = read_values(path + ".inputs.npz");
  const auto outputs = read_values(path + ".outputs.npz");
  import::Options options;
  for (const auto& [name, value] : inputs) options.shapes[name] = value.shape().extents();
  const auto imported = import::import_model(path + ".mlir", options);
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_TRUE(imported->assertions.empty());
  std::vector<Literal> arguments;
  for (const std::string& name : imported->input_names) arguments.push_back(inputs.at(name));
  const auto results = interp::evaluate(*imported->module, arguments);
  ASSERT_TRUE(results) << results.error().message;
  ASSERT_EQ(imported->output_names.size(), outputs.size());
  // JAX computes special functions in f32, with errors of some units in the last place.
  tensor::Tolerance tolerance;
  tolerance.relative = 1e-5;
  tolerance.absolute = 2e-6;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = imported->output_names[i];
    const auto compared = compare(results->elements()[i], outputs.at(name), tolerance);
    EXPECT_TRUE(compared.equal) << name << ": " << compared.describe();
  }
}

INSTANTIATE_TEST_SUITE_P(All, StablehloModel,
                         ::testing::Values("control", "indexing", "network_gradient", "polymorphic",
                                           "sharded", "special"),
                         [](const auto& info) { return info.param; });

// testdata/stablehlo/checks: programs that check themselves.
TEST(stablehlo_models, OperationsGiveWhatTheySay) {
  int64_t assertions = 0;
  for (const fs::path& path : texts_in(models() / "checks")) {
    const std::string text = read_text(path);
    for (const import::StablehloPart& part : import::split_stablehlo(text)) {
      const auto source = import::parse_stablehlo(part);
      ASSERT_TRUE(source) << source.error().message;
      const auto imported = import::import_stablehlo(*source, {});
      ASSERT_TRUE(imported) << imported.error().message;
      const auto results = interp::evaluate(*imported->module, {});
      ASSERT_TRUE(results) << results.error().message;
      for (const import::Assertion& assertion : imported->assertions) {
        ++assertions;
        EXPECT_EQ(import::failure_of(assertion, results->elements()[assertion.got],
                                     results->elements()[assertion.want]),
                  "");
      }
    }
  }
  EXPECT_GE(assertions, 25);
}

// A dimension variable that JAX wants at least 1.
TEST(stablehlo_models, AnAssertionOnShapesIsChecked) {
  import::Options options;
  options.shapes["arg0"] = {0, 8};
  const auto imported = import::import_model((models() / "polymorphic.mlir").string(), options);
  ASSERT_FALSE(imported);
  EXPECT_THAT(imported.error().message, ::testing::HasSubstr("Expected value >= 1"));
}

// One change that a careless editor, or a bad disk, might make.
std::string damaged(const std::string& text, std::mt19937& random) {
  std::string result = text;
  const auto place = [&] { return random() % (result.size() + 1); };
  switch (random() % 6) {
    case 0:  // cut off
      result.resize(place());
      break;
    case 1: {  // a piece is missing
      const size_t at = place();
      result.erase(at, random() % 40);
      break;
    }
    case 2: {  // a piece stands twice, elsewhere
      const size_t from = place();
      const std::string piece = result.substr(from, random() % 60);
      result.insert(place(), piece);
      break;
    }
    case 3: {  // a character is another
      const std::string_view marks = "<>(){}[]%@#!\"x,:=0-9?\xff";
      if (!result.empty()) result[place() % result.size()] = marks[random() % marks.size()];
      break;
    }
    case 4: {  // a number is another
      const size_t at = result.find_first_of("0123456789", place());
      const char* const numbers[] = {"-1", "0", "7", "99999999999", "4294967296"};
      if (at != std::string::npos) result.replace(at, 1, numbers[random() % 5]);
      break;
    }
    default: {  // two names change places
      const size_t a = result.find('%', place()), b = result.find('%', place());
      if (a != std::string::npos && b != std::string::npos && a + 2 < result.size() &&
          b + 2 < result.size())
        std::swap(result[a + 1], result[b + 1]);
      break;
    }
  }
  return result;
}

// A damaged text is a model that verifies, or the user's error in one line.
TEST(stablehlo_models, DamagedTextsAreErrors) {
  constexpr int kEach = 400;
  import::Options options;
  options.max_value_elems = 1 << 20;
  int64_t refused = 0, accepted = 0;
  for (const fs::path& path : texts_in(models())) {
    const std::string text = read_text(path);
    std::mt19937 random(17);
    for (int i = 0; i < kEach; ++i) {
      std::string made = damaged(text, random);
      if (i % 3 == 0) made = damaged(made, random);
      const auto imported = import::import_stablehlo_bytes(made, options);
      if (imported) {
        ++accepted;
        EXPECT_TRUE(hlo::verify(*imported->module));
        continue;
      }
      ++refused;
      EXPECT_EQ(whose(imported.error().kind), ErrorKind::user) << imported.error().message;
      EXPECT_EQ(imported.error().message.find('\n'), std::string::npos) << imported.error().message;
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(accepted, 100);
}

struct Counts {
  int64_t hold = 0, run = 0, fail = 0, refused = 0, disabled = 0;
};

// What became of one part of a file.
void count_part(const import::MlirModule& source, bool disabled, Counts& counts) {
  const auto imported = import::import_stablehlo(source, {});
  if (!imported) {
    ++counts.refused;
    return;
  }
  std::vector<Literal> arguments;
  for (const hlo::Instr* parameter : imported->module->entry()->parameters())
    arguments.push_back(Literal(parameter->shape()));
  const auto results = interp::evaluate(*imported->module, arguments);
  if (!results) {
    ++counts.refused;
    return;
  }
  bool hold = true;
  for (const import::Assertion& assertion : imported->assertions)
    hold = hold && import::failure_of(assertion, results->elements()[assertion.got],
                                      results->elements()[assertion.want])
                       .empty();
  if (!hold) return void(++(disabled ? counts.disabled : counts.fail));
  ++(imported->assertions.empty() ? counts.run : counts.hold);
}

Counts count_folder(const fs::path& folder) {
  Counts counts;
  for (const fs::path& path : texts_in(folder)) {
    const std::string text = read_text(path);
    const bool disabled = text.find("RUN-DISABLED") != std::string::npos;
    for (const import::StablehloPart& part : import::split_stablehlo(text)) {
      const auto source = import::parse_stablehlo(part);
      EXPECT_TRUE(source) << path << ": " << source.error().message;
      if (source) count_part(*source, disabled, counts);
    }
  }
  return counts;
}

fs::path corpus(const std::string& name) {
  const char* corpora = std::getenv("HEDDLE_CORPORA");
  const fs::path folder = corpora == nullptr ? fs::path() : fs::path(corpora) / name;
  return corpora != nullptr && fs::is_directory(folder) ? folder : fs::path();
}

// The corpora are third-party data beside the project; without them there is nothing to count.
// 523 parts, one of them empty. The rest: a probe inside a loop.
TEST(stablehlo_models, TestsOfTheReferenceInterpreter) {
  const fs::path folder = corpus("stablehlo-interpret");
  if (folder.empty()) GTEST_SKIP() << "HEDDLE_CORPORA has no stablehlo-interpret";
  const Counts counts = count_folder(folder);
  EXPECT_GE(counts.hold, 513);
  EXPECT_GE(counts.hold + counts.run, 521);
  EXPECT_EQ(counts.fail, 0);
}

// The failures are 3 files whose sums round elsewhere than XLA's do.
TEST(stablehlo_models, TestsOfJaxOperators) {
  const fs::path folder = corpus("stablehlo-testdata");
  if (folder.empty()) GTEST_SKIP() << "HEDDLE_CORPORA has no stablehlo-testdata";
  const Counts counts = count_folder(folder);
  EXPECT_GE(counts.hold, 1285);
  EXPECT_GE(counts.run, 181);
  EXPECT_LE(counts.fail, 3);
  EXPECT_EQ(counts.refused, 0);
}

// Every operation at each of its versions, in the generic form. Each function is made @main in
// turn: what is refused needs other processes, or a type that no tensor has.
TEST(stablehlo_models, EveryOperationIsRead) {
  const fs::path folder = corpus("stablehlo-vhlo");
  if (folder.empty()) GTEST_SKIP() << "HEDDLE_CORPORA has no stablehlo-vhlo";
  int64_t functions = 0, translated = 0;
  std::map<std::string, int64_t> reasons;
  for (const fs::path& path : texts_in(folder)) {
    if (!path.filename().string().starts_with("stablehlo_legalize_to_vhlo.")) continue;
    const std::string text = read_text(path);
    for (const import::StablehloPart& part : import::split_stablehlo(text)) {
      auto source = import::parse_stablehlo(part);
      ASSERT_TRUE(source) << path << ": " << source.error().message;
      for (size_t i = 0; i < source->body.ops.size(); ++i) {
        import::MlirOp& op = source->body.ops[i];
        if (op.name != "func.func") continue;
        std::string* name = nullptr;
        for (auto& [key, attr] : op.attrs)
          if (key == "sym_name") name = &attr.text;
        ASSERT_NE(name, nullptr);
        const std::string before = *name;
        *name = "main";
        ++functions;
        const auto imported = import::import_stablehlo(*source, {});
        translated += imported ? 1 : 0;
        if (!imported) {
          const std::string& message = imported.error().message;
          ++reasons[message.substr(std::min(message.find(": "), message.size()))];
        }
        *name = before;
      }
    }
  }
  for (const auto& [reason, count] : reasons) RecordProperty(reason, static_cast<int>(count));
  std::string list;
  for (const auto& [reason, count] : reasons) list += std::to_string(count) + " " + reason + "\n";
  if (std::getenv("HEDDLE_CORPUS_VERBOSE") != nullptr) std::printf("%s", list.c_str());
  EXPECT_GT(functions, 7000);
  EXPECT_GE(translated, functions * 85 / 100) << list;
}

}  // namespace
}  // namespace heddle
