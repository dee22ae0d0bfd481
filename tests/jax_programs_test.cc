// Small programs of JAX (testdata/make_jax.py): as HLO text, StableHLO text and portable bytecode,
// compiled at O2 for two cores, they give the same bits, and what XLA computes on a CPU within the
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

TEST_P(JaxPrograms, AreTheSameInThreeForms) {
  const JaxProgram& program = programs()[GetParam()];
  target::Target target = target::host_target();
  target.cores = 2;
  std::vector<Literal> first;
  for (size_t form = 0; form < kForms.size(); ++form) {
    const std::string& bytes = program.forms[form];
    ASSERT_FALSE(bytes.empty());
    auto imported =
        form == 0 ? import::import_hlo_text(bytes) : import::import_stablehlo_bytes(bytes, {});
    ASSERT_TRUE(imported) << kForms[form] << ": " << imported.error().message;
    const auto tolerances = api::derive_tolerances(*imported->module);
    std::string failure;
    const std::vector<Literal> got = compile_and_run(std::move(imported->module), program.inputs,
                                                     target, {}, 2, &failure);
    ASSERT_EQ(failure, "") << kForms[form];
    ASSERT_EQ(got.size(), program.outputs.size()) << kForms[form];
    if (form == 0) first = got;
    for (size_t i = 0; i < got.size(); ++i) {
      const Literal& want = program.outputs[i];
      ASSERT_EQ(got[i].shape(), want.shape()) << kForms[form] << ", output " << i;
      const auto compared = tensor::compare(got[i], want, tolerances[i]);
      EXPECT_TRUE(compared.equal) << kForms[form] << ", output " << i << ": "
                                  << compared.describe();
      const auto size = static_cast<size_t>(want.bytes());
      EXPECT_TRUE(size == 0 || std::memcmp(got[i].data(), first[i].data(), size) == 0)
          << kForms[form] << ", output " << i << ": other bits than " << kForms[0] << ": "
          << tensor::compare(got[i], first[i], {}).describe();
    }
  }
}

TEST(JaxPrograms, AreMany) { EXPECT_GE(programs().size(), 250u); }

INSTANTIATE_TEST_SUITE_P(Of, JaxPrograms, ::testing::Range(size_t{0}, programs().size()),
                         [](const auto& info) { return programs()[info.param].name; });

}  // namespace
}  // namespace heddle
