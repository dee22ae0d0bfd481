// Program files whose tables were changed and whose checksums were made right again: each is an
// error or runs, in a child process; none ends in a signal, and none but the user's fault or the
// machine's is told. The code itself is left alone: it is native, and trusted.
//
// By hand, thousands: HEDDLE_MUTANTS=5000 HEDDLE_SEED=7 build/release/program_mutants_test
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <thread>

#include "api/heddle.h"
#include "base/hash.h"
#include "import/onnx_test_util.h"

#if defined(__SANITIZE_ADDRESS__)
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1:detect_leaks=0:max_allocation_size_mb=4096";
}
#endif

namespace heddle {
namespace {

constexpr size_t kPage = 4096;

template <typename T>
T number_at(const std::string& bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}
template <typename T>
void put(std::string& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// The layout at the head of program/file.cc.
struct Section {
  size_t offset, bytes;
};
Section section(const std::string& file, int i) {
  const size_t at = 32 + 24 * static_cast<size_t>(i);
  return {number_at<uint64_t>(file, at), number_at<uint64_t>(file, at + 8)};
}

void repair(std::string& file) {
  constexpr size_t kChunk = size_t{1} << 20;
  const std::string_view all = file;
  for (int i = 0; i < 3; ++i) {
    const auto [offset, bytes] = section(file, i);
    if (offset > file.size() || bytes > file.size() - offset) continue;
    uint64_t hash = 0;
    for (size_t at = 0; at < bytes; at += kChunk)
      hash = hash64(all.substr(offset + at, std::min(kChunk, bytes - at)), hash);
    put(file, 32 + 24 * static_cast<size_t>(i) + 16, hash);
  }
  const size_t header = number_at<uint32_t>(file, 12);
  if (header < kPage || header > file.size()) return;
  put(file, 24, hash64(all.substr(32, header - 32), hash64(all.substr(0, 24))));
}

// One to three changes of the header's numbers, the tables or the constants.
std::string mutant_of(const std::string& good, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  std::string file = good;
  const Section meta = section(file, 0), constants = section(file, 2);
  const size_t meta_bytes = number_at<uint64_t>(file, 104);
  const size_t changes = 1 + below(3);
  for (size_t c = 0; c < changes; ++c) {
    const size_t kind = below(20);
    size_t begin = meta.offset, bytes = meta_bytes;
    if (kind == 0) begin = 32, bytes = 160;  // the header's numbers
    if (kind == 1 && constants.bytes > 0) begin = constants.offset, bytes = constants.bytes;
    const size_t at = begin + below(bytes - 8);
    const auto word = number_at<int64_t>(file, at);
    constexpr int64_t kSpecial[] = {0,       -1,   1,         2,         7,
                                    64,      4096, 1 << 20,   INT32_MAX, int64_t{1} << 32,
                                    1 << 30, -64,  INT64_MAX, INT64_MIN, int64_t{1} << 46};
    switch (below(6)) {
      case 0:
        file[at] = static_cast<char>(file[at] ^ (1 << below(8)));
        break;
      case 1:
        file[at] = static_cast<char>(random());
        break;
      case 2:
        put(file, at, kSpecial[below(std::size(kSpecial))]);
        break;
      case 3:
        put(file, at, static_cast<int64_t>(static_cast<uint64_t>(word) + (random() % 129) - 64));
        break;
      case 4:
        put(file, at, number_at<int64_t>(file, begin + below(bytes - 8)));
        break;
      default:
        // A small number where one stands: sizes, ids and extents.
        if (word > 0 && word < 1 << 20)
          put(file, at, static_cast<int64_t>(random() % static_cast<uint64_t>(2 * word + 2)));
        else
          file[at] = static_cast<char>(file[at] + 1);
    }
  }
  repair(file);
  return file;
}

void must(heddle_status* status) {
  const std::string message = heddle_status_message(status);
  heddle_status_free(status);
  if (status != nullptr) throw std::runtime_error(message);
}

bool failed(heddle_status* status) {
  const int kind = heddle_status_kind(status);
  const std::string message = heddle_status_message(status);
  heddle_status_free(status);
  if (kind != HEDDLE_OK && kind != HEDDLE_USER_ERROR && kind != HEDDLE_MACHINE_ERROR &&
      kind != HEDDLE_CANCELLED)
    std::abort();
  if (message.find("a bug in heddle") != std::string::npos) std::abort();
  return kind != HEDDLE_OK;
}

// A loop that never ends is ended: it is no fault of memory.
class Watch {
 public:
  explicit Watch(heddle_context* context)
      : thread_([this, context] {
          for (int tick = 0; tick < 200 && !done_; ++tick) usleep(10'000);
          while (!done_) {
            heddle_context_cancel(context);
            usleep(10'000);
          }
        }) {}
  ~Watch() {
    done_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

// Ports of more bytes than a test should take are left unbound.
constexpr int64_t kMostBytes = int64_t{256} << 20;

bool bind_all(heddle_context* context, const heddle_program* program,
              std::vector<std::vector<char>>& memory) {
  heddle_program_info info{};
  info.struct_size = sizeof info;
  heddle_program_get_info(program, &info);
  for (const bool input : {true, false}) {
    for (int64_t i = 0; i < (input ? info.inputs : info.outputs); ++i) {
      heddle_port port{};
      port.struct_size = sizeof port;
      (input ? heddle_program_input : heddle_program_output)(program, i, &port);
      if (port.bytes > kMostBytes) return false;
      memory.emplace_back(static_cast<size_t>(port.bytes) + 1);  // exactly: a byte more is written
      void* data = memory.back().data();                         // to see what lies there
      if (failed(input ? heddle_context_bind_input(context, i, data)
                       : heddle_context_bind_output(context, i, data)))
        return false;
    }
  }
  return true;
}

// "refused" or "ran".
const char* try_to_run(const std::string& file) {
  heddle_model* model = nullptr;
  heddle_program* program = nullptr;
  heddle_context* context = nullptr;
  const char* result = "refused";
  heddle_compile_options options{};
  options.struct_size = sizeof options;
  options.threads = 2;
  if (!failed(heddle_model_parse("mutant", file.data(), file.size(), nullptr, &model)) &&
      !failed(heddle_compile(model, &options, &program)) &&
      !failed(heddle_context_create(program, &context))) {
    std::vector<std::vector<char>> memory;
    if (bind_all(context, program, memory)) {
      const Watch watch(context);
      if (!failed(heddle_context_run(context))) result = "ran";
    }
    heddle_context_free(context);
    context = nullptr;
  }
  heddle_context_free(context);
  heddle_program_free(program);
  heddle_model_free(model);
  return result;
}

constexpr const char* kLayer = R"(HloModule layer
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
ENTRY main {
  x = f32[4,16] parameter(0)
  i = s32[3,1] parameter(1)
  w = f32[16,8] constant({{1,2,3,4,5,6,7,8},{1,2,3,4,5,6,7,8},{1,2,3,4,5,6,7,8},{1,2,3,4,5,6,7,8},{1,2,3,4,5,6,7,8},{1,2,3,4,5,6,7,8},{1,2,3,4,5,6,7,8},{1,2,3,4,5,6,7,8},{1,2,3,4,5,6,7,8},{1,2,3,4,5,6,7,8},{1,2,3,4,5,6,7,8},{1,2,3,4,5,6,7,8},{1,2,3,4,5,6,7,8},{1,2,3,4,5,6,7,8},{1,2,3,4,5,6,7,8},{1,2,3,4,5,6,7,8}})
  d = f32[4,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[4,8] exponential(d)
  zero = f32[] constant(0)
  s = f32[4] reduce(e, zero), dimensions={1}, to_apply=sum
  sb = f32[4,8] broadcast(s), dimensions={0}
  q = f32[4,8] divide(e, sb)
  t = f32[3,8] gather(q, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,8}
  ROOT out = (f32[4,8], f32[3,8]) tuple(q, t)
})";

constexpr const char* kControl = R"(HloModule control
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT }
condition { s = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[64] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  sorted = f32[64] sort(x), dimensions={0}, to_apply=less
  piece = f32[1] slice(sorted), slice={[7:8]}
  y = f32[64] dynamic-update-slice(sorted, piece, i)
  ROOT t = (s32[], f32[64]) tuple(next, y) }
yes { x = f32[64] parameter(0)
  ROOT r = f32[64] negate(x) }
no { x = f32[64] parameter(0)
  ROOT r = f32[64] exponential(x) }
ENTRY main {
  x = f32[64] parameter(0)
  p = pred[] parameter(1)
  zero = s32[] constant(0)
  start = (s32[], f32[64]) tuple(zero, x)
  loop = (s32[], f32[64]) while(start), condition=condition, body=body
  y = f32[64] get-tuple-element(loop), index=1
  z = f32[64] conditional(p, y, y), true_computation=yes, false_computation=no
  ROOT c = f32[128] concatenate(z, x), dimensions={0}
})";

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string temporary(const std::string& name) {
  return testing::TempDir() + "mutants_" + std::to_string(::getpid()) + "_" + name;
}

std::string save(heddle_model* model, const char* memory) {
  heddle_compile_options options{};
  options.struct_size = sizeof options;
  options.cache = "off";
  options.memory = memory;
  heddle_program* program = nullptr;
  must(heddle_compile(model, &options, &program));
  heddle_model_free(model);
  const std::string path = temporary("program");
  must(heddle_program_save(program, path.c_str()));
  heddle_program_free(program);
  std::string bytes = read(path);
  unlink(path.c_str());
  return bytes;
}

std::string compiled(const char* text, const char* memory) {
  heddle_model* model = nullptr;
  must(heddle_model_parse("m", text, std::strlen(text), nullptr, &model));
  return save(model, memory);
}

// softmax over x [4, length], length <= 16: a program for each bucket.
std::string bounded() {
  namespace onnx = import::testing;
  onnx::Model softmax;
  softmax.inputs = {onnx::value("x", onnx::kFloat, {"4", "length"})};
  softmax.nodes = {onnx::node("Softmax", {"x"}, {"y"})};
  softmax.outputs = {"y"};
  const std::string path = temporary("softmax.onnx");
  std::ofstream(path, std::ios::binary) << softmax.bytes();
  const heddle_dim bound{"length", 16};
  heddle_open_options open{};
  open.struct_size = sizeof open;
  open.bounds = &bound;
  open.bound_count = 1;
  heddle_model* model = nullptr;
  must(heddle_model_open(path.c_str(), &open, &model));
  std::string bytes = save(model, "static");
  unlink(path.c_str());
  return bytes;
}

int64_t from_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoll(text);
}

// What the child is asked: HEDDLE_MUTANT_FILE, HEDDLE_MUTANT_FIRST; it writes a line a mutant.
void run_mutants(const std::string& file, int64_t first, int64_t count, uint64_t seed) {
  const std::string good = read(file);
  for (int64_t i = first; i < count; ++i) {
    alarm(120);
    const std::string mutant = mutant_of(good, seed * 1'000'003 + static_cast<uint64_t>(i));
    if (std::getenv("HEDDLE_MUTANT_KEEP") != nullptr)
      std::ofstream(file + ".last", std::ios::binary) << mutant;
    std::ofstream(file + ".log", std::ios::app) << try_to_run(mutant) << "\n";
  }
}

int64_t lines_of(const std::string& text, const std::string& line) {
  int64_t count = 0;
  for (size_t at = text.find(line + "\n"); at != std::string::npos;
       at = text.find(line + "\n", at + 1))
    ++count;
  return count;
}

// Runs `count` mutants in children, each until it dies; the numbers of those that killed one.
std::vector<int64_t> deaths_of(const std::string& file, int64_t count, uint64_t seed) {
  std::vector<int64_t> deaths;
  int64_t next = 0;
  while (next < count) {
    const pid_t child = fork();
    if (child == 0) {
      setenv("HEDDLE_MUTANT_FILE", file.c_str(), 1);
      setenv("HEDDLE_MUTANT_FIRST", std::to_string(next).c_str(), 1);
      setenv("HEDDLE_MUTANTS", std::to_string(count).c_str(), 1);
      setenv("HEDDLE_SEED", std::to_string(seed).c_str(), 1);
      execl("/proc/self/exe", "program_mutants_test", "--gtest_filter=Child.Runs", nullptr);
      _exit(9);
    }
    int status = 0;
    waitpid(child, &status, 0);
    const std::string log = read(file + ".log");
    next = static_cast<int64_t>(std::count(log.begin(), log.end(), '\n'));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    deaths.push_back(next);
    std::ofstream(file + ".log", std::ios::app) << "died\n";
    ++next;
  }
  return deaths;
}

TEST(Child, Runs) {
  const char* file = std::getenv("HEDDLE_MUTANT_FILE");
  if (file == nullptr) GTEST_SKIP() << "only as a child of ProgramMutants";
#if !defined(__SANITIZE_ADDRESS__)
  const rlimit memory{rlim_t{16} << 30, rlim_t{16} << 30};
  setrlimit(RLIMIT_AS, &memory);
#endif
  run_mutants(file, from_environment("HEDDLE_MUTANT_FIRST", 0),
              from_environment("HEDDLE_MUTANTS", 0),
              static_cast<uint64_t>(from_environment("HEDDLE_SEED", 1)));
}

class ProgramMutants : public testing::TestWithParam<const char*> {};

TEST_P(ProgramMutants, AreRefusedOrRun) {
  if (std::getenv("HEDDLE_MUTANT_FILE") != nullptr)
    GTEST_SKIP() << "this process is the child, which reads one file";
  const std::string which = GetParam();
  const std::string good = which == "layer"     ? compiled(kLayer, "static")
                           : which == "control" ? compiled(kControl, "dynamic")
                                                : bounded();
  EXPECT_STREQ(try_to_run(good), "ran");
  std::string same = good;
  repair(same);
  EXPECT_EQ(same, good) << "the checksums of program/file.cc are others";
  const std::string path = temporary(which);
  std::ofstream(path, std::ios::binary) << good;
  const int64_t count = from_environment("HEDDLE_MUTANTS", 200);
  const auto seed = static_cast<uint64_t>(from_environment("HEDDLE_SEED", 1));
  EXPECT_THAT(deaths_of(path, count, seed), testing::IsEmpty());
  const std::string log = read(path + ".log");
  const int64_t refused = lines_of(log, "refused"), ran = lines_of(log, "ran");
  EXPECT_EQ(refused + ran, count);
  EXPECT_GT(refused, count / 4);
  std::printf("%s: %lld mutants, %lld refused, %lld ran\n", which.c_str(),
              static_cast<long long>(count), static_cast<long long>(refused),
              static_cast<long long>(ran));
  if (std::getenv("HEDDLE_MUTANT_KEEP") == nullptr) {
    unlink(path.c_str());
    unlink((path + ".log").c_str());
  }
}

INSTANTIATE_TEST_SUITE_P(All, ProgramMutants, testing::Values("layer", "control", "bounded"));

}  // namespace
}  // namespace heddle
