// The C interface, end to end on small modules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "api/heddle.h"

namespace heddle::api {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* kSoftmax = R"(HloModule softmax
max { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] maximum(a, b) }
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
ENTRY main {
  x = f32[4,33] parameter(0)
  low = f32[] constant(-inf)
  m = f32[4] reduce(x, low), dimensions={1}, to_apply=max
  mb = f32[4,33] broadcast(m), dimensions={0}
  d = f32[4,33] subtract(x, mb)
  e = f32[4,33] exponential(d)
  zero = f32[] constant(0)
  s = f32[4] reduce(e, zero), dimensions={1}, to_apply=sum
  sb = f32[4,33] broadcast(s), dimensions={0}
  ROOT y = f32[4,33] divide(e, sb)
})";

constexpr const char* kLookup = R"(HloModule lookup
ENTRY main {
  ids = s32[3,1] parameter(0)
  mask = s32[3] parameter(1)
  table = f32[5,2] constant({{0,1},{2,3},{4,5},{6,7},{8,9}})
  rows = f32[3,2] gather(table, ids), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,2}
  ROOT out = (f32[3,2], s32[3]) tuple(rows, mask)
})";

// Frees its handles; fails the test on an error.
class api : public testing::Test {
 protected:
  api() : folder_(fs::path(testing::TempDir()) / ("heddle_api_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~api() override {
    heddle_context_free(context_);
    heddle_program_free(program_);
    heddle_model_free(model_);
    fs::remove_all(folder_);
  }

  // An error here would make later calls crash.
  static void ok(heddle_status* status) {
    const std::string message = heddle_status_message(status);
    heddle_status_free(status);
    if (status != nullptr) throw std::runtime_error(message);
  }
  static std::string failure(heddle_status* status, int kind = HEDDLE_USER_ERROR) {
    EXPECT_EQ(heddle_status_kind(status), kind) << heddle_status_message(status);
    std::string message = heddle_status_message(status);
    EXPECT_EQ(message, heddle_last_error());
    EXPECT_EQ(message.find('\n'), std::string::npos);
    heddle_status_free(status);
    return message;
  }

  void parse(const char* text, const heddle_open_options* options = nullptr) {
    heddle_model_free(model_);
    model_ = nullptr;
    ok(heddle_model_parse("test", text, std::strlen(text), options, &model_));
  }
  static heddle_compile_options options(const char* device = "cpu") {
    heddle_compile_options options{};
    options.struct_size = sizeof options;
    options.device = device;
    options.cache = "off";
    options.threads = 2;
    return options;
  }
  void compile(const heddle_compile_options& options) {
    heddle_context_free(context_);
    heddle_program_free(program_);
    context_ = nullptr;
    program_ = nullptr;
    ok(heddle_compile(model_, &options, &program_));
    ASSERT_NE(program_, nullptr);
    ok(heddle_context_create(program_, &context_));
  }
  heddle_program_info info() const {
    heddle_program_info info{};
    info.struct_size = sizeof info;
    heddle_program_get_info(program_, &info);
    return info;
  }

  fs::path folder_;
  heddle_model* model_ = nullptr;
  heddle_program* program_ = nullptr;
  heddle_context* context_ = nullptr;
};

std::vector<float> softmax(const std::vector<float>& x) {
  std::vector<float> y(x.size());
  for (size_t row = 0; row < 4; ++row) {
    double sum = 0;
    for (size_t i = 0; i < 33; ++i) sum += std::exp(static_cast<double>(x[row * 33 + i]));
    for (size_t i = 0; i < 33; ++i)
      y[row * 33 + i] = static_cast<float>(std::exp(static_cast<double>(x[row * 33 + i])) / sum);
  }
  return y;
}

TEST_F(api, RunsOnEveryDeviceAndLevel) {
  parse(kSoftmax);
  std::vector<float> x(4 * 33), y(x.size());
  void* buffers[] = {x.data()};
  ok(heddle_model_random_inputs(model_, 7, buffers));
  const std::vector<float> want = softmax(x);
  heddle_compile_options all[5] = {options("interp"), options("interp:f64"), options(), options(),
                                   options()};
  all[2].level = "O0";
  all[3].level = "O1";
  for (const heddle_compile_options& one : all) {
    compile(one);
    std::fill(y.begin(), y.end(), -1.0f);
    ok(heddle_context_bind_input(context_, 0, x.data()));
    ok(heddle_context_bind_output(context_, 0, y.data()));
    for (int run = 0; run < 3; ++run) ok(heddle_context_run(context_));
    for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], want[i], 1e-6) << i;
  }
  EXPECT_STREQ(info().level, "O2");
  EXPECT_STREQ(info().precision, "f32");
  EXPECT_EQ(info().threads, 2);
  EXPECT_EQ(info().kernels, 1);
  EXPECT_EQ(info().launches, 1);
  EXPECT_GT(info().flops, 4 * 33);
  EXPECT_GE(info().min_bytes, 2 * 4 * 4 * 33);
  EXPECT_EQ(info().input_bytes, 4 * 4 * 33);
  EXPECT_EQ(info().output_bytes, 4 * 4 * 33);
}

