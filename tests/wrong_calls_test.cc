// Every function of heddle.h called wrongly: each call gives a user error that names the function
// and the argument, touches nothing, and what is there works afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>

#include "import/onnx_test_util.h"
#include "wrong_calls.h"

#if defined(__SANITIZE_ADDRESS__)
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "allocator_may_return_null=1:detect_leaks=1";
}
#endif

namespace heddle::wrong_calls {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

void must(heddle_status* status) {
  const std::string message = heddle_status_message(status);
  heddle_status_free(status);
  if (status != nullptr) throw std::runtime_error(message);
}

constexpr const char* kAdd =
    "HloModule m\nENTRY main {\n x = f32[2,3] parameter(0)\n ROOT y = f32[2,3] add(x, x)\n}\n";

heddle_compile_options interpreted() {
  auto options = sized<heddle_compile_options>();
  options.device = "interp";
  return options;
}

}  // namespace

Good::Good() {
  const heddle_compile_options options = interpreted();
  must(heddle_model_parse("m", kAdd, std::strlen(kAdd), nullptr, &model));
  must(heddle_compile(model, &options, &program));
  must(heddle_context_create(program, &context));
  must(heddle_context_bind_input_named(context, "x", x));
  must(heddle_context_bind_output_named(context, "out0", y));
  const auto queued = [] {
    auto serial = sized<heddle_queue_options>();
    serial.mode = HEDDLE_QUEUE_SERIAL;
    return serial;
  }();
  must(heddle_queue_create(program, &queued, &queue));

  namespace onnx = import::testing;
  onnx::Model softmax;
  softmax.inputs = {onnx::value("x", onnx::kFloat, {"4", "length"})};
  softmax.nodes = {onnx::node("Softmax", {"x"}, {"y"})};
  softmax.outputs = {"y"};
  const std::string path =
      ::testing::TempDir() + "wrong_calls_" + std::to_string(::getpid()) + ".onnx";
  std::ofstream(path, std::ios::binary) << softmax.bytes();
  const heddle_dim bound{"length", 16};
  auto open = sized<heddle_open_options>();
  open.bounds = &bound;
  open.bound_count = 1;
  must(heddle_model_open(path.c_str(), &open, &bounded_model_));
  must(heddle_compile(bounded_model_, &options, &bounded_program_));
  must(heddle_context_create(bounded_program_, &bounded));
  std::remove(path.c_str());
}

Good::~Good() {
  heddle_queue_free(queue);
  heddle_context_free(bounded);
  heddle_context_free(context);
  heddle_program_free(bounded_program_);
  heddle_program_free(program);
  heddle_model_free(bounded_model_);
  heddle_model_free(model);
}

