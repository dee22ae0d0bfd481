// Bounded dimensions through the interface: buckets, extents, memory, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "api/heddle.h"
#include "api/session.h"
#include "import/onnx_test_util.h"

namespace heddle::api {
namespace {

using import::testing::kFloat;
using import::testing::node;
using import::testing::value;
using ::testing::HasSubstr;

// A file with the model, which exists while the test runs.
class File {
 public:
  explicit File(const import::testing::Model& model)
      : path_(testing::TempDir() + "bounded_" + std::to_string(::getpid()) + ".onnx") {
    std::ofstream(path_, std::ios::binary) << model.bytes();
  }
  ~File() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// softmax over the last dimension of x [4, length].
import::testing::Model softmax() {
  import::testing::Model model;
  model.inputs = {value("x", kFloat, {"4", "length"})};
  model.nodes = {node("Softmax", {"x"}, {"y"})};
  model.outputs = {"y"};
  return model;
}

OpenOptions bounded(int64_t bound) {
  OpenOptions options;
  options.bounds["length"] = bound;
  return options;
}

TEST(Bounded, ArraysAreDenseAtEachExtent) {
  const File file(softmax());
  auto model = Model::open(file.path(), bounded(80));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ((*model)->inputs()[0].dims, (std::vector<int64_t>{4, 80}));
  CompileOptions options;
  options.cache = "off";
  auto program = Program::compile(**model, options);
  ASSERT_TRUE(program) << program.error().message;
  auto context = (*program)->make_context();
  ASSERT_TRUE(context);
  for (int64_t n : {80, 1, 17, 64, 65, 3}) {
    std::vector<float> x(static_cast<size_t>(4 * n)), y(x.size() + 1, -7.0F);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 37) % 11) / 4;
    ASSERT_TRUE((*context)->set_extent("length", n));
    ASSERT_TRUE((*context)->bind_input(0, x.data()));
    ASSERT_TRUE((*context)->bind_output(0, y.data()));
    ASSERT_TRUE((*context)->run());
    for (int64_t row = 0; row < 4; ++row) {
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += std::exp(double(x[size_t(row * n + i)]));
      for (int64_t i = 0; i < n; ++i)
        ASSERT_NEAR(y[size_t(row * n + i)], std::exp(double(x[size_t(row * n + i)])) / sum, 1e-6)
            << n << ": " << row << ", " << i;
    }
    EXPECT_EQ(y.back(), -7.0F) << "written behind the extent";
  }
  EXPECT_THAT((*context)->set_extent("length", 81).error().message,
              HasSubstr("dimension 'length' is 81, wanted 1 to 80"));
  EXPECT_THAT((*context)->set_extent("width", 8).error().message, HasSubstr("'width'"));
}

// The caller's bytes are gone when another bucket is compiled.
TEST(Bounded, AModelInMemoryHasBounds) {
  std::string bytes = softmax().bytes();
  auto model = Model::parse("memory", bytes, bounded(80));
  bytes.assign(bytes.size(), '?');
  ASSERT_TRUE(model) << model.error().message;
  CompileOptions options;
  options.cache = "off";
  auto program = Program::compile(**model, options);
  ASSERT_TRUE(program) << program.error().message;
  auto context = (*program)->make_context();
  ASSERT_TRUE(context);
  std::vector<float> x(12, 1), y(12);
  ASSERT_TRUE((*context)->set_extent("length", 3));
  ASSERT_TRUE((*context)->bind_input(0, x.data()));
  ASSERT_TRUE((*context)->bind_output(0, y.data()));
  ASSERT_TRUE((*context)->run());
  EXPECT_THAT(y, ::testing::Each(::testing::FloatNear(1.0F / 3, 1e-6F)));
}

TEST(Bounded, TheCInterfaceSaysExtents) {
  const File file(softmax());
  const heddle_dim bound{"length", 16};
  heddle_open_options open{};
  open.struct_size = sizeof(open);
  open.bounds = &bound;
  open.bound_count = 1;
  heddle_model* model = nullptr;
  ASSERT_EQ(heddle_model_open(file.path().c_str(), &open, &model), nullptr);
  heddle_program* program = nullptr;
  ASSERT_EQ(heddle_compile(model, nullptr, &program), nullptr);
  heddle_context* context = nullptr;
  ASSERT_EQ(heddle_context_create(program, &context), nullptr);
  const float x[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  float y[8] = {};
  ASSERT_EQ(heddle_context_set_dim(context, "length", 2), nullptr);
  ASSERT_EQ(heddle_context_bind_input(context, 0, x), nullptr);
  ASSERT_EQ(heddle_context_bind_output(context, 0, y), nullptr);
  ASSERT_EQ(heddle_context_run(context), nullptr);
  for (float one : y) EXPECT_EQ(one, 0.5F);
  heddle_context_free(context);
  heddle_program_free(program);
  heddle_model_free(model);
}

struct Dim {
  std::string name;
  int64_t extent, least, most;
  bool operator==(const Dim&) const = default;
};

template <typename Handle>
Dim dim_of(heddle_status* (*ask)(const Handle*, int64_t, int64_t, heddle_port_dim*),
           const Handle* handle, int64_t dimension) {
  heddle_port_dim dim{};
  dim.struct_size = sizeof dim;
  EXPECT_EQ(ask(handle, 0, dimension, &dim), nullptr) << heddle_last_error();
  return {dim.name, dim.extent, dim.least, dim.most};
}

// Ports of a model, of its program, and of both again from a file's bytes.
TEST(Bounded, PortsTellNamesAndBounds) {
  const File file(softmax());
  const heddle_dim bound{"length", 16}, first{"length", 5};
  heddle_open_options open{};
  open.struct_size = sizeof(open);
  open.bounds = &bound;
  open.bound_count = 1;
  open.dims = &first;
  open.dim_count = 1;
  heddle_model* model = nullptr;
  ASSERT_EQ(heddle_model_open(file.path().c_str(), &open, &model), nullptr);
  const std::string path = file.path() + ".heddle";
  for (const bool saved : {false, true}) {
    const Dim length{"length", saved ? 16 : 5, 1, 16}, four{"", 4, 4, 4};
    heddle_program* program = nullptr;
    ASSERT_EQ(heddle_compile(model, nullptr, &program), nullptr);
    EXPECT_EQ(dim_of(heddle_model_input_dim, model, 0), four);
    EXPECT_EQ(dim_of(heddle_model_input_dim, model, 1), length);
    EXPECT_EQ(dim_of(heddle_model_output_dim, model, 1), length);
    EXPECT_EQ(dim_of(heddle_program_input_dim, program, 0), four);
    EXPECT_EQ(dim_of(heddle_program_input_dim, program, 1), length);
    EXPECT_EQ(dim_of(heddle_program_output_dim, program, 1), length);
    heddle_model_free(model);
    if (!saved) {
      ASSERT_EQ(heddle_program_save(program, path.c_str()), nullptr);
      std::ifstream in(path, std::ios::binary);
      const std::string bytes(std::istreambuf_iterator<char>(in), {});
      std::remove(path.c_str());
      ASSERT_EQ(heddle_model_parse("memory", bytes.data(), bytes.size(), nullptr, &model), nullptr);
    }
    heddle_program_free(program);
  }
}

TEST(Bounded, DimensionsThatAreBoundKeepTheirNames) {
  const File file(softmax());
  heddle_model* model = nullptr;
  ASSERT_EQ(heddle_model_open(file.path().c_str(), nullptr, &model), nullptr);
  heddle_program* program = nullptr;
  ASSERT_EQ(heddle_compile(model, nullptr, &program), nullptr);
  EXPECT_EQ(dim_of(heddle_model_input_dim, model, 1), (Dim{"length", 1, 1, 1}));
  EXPECT_EQ(dim_of(heddle_program_input_dim, program, 1), (Dim{"length", 1, 1, 1}));
  heddle_program_free(program);
  heddle_model_free(model);
}

std::vector<float> run_at(Context& context, int64_t n) {
  std::vector<float> x(static_cast<size_t>(4 * n)), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 37) % 11) / 4;
  const Status extent = context.set_extent("length", n);
  EXPECT_TRUE(extent) << extent.error().message;
  EXPECT_TRUE(context.bind_input(0, x.data()));
  EXPECT_TRUE(context.bind_output(0, y.data()));
  const Status status = context.run();
  EXPECT_TRUE(status) << status.error().message;
  return y;
}

