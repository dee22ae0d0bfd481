// heddle.hpp used rightly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>

#include "api/heddle.hpp"
#include "small_onnx.h"

namespace cpp_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

heddle::CompileOptions uncached() {
  heddle::CompileOptions options;
  options.cache = "off";
  return options;
}

// y = x + x of f32[batch,3].
std::string twice(const std::string& more = "") {
  return small_onnx::model({small_onnx::value("x", {"batch", "3"})},
                           {small_onnx::node("Add", {"x", "x"}, "y")}, {"y"}, more);
}

template <typename T>
std::vector<T> values(const heddle::Tensor& tensor) {
  const heddle::span<const T> elements = tensor.span<const T>();
  return {elements.begin(), elements.end()};
}

TEST(Cpp, RunsByName) {
  const heddle::Model model = heddle::Model::parse("m.onnx", twice());
  EXPECT_EQ(model.inputs().size(), 1u);
  EXPECT_EQ(model.input("x").shape(), (heddle::Shape{1, 3}));
  EXPECT_EQ(model.input("x").dims[0].name, "batch");
  EXPECT_EQ(model.output("y").type, heddle::Type::f32);
  const heddle::Program program = model.compile(uncached());
  EXPECT_STREQ(program.info().device, "cpu");
  heddle::Context context = program.context();
  const heddle::Tensor x = heddle::Tensor::of<float>({1, 3}, {1, 2, 3});
  const heddle::Tensors y = context.run({{"x", x}});
  EXPECT_THAT(values<float>(y.at("y")), ElementsAre(2, 4, 6));
  EXPECT_EQ(y.at("y").to_string(), "f32[1,3]");
}

TEST(Cpp, MemoryThatIsBoundOnceServesManyRuns) {
  const heddle::Program program = heddle::Program::parse("m.onnx", twice(), {}, uncached());
  heddle::Context context = program.context();
  alignas(64) float x[3], y[3];
  context.bind_input("x", heddle::Tensor::view({1, 3}, heddle::span<float>(x)));
  context.bind_output("y", heddle::Tensor::view({1, 3}, heddle::span<float>(y)));
  for (int run = 0; run < 3; ++run) {
    std::iota(std::begin(x), std::end(x), static_cast<float>(run));
    context.run();
    EXPECT_THAT(y, ElementsAre(2 * run, 2 * run + 2, 2 * run + 4));
  }
}

TEST(Cpp, AContextOutlivesWhatItWasMadeOf) {
  std::vector<heddle::Context> contexts;
  {
    const heddle::Program program = heddle::Program::parse("m.onnx", twice(), {}, uncached());
    contexts.push_back(program.context());
    heddle::Tensor x = heddle::Tensor::of<float>({1, 3}, {1, 2, 3});
    contexts[0].bind_input("x", x);
    contexts[0].bind_output("y", heddle::Tensor::zeros<float>({1, 3}));
  }
  contexts[0].run();
}

TEST(Cpp, BoundedDimensionsComeFromShapes) {
  heddle::OpenOptions options;
  options.bounds["batch"] = 8;
  const heddle::Program program = heddle::Program::parse("m.onnx", twice(), options, uncached());
  const heddle::Port port = program.input("x");
  EXPECT_TRUE(port.dims[0].is_bounded());
  EXPECT_EQ(port.dims[0].most, 8);
  EXPECT_EQ(port.to_string(), "f32[batch<=8,3]");
  heddle::Context context = program.context();
  for (const std::int64_t batch : {2, 8, 1}) {
    const heddle::Tensor x = heddle::Tensor::zeros<float>({batch, 3});
    for (float& value : x.span<float>()) value = 1;
    const heddle::Tensors y = context.run({{"x", x}});
    EXPECT_EQ(y.at("y").shape(), (heddle::Shape{batch, 3}));
    EXPECT_THAT(values<float>(y.at("y")), ::testing::Each(2));
  }
  context.bind_input("x", heddle::Tensor::zeros<float>({4, 3}));
  EXPECT_EQ(context.outputs()[0].shape(), (heddle::Shape{4, 3}));
}

TEST(Cpp, ShapesMayBeKnownLate) {
  heddle::OpenOptions options;
  options.late = true;
  const heddle::Program program = heddle::Program::parse("m.onnx", twice(), options, uncached());
  heddle::Context context = program.context();
  for (const std::int64_t batch : {2, 5, 2, 1}) {
    const heddle::Tensor x = heddle::Tensor::zeros<float>({batch, 3});
    EXPECT_EQ(context.run({{"x", x}}).at("y").shape(), (heddle::Shape{batch, 3}));
  }
}

TEST(Cpp, ProgramsAreReadFromMemory) {
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("cpp_test_" + std::to_string(::getpid()) + ".heddle"))
                               .string();
  heddle::Program::parse("m.onnx", twice(), {}, uncached()).save(path);
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  std::filesystem::remove(path);
  const heddle::Model model = heddle::Model::parse("saved", bytes);
  EXPECT_TRUE(model.info().is_program);
  const heddle::Program program = model.compile(uncached());
  heddle::Context context = program.context();
  const heddle::Tensor x = heddle::Tensor::of<float>({1, 3}, {1, 2, 3});
  EXPECT_THAT(values<float>(context.run({{"x", x}}).at("y")), ElementsAre(2, 4, 6));
}

