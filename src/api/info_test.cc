// The origin of a model, unsupported operators, and the log.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "api/heddle.h"
#include "import/onnx_test_util.h"

namespace heddle::api {
namespace {

namespace onnx = import::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void ok(heddle_status* status) {
  const std::string message = heddle_status_message(status);
  heddle_status_free(status);
  if (status != nullptr) throw std::runtime_error(message);
}

// y = Op(x), with fields of the model that its writer makes.
std::string model_of(const std::vector<std::string>& operators, const std::string& more = "") {
  onnx::Model model;
  model.inputs = {onnx::value("x", onnx::kFloat, {"2", "3"})};
  std::string from = "x";
  for (const std::string& op : operators) {
    const std::string to = from + "'";
    model.nodes.push_back(onnx::node(op, {from}, {to}));
    from = to;
  }
  model.outputs = {from};
  model.other_opsets = {{"com.microsoft", 1}};
  return model.bytes() + more;
}

struct Opened {
  explicit Opened(const std::string& bytes) {
    status = heddle_model_parse("m.onnx", bytes.data(), bytes.size(), nullptr, &model);
  }
  ~Opened() {
    heddle_status_free(status);
    heddle_model_free(model);
  }
  heddle_model* model = nullptr;
  heddle_status* status = nullptr;
};

heddle_model_origin origin_of(const heddle_model* model) {
  heddle_model_origin origin{};
  origin.struct_size = sizeof origin;
  heddle_model_get_origin(model, &origin);
  return origin;
}

TEST(Info, AModelTellsItsOrigin) {
  using onnx::Message;
  const std::string more = Message()
                               .text(2, "a tool")
                               .text(3, "1.2")
                               .text(4, "org.example")
                               .number(5, 7)
                               .text(6, "for a test")
                               .message(14, Message().text(1, "author").text(2, "somebody"))
                               .message(14, Message().text(1, "empty"))
                               .bytes();
  const Opened opened(model_of({"Relu"}, more));
  ASSERT_EQ(opened.status, nullptr) << heddle_status_message(opened.status);
  const heddle_model_origin origin = origin_of(opened.model);
  EXPECT_STREQ(origin.producer, "a tool");
  EXPECT_STREQ(origin.producer_version, "1.2");
  EXPECT_STREQ(origin.domain, "org.example");
  EXPECT_STREQ(origin.description, "for a test");
  EXPECT_EQ(origin.version, 7);
  EXPECT_EQ(origin.ir_version, 8);
  EXPECT_EQ(origin.opset, 17);
  ASSERT_EQ(origin.opsets, 2);
  EXPECT_STREQ(heddle_model_opset(opened.model, 0).domain, "ai.onnx");
  EXPECT_EQ(heddle_model_opset(opened.model, 0).version, 17);
  EXPECT_STREQ(heddle_model_opset(opened.model, 1).domain, "com.microsoft");
  EXPECT_EQ(heddle_model_opset(opened.model, 2).domain, nullptr);
  ASSERT_EQ(origin.metadata, 2);
  const char *key = nullptr, *value = nullptr;
  ok(heddle_model_metadata(opened.model, 0, &key, &value));
  EXPECT_STREQ(key, "author");
  EXPECT_STREQ(value, "somebody");
  ok(heddle_model_metadata(opened.model, 1, &key, &value));
  EXPECT_STREQ(key, "empty");
  EXPECT_STREQ(value, "");
}

TEST(Info, OtherFormatsHaveNoOrigin) {
  const Opened opened("HloModule m\nENTRY e { ROOT x = f32[2] parameter(0) }\n");
  ASSERT_EQ(opened.status, nullptr);
  const heddle_model_origin origin = origin_of(opened.model);
  EXPECT_STREQ(origin.producer, "");
  EXPECT_EQ(origin.opsets, 0);
  EXPECT_EQ(origin.metadata, 0);
}

TEST(Info, AStatusListsWhatIsNotSupported) {
  const Opened opened(model_of({"Foo", "Relu", "Bar", "Foo"}));
  ASSERT_EQ(heddle_status_code(opened.status), HEDDLE_CODE_UNSUPPORTED);
  ASSERT_EQ(heddle_status_unsupported_count(opened.status), 2);
  std::vector<std::pair<std::string, int64_t>> found;
  for (int64_t i = 0; i < 2; ++i) {
    heddle_unsupported one{};
    one.struct_size = sizeof one;
    heddle_status_unsupported(opened.status, i, &one);
    EXPECT_STREQ(one.kind, "operator");
    EXPECT_EQ(one.opset, 17);
    EXPECT_THAT(one.place, HasSubstr(one.what));
    EXPECT_STRNE(one.way_out, "");
    found.emplace_back(one.what, one.count);
  }
  EXPECT_THAT(found, ElementsAre(std::pair<std::string, int64_t>("Bar", 1),
                                 std::pair<std::string, int64_t>("Foo", 2)));
}

TEST(Info, OperationsOfStablehloAreListed) {
  const Opened opened(
      "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
      "  %a = \"stablehlo.nonsense\"(%x) : (tensor<2xf32>) -> tensor<2xf32>\n"
      "  %b = stablehlo.add %a, %a : tensor<2xf32>\n"
      "  %c = \"stablehlo.more\"(%b) : (tensor<2xf32>) -> tensor<2xf32>\n"
      "  return %c : tensor<2xf32>\n}\n");
  ASSERT_EQ(heddle_status_code(opened.status), HEDDLE_CODE_UNSUPPORTED)
      << heddle_status_message(opened.status);
  ASSERT_EQ(heddle_status_unsupported_count(opened.status), 2);
  heddle_unsupported one{};
  one.struct_size = sizeof one;
  heddle_status_unsupported(opened.status, 1, &one);
  EXPECT_STREQ(one.what, "stablehlo.more");
  EXPECT_STREQ(one.place, "4:3");
}

TEST(Info, OtherErrorsListNothing) {
  const Opened opened("HloModule m\nENTRY e { ROOT x = f32[2] nothing(0) }\n");
  ASSERT_NE(opened.status, nullptr);
  EXPECT_EQ(heddle_status_unsupported_count(opened.status), 0);
  EXPECT_EQ(heddle_status_unsupported_count(nullptr), 0);
}

class Log : public ::testing::Test {
 protected:
  ~Log() override { ok(heddle_set_log(nullptr, nullptr, HEDDLE_LOG_NOTHING)); }

