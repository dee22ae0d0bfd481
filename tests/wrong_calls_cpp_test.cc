// heddle.hpp called wrongly: each call throws an exception of the right class whose message names
// what is wrong, and what is there works afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "api/heddle.hpp"
#include "small_onnx.h"

#if defined(__SANITIZE_ADDRESS__)
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "allocator_may_return_null=1:detect_leaks=1";
}
#endif

// Not in namespace heddle: these are calls from outside.
namespace wrong_calls_cpp {
namespace {

using ::testing::HasSubstr;

constexpr const char* kAdd =
    "HloModule m\nENTRY main {\n x = f32[2,3] parameter(0)\n k = s32[2] parameter(1)\n"
    " y = f32[2,3] add(x, x)\n ROOT r = (f32[2,3], s32[2]) tuple(y, k)\n}\n";

heddle::CompileOptions interpreted() {
  heddle::CompileOptions options;
  options.device = "interp";
  return options;
}

struct Good {
  heddle::Model model = heddle::Model::parse("m", kAdd);
  heddle::Program program = model.compile(interpreted());
  heddle::Context context = program.context();
  heddle::Tensor x = heddle::Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  heddle::Tensor k = heddle::Tensor::of<std::int32_t>({2}, {7, 8});
  heddle::Tensor y = heddle::Tensor::zeros<float>({2, 3});

  // y = a + b of f32[4, length], length <= 16.
  heddle::Model bounded = [] {
    heddle::OpenOptions options;
    options.bounds["length"] = 16;
    return heddle::Model::parse("add.onnx", small_onnx::bounded_add(), options);
  }();
  heddle::Program bounded_program = bounded.compile(interpreted());
  heddle::Context bounded_context = bounded_program.context();

