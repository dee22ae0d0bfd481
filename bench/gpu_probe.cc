// The time of a program's launches on the GPU of this machine: arrays stay on the device, the
// launches of a run follow one another, so many runs are timed together. A program with other
// commands than launches is refused: its time would be the host's.
//
//   gpu_probe MODEL.hlo INPUTS.npz OUTPUTS.npz
//
// prints one line of JSON: {"device", "us", …} or {"error": why}. INPUTS: arg0, arg1, …
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <variant>

#include "api/gpu_device.h"
#include "compiler/compiler.h"
#include "hlo/text.h"
#include "tensor/npz.h"

#include <fstream>
#include <sstream>

namespace heddle {
namespace {

constexpr int kRounds = 15, kRuns = 20;  // of a round

class Probe {
 public:
  Result<nlohmann::ordered_json> run(const std::string& model, const std::string& inputs,
                                     const std::string& outputs) {
    HEDDLE_ASSIGN_OR_RETURN(gpu_, api::open_gpu(0));
    HEDDLE_ASSIGN_OR_RETURN(const target::Target target, api::gpu_target(gpu_->info()));
    std::ifstream file(model);
    std::stringstream text;
    text << file.rdbuf();
    HEDDLE_ASSIGN_OR_RETURN(auto module, hlo::parse_module(text.str()));
    HEDDLE_ASSIGN_OR_RETURN(program_, compiler::compile(std::move(module), {}, target, {}));
    HEDDLE_ASSIGN_OR_RETURN(const tensor::NamedLiterals given, tensor::read_npz(inputs));
    HEDDLE_RETURN_IF_ERROR(place(given));
    HEDDLE_RETURN_IF_ERROR(link());
    HEDDLE_RETURN_IF_ERROR(launch_all());
    HEDDLE_RETURN_IF_ERROR(keep_outputs(outputs));
    std::vector<double> us;
    for (int round = 0; round < kRounds; ++round) {
      HEDDLE_ASSIGN_OR_RETURN(const double one, timed([&] { return launch_all(); }));
      us.push_back(one);
    }
    std::sort(us.begin(), us.end());
    HEDDLE_ASSIGN_OR_RETURN(const double copied, copy_us());
    return nlohmann::ordered_json{{"device", gpu_->info().name},
                                  {"target", target.name},
                                  {"kernels", program_.kernels.size()},
                                  {"launches", launches_.size()},
                                  {"us", us[us.size() / 2]},
                                  {"least_us", us.front()},
                                  {"copy_us", copied}};
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
  Status place(const tensor::NamedLiterals& given) {
    char* arena = nullptr;
    HEDDLE_RETURN_IF_ERROR(allocate(program_.memory.plan_bytes, &arena));
    std::vector<char*> ports[2];
    for (const program::Port& port : program_.inputs) {
      const int64_t bytes = program::stored_bytes(port.shape);
      const auto value = std::find_if(given.begin(), given.end(),
                                      [&](const auto& one) { return one.first == port.name; });
      if (value == given.end() || value->second.bytes() != bytes)
        return user_error("no input {} of {} bytes", port.name, bytes);
      HEDDLE_RETURN_IF_ERROR(allocate(bytes, &ports[0].emplace_back()));
      HEDDLE_RETURN_IF_ERROR(device().copy_now(ports[0].back(), value->second.data(), bytes));
      moved_bytes_ += bytes;
    }
    for (const program::Port& port : program_.outputs) {
      const int64_t bytes = program::stored_bytes(port.shape);
      HEDDLE_RETURN_IF_ERROR(allocate(bytes, &ports[1].emplace_back()));
      moved_bytes_ += bytes;
    }
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

  // Of one run, in a row of them.
  template <typename Function>
  Result<double> timed(Function&& function) {
    const heddle_hal& hal = device().hal();
    const auto begin = std::chrono::steady_clock::now();
    for (int run = 0; run < kRuns; ++run) HEDDLE_RETURN_IF_ERROR(function());
    if (hal.wait(hal.device) != 0) return device().last_error("cannot wait");
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    return took.count() / kRuns;
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

  Status keep_outputs(const std::string& path) {
    tensor::NamedLiterals results;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const program::Port& port = program_.outputs[i];
      if (!port.buffer.valid()) return user_error("output {} is not of this program", port.name);
      tensor::Literal value(port.shape.without_layout());
      HEDDLE_RETURN_IF_ERROR(device().copy_now(value.mutable_data(), outputs_[i], value.bytes()));
      results.emplace_back(port.name, std::move(value));
    }
    return tensor::write_npz(path, results);
  }

  std::shared_ptr<runtime::CudaDevice> gpu_;
  program::Program program_;
  std::vector<runtime::Block> blocks_;
  runtime::Code code_;
  std::vector<char*> bases_, outputs_;
  std::vector<void*> addresses_;
  std::vector<heddle_hal_launch> launches_;
  int64_t moved_bytes_ = 0;
};

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: gpu_probe MODEL.hlo INPUTS.npz OUTPUTS.npz\n");
    return 2;
  }
  const auto result = heddle::Probe().run(argv[1], argv[2], argv[3]);
  if (result) {
    fmt::print("{}\n", result->dump());
    return 0;
  }
  fmt::print("{}\n", nlohmann::ordered_json{{"error", result.error().message}}.dump());
  return 3;
}