  static void write(const heddle_log_message* message, void* context) {
    static_cast<Log*>(context)->lines_.emplace_back(message->level, message->text);
    // Logs nothing, and does not hang.
    heddle_model* none = nullptr;
    const char* text = "HloModule n\nENTRY e { ROOT x = f32[2] parameter(0) }\n";
    ok(heddle_model_parse("inner", text, std::strlen(text), nullptr, &none));
    heddle_model_free(none);
    heddle_status* const again = heddle_set_log(write, context, HEDDLE_LOG_DEBUG);
    EXPECT_EQ(heddle_status_kind(again), HEDDLE_USER_ERROR);
    heddle_status_free(again);
  }
  static void compile() {
    const Opened opened(model_of({"Relu", "Exp"}));
    heddle_compile_options options{};
    options.struct_size = sizeof options;
    options.cache = "off";
    heddle_program* program = nullptr;
    ok(heddle_compile(opened.model, &options, &program));
    heddle_program_free(program);
  }
  std::vector<std::pair<int32_t, std::string>> lines_;
};

TEST_F(Log, TellsWhatHappens) {
  ok(heddle_set_log(write, this, HEDDLE_LOG_INFO));
  compile();
  std::string all;
  for (const auto& [level, text] : lines_) {
    EXPECT_LE(level, HEDDLE_LOG_INFO);
    EXPECT_EQ(text.find('\n'), std::string::npos);
    all += text + "\n";
  }
  EXPECT_THAT(all, HasSubstr("opened "));
  EXPECT_THAT(all, HasSubstr("(ONNX): 1 inputs, 1 outputs"));
  EXPECT_THAT(all, HasSubstr("compiled "));
  EXPECT_THAT(all, HasSubstr("1 kernels"));
}

TEST_F(Log, LevelsAndTheEnd) {
  ok(heddle_set_log(write, this, HEDDLE_LOG_DEBUG));
  compile();
  const auto is_step = [](const auto& line) { return line.first == HEDDLE_LOG_DEBUG; };
  EXPECT_GT(std::count_if(lines_.begin(), lines_.end(), is_step), 2);
  lines_.clear();
  ok(heddle_set_log(write, this, HEDDLE_LOG_WARNING));
  compile();
  EXPECT_THAT(lines_, IsEmpty());
  ok(heddle_set_log(nullptr, nullptr, HEDDLE_LOG_DEBUG));
  compile();
  EXPECT_THAT(lines_, IsEmpty());
}

}  // namespace
}  // namespace heddle::api
