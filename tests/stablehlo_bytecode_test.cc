// StableHLO's portable bytecode: files of JAX's writer at several versions
// (testdata/make_stablehlo.py), damaged files, and StableHLO's own files of every version
// (HEDDLE_CORPORA/stablehlo-vhlo, where that is set) beside their texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "hlo/text.h"
#include "hlo/verify.h"
#include "import/stablehlo.h"
#include "mlir_tree.h"
#include "root_folder.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<fs::path> files_in(const fs::path& folder, const std::string& ending) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().string().ends_with(ending)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

fs::path models() { return fs::path(root_folder()) / "tests/testdata/stablehlo"; }

fs::path corpus(const std::string& name) {
  const char* corpora = std::getenv("HEDDLE_CORPORA");
  const fs::path folder = corpora == nullptr ? fs::path() : fs::path(corpora) / name;
  return corpora != nullptr && fs::is_directory(folder) ? folder : fs::path();
}

Result<import::MlirModule> parse(const std::string& bytes) {
  const auto parts = import::split_stablehlo(bytes);
  if (parts.size() != 1) return user_error("{} parts", parts.size());
  return import::parse_stablehlo(parts[0]);
}

std::string* name_of(import::MlirOp& op) {
  if (op.name != "func.func") return nullptr;
  for (auto& [key, attr] : op.attrs)
    if (key == "sym_name") return &attr.text;
  return nullptr;
}

// What function `i` computes as HLO text, or why not, without the place.
std::string program_of(import::MlirModule& module, size_t i) {
  std::string* name = name_of(module.body.ops[i]);
  if (name == nullptr) return "";
  const std::string before = std::exchange(*name, "main");
  const auto imported = import::import_stablehlo(module, {});
  *name = before;
  if (imported) return hlo::to_string(*imported->module);
  const std::string& message = imported.error().message;
  return message.substr(std::min(message.find(": "), message.size()));
}

// How many functions there are.
int64_t compare(const std::string& text, const std::string& bytecode, const std::string& shown) {
  auto read = parse(text), decoded = parse(bytecode);
  EXPECT_TRUE(read) << shown << ": " << read.error().message;
  EXPECT_TRUE(decoded) << shown << ": " << decoded.error().message;
  if (!read || !decoded) return 0;
  EXPECT_EQ(read->body.ops.size(), decoded->body.ops.size()) << shown;
  const size_t count = std::min(read->body.ops.size(), decoded->body.ops.size());
  for (size_t i = 0; i < count; ++i) {
    MlirTree wanted(*read), got(*decoded);
    EXPECT_EQ(got.function(decoded->body.ops[i]), wanted.function(read->body.ops[i])) << shown;
    EXPECT_EQ(program_of(*decoded, i), program_of(*read, i)) << shown;
  }
  return static_cast<int64_t>(count);
}

// Every operation, attribute and type at each of its versions.
TEST(stablehlo_bytecode, EveryVersionIsWhatItsTextIs) {
  const fs::path folder = corpus("stablehlo-vhlo");
  if (folder.empty()) GTEST_SKIP() << "HEDDLE_CORPORA has no stablehlo-vhlo";
  int64_t functions = 0, files = 0;
  for (const fs::path& path : files_in(folder, ".mlir.bc")) {
    fs::path twin = path;
    twin.replace_extension();
    if (path.filename() == "invalid_vhlo_future.mlir.bc") continue;
    ++files;
    functions += compare(read_file(twin), read_file(path), path.filename().string());
  }
  EXPECT_EQ(files, 33);
  EXPECT_GT(functions, 6500);
}

// What JAX's writer makes of the texts beside: those with operations of sdy and chlo, too.
TEST(stablehlo_bytecode, FilesOfJaxAreWhatTheirTextsAre) {
  const std::vector<fs::path> paths = files_in(models() / "bytecode", ".mlir.bc");
  EXPECT_EQ(paths.size(), 30u);
  for (const fs::path& path : paths) {
    const std::string name = path.filename().string();
    const std::string text = read_file(models() / (name.substr(0, name.find('.')) + ".mlir"));
    const auto wanted = import::import_stablehlo_bytes(text, {});
    ASSERT_TRUE(wanted) << wanted.error().message;
    const auto got = import::import_model(path.string(), {});
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(hlo::to_string(*got->module), hlo::to_string(*wanted->module)) << name;
    EXPECT_EQ(got->input_names, wanted->input_names) << name;
    EXPECT_EQ(got->output_names, wanted->output_names) << name;
    EXPECT_EQ(got->notes, wanted->notes) << name;
  }
}

std::string message_of(const std::string& bytes) {
  const auto module = parse(bytes);
  return module ? "" : module.error().message;
}

