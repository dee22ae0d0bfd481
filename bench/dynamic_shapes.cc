// A model with a bounded dimension beside programs of its exact extents:
//   dynamic_shapes MODEL.onnx NAME BOUND [--step N | --at 17,100,...] [--rounds N] [--dim NAME=N]
//                  [--interp] [--profile] [--resident] [--fuse MODE] [--level O0] [--dump DIR]
//                  [--threads N]
// One line per extent: milliseconds (the least of the interleaved rounds; thread processor time, or
// the clock's with several threads) of the bounded program and of the exact one, their ratio (exact
// over bounded), and the largest difference of the results over the largest magnitude. With
// --interp results are compared with the reference interpreter's, and times mean nothing; --profile
// adds a line per kernel; --resident runs the bounded program only, and prints the process's memory
// after each extent.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>

#include "api/session.h"
#include "compiler/compiler.h"
#include "take.h"

namespace {

using heddle::api::CompileOptions;
using heddle::api::Context;
using heddle::api::Model;
using heddle::api::OpenOptions;
using heddle::api::Program;

double now_ms(bool one_thread) {
  timespec now{};
  clock_gettime(one_thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

using Bytes = std::vector<char>;

struct Running {
  std::unique_ptr<Model> model;
  std::shared_ptr<Program> program;
  std::unique_ptr<Context> context;
  std::vector<Bytes> outputs;

  void bind(const std::vector<Bytes>& inputs, const std::vector<heddle::api::Port>& ports) {
    outputs.resize(ports.size());
    for (size_t i = 0; i < inputs.size(); ++i)
      done(context->bind_input(static_cast<int64_t>(i), inputs[i].data()));
    for (size_t i = 0; i < ports.size(); ++i) {
      outputs[i].assign(static_cast<size_t>(ports[i].bytes), 0);
      done(context->bind_output(static_cast<int64_t>(i), outputs[i].data()));
    }
  }
  double run_ms(bool one_thread) {
    const double begin = now_ms(one_thread);
    done(context->run());
    return now_ms(one_thread) - begin;
  }
};

double difference(const Bytes& a, const Bytes& b, heddle::tensor::Type type, size_t bytes) {
  if (type != heddle::tensor::Type::f32)
    return std::memcmp(a.data(), b.data(), bytes) == 0 ? 0 : HUGE_VAL;
  double worst = 0, most = 1e-30;
  const auto *x = reinterpret_cast<const float*>(a.data()),
             *y = reinterpret_cast<const float*>(b.data());
  for (size_t i = 0; i < bytes / 4; ++i) {
    if (std::isnan(x[i]) != std::isnan(y[i])) return HUGE_VAL;
    worst = std::max(worst, double(std::abs(x[i] - y[i])));
    most = std::max(most, double(std::abs(y[i])));
  }
  return worst / most;
}

// Megabytes of the process: "VmRSS", "RssAnon", "RssFile".
int64_t resident_mb(const std::string& what) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(what)) return std::atoll(line.c_str() + what.size() + 1) / 1024;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "error: wanted MODEL NAME BOUND; see the top of dynamic_shapes.cc\n");
    return 2;
  }
  const std::string path = argv[1], name = argv[2];
  const int64_t bound = std::atoll(argv[3]);
  OpenOptions open;
  CompileOptions options;
  options.threads = 1;
  options.keep_prepared = false;  // of each extent's exact program they would fill the cache
  bool interp = false, profile = false, resident = false;
  int rounds = 5;
  std::vector<int64_t> extents;
  for (int i = 4; i < argc; ++i) {
    const std::string word = argv[i];
    auto next = [&] { return std::string(i + 1 < argc ? argv[++i] : ""); };
    if (word == "--interp")
      interp = true;
    else if (word == "--rounds")
      rounds = std::atoi(next().c_str());
    else if (word == "--fuse")
      options.fuse = next();
    else if (word == "--level")
      options.level = next();
    else if (word == "--profile")
      profile = true;
    else if (word == "--resident")
      resident = true;
    else if (word == "--threads")
      options.threads = std::atoi(next().c_str());
    else if (word == "--dump")
      options.dump = next();
    else if (word == "--step") {
      const int64_t step = std::atoll(next().c_str());
      for (int64_t n = 1; n <= bound; n += step) extents.push_back(n);
    } else if (word == "--at") {
      for (const std::string list = next(); extents.empty();)
        for (const char* at = list.c_str(); *at;) {
          char* end = nullptr;
          extents.push_back(std::strtoll(at, &end, 10));
          at = *end ? end + 1 : end;
        }
    } else if (word == "--dim") {
      const std::string dim = next();
      open.dims[dim.substr(0, dim.find('='))] = std::atoll(dim.c_str() + dim.find('=') + 1);
    }
  }
  if (extents.empty())
    for (int64_t n = 1; n <= bound; ++n) extents.push_back(n);

  const bool one = options.threads == 1;
  OpenOptions bounded_open = open;
  bounded_open.bounds[name] = bound;
  Running bounded;
  bounded.model = take(Model::open(path, bounded_open));
  bounded.program = take(Program::compile(*bounded.model, options));
  bounded.context = take(bounded.program->make_context());
  for (const auto& refusal : bounded.program->report().refusals)
    if (refusal.code.starts_with("trim-"))
      fmt::print("{} runs over the whole bound: {}: {}\n", refusal.producer, refusal.code,
                 refusal.reason);
  options.dump.clear();
  if (interp) options.device = "interp";
  double sum = 0, least = HUGE_VAL, worst = 0;
  for (int64_t n : extents) {
    OpenOptions exact_open = open;
    exact_open.dims[name] = n;
    Running exact;
    exact.model = take(Model::open(path, exact_open));
    std::vector<Bytes> inputs;
    std::vector<void*> pointers;
    for (const heddle::api::Port& port : exact.model->inputs()) {
      inputs.emplace_back(static_cast<size_t>(port.bytes) + 64);
      pointers.push_back(inputs.back().data());
    }
    done(exact.model->random_inputs(static_cast<uint64_t>(n), pointers));
    if (resident) {
      done(bounded.context->set_extent(name, n));
      bounded.bind(inputs, exact.model->outputs());
      bounded.run_ms(one);
      fmt::print("{} {}: {} MB, of these {} of its own and {} of files\n", name, n,
                 resident_mb("VmRSS"), resident_mb("RssAnon"), resident_mb("RssFile"));
      continue;
    }
    exact.program = take(Program::compile(*exact.model, options));
    exact.context = take(exact.program->make_context());
    exact.bind(inputs, exact.model->outputs());
    done(bounded.context->set_extent(name, n));
    bounded.bind(inputs, exact.model->outputs());
    double least_exact = exact.run_ms(one), least_bounded = bounded.run_ms(one);
    for (int round = 0; !interp && round < rounds; ++round) {
      const double first = bounded.run_ms(one), second = exact.run_ms(one);
      least_bounded = round == 0 ? first : std::min(least_bounded, first);
      least_exact = round == 0 ? second : std::min(least_exact, second);
    }
    if (profile) {
      for (Running* running : {&bounded, &exact}) {
        running->context->set_profile(true);
        running->context->reset_profile();
      }
      for (int round = 0; round < rounds; ++round)
        for (Running* running : {&bounded, &exact}) done(running->context->run());
      for (Running* running : {&bounded, &exact}) {
        std::map<std::string, std::pair<int, double>> kernels;
        for (int64_t i = 0; i < running->context->command_count(); ++i) {
          const auto report = running->context->command(i);
          auto& sum = kernels[std::string(report.kernel) + " " + report.operators];
          ++sum.first;
          sum.second += double(report.min_ns) * 1e-6;
        }
        for (const auto& [kernel, sum] : kernels)
          fmt::print("  {} {:.3f} ms x{} {:.100}\n", running == &bounded ? "bounded" : "exact",
                     sum.second, sum.first, kernel);
        running->context->set_profile(false);
      }
    }
    double far = 0;
    for (size_t i = 0; i < exact.outputs.size(); ++i)
      far = std::max(far, difference(bounded.outputs[i], exact.outputs[i],
                                     exact.model->outputs()[i].shape.type(),
                                     static_cast<size_t>(exact.model->outputs()[i].bytes)));
    const double ratio = least_exact / least_bounded;
    worst = std::max(worst, far);
    sum += std::log(ratio);
    least = std::min(least, ratio);
    fmt::print("{} {}: bounded {:.3f} ms, exact {:.3f} ms, ratio {:.3f}, difference {:.2e}\n", name,
               n, least_bounded, least_exact, ratio, far);
    std::fflush(stdout);
  }
  if (resident) return 0;
  fmt::print("{} extents: geometric mean {:.3f}, least {:.3f}, largest difference {:.2e}\n",
             extents.size(), std::exp(sum / double(extents.size())), least, worst);
  return 0;
}