// The programs of all buckets in a file give the same bits as those compiled on demand.
TEST(Bounded, AFileHasAllBuckets) {
  const File file(softmax());
  const std::string path = file.path() + ".heddle";
  auto model = Model::open(file.path(), bounded(80));
  ASSERT_TRUE(model) << model.error().message;
  CompileOptions options;
  options.cache = "off";
  auto program = Program::compile(**model, options);
  ASSERT_TRUE(program) << program.error().message;
  const Status status = (*program)->save(path);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ((*program)->facts().compilations, 5);  // 1, 4, 16, 64, 80
  auto context = (*program)->make_context();
  for (const int64_t first : {80, 17}) {
    OpenOptions open;
    if (first != 80) open.dims["length"] = first;
    auto saved = Model::open(path, open);
    ASSERT_TRUE(saved) << saved.error().message;
    ASSERT_EQ((*saved)->inputs().size(), 1u);  // and no extents
    EXPECT_EQ((*saved)->inputs()[0].dims, (std::vector<int64_t>{4, first}));
    EXPECT_EQ((*saved)->outputs()[0].dims, (std::vector<int64_t>{4, first}));
    auto loaded = Program::compile(**saved, options);
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ((*loaded)->facts().bucket, first == 80 ? "length=80" : "length=64");
    auto other = (*loaded)->make_context();
    for (int64_t n : {80, 1, 2, 4, 5, 16, 17, 64, 65, 3})
      EXPECT_EQ(run_at(**context, n), run_at(**other, n)) << n;
    EXPECT_THAT((*other)->set_extent("length", 81).error().message, HasSubstr("wanted 1 to 80"));
    EXPECT_THAT((*loaded)->save(path).error().message, HasSubstr("already"));
  }
  const auto refusal = [&](const char* name, int64_t extent, int64_t bound) {
    OpenOptions open;
    (bound > 0 ? open.bounds : open.dims)[name] = bound > 0 ? bound : extent;
    auto refused = Model::open(path, open);
    return refused ? "" : refused.error().message;
  };
  EXPECT_THAT(refusal("length", 81, 0), HasSubstr("wanted 1 to 80"));
  EXPECT_THAT(refusal("width", 3, 0), HasSubstr("length<=80"));
  EXPECT_THAT(refusal("length", 0, 81), HasSubstr("compiled for at most 80"));
  EXPECT_EQ(refusal("length", 0, 16), "");
  std::remove(path.c_str());
}

