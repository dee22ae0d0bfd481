// One model on the GPU of this machine: the time of a run, and whether its results are right.
// Arrays stay on the device. A program with other commands than launches is refused: its time would
// be the host's.
//
//   gpu_probe facts
//   gpu_probe time MODEL.hlo [--inputs FILE.npz | --seed N [--positive]] [--untimed] [--whole]
//
// Either prints one line of JSON: {"device", "us", …} or {"error": why}. Many runs of a context
// follow one another and are timed together by the device's events: "us" is one of them. Its
// launches are a recording where the device makes some (HEDDLE_GPU_GRAPHS=0: none); "apart_us":
// each is put on the device by itself. --whole: "run_us" is a run that the host waits for, by its
// clock, of the program that sessions have, which copies its arrays within the device. The inputs:
// arg0, arg1, … of a file, or random. Results are compared with the reference interpreter's where
// that is quick, else with those of the same graph operator by operator (level O0) on the device.
// Exit status: 0, 1 wrong results, 2 a bad call or model, 3 no GPU or an error of it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <sstream>
#include <variant>

#include "api/gpu_device.h"
#include "api/host_interp.h"
#include "api/session.h"
#include "compiler/compiler.h"
#include "emit/cuda/nvrtc.h"
#include "hlo/text.h"
#include "interp/interp.h"
#include "program/views.h"
#include "runtime/executor.h"
#include "tensor/npz.h"

namespace heddle {
namespace {

using nlohmann::ordered_json;
using tensor::Literal;

constexpr int kRounds = 15, kRuns = 20;              // of a round
constexpr int64_t kInterpretedElements = 2'000'000;  // of all instructions together

struct Wish {
  std::string model, inputs;
  uint64_t seed = 1;
  bool positive = false, untimed = false, whole = false;
};

int64_t elements_of(const hlo::Module& module) {
  int64_t count = 0;
  for (const auto& computation : module.computations())
    for (const hlo::Instr* instr : computation->instrs())
      if (instr->shape().is_array()) count += instr->shape().elems();
  return count;
}

void append_leaves(const Literal& literal, std::vector<Literal>* leaves) {
  if (!literal.shape().is_tuple()) return leaves->push_back(literal);
  for (const Literal& element : literal.elements()) append_leaves(element, leaves);
}

Result<std::unique_ptr<hlo::Module>> read_model(const std::string& path) {
  std::ifstream file(path);
  if (!file.good()) return user_error("cannot read {}", path);
  std::stringstream text;
  text << file.rdbuf();
  return hlo::parse_module(text.str());
}

// By number of the port.
Result<std::vector<Literal>> inputs_of(const api::Model& model, const Wish& wish) {
  std::vector<Literal> result;
  for (const api::Port& port : model.inputs()) result.emplace_back(port.shape);
  if (wish.inputs.empty()) {
    std::vector<void*> buffers;
    for (Literal& one : result) buffers.push_back(one.mutable_data());
    HEDDLE_RETURN_IF_ERROR(model.random_inputs(wish.seed, buffers));
    for (Literal& one : result)
      for (int64_t i = 0; wish.positive && i < one.elems(); ++i)
        one.set_f64(i, std::abs(one.get_f64(i)));
    return result;
  }
  HEDDLE_ASSIGN_OR_RETURN(const tensor::NamedLiterals given, tensor::read_npz(wish.inputs));
  for (size_t i = 0; i < result.size(); ++i) {
    const std::string name = fmt::format("arg{}", i);
    const auto value = std::find_if(given.begin(), given.end(),
                                    [&](const auto& one) { return one.first == name; });
    if (value == given.end() || value->second.bytes() != result[i].bytes())
      return user_error("{}: no {} of {} bytes", wish.inputs, name, result[i].bytes());
    result[i] = value->second;
  }
  return result;
}

class Probe {
 public:
  Result<ordered_json> run(const Wish& wish) {
    HEDDLE_ASSIGN_OR_RETURN(gpu_, api::open_gpu(0));
    HEDDLE_ASSIGN_OR_RETURN(target_, api::gpu_target(gpu_->info()));
    HEDDLE_ASSIGN_OR_RETURN(auto module, read_model(wish.model));
    model_ = api::Model::from_module(module->clone());
    HEDDLE_ASSIGN_OR_RETURN(inputs_, inputs_of(*model_, wish));
    HEDDLE_ASSIGN_OR_RETURN(program_, compiler::compile(module->clone(), {}, target_, {}));
    HEDDLE_RETURN_IF_ERROR(place());
    HEDDLE_RETURN_IF_ERROR(link());
    HEDDLE_RETURN_IF_ERROR(launch_all());
    HEDDLE_ASSIGN_OR_RETURN(context_, make_context(program_));
    HEDDLE_RETURN_IF_ERROR(run_first(*context_));
    ordered_json result{{"device", gpu_->info().name},
                        {"target", target_.name},
                        {"kernels", program_.kernels.size()},
                        {"launches", launches_.size()},
                        {"records", device().has_recordings()}};
    HEDDLE_RETURN_IF_ERROR(check(*module, &result));
    HEDDLE_RETURN_IF_ERROR(time(wish.untimed, &result));
    if (wish.whole) HEDDLE_RETURN_IF_ERROR(time_whole(*module, wish.untimed, &result));
    return result;
  }

