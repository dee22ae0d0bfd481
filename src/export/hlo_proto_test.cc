// HLO text -> proto -> HLO text.
#include "export/hlo_proto.h"
#include "export/proto_writer.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "hlo/text_test_util.h"
#include "import/hlo_proto.h"

namespace heddle::exports {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::filesystem::path> texts_under(const std::filesystem::path& root) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
    if (entry.path().extension() == ".hlo") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::unique_ptr<hlo::Module> through_proto(const hlo::Module& module,
                                           std::vector<std::string>* notes) {
  const Result<std::string> bytes = to_hlo_proto(module, notes);
  EXPECT_TRUE(bytes) << bytes.error().message;
  if (!bytes) return nullptr;
  const auto owner = std::make_shared<const std::string>(*bytes);
  Result<import::HloFile> file = import::read_hlo_proto(*owner, owner);
  EXPECT_TRUE(file) << file.error().message;
  if (!file) return nullptr;
  notes->insert(notes->end(), file->notes.begin(), file->notes.end());
  return std::move(file->module);
}

struct Counts {
  int modules = 0, refused = 0;
};

tensor::Shape laid_out(const tensor::Shape& shape) {
  tensor::Shape out = shape;
  for (tensor::Shape& element : out.mutable_elements()) element = laid_out(element);
  if (out.is_array() && !out.layout() && out.rank() > 0)
    out.set_layout(tensor::Layout::row_major(out.rank()));
  return out;
}

// As XLA writes it: every array has a layout, the program too; default comparison types are
// omitted. Names are numbers, as a proto's are unique in the module.
std::string normal_text(const hlo::Module& module) {
  const auto copy = module.clone();
  for (const auto& computation : copy->computations())
    for (hlo::Instr* instr : computation->instrs()) {
      instr->set_shape(laid_out(instr->shape()));
      if (!instr->is(hlo::Opcode::compare)) continue;
      auto& type = instr->mutable_attrs_as<hlo::CompareAttrs>().type;
      const tensor::Type of = instr->operand(0)->shape().type();
      if ((type == hlo::CompareType::is_signed && tensor::is_signed_integer(of)) ||
          (type == hlo::CompareType::floating && tensor::is_float(of)))
        type = hlo::CompareType::by_type;
    }
  if (!copy->entry_layout) {
    auto& [parameters, result] = copy->entry_layout.emplace();
    for (const hlo::Instr* each : copy->entry()->parameters()) parameters.push_back(each->shape());
    result = copy->entry()->root()->shape();
  }
  for (tensor::Shape& shape : copy->entry_layout->first) shape = laid_out(shape);
  copy->entry_layout->second = laid_out(copy->entry_layout->second);
  hlo::PrintOptions options;
  options.annotations = false;
  options.ids_instead_of_names = true;
  return hlo::to_string(*copy, options);
}

// A module survives the proto unchanged, except for words that a proto cannot express (noted); the
// second round trip is exact, annotations included.
void check(const std::filesystem::path& path, Counts& counts) {
  auto modules = hlo::parse_modules(hlo::read_file(path));
  if (!modules) return;  // text_corpus_test.cc says which
  for (const auto& module : *modules) {
    SCOPED_TRACE(path.string() + " " + module->name());
    std::vector<std::string> notes;
    if (const auto bytes = to_hlo_proto(*module, &notes); !bytes) {
      EXPECT_THAT(bytes.error().message, HasSubstr("replica_groups mesh"));
      ++counts.refused;
      continue;
    }
    const auto once = through_proto(*module, &notes);
    ASSERT_TRUE(once);
    const auto twice = through_proto(*once, &notes);
    ASSERT_TRUE(twice);
    EXPECT_EQ(hlo::to_string(*once), hlo::to_string(*twice));
    if (notes.empty()) {
      EXPECT_EQ(normal_text(*module), normal_text(*once));
    }
    ++counts.modules;
  }
}

TEST(HloProto, TextsOfTheTestsComeBack) {
  Counts counts;
  for (const auto& path : texts_under(std::filesystem::path(HEDDLE_SOURCE_DIR) / "src"))
    check(path, counts);
  std::cout << counts.modules << " modules, " << counts.refused << " refused\n";
  EXPECT_GT(counts.modules, 30);
}

TEST(HloProto, IsToldFromOnnx) {
  const auto module = hlo::parse_module("HloModule m\nENTRY e { ROOT p = f32[2] parameter(0) }");
  ASSERT_TRUE(module);
  std::vector<std::string> notes;
  for (const char* name : {"m", "a_name_that_is_longer_than_thirty_two_characters", "HloModule"}) {
    (*module)->set_name(name);
    const std::string bytes = *to_hlo_proto(**module, &notes);
    EXPECT_EQ(import::sniff(bytes), import::Format::hlo_proto) << name;
    std::string wrapped, snapshot;
    ProtoWriter(&wrapped).put_bytes(1, bytes);
    ProtoWriter(&snapshot).put_bytes(1, wrapped);
    for (const std::string& file : {wrapped, snapshot}) {
      EXPECT_EQ(import::sniff(file), import::Format::hlo_proto) << name;
      const auto owner = std::make_shared<const std::string>(file);
      EXPECT_TRUE(import::read_hlo_proto(*owner, owner)) << name;
    }
  }
  int models = 0;
  const std::filesystem::path root = HEDDLE_SOURCE_DIR "/tests/testdata";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".onnx") continue;
    ++models;
    EXPECT_EQ(import::sniff(hlo::read_file(entry.path())), import::Format::onnx) << entry.path();
  }
  EXPECT_GT(models, 100);
}

TEST(HloProto, TheCorpusComesBack) {
  const char* corpora = std::getenv("HEDDLE_CORPORA");
  if (!corpora) GTEST_SKIP() << "HEDDLE_CORPORA is not set: no third-party HLO files to read";
  const std::filesystem::path root = std::filesystem::path(corpora) / "xla-hlo";
  if (!std::filesystem::exists(root)) GTEST_SKIP() << root << " does not exist";
  Counts counts;
  for (const auto& path : texts_under(root)) check(path, counts);
  std::cout << counts.modules << " modules, " << counts.refused << " refused\n";
  EXPECT_GT(counts.modules, 200);
}

}  // namespace
}  // namespace heddle::exports