TEST_F(api, LevelsDiffer) {
  parse(kSoftmax);
  heddle_compile_options o0 = options();
  o0.level = "O0";
  compile(o0);
  EXPECT_GT(info().kernels, 1);
  EXPECT_GT(info().temporary_bytes, 0);
  EXPECT_GE(info().temporary_bytes, info().temporary_lower_bound_bytes);
}

TEST_F(api, PortsHaveNamesAliasesAndShapes) {
  parse(kLookup);
  heddle_model_info model{};
  model.struct_size = sizeof model;
  heddle_model_get_info(model_, &model);
  EXPECT_STREQ(model.format, "HLO text");
  EXPECT_STREQ(model.name, "lookup");
  EXPECT_EQ(model.inputs, 2);
  EXPECT_EQ(model.outputs, 2);
  heddle_port port{};
  port.struct_size = sizeof port;
  heddle_model_input(model_, 0, &port);
  EXPECT_STREQ(port.name, "arg0");
  EXPECT_STREQ(port.alias, "ids");
  EXPECT_STREQ(heddle_type_name(port.type), "s32");
  EXPECT_EQ(port.rank, 2);
  EXPECT_EQ(port.dims[0], 3);
  EXPECT_EQ(port.bytes, 12);
  heddle_model_output(model_, 1, &port);
  EXPECT_STREQ(port.name, "out1");
  heddle_model_output(model_, 2, &port);
  EXPECT_EQ(port.name, nullptr);
}

TEST_F(api, RandomInputsFitTheirUse) {
  parse(kLookup);
  int32_t ids[3] = {-1, -1, -1}, mask[3] = {9, 9, 9};
  void* buffers[] = {ids, mask};
  for (uint64_t seed = 0; seed < 20; ++seed) {
    ok(heddle_model_random_inputs(model_, seed, buffers));
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(ids[i] >= 0 && ids[i] < 5) << ids[i];
      EXPECT_EQ(mask[i], 1);
    }
  }
}

TEST_F(api, SavedProgramsRunWithoutTheModel) {
  parse(kLookup);
  compile(options());
  const std::string path = folder_ / "lookup.heddle";
  ok(heddle_program_save(program_, path.c_str()));
  heddle_model_free(model_);
  model_ = nullptr;
  ok(heddle_model_open(path.c_str(), nullptr, &model_));
  compile(options());
  EXPECT_TRUE(info().cache_warm);
  EXPECT_STREQ(info().level, "O2");
  const int32_t ids[3] = {4, 0, 2}, mask[3] = {5, 6, 7};
  float rows[6] = {};
  int32_t kept[3] = {};
  ok(heddle_context_bind_input(context_, 0, ids));
  ok(heddle_context_bind_input(context_, 1, mask));
  ok(heddle_context_bind_output(context_, 0, rows));
  ok(heddle_context_bind_output(context_, 1, kept));
  ok(heddle_context_run(context_));
  EXPECT_THAT(rows, testing::ElementsAre(8, 9, 0, 1, 4, 5));
  EXPECT_THAT(kept, testing::ElementsAre(5, 6, 7));
  char* text = nullptr;
  EXPECT_THAT(failure(heddle_compile_until(model_, nullptr, "fuse", &text)),
              HasSubstr("already compiled"));
  EXPECT_EQ(text, nullptr);
}