 private:
  const runtime::Device& device() const { return gpu_->device(); }

  Status allocate(int64_t bytes, char** at) {
    HEDDLE_ASSIGN_OR_RETURN(runtime::Block block, runtime::Block::allocate(device(), bytes));
    *at = block.data();
    blocks_.push_back(std::move(block));
    return {};
  }

  // Every buffer's memory on the device, and what is in it before a run.
  Status place() {
    char* arena = nullptr;
    HEDDLE_RETURN_IF_ERROR(allocate(program_.memory.plan_bytes, &arena));
    std::vector<char*> ports[2];
    for (const Literal& value : inputs_) {
      HEDDLE_RETURN_IF_ERROR(allocate(value.bytes(), &ports[0].emplace_back()));
      HEDDLE_RETURN_IF_ERROR(device().copy_now(ports[0].back(), value.data(), value.bytes()));
      moved_bytes_ += value.bytes();
    }
    for (const program::Port& port : program_.outputs) {
      const int64_t bytes = program::stored_bytes(port.shape);
      HEDDLE_RETURN_IF_ERROR(allocate(bytes, &ports[1].emplace_back()));
      moved_bytes_ += bytes;
    }
    inputs_on_device_ = ports[0];
    outputs_ = ports[1];
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const program::Buffer& buffer = program_.buffers[i];
      char*& at = bases_.emplace_back(nullptr);
      if (buffer.kind == program::BufferKind::temporary) {
        at = arena + buffer.offset_bytes;
      } else if (buffer.kind == program::BufferKind::constant) {
        HEDDLE_RETURN_IF_ERROR(allocate(buffer.bytes, &at));
        HEDDLE_RETURN_IF_ERROR(device().copy_now(at, program_.constants[i].data(), buffer.bytes));
      } else if (buffer.kind != program::BufferKind::once) {
        at = ports[buffer.kind == program::BufferKind::output][static_cast<size_t>(buffer.number)];
      }
    }
    return {};
  }

  Status link() {
    if (!program_.once.empty()) return user_error("constants are computed once");
    HEDDLE_ASSIGN_OR_RETURN(code_, runtime::Code::load(device(), program_.object));
    size_t arguments = 0;
    for (const program::Command& command : program_.commands) {
      const auto* launch = std::get_if<program::Launch>(&command);
      if (launch == nullptr) return user_error("a run is not of launches alone");
      arguments += launch->arguments.size();
    }
    addresses_.reserve(arguments);
    for (const program::Command& command : program_.commands) {
      const auto& launch = std::get<program::Launch>(command);
      void* const* buffers = addresses_.data() + addresses_.size();
      for (const program::View& view : launch.arguments)
        addresses_.push_back(bases_[view.buffer.index()] + view.offset_bytes);
      for (const program::Phase& phase : program_.kernels[launch.kernel.index()].phases) {
        HEDDLE_ASSIGN_OR_RETURN(const void* function, code_.find(phase.symbol.c_str()));
        launches_.push_back({function, buffers, nullptr, phase.tasks, 0, nullptr, 0});
      }
    }
    return {};
  }

  Status launch_all() {
    const heddle_hal& hal = device().hal();
    for (const heddle_hal_launch& one : launches_)
      if (hal.launch(hal.device, &one) != 0) return device().last_error("cannot launch");
    return {};
  }

  // On the same arrays.
  Result<std::unique_ptr<runtime::Context>> make_context(program::Program program) {
    HEDDLE_ASSIGN_OR_RETURN(
        const auto executable,
        runtime::Executable::load(std::move(program), device(), api::host_functions()));
    HEDDLE_ASSIGN_OR_RETURN(auto context, executable->make_context());
    for (size_t i = 0; i < inputs_on_device_.size(); ++i)
      HEDDLE_RETURN_IF_ERROR(
          context->bind_device_input(static_cast<int64_t>(i), inputs_on_device_[i]));
    for (size_t i = 0; i < outputs_.size(); ++i)
      HEDDLE_RETURN_IF_ERROR(context->bind_device_output(static_cast<int64_t>(i), outputs_[i]));
    return context;
  }