namespace {

std::vector<Row> all_rows() {
  std::vector<Row> all;
  for (const auto& rows : {open_rows(), model_rows(), program_rows(), run_rows()})
    all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

// The good context and queue still work.
void expect_unharmed(Good& g) {
  EXPECT_EQ(g.no_model, nullptr);
  EXPECT_EQ(g.no_program, nullptr);
  EXPECT_EQ(g.no_context, nullptr);
  EXPECT_EQ(g.no_queue, nullptr);
  EXPECT_EQ(g.no_run, nullptr);
  EXPECT_EQ(g.no_text, nullptr);
  std::memset(g.y, 0, sizeof g.y);
  must(heddle_context_run(g.context));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(g.y[i], 2 * g.x[i]);
  std::memset(g.y, 0, sizeof g.y);
  auto request = sized<heddle_run_request>();
  request.inputs = g.inputs;
  request.outputs = g.outputs;
  request.input_count = request.output_count = 1;
  must(heddle_queue_submit(g.queue, &request, nullptr));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(g.y[i], 2 * g.x[i]);
}

TEST(WrongCalls, AreUserErrorsThatNameFunctionAndArgument) {
  const std::vector<Row> rows = all_rows();
  EXPECT_GE(rows.size(), 150u);
  Good g;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    SCOPED_TRACE(fmt::format("row {}: {}, {}", i, row.function, row.argument));
    heddle_status* before = heddle_model_open("/no/such/model", nullptr, &g.no_model);
    heddle_status_free(before);
    ASSERT_THAT(heddle_last_error(), HasSubstr("/no/such/model"));
    heddle_status* status = row.call(g);
    const std::string message = row.silent ? heddle_last_error() : heddle_status_message(status);
    EXPECT_EQ(heddle_status_kind(status), row.silent ? HEDDLE_OK : HEDDLE_USER_ERROR);
    EXPECT_EQ(message, heddle_last_error());
    EXPECT_THAT(message, StartsWith(std::string(row.function) + ": "));
    EXPECT_THAT(message, HasSubstr(row.argument));
    heddle_status_free(status);
    expect_unharmed(g);
  }
  RecordProperty("rows", static_cast<int>(rows.size()));
}

// The words of options: the message names the option, as the command's does.
TEST(WrongCalls, UnknownWordsNameTheOption) {
  Good g;
  const std::pair<const char*, const char * heddle_compile_options::*> words[] = {
      {"device", &heddle_compile_options::device},
      {"target", &heddle_compile_options::target},
      {"level", &heddle_compile_options::level},
      {"fuse", &heddle_compile_options::fuse},
      {"memory", &heddle_compile_options::memory},
      {"numerics", &heddle_compile_options::numerics},
      {"precision", &heddle_compile_options::precision},
      {"library", &heddle_compile_options::library},
      {"order", &heddle_compile_options::order},
  };
  for (const auto& [name, member] : words) {
    for (const char* word : {"nonsense", " ", "\n\x01"}) {
      heddle_compile_options options = sized<heddle_compile_options>();
      options.*member = word;
      heddle_status* status = heddle_compile(g.model, &options, &g.no_program);
      EXPECT_EQ(heddle_status_kind(status), HEDDLE_USER_ERROR) << name;
      EXPECT_THAT(heddle_status_message(status), HasSubstr(name));
      heddle_status_free(status);
    }
  }
  expect_unharmed(g);
}

std::string header() {
  std::stringstream text;
  for (const char* name : {"heddle.h", "heddle_check.h", "heddle_device.h", "heddle_info.h",
                           "heddle_shapes.h", "heddle_state.h", "heddle_text.h"})
    text << std::ifstream(std::string(HEDDLE_SOURCE_DIR "/src/api/") + name).rdbuf();
  return text.str();
}

// Functions that take anything, or nothing that could be wrong.
const std::set<std::string> kTakeAnything = {
    "heddle_version",        "heddle_status_kind",
    "heddle_status_message", "heddle_status_free",
    "heddle_last_error",     "heddle_type_name",
    "heddle_type_bytes",     "heddle_model_free",
    "heddle_program_free",   "heddle_context_free",
    "heddle_queue_free",     "heddle_run_free",
    "heddle_string_free",    "heddle_trace_start",
    "heddle_status_code",    "heddle_status_unsupported_count"};

TEST(WrongCalls, CoverTheHeader) {
  std::set<std::string> called = kTakeAnything;
  for (const Row& row : all_rows()) called.insert(row.function);
  const std::string text = header();
  const std::regex declared(R"(HEDDLE_EXPORT\s+[^;(]*?(heddle_\w+)\()");
  int functions = 0;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), declared);
       at != std::sregex_iterator(); ++at, ++functions)
    EXPECT_TRUE(called.contains((*at)[1])) << (*at)[1] << " is never called wrongly";
  EXPECT_GT(functions, 50);
}

TEST(WrongCalls, FreeingNothingIsFine) {
  heddle_model_free(nullptr);
  heddle_program_free(nullptr);
  heddle_context_free(nullptr);
  heddle_queue_free(nullptr);
  heddle_run_free(nullptr);
  heddle_status_free(nullptr);
  heddle_string_free(nullptr);
  EXPECT_STREQ(heddle_status_message(nullptr), "");
  EXPECT_EQ(heddle_status_kind(nullptr), HEDDLE_OK);
  EXPECT_EQ(heddle_status_code(nullptr), HEDDLE_CODE_NONE);
  EXPECT_STREQ(heddle_type_name(-1), "?");
  EXPECT_STREQ(heddle_type_name(INT32_MAX), "?");
  EXPECT_EQ(heddle_type_bytes(-1), 0);
}

// What a caller reads after a wrong call of a function without a status is zero.
TEST(WrongCalls, ZeroWhatTheCallerReadsNext) {
  heddle_port port;
  std::memset(&port, 0x55, sizeof port);
  port.struct_size = sizeof port;
  heddle_model_input(nullptr, 0, &port);
  EXPECT_EQ(port.name, nullptr);
  EXPECT_EQ(port.rank, 0);
  heddle_program_info info;
  std::memset(&info, 0x55, sizeof info);
  info.struct_size = sizeof info;
  heddle_program_get_info(nullptr, &info);
  EXPECT_EQ(info.device, nullptr);
  EXPECT_EQ(info.inputs, 0);
}

// A newer caller whose additions are zero.
TEST(WrongCalls, LaterStructsAreFineWhereTheirAdditionsAreZero) {
  Good g;
  Later<heddle_compile_options> later;
  later.more = 0;
  later.known.device = "interp";
  must(heddle_compile(g.model, &later.known, &g.no_program));
  heddle_program_free(g.no_program);
  g.no_program = nullptr;
}

}  // namespace
}  // namespace heddle::wrong_calls