TEST(Bounded, AFileHasSomeProgramsAtMost) {
  import::testing::Model both;
  both.inputs = {value("x", kFloat, {"batch", "length"})};
  both.nodes = {node("Softmax", {"x"}, {"y"})};
  both.outputs = {"y"};
  const File file(both);
  OpenOptions open;
  open.bounds = {{"batch", 16385}, {"length", 16385}};
  open.dims = {{"batch", 3}, {"length", 3}};
  auto model = Model::open(file.path(), open);
  ASSERT_TRUE(model) << model.error().message;
  CompileOptions options;
  options.cache = "off";
  auto program = Program::compile(**model, options);
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_THAT((*program)->save(file.path() + ".heddle").error().message,
              HasSubstr("batch<=16385, length<=16385 would need 81 programs, wanted at most 64"));
}

// Initial extents come from `dims` or from hinted shapes; the interpreter runs the exact model.
TEST(Bounded, BeginsWithWhatIsAskedFor) {
  const File file(softmax());
  OpenOptions asked = bounded(80), hinted = bounded(80), beyond = bounded(80);
  asked.dims["length"] = 17;
  hinted.hints["x"] = {4, 17};
  beyond.dims["length"] = 81;
  for (const OpenOptions& options : {asked, hinted}) {
    auto model = Model::open(file.path(), options);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ((*model)->inputs()[0].dims, (std::vector<int64_t>{4, 17}));
    std::vector<float> x(4 * 17), outputs[2];
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7);
    for (const bool interpreted : {false, true}) {
      CompileOptions compile;
      compile.cache = "off";
      if (interpreted) compile.device = "interp";
      auto program = Program::compile(**model, compile);
      ASSERT_TRUE(program) << program.error().message;
      EXPECT_EQ((*program)->facts().bucket, interpreted ? "length=17" : "length=64");
      EXPECT_EQ((*program)->facts().compilations, 1);
      auto context = (*program)->make_context();
      ASSERT_TRUE(context);
      std::vector<float>& y = outputs[interpreted];
      y.resize(x.size());
      ASSERT_TRUE((*context)->bind_input(0, x.data()));
      ASSERT_TRUE((*context)->bind_output(0, y.data()));
      ASSERT_TRUE((*context)->run());
    }
    for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(outputs[0][i], outputs[1][i], 1e-6);
  }
  auto model = Model::open(file.path(), beyond);
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, HasSubstr("'length' is 81 from --dim, wanted 1 to 80"));
}