  // The second run is recorded, the third one replayed: results are what that leaves.
  Status run_first(runtime::Context& context) {
    for (int run = 0; run < 3; ++run) {
      for (size_t i = 0; run == 2 && i < outputs_.size(); ++i) {
        const std::vector<char> junk(
            static_cast<size_t>(program::stored_bytes(program_.outputs[i].shape)), '\xa5');
        HEDDLE_RETURN_IF_ERROR(
            device().copy_now(outputs_[i], junk.data(), static_cast<int64_t>(junk.size())));
      }
      HEDDLE_RETURN_IF_ERROR(context.run());
    }
    return {};
  }

  // Of one run, in a row of them: µs on the device.
  template <typename Function>
  Result<double> timed(Function&& function) {
    HEDDLE_RETURN_IF_ERROR(gpu_->begin_timing());
    for (int run = 0; run < kRuns; ++run) HEDDLE_RETURN_IF_ERROR(function());
    HEDDLE_ASSIGN_OR_RETURN(const double ms, gpu_->end_timing_ms());
    return ms * 1e3 / kRuns;
  }

  Status time(bool untimed, ordered_json* result) {
    constexpr const char* kNot = "not measured";
    if (untimed) {
      for (const char* name : {"us", "least_us", "apart_us", "copy_us"}) (*result)[name] = kNot;
      return {};
    }
    std::vector<double> us, apart_us;
    for (int round = 0; round < kRounds; ++round) {
      HEDDLE_ASSIGN_OR_RETURN(us.emplace_back(), timed([&] { return context_->start(); }));
      HEDDLE_ASSIGN_OR_RETURN(apart_us.emplace_back(), timed([&] { return launch_all(); }));
    }
    HEDDLE_ASSIGN_OR_RETURN(const double copied, copy_us());
    (*result)["us"] = median(us);
    (*result)["least_us"] = *std::min_element(us.begin(), us.end());
    (*result)["apart_us"] = median(apart_us);
    (*result)["copy_us"] = copied;
    return {};
  }

  static double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  }

  Status time_whole(const hlo::Module& module, bool untimed, ordered_json* result) {
    compiler::Options options;
    options.own_memory = true;
    HEDDLE_ASSIGN_OR_RETURN(program::Program program,
                            compiler::compile(module.clone(), {}, target_, options));
    HEDDLE_ASSIGN_OR_RETURN(const auto context, make_context(std::move(program)));
    HEDDLE_RETURN_IF_ERROR(run_first(*context));
    HEDDLE_RETURN_IF_ERROR(check(module, result));
    (*result)["run_us"] = "not measured";
    if (untimed) return {};
    using Clock = std::chrono::steady_clock;
    std::vector<double> us;
    for (int run = 0; run < kRounds * kRuns; ++run) {
      const Clock::time_point begin = Clock::now();
      HEDDLE_RETURN_IF_ERROR(context->run());
      us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    }
    (*result)["run_us"] = median(us);
    return {};
  }

  // Half the bytes there and half of them back: what no kernel that moves them all can beat.
  Result<double> copy_us() {
    const int64_t half = std::max<int64_t>(1, moved_bytes_ / 2);
    char *from = nullptr, *to = nullptr;
    HEDDLE_RETURN_IF_ERROR(allocate(half, &from));
    HEDDLE_RETURN_IF_ERROR(allocate(half, &to));
    const heddle_hal& hal = device().hal();
    double least = 0;
    for (int round = 0; round < kRounds; ++round) {
      HEDDLE_ASSIGN_OR_RETURN(const double one, timed([&]() -> Status {
                                if (hal.copy(hal.device, to, from, half) != 0)
                                  return device().last_error("cannot copy");
                                return {};
                              }));
      if (least == 0 || one < least) least = one;
    }
    return least;
  }

