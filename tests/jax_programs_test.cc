// Small programs of JAX (testdata/make_jax.py): as HLO text, StableHLO text and portable bytecode,
// compiled for two cores, they give the same bits, and what XLA computes on a CPU within the
// tolerance that follows from types and reductions.
#include <gtest/gtest.h>

#include <array>
#include <sstream>

#include "api/tolerance.h"
#include "compiled_run.h"
#include "import/stablehlo.h"
#include "root_folder.h"
#include "target/target.h"
#include "tensor/compare.h"
#include "tensor/npz.h"

namespace heddle {
namespace {

using tensor::Literal;

constexpr std::array<const char*, 3> kForms = {"hlo", "stablehlo", "bytecode"};

struct JaxProgram {
  std::string name;
  std::array<std::string, kForms.size()> forms;
  std::vector<Literal> inputs, outputs;
};

Literal value_of(std::string_view bytes, const std::string& type, std::string dims) {
  std::replace(dims.begin(), dims.end(), 'x', ' ');
  std::istringstream in(dims == "-" ? "" : dims);
  const std::vector<int64_t> extents{std::istream_iterator<int64_t>(in), {}};
  Literal value(tensor::Shape::array(*tensor::type_from_name(type), extents));
  HEDDLE_CHECK(bytes.size() == static_cast<size_t>(value.bytes()));
  if (!bytes.empty()) std::memcpy(value.mutable_data(), bytes.data(), bytes.size());
  return value;
}

// What make_jax.py says of the archive.
std::vector<JaxProgram> read_programs() {
  const auto archive = tensor::read_npz(root_folder() + "/tests/testdata/jax/programs.npz");
  HEDDLE_CHECK(archive.has_value());
  const auto bytes_of = [&](std::string_view name) {
    for (const auto& [key, value] : *archive)
      if (key == name)
        return std::string_view(static_cast<const char*>(value.data()),
                                static_cast<size_t>(value.bytes()));
    return std::string_view();
  };
  std::vector<JaxProgram> programs;
  std::istringstream index{std::string(bytes_of("index"))};
  for (std::string word; index >> word;) {
    if (word == "program") {
      index >> programs.emplace_back().name;
      continue;
    }
    JaxProgram& program = programs.back();
    size_t begin = 0, end = 0;
    if (word == "arg" || word == "out") {
      std::string type, dims;
      index >> type >> dims >> begin >> end;
      (word == "arg" ? program.inputs : program.outputs)
          .push_back(value_of(bytes_of("values").substr(begin, end - begin), type, dims));
      continue;
    }
    index >> begin >> end;
    for (size_t i = 0; i < kForms.size(); ++i)
      if (word == kForms[i])
        program.forms[i] = std::string(bytes_of(word).substr(begin, end - begin));
  }
  return programs;
}

const std::vector<JaxProgram>& programs() {
  static const auto* const kPrograms = new std::vector<JaxProgram>(read_programs());
  return *kPrograms;
}

class JaxPrograms : public ::testing::TestWithParam<size_t> {};

// The outputs of one form at one level; `tolerances`, if given, become those of the module.
std::vector<Literal> run(const JaxProgram& program, size_t form, compiler::Level level,
                         std::vector<tensor::Tolerance>* tolerances = nullptr) {
  const std::string& bytes = program.forms[form];
  auto imported =
      form == 0 ? import::import_hlo_text(bytes) : import::import_stablehlo_bytes(bytes, {});
  EXPECT_TRUE(imported) << kForms[form] << ": " << imported.error().message;
  if (!imported) return {};
  if (tolerances != nullptr) *tolerances = api::derive_tolerances(*imported->module);
  target::Target target = target::host_target();
  target.cores = 2;
  compiler::Options options;
  options.level = level;
  std::string failure;
  std::vector<Literal> outputs =
      compile_and_run(std::move(imported->module), program.inputs, target, options, 2, &failure);
  EXPECT_EQ(failure, "") << kForms[form];
  return outputs;
}

void expect_same_bits(const std::vector<Literal>& got, const std::vector<Literal>& want,
                      const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].shape(), want[i].shape()) << what << ", output " << i;
    const auto size = static_cast<size_t>(want[i].bytes());
    EXPECT_TRUE(size == 0 || std::memcmp(got[i].data(), want[i].data(), size) == 0)
        << what << ", output " << i << ": " << tensor::compare(got[i], want[i], {}).describe();
  }
}

// One kernel an operator: what is joined does not depend on the order in which a form lists them.
TEST_P(JaxPrograms, HaveTheSameBitsInThreeForms) {
  const JaxProgram& program = programs()[GetParam()];
  const std::vector<Literal> want = run(program, 0, compiler::Level::O0);
  for (size_t form = 1; form < kForms.size(); ++form)
    expect_same_bits(run(program, form, compiler::Level::O0), want, kForms[form]);
}

TEST_P(JaxPrograms, GiveWhatXlaGives) {
  const JaxProgram& program = programs()[GetParam()];
  std::array<std::vector<Literal>, kForms.size()> outputs;
  for (size_t form = 0; form < kForms.size(); ++form) {
    std::vector<tensor::Tolerance> tolerances;
    outputs[form] = run(program, form, compiler::Level::O2, &tolerances);
    ASSERT_EQ(outputs[form].size(), program.outputs.size()) << kForms[form];
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      const Literal& got = outputs[form][i];
      ASSERT_EQ(got.shape(), program.outputs[i].shape()) << kForms[form] << ", output " << i;
      const auto compared = tensor::compare(got, program.outputs[i], tolerances[i]);
      EXPECT_TRUE(compared.equal) << kForms[form] << ", output " << i << ": "
                                  << compared.describe();
    }
  }
  expect_same_bits(outputs[2], outputs[1], kForms[2]);
}

TEST(JaxPrograms, AreMany) { EXPECT_GE(programs().size(), 250u); }

INSTANTIATE_TEST_SUITE_P(Of, JaxPrograms, ::testing::Range(size_t{0}, programs().size()),
                         [](const auto& info) { return programs()[info.param].name; });

}  // namespace
}  // namespace heddle
