// A model whose inputs have other shapes from run to run, as a caller has it who says nothing of
// them (OpenOptions::late):
//   many_sizes MODEL.onnx RUN.npz [RUN.npz ...] [--threads N] [--rounds N] [--outputs DIR]
//              [--profile] [--log] [--dump DIR]
// One line per run: the milliseconds of its first time (with what is compiled for it), the first
// quartile of `--rounds` later ones, and the compilations so far. The results go to DIR/RUN.npz.
// --profile: the kernels of the last run. --log: why there are no programs for several sizes.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "api/heddle_info.h"
#include "api/session.h"
#include "take.h"
#include "tensor/npz.h"

namespace {

using heddle::tensor::Literal;

double now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

}  // namespace

int main(int argc, char** argv) {
  std::string model_path, outputs_directory;
  std::vector<std::string> runs;
  heddle::api::CompileOptions compile;
  size_t rounds = 5;
  bool profile = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool has_value = argument.starts_with("--") && i + 1 < argc;
    if (argument == "--threads" && has_value)
      compile.threads = std::atoi(argv[++i]);
    else if (argument == "--rounds" && has_value)
      rounds = static_cast<size_t>(std::max(1, std::atoi(argv[++i])));
    else if (argument == "--outputs" && has_value)
      outputs_directory = argv[++i];
    else if (argument == "--dump" && has_value)
      compile.dump = argv[++i];
    else if (argument == "--profile")
      profile = true;
    else if (argument == "--log")
      heddle_set_log(
          [](const heddle_log_message* message, void*) { fmt::print("{}\n", message->text); },
          nullptr, HEDDLE_LOG_INFO);
    else if (model_path.empty())
      model_path = argument;
    else
      runs.push_back(argument);
  }
  heddle::api::OpenOptions open;
  open.late = true;
  const auto model = take(heddle::api::Model::open(model_path, open));
  const auto program = take(heddle::api::Program::compile(*model, compile));
  const auto context = take(program->make_context());
  for (const std::string& path : runs) {
    const bool is_last = profile && &path == &runs.back();
    const heddle::tensor::NamedLiterals inputs = take(heddle::tensor::read_npz(path));
    for (size_t i = 0; i < program->inputs().size(); ++i) {
      const std::string& name = program->inputs()[i].name;
      const auto found = std::find_if(inputs.begin(), inputs.end(),
                                      [&](const auto& input) { return input.first == name; });
      if (found == inputs.end()) continue;
      done(context->set_input_shape(static_cast<int64_t>(i), found->second.shape().extents()));
      done(context->bind_input(static_cast<int64_t>(i), found->second.data()));
    }
    heddle::tensor::NamedLiterals outputs;
    const auto once = [&] {
      done(context->prepare());
      const auto& ports = context->late_outputs() ? *context->late_outputs() : program->outputs();
      outputs.clear();
      for (const auto& port : ports) outputs.emplace_back(port.name, Literal(port.shape));
      for (size_t i = 0; i < outputs.size(); ++i)
        done(context->bind_output(static_cast<int64_t>(i), outputs[i].second.mutable_data()));
      done(context->run());
    };
    double begin = now_ms();
    once();
    const double first = now_ms() - begin;
    std::vector<double> times;
    for (size_t round = 0; round < rounds; ++round) {
      begin = now_ms();
      once();
      times.push_back(now_ms() - begin);
    }
    std::nth_element(times.begin(), times.begin() + std::ssize(times) / 4, times.end());
    fmt::print("{} first {:.1f} ms, then {:.3f} ms, compilations {}\n",
               std::filesystem::path(path).filename().string(), first, times[times.size() / 4],
               program->facts().compilations);
    if (is_last) {
      context->set_profile(true);
      once();
      for (int64_t i = 0; i < context->command_count(); ++i) {
        const heddle::api::CommandReport one = context->command(i);
        fmt::print("  {:9.1f} us {} ({})\n", static_cast<double>(one.min_ns) * 1e-3, one.label,
                   one.operators);
      }
    }
    if (!outputs_directory.empty())
      done(heddle::tensor::write_npz(
          (std::filesystem::path(outputs_directory) / std::filesystem::path(path).filename())
              .string(),
          outputs));
  }
}