TEST(Cpp, ModelsTellTheirOrigin) {
  using small_onnx::number;
  using small_onnx::text;
  const heddle::Model model =
      heddle::Model::parse("m.onnx", twice(text(2, "a tool") + text(3, "1.2") + number(5, 7) +
                                           text(14, text(1, "author") + text(2, "somebody"))));
  const heddle::Origin origin = model.origin();
  EXPECT_EQ(origin.producer, "a tool");
  EXPECT_EQ(origin.producer_version, "1.2");
  EXPECT_EQ(origin.version, 7);
  EXPECT_EQ(origin.opset, 17);
  EXPECT_THAT(origin.opsets, ElementsAre(Pair("ai.onnx", 17)));
  EXPECT_THAT(origin.metadata, ElementsAre(Pair("author", "somebody")));
  const heddle::ModelInfo info = model.info();
  EXPECT_EQ(info.format, "ONNX");
  EXPECT_THAT(info.unbound, ElementsAre(Pair("batch", 1)));
  EXPECT_FALSE(info.notes.empty());
}

TEST(Cpp, ErrorsListWhatIsNotSupported) {
  const std::string model =
      small_onnx::model({small_onnx::value("x", {"3"})},
                        {small_onnx::node("Foo", {"x"}, "a"), small_onnx::node("Foo", {"a"}, "b"),
                         small_onnx::node("Bar", {"b"}, "y")},
                        {"y"});
  try {
    heddle::Model::parse("m.onnx", model);
    FAIL() << "nothing was thrown";
  } catch (const heddle::UnsupportedError& error) {
    EXPECT_EQ(error.code(), heddle::ErrorCode::unsupported);
    ASSERT_EQ(error.unsupported().size(), 2u);
    EXPECT_EQ(error.unsupported()[1].what, "Foo");
    EXPECT_EQ(error.unsupported()[1].count, 2);
    EXPECT_THAT(error.unsupported()[1].place, HasSubstr("node of a"));
    EXPECT_THAT(error.what(), HasSubstr("Bar, opset 17"));
  }
}

TEST(Cpp, ALogTellsWhatHappens) {
  std::vector<std::string> lines;
  heddle::set_log(heddle::LogLevel::info, [&](heddle::LogLevel level, std::string_view text) {
    EXPECT_LE(level, heddle::LogLevel::info);
    lines.emplace_back(text);
  });
  heddle::Program::parse("m.onnx", twice(), {}, uncached());
  heddle::set_log(heddle::LogLevel::nothing);
  const std::size_t count = lines.size();
  EXPECT_THAT(lines, Contains(HasSubstr("compiled")));
  EXPECT_THAT(lines, Contains(HasSubstr("dimension 'batch' is dynamic: bound to 1")));
  heddle::Program::parse("m.onnx", twice(), {}, uncached());
  EXPECT_EQ(lines.size(), count);
}

TEST(Cpp, TensorsShareAndClone) {
  const heddle::Tensor a = heddle::Tensor::of<std::int64_t>({3}, {1, 2, 3});
  const heddle::Tensor same = a;
  const heddle::Tensor other = a.clone();
  a.span<std::int64_t>()[0] = 9;
  EXPECT_THAT(values<std::int64_t>(same), ElementsAre(9, 2, 3));
  EXPECT_THAT(values<std::int64_t>(other), ElementsAre(1, 2, 3));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.data()) % 64, 0u);
  EXPECT_EQ(heddle::type_of<bool>(), heddle::Type::pred);
  EXPECT_EQ(heddle::type_of<const unsigned char>(), heddle::Type::u8);
  EXPECT_EQ(heddle::type_of<long long>(), heddle::Type::s64);
  EXPECT_EQ(heddle::bytes_of(heddle::Type::c64), 8);
  EXPECT_EQ(heddle::Tensor::zeros<float>({}).elements(), 1u);
  EXPECT_EQ(heddle::Tensor::zeros<float>({0, 5}).bytes(), 0u);
}

TEST(Cpp, RandomInputsSuitTheModel) {
  const heddle::Model model = heddle::Model::parse("m.onnx", twice());
  const heddle::Program program = model.compile(uncached());
  heddle::Context context = program.context();
  const heddle::Tensors x = model.random_inputs(5);
  EXPECT_EQ(values<float>(model.random_inputs(5).at("x")), values<float>(x.at("x")));
  EXPECT_NE(values<float>(model.random_inputs(6).at("x")), values<float>(x.at("x")));
  EXPECT_EQ(context.run(x).size(), 1u);
}

TEST(Cpp, TheVersionIsTheLibrarys) {
  EXPECT_EQ(heddle::version(), std::to_string(HEDDLE_VERSION_MAJOR) + "." +
                                   std::to_string(HEDDLE_VERSION_MINOR) + "." +
                                   std::to_string(HEDDLE_VERSION_PATCH));
}

}  // namespace
}  // namespace cpp_test