  heddle::Model moved_model = heddle::Model::parse("m", kAdd);
  heddle::Program moved_program = moved_model.compile(interpreted());
  heddle::Context moved_context = moved_program.context();
  heddle::Model other_model = std::move(moved_model);
  heddle::Program other_program = std::move(moved_program);
  heddle::Context other_context = std::move(moved_context);
};

enum class Kind { user, shape, unsupported, machine, memory, device };

struct Row {
  const char* what;
  Kind kind;
  std::string told;  // in the message
  std::function<void(Good&)> call;
};

template <typename Class>
void expect_class(const Row& row, Good& g) {
  try {
    row.call(g);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Class& error) {
    EXPECT_THAT(error.what(), HasSubstr(row.told));
    EXPECT_STRNE(error.what(), "");
    EXPECT_EQ(error.message().find('\n'), std::string::npos);
    const bool is_user = row.kind <= Kind::unsupported;
    EXPECT_EQ(error.kind(), is_user ? heddle::ErrorKind::user : heddle::ErrorKind::machine);
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
  }
}

void expect_thrown(const Row& row, Good& g) {
  switch (row.kind) {
    case Kind::user:
      return expect_class<heddle::UserError>(row, g);
    case Kind::shape:
      return expect_class<heddle::ShapeError>(row, g);
    case Kind::unsupported:
      return expect_class<heddle::UnsupportedError>(row, g);
    case Kind::machine:
      return expect_class<heddle::MachineError>(row, g);
    case Kind::memory:
      return expect_class<heddle::OutOfMemory>(row, g);
    case Kind::device:
      return expect_class<heddle::DeviceError>(row, g);
  }
}

#define WRONG(kind, told, ...) \
  rows.push_back({#__VA_ARGS__, Kind::kind, told, []([[maybe_unused]] Good& g) { __VA_ARGS__; }})

void tensor_rows(std::vector<Row>& rows) {
  using heddle::Tensor;
  using heddle::Type;
  static const std::vector<float> kThree(3);
  WRONG(shape, "negative", Tensor::zeros<float>({-1}));
  WRONG(shape, "negative", Tensor::zeros<float>({2, INT64_MIN}));
  WRONG(shape, "counted", Tensor::zeros<float>({INT64_MAX, INT64_MAX}));
  WRONG(shape, "counted", Tensor::zeros<double>({INT64_MAX / 2, 3}));
  WRONG(shape, "counted", Tensor::zeros<float>({INT64_MAX / 8, 8, 0}));
  WRONG(memory, "out of memory", Tensor::zeros<float>({std::int64_t{1} << 58}));
  WRONG(user, "no array", Tensor::zeros(Type::token, {2}));
  WRONG(user, "no array", Tensor::zeros(Type::opaque, {2}));
  WRONG(user, "no array", Tensor::zeros(static_cast<Type>(1000), {2}));
  WRONG(user, "no array", Tensor::zeros(static_cast<Type>(-1), {2}));
  WRONG(shape, "of 3 elements; wanted 4", Tensor::of<float>({2, 2}, {1, 2, 3}));
  WRONG(shape, "of 5 elements; wanted 4", Tensor::of<float>({4}, {1, 2, 3, 4, 5}));
  WRONG(shape, "wanted 0", Tensor::of<float>({0, 4}, {1}));
  WRONG(shape, "wanted 6", Tensor::of({2, 3}, kThree));
  WRONG(shape, "wanted 4", Tensor::view({4}, kThree));
  WRONG(shape, "negative", Tensor::view({-3}, kThree));
  WRONG(user, "f32[2,3] as s32", g.x.span<std::int32_t>());
  WRONG(user, "f32[2,3] as f64", g.x.span<const double>());
  WRONG(user, "f32[2,3] as pred", g.x.span<bool>());
  WRONG(user, "f32[2,3] as f16", g.x.span<heddle::Float16>());
  WRONG(user, "const memory", Tensor::view({3}, kThree).span<float>());
}

void open_rows(std::vector<Row>& rows) {
  using heddle::Model;
  using heddle::OpenOptions;
  static const auto open = [](const std::function<void(OpenOptions&)>& change) {
    OpenOptions options;
    change(options);
    return Model::parse("add.onnx", small_onnx::bounded_add(), options);
  };
  WRONG(user, "/no/such/model", Model::open("/no/such/model"));
  WRONG(user, "", Model::open(""));
  WRONG(user, "/tmp", Model::open("/tmp"));
  WRONG(user, "size", Model::parse("m", ""));
  WRONG(user, "m: not a model", Model::parse("m", "nonsense"));
  WRONG(user, "m", Model::parse("m", std::string_view(kAdd, 40)));
  WRONG(user, "m", Model::parse("m", "HloModule m\nENTRY e { ROOT x = f32[2] nothing(0) }\n"));
  WRONG(unsupported, "nonsense",
        Model::parse("m",
                     "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  %a = "
                     "\"stablehlo.nonsense\"(%x) : (tensor<2xf32>) -> tensor<2xf32>\n  return "
                     "%a : tensor<2xf32>\n}\n"));
  WRONG(user, "bounds[0].size", open([](OpenOptions& o) { o.bounds["length"] = 0; }));
  WRONG(user, "bounds[0].size", open([](OpenOptions& o) { o.bounds["length"] = -5; }));
  WRONG(user, "width", open([](OpenOptions& o) { o.bounds["width"] = 16; }));
  WRONG(user, "dims[0].size", open([](OpenOptions& o) { o.dims["length"] = -1; }));
  WRONG(user, "dims[1]", open([](OpenOptions& o) { o.shapes["a"] = {4, -1}; }));
  WRONG(user, "a", open([](OpenOptions& o) { o.shapes["a"] = {4, 4, 4}; }));
  WRONG(user, "dims[0]", open([](OpenOptions& o) { o.hints["a"] = {-4, 4}; }));
  WRONG(user, "texts[1]", open([](OpenOptions& o) { o.texts = {"a", "a"}; }));
  WRONG(user, "kv", open([](OpenOptions& o) { o.kv_cache = "nonsense"; }));
  WRONG(user, "README.md", heddle::Program::open(HEDDLE_SOURCE_DIR "/README.md"));
  WRONG(user, "p", heddle::Program::parse("p", "nonsense"));
}

void model_rows(std::vector<Row>& rows) {
  WRONG(user, "no input 'z'; there are arg0, arg1", g.model.input("z"));
  WRONG(user, "no output ''; there are out0, out1", g.model.output(""));
  WRONG(user, "no output 'x'", g.model.output("x"));
  WRONG(user, "no input 'out0'", g.program.input("out0"));
  WRONG(user, "no output 'arg0'", g.program.output("arg0"));
  WRONG(user, "strings", g.model.text_id("a"));
  WRONG(user, "strings", g.model.text(1));
  WRONG(user, "moved from", g.moved_model.info());
  WRONG(user, "moved from", g.moved_model.origin());
  WRONG(user, "moved from", g.moved_model.random_inputs());
  WRONG(user, "model", g.moved_model.compile());
  WRONG(user, "there are none", g.moved_model.input("x"));
  WRONG(user, "model", g.moved_model.text_id("a"));
  WRONG(user, "program", g.moved_program.context());
  WRONG(user, "program", g.moved_program.save("/tmp/x"));
  WRONG(user, "program", g.moved_program.wait(0));
  WRONG(user, "there are none", g.moved_program.output("y"));
  WRONG(user, "context", g.moved_context.run());
  WRONG(user, "context", g.moved_context.prepare());
  WRONG(user, "there are none", g.moved_context.bind_input("x", g.x));
  WRONG(user, "there are none", g.moved_context.bind_output("y", g.y));
  WRONG(user, "path", g.program.save(""));
  WRONG(user, "", g.program.save("/tmp/x.heddle"));  // interpreted
  WRONG(user, "most_ms", g.program.wait(-1));
  WRONG(
      user, "most",
      heddle::set_log(static_cast<heddle::LogLevel>(7), [](heddle::LogLevel, std::string_view) {}));
}

void compile_rows(std::vector<Row>& rows) {
  static const auto compile = [](Good& g, const std::function<void(heddle::CompileOptions&)>& set) {
    heddle::CompileOptions options = interpreted();
    set(options);
    return g.model.compile(options);
  };
  WRONG(user, "nonsense", compile(g, [](auto& o) { o.device = "nonsense"; }));
  WRONG(device, "", compile(g, [](auto& o) { o.device = "cuda:99"; }));
  WRONG(user, "level", compile(g, [](auto& o) { o.level = "O9"; }));
  WRONG(user, "fuse", compile(g, [](auto& o) { o.fuse = "all"; }));
  WRONG(user, "numerics", compile(g, [](auto& o) { o.numerics = ""; }));
  WRONG(user, "precision", compile(g, [](auto& o) { o.device = "cpu", o.precision = "f31"; }));
  WRONG(user, "target", compile(g, [](auto& o) { o.device = "cpu", o.target = "nothing"; }));
  WRONG(user, "threads", compile(g, [](auto& o) { o.threads = -1; }));
  WRONG(user, "threads", compile(g, [](auto& o) { o.threads = 5000; }));
  WRONG(user, "struct_size", compile(g, [](auto& o) { o.struct_size = 3; }));
  WRONG(user, "memory_limit_bytes", compile(g, [](auto& o) { o.memory_limit_bytes = -1; }));
}

void run_rows(std::vector<Row>& rows) {
  using heddle::Tensor;
  static const std::vector<float> kSix(6);
  WRONG(user, "no value for input arg0, arg1", g.context.run(heddle::Tensors{}));
  WRONG(user, "no value for input arg1", g.context.run({{"x", g.x}}));
  WRONG(user, "no input 'z'", g.context.run({{"x", g.x}, {"k", g.k}, {"z", g.x}}));
  WRONG(user, "s32[2]; wanted f32[2,3]", g.context.run({{"x", g.k}, {"k", g.k}}));
  WRONG(user, "f64[2,3]", g.context.bind_input("x", Tensor::zeros<double>({2, 3})));
  WRONG(shape, "f32[3,2]; wanted f32[2,3]",
        g.context.bind_input("x", Tensor::zeros<float>({3, 2})));
  WRONG(shape, "f32[6]; wanted f32[2,3]", g.context.bind_input("x", Tensor::zeros<float>({6})));
  WRONG(shape, "f32[]; wanted", g.context.bind_input("x", Tensor::zeros<float>({})));
  WRONG(shape, "f32[2,3,1]", g.context.bind_input("x", Tensor::zeros<float>({2, 3, 1})));
  WRONG(shape, "f32[0]", g.context.bind_input("x", Tensor()));
  WRONG(user, "no input 'out0'", g.context.bind_input("out0", g.x));
  WRONG(user, "no output 'x'", g.context.bind_output("x", g.y));
  WRONG(user, "s32[2]; wanted f32[2,3]", g.context.bind_output("out0", g.k));
  WRONG(shape, "f32[3,2]; wanted", g.context.bind_output("out0", Tensor::zeros<float>({3, 2})));
  WRONG(user, "const memory", g.context.bind_output("out0", Tensor::view({2, 3}, kSix)));
  WRONG(user, "not bound", g.program.context().run());
  WRONG(shape, "bound to f32[4,3]; wanted f32[4,5] for these", {
    heddle::Context context = g.bounded_program.context();
    const Tensor three = Tensor::zeros<float>({4, 3}), five = Tensor::zeros<float>({4, 5});
    context.bind_input("a", three);
    context.bind_input("b", three);
    context.bind_output("y", three);
    context.bind_input("a", five);
    context.bind_input("b", five);
    context.run();
  });
  WRONG(shape, "[4,16]; wanted [4,5]", {  // said, though it is what the model begins with
    heddle::Context context = g.bounded_program.context();
    context.bind_input("a", Tensor::zeros<float>({4, 16}));
    context.bind_input("b", Tensor::zeros<float>({4, 5}));
    context.prepare();
  });
  WRONG(shape, "f32[4,17]; wanted f32[4,length<=16]",
        g.bounded_context.bind_input("a", Tensor::zeros<float>({4, 17})));
  WRONG(shape, "f32[5,3]", g.bounded_context.bind_input("a", Tensor::zeros<float>({5, 3})));
  WRONG(shape, "f32[4,0]", g.bounded_context.bind_input("a", Tensor::zeros<float>({4, 0})));
  WRONG(shape, "[4,3]; wanted [4,5]",
        g.bounded_context.run(
            {{"b", Tensor::zeros<float>({4, 5})}, {"a", Tensor::zeros<float>({4, 3})}}));
}

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  tensor_rows(rows);
  open_rows(rows);
  model_rows(rows);
  compile_rows(rows);
  run_rows(rows);
  return rows;
}

void expect_unharmed(Good& g) {
  const heddle::Tensors results = g.context.run({{"x", g.x}, {"arg1", g.k}});
  const heddle::span<const float> y = results.at("out0").span<const float>();
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], 2 * static_cast<float>(i + 1));
  for (const std::int64_t length : {3, 16}) {
    const heddle::Tensor ones = heddle::Tensor::zeros<float>({4, length});
    for (float& one : ones.span<float>()) one = 1;
    const heddle::Tensors sums = g.bounded_context.run({{"a", ones}, {"b", ones}});
    EXPECT_EQ(sums.at("y").shape(), (heddle::Shape{4, length}));
    for (const float sum : sums.at("y").span<const float>()) EXPECT_EQ(sum, 2);
  }
}

TEST(WrongCallsCpp, ThrowTheRightClass) {
  const std::vector<Row> rows = all_rows();
  EXPECT_GE(rows.size(), 90u);
  Good g;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    expect_thrown(row, g);
    expect_unharmed(g);
  }
  RecordProperty("rows", static_cast<int>(rows.size()));
}

TEST(WrongCallsCpp, ErrorsAreCaughtByTheirBases) {
  EXPECT_THROW(heddle::Model::open("/no/such/model"), heddle::Error);
  EXPECT_THROW(heddle::Model::open("/no/such/model"), std::exception);
  EXPECT_THROW(heddle::Tensor::zeros<float>({-1}), heddle::UserError);
  EXPECT_THROW(heddle::Tensor::zeros<float>({std::int64_t{1} << 58}), heddle::MachineError);
}

TEST(WrongCallsCpp, ARunThatIsCancelledSaysSo) {
  Good g;
  g.context.run({{"x", g.x}, {"k", g.k}});
  g.context.cancel();
  EXPECT_THROW(g.context.run(), heddle::Cancelled);
  g.context.run();
}

}  // namespace
}  // namespace wrong_calls_cpp