// Positions from a running sum over the length (as in models that skip padding); longer than a
// block of the importer.
TEST(Bounded, RunningSumsGoAlongABoundedDimension) {
  import::testing::Model model;
  model.inputs = {value("x", kFloat, {"4", "length"})};
  model.constants = {import::testing::ints_tensor("axis", {1})};
  model.nodes = {node("CumSum", {"x", "axis"}, {"y"})};
  model.outputs = {"y"};
  const File file(model);
  auto opened = Model::open(file.path(), bounded(80));
  ASSERT_TRUE(opened) << opened.error().message;
  CompileOptions options;
  options.cache = "off";
  auto program = Program::compile(**opened, options);
  ASSERT_TRUE(program) << program.error().message;
  auto context = (*program)->make_context();
  ASSERT_TRUE(context);
  for (int64_t n : {80, 1, 17, 64, 66}) {
    std::vector<float> x(static_cast<size_t>(4 * n)), y(x.size());
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 5);
    ASSERT_TRUE((*context)->set_extent("length", n));
    ASSERT_TRUE((*context)->bind_input(0, x.data()));
    ASSERT_TRUE((*context)->bind_output(0, y.data()));
    ASSERT_TRUE((*context)->run());
    for (size_t row = 0; row < 4; ++row) {
      float sum = 0;
      for (size_t i = row * static_cast<size_t>(n); i < (row + 1) * static_cast<size_t>(n); ++i)
        ASSERT_EQ(y[i], sum += x[i]) << n << ": " << i;
    }
  }
}

std::string refusal(const import::testing::Model& model, const OpenOptions& options) {
  const File file(model);
  auto opened = Model::open(file.path(), options);
  return opened ? "" : opened.error().message;
}

// Elements of a splat value with as many rows as the batch.
TEST(Bounded, ElementsOfASplatDoNotDependOnTheBatch) {
  import::testing::Model model;
  model.inputs = {value("x", kFloat, {"length", "3"}),
                  value("i", import::testing::kInt64, {"length", "3"})};
  model.nodes = {node("Shape", {"x"}, {"s"}), node("ConstantOfShape", {"s"}, {"zeros"}),
                 node("GatherElements", {"zeros", "i"}, {"taken"},
                      {import::testing::attr("axis", int64_t{1})}),
                 node("Add", {"x", "taken"}, {"y"})};
  model.outputs = {"y"};
  EXPECT_EQ(refusal(model, bounded(8)), "");
}