  Result<std::vector<Literal>> results() {
    std::vector<Literal> found;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const program::Port& port = program_.outputs[i];
      if (!port.buffer.valid()) return user_error("output {} is not of this program", port.name);
      Literal& value = found.emplace_back(port.shape.without_layout());
      HEDDLE_RETURN_IF_ERROR(device().copy_now(value.mutable_data(), outputs_[i], value.bytes()));
    }
    return found;
  }

  // Operator by operator: nothing is fused, every kernel is one operator's.
  Result<std::vector<Literal>> by_operators(std::unique_ptr<hlo::Module> module) {
    compiler::Options options;
    options.level = compiler::Level::O0;
    options.fuse = compiler::Fuse::off;
    HEDDLE_ASSIGN_OR_RETURN(program::Program program,
                            compiler::compile(std::move(module), {}, target_, options));
    HEDDLE_ASSIGN_OR_RETURN(
        const auto executable,
        runtime::Executable::load(std::move(program), device(), api::host_functions()));
    HEDDLE_ASSIGN_OR_RETURN(const auto context, executable->make_context());
    std::vector<Literal> found;
    for (const program::Port& port : executable->program().outputs)
      found.emplace_back(port.shape.without_layout());
    for (size_t i = 0; i < inputs_.size(); ++i)
      HEDDLE_RETURN_IF_ERROR(context->bind_input(static_cast<int64_t>(i), inputs_[i].data()));
    for (size_t i = 0; i < found.size(); ++i)
      HEDDLE_RETURN_IF_ERROR(
          context->bind_output(static_cast<int64_t>(i), found[i].mutable_data()));
    HEDDLE_RETURN_IF_ERROR(context->run());
    return found;
  }

  Status check(const hlo::Module& module, ordered_json* result) {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<Literal> got, results());
    const bool quick = elements_of(module) <= kInterpretedElements;
    if (wanted_.empty() && quick) {
      HEDDLE_ASSIGN_OR_RETURN(const Literal all, interp::evaluate(module, inputs_));
      append_leaves(all, &wanted_);
    } else if (wanted_.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(wanted_, by_operators(module.clone()));
    }
    (*result)["reference"] = quick ? "interpreter" : "level O0 on the device";
    double worst = 0;
    std::string wrong;
    for (size_t i = 0; i < wanted_.size(); ++i) {
      const auto compared = tensor::compare(got.at(i), wanted_[i], model_->tolerance(i));
      if (compared.max_want > 0) worst = std::max(worst, compared.worst_error / compared.max_want);
      if (!compared.equal && wrong.empty())
        wrong = fmt::format("output {}: {}", i, compared.describe());
    }
    (*result)["error_of_max"] = worst;
    (*result)["equal"] = result->value("equal", true) && wrong.empty();
    if (!wrong.empty()) (*result)["error"] = wrong;
    return {};
  }

  std::shared_ptr<runtime::CudaDevice> gpu_;
  target::Target target_;
  std::unique_ptr<api::Model> model_;
  std::vector<Literal> inputs_, wanted_;
  program::Program program_;
  std::vector<runtime::Block> blocks_;
  runtime::Code code_;
  std::unique_ptr<runtime::Context> context_;
  std::vector<char*> bases_, inputs_on_device_, outputs_;
  std::vector<void*> addresses_;
  std::vector<heddle_hal_launch> launches_;
  int64_t moved_bytes_ = 0;
};

// What the GPU, its driver and its compiler are.
Result<ordered_json> facts() {
  HEDDLE_ASSIGN_OR_RETURN(const auto driver, runtime::CudaDriver::open());
  HEDDLE_ASSIGN_OR_RETURN(const auto gpu, api::open_gpu(0));
  HEDDLE_ASSIGN_OR_RETURN(const auto nvrtc, emit::cuda::Nvrtc::open());
  HEDDLE_ASSIGN_OR_RETURN(const target::Target target, api::gpu_target(gpu->info()));
  int version = 0;
  driver->driver_version(&version);
  const runtime::CudaDeviceInfo& info = gpu->info();
  return ordered_json{{"device", info.name},
                      {"capability", fmt::format("sm_{}{}", info.major, info.minor)},
                      {"target", target.name},
                      {"multiprocessors", info.multiprocessors},
                      {"memory_bytes", info.memory_bytes},
                      {"driver", version},
                      {"nvrtc", nvrtc->version()},
                      {"nvrtc_path", nvrtc->path()}};
}

std::optional<Wish> read_wish(std::span<char* const> words) {
  Wish wish;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i];
    const bool more = i + 1 < words.size();
    if (word == "--inputs" && more)
      wish.inputs = words[++i];
    else if (word == "--seed" && more)
      wish.seed = std::strtoull(words[++i], nullptr, 10);
    else if (word == "--positive")
      wish.positive = true;
    else if (word == "--untimed")
      wish.untimed = true;
    else if (word == "--whole")
      wish.whole = true;
    else if (wish.model.empty() && !word.starts_with("--"))
      wish.model = word;
    else
      return {};
  }
  return wish.model.empty() ? std::nullopt : std::optional(wish);
}

int print(const Result<ordered_json>& result) {
  if (result) {
    fmt::print("{}\n", result->dump());
    return result->value("equal", true) ? 0 : 1;
  }
  fmt::print("{}\n", ordered_json{{"error", result.error().message}}.dump());
  return whose(result.error().kind) == ErrorKind::user ? 2 : 3;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  const std::span<char* const> words(argv, static_cast<size_t>(argc));
  const std::string command = argc > 1 ? words[1] : "";
  if (command == "facts" && argc == 2) return heddle::print(heddle::facts());
  const auto wish = command == "time" ? heddle::read_wish(words.subspan(2)) : std::nullopt;
  if (wish) return heddle::print(heddle::Probe().run(*wish));
  fmt::print(stderr,
             "usage: gpu_probe facts\n"
             "       gpu_probe time MODEL.hlo [--inputs FILE.npz | --seed N [--positive]] "
             "[--untimed] [--whole]\n");
  return 2;
}