TEST(stablehlo_bytecode, ErrorsSayWhere) {
  const std::string file = read_file(models() / "bytecode/control.1.0.0.mlir.bc");
  EXPECT_EQ(message_of(file), "");
  std::string newer = file;
  newer[4] = 7 << 1 | 1;
  EXPECT_EQ(message_of(newer),
            "bytecode of version 7 (written by 'StableHLO_v1.0.0'): versions 0 to 6 are read");
  EXPECT_THAT(message_of(file.substr(0, 200)),
              HasSubstr("the file, byte 52: the section of offsets has 154 bytes, 148 are left"));
  EXPECT_THAT(message_of(file.substr(0, 4)), HasSubstr("the file, byte 4: cut off"));
  // Another name of an operation: of a version that is none, in a file of a version to come.
  std::string other = file;
  other.replace(other.find("add_v1"), 6, "add_v9");
  EXPECT_THAT(message_of(other), HasSubstr(": operation 'vhlo.add_v9' is not known"));
  other.replace(other.find("StableHLO_v1"), 12, "StableHLO_v2");
  EXPECT_THAT(message_of(other), HasSubstr("the file is written by StableHLO '2.0.0', and versions "
                                           "0.9.0 to 1.20.0 are read"));
}

// Small numbers, a byte each.
std::string numbers(std::initializer_list<int> values) {
  std::string bytes;
  for (const int value : values) bytes += static_cast<char>(value << 1 | 1);
  return bytes;
}

std::string section(int id, const std::string& bytes) {
  return static_cast<char>(id) + numbers({static_cast<int>(bytes.size())}) + bytes;
}

// Attributes of a file are shared, and those of a tree are not: twice two, 25 times, is refused
// before it is written out.
TEST(stablehlo_bytecode, SharingIsBounded) {
  constexpr int kPairs = 25;                                // sections have at most 127 bytes here
  std::vector<std::string> attributes = {numbers({15}),     // an unknown location
                                         numbers({2, 1}),   // "m"
                                         numbers({0, 0})};  // []
  for (int i = 0; i < kPairs; ++i) attributes.push_back(numbers({0, 2, 2 + i, 2 + i}));
  attributes.push_back(numbers({1, 1, 1, 2 + kPairs}));  // {m = ...}
  const int last = static_cast<int>(attributes.size()) - 1;
  std::string entries, offsets = numbers({last + 1, 0, 0, last + 1});
  for (const std::string& attribute : attributes) {
    entries += attribute;
    offsets += numbers({static_cast<int>(attribute.size()) << 1 | 1});
  }
  const std::string file = "ML\xefR" + numbers({1}) + std::string("test\0", 5) +
                           section(0, numbers({2, 2, 8}) + std::string("builtin\0m\0", 10)) +
                           section(1, numbers({1, 0, 0, 1, 1})) + section(2, entries) +
                           section(3, offsets) +
                           section(4, numbers({2, 0}) + '\1' + numbers({0, last}));
  EXPECT_THAT(message_of(file), HasSubstr("attributes and types are too large, written out"));
}

// What damage does to bytes.
std::string damaged(std::string bytes, std::mt19937_64& random) {
  for (uint64_t n = 1 + random() % 4; n > 0 && !bytes.empty(); --n) {
    const size_t at = random() % bytes.size();
    const size_t length = std::min<size_t>(bytes.size() - at, 1 + random() % 16);
    constexpr unsigned char kTelling[] = {0, 1, 2, 3, 5, 0x7f, 0x80, 0xfe, 0xff};
    switch (random() % 6) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
        break;
      case 2:
        bytes[at] = static_cast<char>(kTelling[random() % std::size(kTelling)]);
        break;
      case 3:
        bytes.erase(at, length);
        break;
      case 4:
        bytes.insert(random() % bytes.size(), bytes.substr(at, length));
        break;
      default:
        if (random() % 4 == 0) bytes.resize(at);
        break;
    }
  }
  return bytes;
}

// A damaged file is a model that verifies, or the user's error in one line; soon, and in little
// memory: what is allocated is a few times the file.
TEST(stablehlo_bytecode, DamagedFilesAreErrors) {
  import::Options options;
  options.max_value_elems = 1 << 20;
  int64_t refused = 0, accepted = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (const fs::path& path : files_in(models() / "bytecode", ".mlir.bc")) {
    const std::string file = read_file(path);
    std::mt19937_64 random(17);
    for (int i = 0; i < 100; ++i) {
      const std::string made = damaged(file, random);
      if (import::sniff(made) != import::Format::stablehlo_bytecode) continue;
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
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  EXPECT_GT(refused, 1500);
  EXPECT_GT(accepted, 50);
  EXPECT_LT(taken.count(), 120);
}

}  // namespace
}  // namespace heddle