// A mean divides by the actual number of elements.
TEST(Bounded, MeansAreOfWhatIsThere) {
  import::testing::Model mean;
  mean.inputs = {value("x", kFloat, {"4", "length"})};
  mean.nodes = {
      node("ReduceMean", {"x"}, {"y"}, {import::testing::attr("axes", import::testing::Ints{1})})};
  mean.outputs = {"y"};
  const File file(mean);
  auto opened = Model::open(file.path(), bounded(80));
  ASSERT_TRUE(opened) << opened.error().message;
  CompileOptions options;
  options.cache = "off";
  auto program = Program::compile(**opened, options);
  ASSERT_TRUE(program) << program.error().message;
  auto context = (*program)->make_context();
  ASSERT_TRUE(context);
  for (int64_t n = 1; n <= 80; ++n) {
    std::vector<float> x(static_cast<size_t>(4 * n)), y(4);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7);
    ASSERT_TRUE((*context)->set_extent("length", n));
    ASSERT_TRUE((*context)->bind_input(0, x.data()));
    ASSERT_TRUE((*context)->bind_output(0, y.data()));
    ASSERT_TRUE((*context)->run());
    for (size_t row = 0; row < 4; ++row) {
      double sum = 0;
      for (size_t i = 0; i < static_cast<size_t>(n); ++i)
        sum += x[row * static_cast<size_t>(n) + i];
      ASSERT_NEAR(y[row], sum / static_cast<double>(n), 1e-5) << n;
    }
  }
}

TEST(Bounded, WhatDependsOnTheExtentIsRefused) {
  import::testing::Model square;  // times the square of the extent: not linear
  square.inputs = {value("x", kFloat, {"4", "length"})};
  square.constants = {import::testing::ints_tensor("one", {1})};
  square.nodes = {node("Shape", {"x"}, {"s"}), node("Gather", {"s", "one"}, {"n"}),
                  node("Mul", {"n", "n"}, {"nn"}),
                  node("Cast", {"nn"}, {"f"}, {import::testing::attr("to", int64_t{kFloat})}),
                  node("Mul", {"x", "f"}, {"y"})};
  square.outputs = {"y"};
  EXPECT_THAT(refusal(square, bounded(16)), HasSubstr("dimension 'length' cannot be bounded"));
  OpenOptions other;
  other.bounds["width"] = 16;
  EXPECT_NE(refusal(softmax(), other), "");
  EXPECT_THAT(refusal(softmax(), bounded(1)), HasSubstr("wanted at least 4"));
}

// A reduction without a neutral value cannot be masked: the program notes it, and is correct at any
// extent.
TEST(Bounded, ProgramsOfOneExtentSayWhy) {
  import::testing::Model last;
  last.inputs = {value("x", kFloat, {"4", "length"})};
  last.nodes = {node("ArgMax", {"x"}, {"y"}, {import::testing::attr("axis", int64_t{1})})};
  last.outputs = {"y"};
  const File file(last);
  auto model = Model::open(file.path(), bounded(16));
  ASSERT_TRUE(model) << model.error().message;
  CompileOptions options;
  options.cache = "off";
  auto program = Program::compile(**model, options);
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_THAT((*program)->notes(),
              testing::Contains(HasSubstr("compiled separately for each extent")));
  auto context = (*program)->make_context();
  ASSERT_TRUE(context);
  for (int64_t n : {3, 16}) {
    std::vector<float> x(static_cast<size_t>(4 * n));
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    std::vector<int64_t> y(4);
    ASSERT_TRUE((*context)->set_extent("length", n));
    ASSERT_TRUE((*context)->bind_input(0, x.data()));
    ASSERT_TRUE((*context)->bind_output(0, y.data()));
    ASSERT_TRUE((*context)->run());
    for (int64_t one : y) EXPECT_EQ(one, n - 1);
  }
}

}  // namespace
}  // namespace heddle::api
