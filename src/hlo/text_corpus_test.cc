// XLA's own HLO files (HEDDLE_CORPORA/xla-hlo, if that variable is set): every module parses,
// verifies and survives printing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>

#include "hlo/text_test_util.h"
#include "hlo/verify.h"

namespace heddle::hlo {
namespace {

// Files without a module.
const std::map<std::string, std::string> kNoModule = {
    {"list_passes.hlo", "comments only"},
    {"module_attributes.hlo", "the text form of a protocol buffer"},
};
// Modules that no verifier can accept; they parse and print.
const std::map<std::string, std::string> kInvalid = {
    {"invalid_concat.hlo", "a concatenation of f32[2,1] and f32[3,1] along dimension 1"},
    {"operand_upcaster.hlo", "a dot of two vectors without contracting dimensions, as s32[8]"},
    {"print_indexing_test.hlo", "a fusion whose parameter 1 is s32[] and whose operand is not"},
    {"import.hlo", "a window against its kernel, reducers of wrong types"},
};

struct Counts {
  int files = 0, without_module = 0, modules = 0, instrs = 0, invalid = 0;
};

void check_file(const std::filesystem::path& path, Counts& counts) {
  const std::string name = path.filename();
  auto modules = parse_modules(read_file(path));
  ++counts.files;
  if (kNoModule.contains(name)) {
    EXPECT_TRUE(!modules || modules->empty()) << path;
    ++counts.without_module;
    return;
  }
  ASSERT_TRUE(modules) << path << ":" << modules.error().message;
  EXPECT_FALSE(modules->empty()) << path;
  bool is_valid = true;
  for (const auto& module : *modules) {
    ++counts.modules;
    for (const auto& computation : module->computations())
      counts.instrs += static_cast<int>(computation->instrs().size());
    const Status valid = verify(*module);
    is_valid = is_valid && valid;
    if (!valid && !kInvalid.contains(name)) ADD_FAILURE() << path << ": " << valid.error().message;
    expect_round_trip(*module, path);
  }
  counts.invalid += is_valid ? 0 : 1;
  EXPECT_EQ(is_valid, !kInvalid.contains(name)) << path;
}

TEST(TextCorpus, EveryModuleParsesVerifiesAndRoundTrips) {
  const char* corpora = std::getenv("HEDDLE_CORPORA");
  // Third-party data is not part of the project; script/test sets the variable if the data is
  // available.
  if (!corpora) GTEST_SKIP() << "HEDDLE_CORPORA is not set: no third-party HLO files to read";
  const std::filesystem::path root = std::filesystem::path(corpora) / "xla-hlo";
  if (!std::filesystem::exists(root)) GTEST_SKIP() << root << " does not exist";
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
    if (entry.path().extension() == ".hlo") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  Counts counts;
  for (const auto& path : paths) check_file(path, counts);
  std::cout << counts.files << " files, " << counts.without_module << " without a module; "
            << counts.modules << " modules, " << counts.instrs << " instructions; "
            << counts.invalid << " files hold invalid modules\n";
  EXPECT_EQ(counts.files, 217);
}

}  // namespace
}  // namespace heddle::hlo
