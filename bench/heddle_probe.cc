// Runs one model through the C interface as a server, so that its rounds can be interleaved with
// those of others and this process is idle in between. Buffers are bound once; values are random.
//
//   heddle_probe MODEL THREADS [LEVEL]
//
// For every line on standard input that holds a count, runs once unmeasured and then that often,
// and answers with one line of JSON: the wall and the caller's CPU nanoseconds of every run.
#include <sys/mman.h>
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "api/heddle.h"

namespace {

void must(heddle_status* status) {
  if (status == nullptr) return;
  std::fprintf(stderr, "heddle_probe: %s\n", heddle_status_message(status));
  std::exit(heddle_status_kind(status));
}

int64_t now_ns(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

// As copy_probe allocates: the yardstick and what it measures stand on the same pages.
void* allocate(int64_t bytes) {
  const size_t size = static_cast<size_t>(bytes == 0 ? 64 : bytes);
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::fprintf(stderr, "heddle_probe: no memory\n");
    std::exit(3);
  }
  madvise(memory, size, MADV_HUGEPAGE);
  std::memset(memory, 0, size);
  return memory;
}

void print_list(const char* name, const std::vector<int64_t>& values, const char* end) {
  std::printf("\"%s\": [", name);
  for (size_t i = 0; i < values.size(); ++i) {
    std::printf("%s%lld", i == 0 ? "" : ", ", static_cast<long long>(values[i]));
  }
  std::printf("]%s", end);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4 || std::atoi(argv[2]) < 1) {
    std::fprintf(stderr, "usage: heddle_probe MODEL THREADS [LEVEL]\n");
    return 2;
  }
  heddle_model* model = nullptr;
  must(heddle_model_open(argv[1], nullptr, &model));
  heddle_model_info model_info = {};
  model_info.struct_size = sizeof model_info;
  heddle_model_get_info(model, &model_info);
  std::vector<void*> inputs;
  for (int64_t i = 0; i < model_info.inputs; ++i) {
    heddle_port port = {};
    port.struct_size = sizeof port;
    heddle_model_input(model, i, &port);
    inputs.push_back(allocate(port.bytes));
  }
  must(heddle_model_random_inputs(model, 0, inputs.data()));
  heddle_compile_options options = {};
  options.struct_size = sizeof options;
  options.threads = std::atoi(argv[2]);
  options.level = argc == 4 ? argv[3] : nullptr;
  heddle_program* program = nullptr;
  must(heddle_compile(model, &options, &program));
  heddle_context* context = nullptr;
  must(heddle_context_create(program, &context));
  for (int64_t i = 0; i < model_info.inputs; ++i) {
    must(heddle_context_bind_input(context, i, inputs[static_cast<size_t>(i)]));
  }
  for (int64_t i = 0; i < model_info.outputs; ++i) {
    heddle_port port = {};
    port.struct_size = sizeof port;
    heddle_program_output(program, i, &port);
    must(heddle_context_bind_output(context, i, allocate(port.bytes)));
  }
  char line[64];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    const int count = std::atoi(line);
    std::vector<int64_t> wall, cpu;
    must(heddle_context_run(context));
    for (int i = 0; i < count; ++i) {
      const int64_t wall_begin = now_ns(CLOCK_MONOTONIC);
      const int64_t cpu_begin = now_ns(CLOCK_THREAD_CPUTIME_ID);
      must(heddle_context_run(context));
      cpu.push_back(now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_begin);
      wall.push_back(now_ns(CLOCK_MONOTONIC) - wall_begin);
    }
    std::printf("{");
    print_list("wall_ns", wall, ", ");
    print_list("cpu_ns", cpu, "}\n");
    std::fflush(stdout);
  }
  heddle_context_free(context);
  heddle_program_free(program);
  heddle_model_free(model);
  return 0;
}
