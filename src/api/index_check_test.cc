// Indices out of range, through the interface: each operator, with indices from each source, on
// each device and level; program files, the C interface.
#include "api/heddle.h"
#include "api/index_check_test_util.h"

namespace heddle::api {
namespace {

using import::testing::attr;
using import::testing::ints_tensor;
using import::testing::kFloat;
using import::testing::kInt32;
using import::testing::kInt64;
using import::testing::Message;
using import::testing::node;
using import::testing::value;
using ::testing::HasSubstr;

// An operator whose input "at" holds indices.
struct Case {
  std::string name;
  std::vector<Message> inputs;  // except "at"
  Message op;
  import::testing::DataType type;
  Ints dims, inside, same;  // of "at"; indices in range, and equivalent ones
  size_t place;             // of the one that is varied
  int64_t low, high;
};

Message named(const std::string& op, const import::testing::Strings& inputs,
              const std::vector<Message>& attributes = {}, const std::string& domain = "") {
  return node(op, inputs, {"y"}, attributes, domain, "the " + op);
}

std::vector<Case> cases() {
  const Message x = value("x", kFloat, {"4", "3"});
  const auto updates = [](const import::testing::Strings& dims) {
    return value("u", kFloat, dims);
  };
  return {
      {"Gather", {x}, named("Gather", {"x", "at"}), kInt64, {2}, {-4, 3}, {0, -1}, 1, -4, 3},
      {"Gather of s32",
       {x},
       named("Gather", {"x", "at"}, {attr("axis", int64_t{1})}),
       kInt32,
       {1, 2},
       {2, -3},
       {-1, 0},
       0,
       -3,
       2},
      {"Gather by a scalar", {x}, named("Gather", {"x", "at"}), kInt64, {}, {-4}, {0}, 0, -4, 3},
      {"GatherElements",
       {x},
       named("GatherElements", {"x", "at"}),
       kInt64,
       {2, 3},
       {0, -4, 3, 1, 2, -1},
       {-4, 0, -1, -3, -2, 3},
       4,
       -4,
       3},
      {"GatherND",
       {x},
       named("GatherND", {"x", "at"}),
       kInt64,
       {2, 2},
       {3, 2, -4, -3},
       {-1, -1, 0, 0},
       3,
       -3,
       2},
      {"GatherND, first",
       {x},
       named("GatherND", {"x", "at"}),
       kInt64,
       {2, 2},
       {3, 2, -4, -3},
       {-1, -1, 0, 0},
       2,
       -4,
       3},
      {"ScatterElements",
       {x, updates({"1", "3"})},
       named("ScatterElements", {"x", "at", "u"}),
       kInt64,
       {1, 3},
       {0, -4, 3},
       {-4, 0, -1},
       0,
       -4,
       3},
      {"ScatterND",
       {x, updates({"2", "3"})},
       named("ScatterND", {"x", "at", "u"}),
       kInt64,
       {2, 1},
       {3, -4},
       {-1, 0},
       1,
       -4,
       3},
      {"ScatterND, added",
       {x, updates({"2"})},
       named("ScatterND", {"x", "at", "u"}, {attr("reduction", std::string("add"))}),
       kInt64,
       {2, 2},
       {3, 2, -4, -3},
       {-1, -1, 0, 0},
       1,
       -3,
       2},
      {"EmbedLayerNormalization",
       {value("words", kFloat, {"5", "3"}), value("places", kFloat, {"2", "3"}),
        value("kinds", kInt32, {"1", "2"}), value("table", kFloat, {"2", "3"}),
        value("gamma", kFloat, {"3"}), value("beta", kFloat, {"3"})},
       named("EmbedLayerNormalization",
             {"at", "kinds", "words", "places", "table", "gamma", "beta"}, {}, "com.microsoft"),
       kInt32,
       {1, 2},
       {0, 4},
       {0, 4},
       1,
       0,
       4},
  };
}

OnnxModel model_of(const Case& c) {
  OnnxModel model;
  model.inputs = c.inputs;
  model.nodes = {c.op};
  model.outputs = {"y"};
  model.opset = 18;
  model.other_opsets = {{"com.microsoft", 1}};
  return model;
}

import::testing::Strings texts(const Ints& dims) {
  import::testing::Strings result;
  for (int64_t dim : dims) result.push_back(std::to_string(dim));
  return result;
}

// "at" as an input, as a constant, and computed by the model.
OnnxModel by_input(const Case& c) {
  OnnxModel model = model_of(c);
  model.inputs.push_back(value("at", c.type, texts(c.dims)));
  return model;
}
OnnxModel by_constant(const Case& c, const Ints& at) {
  OnnxModel model = model_of(c);
  const std::vector<int32_t> narrow(at.begin(), at.end());
  model.constants.push_back(c.type == kInt32
                                ? import::testing::tensor<int32_t>("at", c.type, c.dims, narrow)
                                : import::testing::tensor<int64_t>("at", c.type, c.dims, at));
  return model;
}
OnnxModel by_computation(const Case& c) {
  OnnxModel model = model_of(c);
  model.inputs.push_back(value("a", c.type, texts(c.dims)));
  model.inputs.push_back(value("zero", c.type, {}));
  model.nodes.insert(model.nodes.begin(), node("Add", {"a", "zero"}, {"at"}));
  return model;
}

class Indices : public testing::TestWithParam<Case> {};

TEST_P(Indices, InsideTheyAreTakenAndOutsideTheyAreErrors) {
  const Case& c = GetParam();
  const auto with = [&](int64_t index) {
    Ints at = c.inside;
    at[c.place] = index;
    return at;
  };
  const std::string takes = fmt::format("takes {} to {}", c.low, c.high);
  for (const Way& way : kWays) {
    SCOPED_TRACE(way.name);
    const auto input = make_program(by_input(c), way);
    ASSERT_TRUE(input) << input.error().message;
    const auto computed = make_program(by_computation(c), way);
    ASSERT_TRUE(computed) << computed.error().message;
    const Ran want = run(*input, {{"at", c.inside}});
    ASSERT_EQ(want.error, "");
    EXPECT_EQ(run(*input, {{"at", c.same}}).bytes, want.bytes);
    EXPECT_EQ(run(*computed, {{"a", c.inside}}).bytes, want.bytes);
    EXPECT_EQ(run(by_constant(c, c.inside), way, {}).bytes, want.bytes);
    for (const int64_t index : {c.low, c.high}) {
      EXPECT_EQ(run(*input, {{"at", with(index)}}).error, "");
      EXPECT_EQ(run(*computed, {{"a", with(index)}}).error, "");
    }
    for (const int64_t index : {c.low - 1, c.high + 1, int64_t{99999}}) {
      const std::string found = "is " + std::to_string(index) + "; node 'the ";
      EXPECT_THAT(run(*input, {{"at", with(index)}}).error,
                  AllOf(HasSubstr("input 'at'"), HasSubstr(found), HasSubstr(takes)));
      EXPECT_THAT(run(*computed, {{"a", with(index)}}).error,
                  AllOf(HasSubstr("computes index " + std::to_string(index) + "; node 'the "),
                        HasSubstr(takes)));
      EXPECT_THAT(run(by_constant(c, with(index)), way, {}).error,
                  HasSubstr(fmt::format("index {} is out of range", index)));
    }
    // After an error a valid run succeeds again.
    EXPECT_EQ(run(*computed, {{"a", c.inside}}).bytes, want.bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, Indices, testing::ValuesIn(cases()), [](const auto& c) {
  std::string name;
  for (char letter : c.param.name)
    if (std::isalnum(static_cast<unsigned char>(letter))) name += letter;
  return name;
});

TEST(IndexChecks, OneHotHasNoRange) {
  OnnxModel model;
  model.inputs = {value("at", kInt64, {"4"})};
  model.constants = {ints_tensor("depth", {3}), ints_tensor("values", {5, 7})};
  model.nodes = {node("OneHot", {"at", "depth", "values"}, {"y"})};
  model.outputs = {"y"};
  for (const Way& way : kWays) {
    const Ran ran = run(model, way, {{"at", {1, -1, 3, 99}}});
    EXPECT_EQ(ran.error, "") << way.name;
    const Ints want{5, 7, 5, 5, 5, 7, 5, 5, 5, 5, 5, 5};
    ASSERT_EQ(ran.bytes.size(), want.size() * sizeof(int64_t));
    EXPECT_EQ(std::memcmp(ran.bytes.data(), want.data(), ran.bytes.size()), 0) << way.name;
  }
}

TEST(IndexChecks, RandomInputsAreInRange) {
  for (const Case& c : cases()) {
    for (const Way& way : {kWays[2], kWays[4]}) {
      const auto model = Model::parse("test", by_input(c).bytes(), {});
      ASSERT_TRUE(model);
      const auto made = make_program(by_input(c), way);
      ASSERT_TRUE(made);
      std::vector<std::string> inputs;
      std::vector<void*> buffers;
      for (const Port& port : (*model)->inputs())
        inputs.emplace_back(static_cast<size_t>(port.bytes), '\0');
      for (std::string& bytes : inputs) buffers.push_back(bytes.data());
      ASSERT_TRUE((*model)->random_inputs(7, buffers));
      Feeds feeds;
      const Port& at = (*model)->inputs().back();
      ASSERT_EQ(at.name, "at");
      for (size_t i = 0; i < inputs.size(); ++i) {
        const Port& port = (*model)->inputs()[i];
        if (port.name != "at") continue;
        tensor::Literal ids(port.shape);
        std::memcpy(ids.mutable_data(), inputs[i].data(), inputs[i].size());
        for (int64_t k = 0; k < ids.elems(); ++k) feeds["at"].push_back(ids.get_s64(k));
      }
      EXPECT_EQ(run(*made, feeds).error, "") << c.name;
    }
  }
}

TEST(IndexChecks, TheCInterfaceSaysThatItIsTheUsers) {
  for (const bool computed : {false, true}) {
    const OnnxModel onnx = computed ? by_computation(cases()[0]) : by_input(cases()[0]);
    const std::string bytes = onnx.bytes();
    heddle_model* model = nullptr;
    ASSERT_EQ(heddle_model_parse("test", bytes.data(), bytes.size(), nullptr, &model), nullptr);
    heddle_program* program = nullptr;
    ASSERT_EQ(heddle_compile(model, nullptr, &program), nullptr);
    heddle_port hidden{};
    hidden.struct_size = sizeof(hidden);
    heddle_program_output(program, 1, &hidden);
    EXPECT_EQ(hidden.name, nullptr);
    heddle_context* context = nullptr;
    ASSERT_EQ(heddle_context_create(program, &context), nullptr);
    const std::vector<float> x(12, 2.0F);
    std::vector<float> y(6);
    int64_t at[] = {0, 4}, zero = 0;
    ASSERT_EQ(heddle_context_bind_input(context, 0, x.data()), nullptr);
    ASSERT_EQ(heddle_context_bind_input(context, 1, at), nullptr);
    if (computed) {
      ASSERT_EQ(heddle_context_bind_input(context, 2, &zero), nullptr);
    }
    ASSERT_EQ(heddle_context_bind_output(context, 0, y.data()), nullptr);
    heddle_status* status = heddle_context_run(context);
    EXPECT_EQ(heddle_status_kind(status), HEDDLE_USER_ERROR);
    EXPECT_THAT(heddle_status_message(status),
                HasSubstr("node 'the Gather' (Gather) takes -4 to 3"));
    heddle_status_free(status);
    at[1] = 3;
    EXPECT_EQ(heddle_context_run(context), nullptr);
    EXPECT_EQ(y[5], 2.0F);
    heddle_context_free(context);
    heddle_program_free(program);
    heddle_model_free(model);
  }
}

TEST(IndexChecks, HloClamps) {
  const std::string text = R"(HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  at = s32[2,1] parameter(1)
  ROOT y = f32[2] gather(x, at), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}
})";
  for (const Way& way : kWays) {
    if (way.saved) continue;
    const auto model = Model::parse("test", text, {});
    ASSERT_TRUE(model) << model.error().message;
    CompileOptions options;
    options.device = way.device;
    options.level = way.level;
    options.cache = "off";
    const auto program = Program::compile(**model, options);
    ASSERT_TRUE(program) << program.error().message;
    const Ran ran = run(*program, {{"arg1", {99, -99}}});
    EXPECT_EQ(ran.error, "");
    const float want[] = {3.5F, 0.5F};
    EXPECT_EQ(std::memcmp(ran.bytes.data(), want, sizeof(want)), 0) << way.name;
  }
}

}  // namespace
}  // namespace heddle::api
