// What a run costs besides its kernel: the time of an executor's run minus that of the same
// kernel's phases called in a loop, on the same memory. For models of one kernel: the small rows d2
// and c2.
//
//   launch_probe MODEL.hlo [ROUNDS]
//
// Both in turn, a thousand runs a round, one thread by its own clock; prints the median over the
// rounds of each and of their difference, in microseconds.
#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "api/host_interp.h"
#include "compiler/compiler.h"
#include "hlo/text.h"
#include "probe.h"
#include "runtime/cpu_device.h"
#include "runtime/executor.h"

namespace {

namespace program = heddle::program;
namespace runtime = heddle::runtime;

constexpr int kRuns = 1000;

template <typename T>
T must(heddle::Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "launch_probe: %s\n", result.error().message.c_str());
  std::exit(2);
}

program::Program compile(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return must(heddle::compiler::compile(must(heddle::hlo::parse_module(text.str())), {},
                                        heddle::target::host_target(), {}));
}

using Phase = void (*)(void* const*, const int64_t*, int64_t, int64_t, void*);

struct Direct {
  std::vector<std::pair<Phase, int64_t>> phases;  // and their tasks
  std::vector<void*> buffers;
  std::vector<int64_t> dims;
  void* scratch;

  void run() const {
    for (const auto& [phase, tasks] : phases) phase(buffers.data(), dims.data(), 0, tasks, scratch);
  }
};

double microseconds(const std::function<void()>& run) {
  const int64_t begin = heddle::bench::now_ns(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < kRuns; ++i) run();
  return 1e-3 * static_cast<double>(heddle::bench::now_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / kRuns;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int count, char** values) {
  const int rounds = count == 3 ? std::atoi(values[2]) : 31;
  if (count < 2 || count > 3 || rounds < 1) {
    std::fprintf(stderr, "usage: launch_probe MODEL.hlo [ROUNDS]\n");
    return 2;
  }
  program::Program made = compile(values[1]);
  const auto* launch = made.commands.size() == 1 && made.once.empty()
                           ? std::get_if<program::Launch>(&made.commands[0])
                           : nullptr;
  if (launch == nullptr) {
    std::fprintf(stderr, "launch_probe: %s: got %zu commands, wanted one kernel\n", values[1],
                 made.commands.size());
    return 2;
  }
  std::vector<char*> memory;  // by buffer
  for (const program::Buffer& buffer : made.buffers) {
    const auto bytes = static_cast<size_t>(std::max<int64_t>(buffer.bytes, 64));
    memory.push_back(heddle::bench::allocate(bytes));
    std::memset(memory.back(), 0x3c, bytes);  // as f32 0.0115: nothing is subnormal
  }
  heddle::Workers workers(1);
  runtime::CpuDevice device(workers);
  const runtime::Code code = must(runtime::Code::load(device.device(), made.object));
  const program::Kernel& kernel = made.kernels[launch->kernel.index()];
  Direct direct;
  for (const program::Phase& phase : kernel.phases)
    direct.phases.emplace_back(
        reinterpret_cast<Phase>(const_cast<void*>(must(code.find(phase.symbol.c_str())))),
        phase.tasks);
  for (const program::View& view : launch->arguments)
    direct.buffers.push_back(memory[view.buffer.index()] + view.offset_bytes);
  direct.dims = launch->dims;
  direct.scratch =
      heddle::bench::allocate(static_cast<size_t>(std::max<int64_t>(kernel.scratch_bytes, 64)));
  std::vector<void*> inputs, outputs;
  for (const program::Port& port : made.inputs) inputs.push_back(memory[port.buffer.index()]);
  for (const program::Port& port : made.outputs) outputs.push_back(memory[port.buffer.index()]);
  const auto executable = must(
      runtime::Executable::load(std::move(made), device.device(), heddle::api::host_functions()));
  const auto context = must(executable->make_context());
  for (size_t i = 0; i < inputs.size(); ++i)
    (void)context->bind_input(static_cast<int64_t>(i), inputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i)
    (void)context->bind_output(static_cast<int64_t>(i), outputs[i]);
  if (heddle::Status ran = context->run(); !ran) {
    std::fprintf(stderr, "launch_probe: %s\n", ran.error().message.c_str());
    return 2;
  }
  std::vector<double> runs, calls, differences;
  for (int i = 0; i < rounds; ++i) {
    runs.push_back(microseconds([&] { (void)context->run(); }));
    calls.push_back(microseconds([&] { direct.run(); }));
    differences.push_back(runs.back() - calls.back());
  }
  std::printf("run %.3f us, kernel %.3f us, difference %.3f us\n", median(runs), median(calls),
              median(differences));
  return 0;
}