TEST_F(api, SavedProgramsAreReadFromMemory) {
  parse(kSoftmax);
  compile(options());
  const std::string path = folder_ / "softmax.heddle";
  ok(heddle_program_save(program_, path.c_str()));
  std::ifstream file(path, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  fs::remove(path);
  heddle_model_free(model_);
  model_ = nullptr;
  ok(heddle_model_parse("softmax.heddle", bytes.data(), bytes.size(), nullptr, &model_));
  bytes.assign(bytes.size(), '\0');  // it was copied
  compile(options());
  EXPECT_TRUE(info().cache_warm);
  std::vector<float> x(4 * 33, 0.5f), y(x.size());
  ok(heddle_context_bind_input_named(context_, "x", x.data()));
  ok(heddle_context_bind_output_named(context_, "out0", y.data()));
  ok(heddle_context_run(context_));
  EXPECT_NEAR(y[5], 1.0 / 33, 1e-6);
  heddle_model* none = nullptr;
  EXPECT_THAT(failure(heddle_model_parse("cut", bytes.data(), 100, nullptr, &none)),
              HasSubstr("cut: not a model"));
}

TEST_F(api, ProfileNamesKernels) {
  parse(kSoftmax);
  compile(options());
  std::vector<float> x(4 * 33, 0.5f), y(x.size());
  ok(heddle_context_bind_input(context_, 0, x.data()));
  ok(heddle_context_bind_output(context_, 0, y.data()));
  ok(heddle_context_run(context_));
  heddle_context_set_profile(context_, 1);
  for (int i = 0; i < 5; ++i) ok(heddle_context_run(context_));
  heddle_context_set_profile(context_, 0);
  ok(heddle_context_run(context_));
  ASSERT_EQ(heddle_context_command_count(context_), 1);
  heddle_command_profile profile{};
  profile.struct_size = sizeof profile;
  heddle_context_get_profile(context_, 0, &profile);
  EXPECT_EQ(profile.count, 5);
  EXPECT_GT(profile.total_ns, 0);
  EXPECT_LE(profile.min_ns * 5, profile.total_ns);
  EXPECT_STREQ(profile.kind, "kernel");
  EXPECT_GT(profile.flops, 0);
  EXPECT_THAT(profile.operators, HasSubstr("exponential"));
  heddle_context_get_profile(context_, 1, &profile);
  EXPECT_EQ(profile.name, nullptr);
}

TEST_F(api, ContextsRunSideBySide) {
  parse(kSoftmax);
  compile(options());
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      heddle_context* own = nullptr;
      ok(heddle_context_create(program_, &own));
      std::vector<float> x(4 * 33), y(x.size());
      for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i + 100 * t));
      ok(heddle_context_bind_input(own, 0, x.data()));
      ok(heddle_context_bind_output(own, 0, y.data()));
      const std::vector<float> want = softmax(x);
      for (int run = 0; run < 50; ++run) ok(heddle_context_run(own));
      for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], want[i], 1e-6);
      heddle_context_free(own);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(api, BytecodeIsReadFromMemory) {
  std::ifstream file(HEDDLE_SOURCE_DIR "/tests/testdata/stablehlo/bytecode/sharded.1.0.0.mlir.bc",
                     std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  ASSERT_FALSE(bytes.empty());
  ok(heddle_model_parse("sharded", bytes.data(), bytes.size(), nullptr, &model_));
  heddle_model* none = nullptr;
  EXPECT_THAT(failure(heddle_model_parse("cut", bytes.data(), 100, nullptr, &none)),
              HasSubstr("cut: the file, byte "));
}

TEST_F(api, ErrorsSayWhatAndWhere) {
  EXPECT_THAT(failure(heddle_model_open("/nowhere/x.onnx", nullptr, &model_)),
              HasSubstr("/nowhere/x.onnx"));
  EXPECT_EQ(model_, nullptr);
  EXPECT_THAT(failure(heddle_model_parse("junk", "\x01\x02\x03", 3, nullptr, &model_)),
              HasSubstr("junk: not a model"));
  const char* broken = "HloModule m\nENTRY e { ROOT x = f32[2] add(a, b) }\n";
  EXPECT_THAT(failure(heddle_model_parse("b", broken, std::strlen(broken), nullptr, &model_)),
              HasSubstr("2:"));
  heddle_open_options open{};
  open.struct_size = sizeof open;
  const heddle_dim dim{"batch", 2};
  open.dims = &dim;
  open.dim_count = 1;
  EXPECT_THAT(failure(heddle_model_parse("s", kSoftmax, std::strlen(kSoftmax), &open, &model_)),
              HasSubstr("HLO has them fixed"));
}

TEST_F(api, UnknownChoicesAreNamed) {
  parse(kSoftmax);
  const auto message_of = [&](auto change) {
    heddle_compile_options one = options();
    change(one);
    return failure(heddle_compile(model_, &one, &program_));
  };
  EXPECT_THAT(message_of([](auto& o) { o.level = "O7"; }), HasSubstr("O0, O1, O2"));
  EXPECT_THAT(message_of([](auto& o) { o.fuse = "all"; }), HasSubstr("stitch"));
  EXPECT_THAT(message_of([](auto& o) { o.memory = "x"; }), HasSubstr("static, dynamic"));
  EXPECT_THAT(message_of([](auto& o) { o.numerics = "x"; }), HasSubstr("relaxed"));
  EXPECT_THAT(message_of([](auto& o) { o.precision = "int8"; }), HasSubstr("f32"));
  EXPECT_THAT(message_of([](auto& o) { o.library = "mkl"; }), HasSubstr("none, auto, onednn"));
  EXPECT_THAT(message_of([](auto& o) { o.device = "cuda:x"; }), HasSubstr("cpu, cuda, cuda:N"));
  EXPECT_THAT(message_of([](auto& o) { o.device = "cuda", o.target = "avx2"; }),
              HasSubstr("sm_80 or sm_90"));
  EXPECT_THAT(message_of([](auto& o) { o.target = "z80"; }), HasSubstr("z80"));
  EXPECT_THAT(message_of([](auto& o) { o.target = "sm_90"; }), HasSubstr("GPU"));
  EXPECT_THAT(message_of([](auto& o) { o.threads = -1; }),
              HasSubstr("options->threads is -1; wanted 0 to 1024"));
  EXPECT_EQ(program_, nullptr);
}

TEST_F(api, UnboundPortsAreErrors) {
  parse(kSoftmax);
  for (const char* device : {"cpu", "interp"}) {
    compile(options(device));
    std::vector<float> x(4 * 33);
    EXPECT_THAT(failure(heddle_context_run(context_)), HasSubstr("arg0 is not bound"));
    ok(heddle_context_bind_input(context_, 0, x.data()));
    EXPECT_THAT(failure(heddle_context_run(context_)), HasSubstr("out0 is not bound"));
    EXPECT_THAT(failure(heddle_context_bind_input(context_, 1, x.data())),
                HasSubstr("number is 1; wanted 0"));
    EXPECT_THAT(failure(heddle_context_bind_output(context_, -1, x.data())),
                HasSubstr("number is -1"));
  }
}

TEST_F(api, ConsumedModelsKeepTheirPorts) {
  parse(kSoftmax);
  heddle_compile_options consume = options();
  consume.consume_model = 1;
  compile(consume);
  heddle_port port{};
  port.struct_size = sizeof port;
  heddle_model_input(model_, 0, &port);
  EXPECT_STREQ(port.name, "arg0");
  heddle_program* second = nullptr;
  EXPECT_THAT(failure(heddle_compile(model_, &consume, &second)), HasSubstr("consumed"));
  float x[4 * 33];
  void* buffers[] = {x};
  EXPECT_THAT(failure(heddle_model_random_inputs(model_, 0, buffers)), HasSubstr("consumed"));
}

TEST_F(api, OldCallersWithShorterStructsWork) {
  parse(kSoftmax);
  // A caller that knows only the first members.
  struct {
    size_t struct_size;
    const char* device;
  } old{sizeof old, "interp"};
  ok(heddle_compile(model_, reinterpret_cast<const heddle_compile_options*>(&old), &program_));
  struct {
    heddle_program_info info;
    char guard[16];
  } out;
  std::memset(&out, 0x55, sizeof out);
  out.info.struct_size = offsetof(heddle_program_info, target);
  heddle_program_get_info(program_, &out.info);
  EXPECT_STREQ(out.info.device, "interp");
  char untouched[sizeof(void*)];
  std::memset(untouched, 0x55, sizeof untouched);
  EXPECT_EQ(std::memcmp(&out.info.target, untouched, sizeof untouched), 0);
}

TEST_F(api, CompilationCanBeLookedAtAtEveryPoint) {
  parse(kSoftmax);
  const std::pair<const char*, const char*> wanted[] = {
      {"import", "ENTRY"},       {"optimize", "exponential"}, {"fuse", "fusion("},
      {"schedule", "phase"},     {"stitch", "kernel"},        {"plan", "program softmax"},
      {"inline_lazily", "ENTRY"}};
  for (const auto& [point, content] : wanted) {
    char* text = nullptr;
    const heddle_compile_options one = options();
    ok(heddle_compile_until(model_, &one, point, &text));
    ASSERT_NE(text, nullptr) << point;
    EXPECT_THAT(text, HasSubstr(content)) << point;
    heddle_string_free(text);
  }
  char* text = nullptr;
  EXPECT_THAT(failure(heddle_compile_until(model_, nullptr, "lunch", &text)), HasSubstr("'lunch'"));
}

TEST_F(api, CacheIsColdThenWarm) {
  parse(kSoftmax);
  heddle_compile_options cached = options();
  const std::string cache = folder_ / "cache";
  cached.cache = cache.c_str();
  compile(cached);
  EXPECT_FALSE(info().cache_warm);
  EXPECT_FALSE(fs::is_empty(cache));
  compile(cached);
  EXPECT_TRUE(info().cache_warm);
  const std::string file = folder_ / "file";
  std::ofstream(file) << "x";
  cached.cache = file.c_str();
  heddle_program* none = nullptr;
  failure(heddle_compile(model_, &cached, &none), HEDDLE_MACHINE_ERROR);
}

TEST_F(api, DumpsEveryStage) {
  parse(kSoftmax);
  heddle_compile_options dumped = options();
  const std::string dump = folder_ / "dump";
  dumped.dump = dump.c_str();
  compile(dumped);
  for (const char* name : {"0-imported.hlo", "1-optimized.hlo", "2-fused.hlo", "5-program.txt"})
    EXPECT_TRUE(fs::exists(fs::path(dump) / name)) << name;
}

TEST_F(api, OneModuleOfSeveralIsChosenByName) {
  const std::string both = std::string(kSoftmax) + "\n// -----\n" + kLookup;
  EXPECT_THAT(failure(heddle_model_parse("two", both.data(), both.size(), nullptr, &model_)),
              HasSubstr("softmax, lookup"));
  heddle_open_options open{};
  open.struct_size = sizeof open;
  open.module = "lookup";
  parse(both.c_str(), &open);
  heddle_model_info model{};
  model.struct_size = sizeof model;
  heddle_model_get_info(model_, &model);
  EXPECT_STREQ(model.name, "lookup");
}

TEST_F(api, TracesAreWritten) {
  parse(kSoftmax);
  heddle_trace_start();
  compile(options());
  const std::string path = folder_ / "trace.json";
  ok(heddle_trace_stop(path.c_str()));
  EXPECT_GT(fs::file_size(path), 20u);
  failure(heddle_trace_stop("/nowhere/trace.json"), HEDDLE_MACHINE_ERROR);
}

TEST(api_types, NamesAndBytes) {
  EXPECT_STREQ(heddle_type_name(HEDDLE_BF16), "bf16");
  EXPECT_STREQ(heddle_type_name(-1), "?");
  EXPECT_STREQ(heddle_type_name(1000), "?");
  EXPECT_EQ(heddle_type_bytes(HEDDLE_S4), 1);
  EXPECT_EQ(heddle_type_bytes(HEDDLE_C128), 16);
  EXPECT_EQ(heddle_type_bytes(HEDDLE_TOKEN), 0);
  EXPECT_EQ(heddle_version(),
            HEDDLE_VERSION_MAJOR * 1000000u + HEDDLE_VERSION_MINOR * 1000u + HEDDLE_VERSION_PATCH);
}

TEST(api_free, NothingIsFine) {
  heddle_model_free(nullptr);
  heddle_program_free(nullptr);
  heddle_context_free(nullptr);
  heddle_status_free(nullptr);
  heddle_string_free(nullptr);
  EXPECT_STREQ(heddle_status_message(nullptr), "");
  EXPECT_EQ(heddle_status_kind(nullptr), HEDDLE_OK);
}

}  // namespace
}  // namespace heddle::api
