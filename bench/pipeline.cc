// A stream of runs of mixed extents through a queue, serial and pipelined:
//   pipeline MODEL.onnx NAME BOUND [--runs N] [--rounds N] [--threads N] [--slots N] [--dim NAME=N]
// Rounds of the two alternate. A line each: wall milliseconds of a run and processor milliseconds
// of the process, the minimum over rounds; whether all outputs are bit-identical to serial runs.
// All buckets are compiled beforehand.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "api/run_queue.h"
#include "base/parallel.h"

namespace {

using heddle::Result;
using heddle::Status;
using heddle::api::Model;
using heddle::api::OpenOptions;
using heddle::api::Program;
using heddle::api::RunQueue;
using heddle::api::RunRequest;
using Bytes = std::vector<char>;

template <typename T>
T take(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "error: {}\n", result.error().message);
  std::exit(2);
}
void done(const Status& status) {
  if (status) return;
  fmt::print(stderr, "error: {}\n", status.error().message);
  std::exit(2);
}

double clock_ms(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

struct Run {
  int64_t extent = 0;
  const std::vector<Bytes>* inputs = nullptr;
  std::vector<Bytes> outputs, wanted;
};

struct Times {
  double wall_ms = 1e30, cpu_ms = 1e30;
};

void run_stream(Program& program, RunQueue::Mode mode, int64_t slots, const std::string& name,
                std::vector<Run>& runs, Times& times) {
  auto queue = take(RunQueue::make(program, mode, slots));
  auto submit_all = [&] {
    for (Run& run : runs) {
      RunRequest request;
      for (const Bytes& bytes : *run.inputs) request.inputs.push_back(bytes.data());
      for (Bytes& bytes : run.outputs) request.outputs.push_back(bytes.data());
      request.extents = {{name, run.extent}};
      queue->submit(std::move(request), [](const Status& status) { done(status); });
    }
    queue->drain();
  };
  submit_all();  // contexts and their memory
  const double wall = clock_ms(CLOCK_MONOTONIC), cpu = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
  submit_all();
  times.wall_ms = std::min(times.wall_ms, clock_ms(CLOCK_MONOTONIC) - wall);
  times.cpu_ms = std::min(times.cpu_ms, clock_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "error: wanted MODEL NAME BOUND; see the top of pipeline.cc\n");
    return 2;
  }
  const std::string path = argv[1], name = argv[2];
  const int64_t bound = std::atoll(argv[3]);
  OpenOptions open;
  heddle::api::CompileOptions options;
  options.threads = 1;
  int64_t count = 60, rounds = 5, slots = 4;
  for (int i = 4; i + 1 < argc; i += 2) {
    const std::string word = argv[i], value = argv[i + 1];
    if (word == "--runs") count = std::atoll(value.c_str());
    if (word == "--rounds") rounds = std::atoll(value.c_str());
    if (word == "--slots") slots = std::atoll(value.c_str());
    if (word == "--threads") options.threads = std::atoi(value.c_str());
    if (word == "--dim")
      open.dims[value.substr(0, value.find('='))] = std::atoll(value.c_str() + value.find('=') + 1);
  }
  OpenOptions bounded = open;
  bounded.bounds[name] = bound;
  auto model = take(Model::open(path, bounded));
  auto program = take(Program::compile(*model, options));
  auto context = take(program->make_context());
  std::map<int64_t, std::vector<Bytes>> inputs;
  std::vector<Run> runs(static_cast<size_t>(count));
  for (size_t r = 0; r < runs.size(); ++r) {
    Run& run = runs[r];
    run.extent = 1 + static_cast<int64_t>(r * 2654435761U % static_cast<uint64_t>(bound));
    OpenOptions exact = open;
    exact.dims[name] = run.extent;
    auto [found, added] = inputs.try_emplace(run.extent);
    auto at = take(Model::open(path, exact));
    if (added) {
      std::vector<void*> pointers;
      for (const auto& port : at->inputs()) {
        found->second.emplace_back(static_cast<size_t>(port.bytes));
        pointers.push_back(found->second.back().data());
      }
      done(at->random_inputs(r, pointers));
    }
    run.inputs = &found->second;
    done(context->set_extent(name, run.extent));
    for (size_t i = 0; i < run.inputs->size(); ++i)
      done(context->bind_input(static_cast<int64_t>(i), (*run.inputs)[i].data()));
    for (size_t i = 0; i < at->outputs().size(); ++i) {
      run.outputs.emplace_back(static_cast<size_t>(at->outputs()[i].bytes));
      done(context->bind_output(static_cast<int64_t>(i), run.outputs[i].data()));
    }
    done(context->run());
    run.wanted = run.outputs;
    for (Bytes& bytes : run.outputs) std::fill(bytes.begin(), bytes.end(), 0);
  }
  Times serial, pipelined;
  bool same = true;
  for (int64_t round = 0; round < rounds; ++round)
    for (const bool in_pipeline : {false, true}) {
      run_stream(*program, in_pipeline ? RunQueue::Mode::pipelined : RunQueue::Mode::serial, slots,
                 name, runs, in_pipeline ? pipelined : serial);
      for (Run& run : runs) same = same && run.outputs == run.wanted;
    }
  const double n = static_cast<double>(count);
  fmt::print("{} runs of {} 1 to {}, {} compilations, {} cores\n", count, name, bound,
             program->facts().compilations, heddle::available_cores());
  fmt::print("serial:    {:.4f} ms a run, {:.4f} ms of processor time\n", serial.wall_ms / n,
             serial.cpu_ms / n);
  fmt::print("pipelined: {:.4f} ms a run, {:.4f} ms of processor time\n", pipelined.wall_ms / n,
             pipelined.cpu_ms / n);
  fmt::print("{:.3f} times as fast; bits {}\n", serial.wall_ms / pipelined.wall_ms,
             same ? "equal" : "DIFFER");
  return same ? 0 : 1;
}
