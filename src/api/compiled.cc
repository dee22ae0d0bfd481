#include "api/compiled.h"

#include <link.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>

#include "api/command_report.h"
#include "api/host_interp.h"
#include "api/index_guard.h"
#include "api/library_work.h"
#include "api/log.h"
#include "api/once_keeper.h"
#include "api/opened_device.h"
#include "api/ports.h"
#include "api/program_facts.h"
#include "api/shared_weights.h"
#include "base/trace.h"
#include "cache/object_cache.h"
#include "compiler/cached.h"
#include "hlo/module.h"
#include "program/file.h"
#include "program/side_by_side.h"
#include "program/streams.h"
#include "program/text.h"
#include "program/views.h"
#include "runtime/executor.h"
#include "runtime/pooled_run.h"

namespace heddle::api {
namespace {

Result<target::Target> target_of(const program::Program& program) {
  Result<target::Target> target = target::parse_target(program.target);
  if (!target) return error_in("program " + program.name + ": damaged", target.error());
  return target;
}

using Clock = std::chrono::steady_clock;
using program::BufferKind;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// Whether this process has loaded the code generator.
bool code_generator_is_mapped() {
  bool found = false;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* result) {
        if (info->dlpi_name != nullptr && std::strstr(info->dlpi_name, "libheddle-llvm") != nullptr)
          *static_cast<bool*>(result) = true;
        return 0;
      },
      &found);
  return found;
}

// Detects whether a compilation loaded the code generator or added entries to the cache: then the
// cache was cold.
class CacheWatch {
 public:
  explicit CacheWatch(const std::string& directory)
      : directory_(directory), was_mapped_(code_generator_is_mapped()), entries_(entries()) {}
  bool is_warm() const {
    if (directory_.empty()) return false;
    return was_mapped_ ? entries() == entries_ : !code_generator_is_mapped();
  }

 private:
  // Only counted if the code generator was already loaded and tells nothing.
  int64_t entries() const {
    if (directory_.empty() || !was_mapped_) return 0;
    auto cache = cache::ObjectCache::open(directory_);
    return cache ? cache->stats().entries : 0;
  }
  std::string directory_;
  bool was_mapped_;
  int64_t entries_;
};

Status dump_program(const program::Program& program, const std::string& directory) {
  if (directory.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  const std::filesystem::path path = std::filesystem::path(directory) / "5-program.txt";
  std::filesystem::remove(path, error);  // a symbolic link is replaced; its target is not changed
  std::ofstream file(path);
  file << program::to_string(program) << std::flush;
  if (!file.good()) return machine_error("cannot write {}", path.string());
  return {};
}

class CompiledProgram : public Program, public std::enable_shared_from_this<CompiledProgram> {
 public:
  explicit CompiledProgram(std::unique_ptr<OpenedDevice> device) : device_(std::move(device)) {
    facts_.device = device_->name();
    facts_.threads = device_->threads();
  }

  const program::Program* compiled() const override {
    return executable_ ? &executable_->program() : &unloaded_;
  }
  Status save(const std::string& path) override {
    HEDDLE_ASSIGN_OR_RETURN(const program::Program program, take());
    return program::save(program, path);
  }
  Result<program::Program> take() const override {
    HEDDLE_RETURN_IF_ERROR(check_code());
    // An unloaded program is saved with its once section; it runs after loading.
    if (device_->starts_late()) return unloaded_;
    return executable_->take_once();
  }
  Result<bool> wait(std::chrono::milliseconds most) override {
    return !keeper_ || keeper_->wait(most);
  }
  Status share(SharedWeights* weights) override {
    if (!executable_ || executable_->program().once.empty() || !device_->shares_weights())
      return {};
    HEDDLE_ASSIGN_OR_RETURN(const tensor::Literal block, executable_->once_results());
    program::Program folded = program::fold_once(executable_->program(), block);
    HEDDLE_ASSIGN_OR_RETURN(const target::Target target, target::parse_target(folded.target));
    HEDDLE_ASSIGN_OR_RETURN(const runtime::Device* device, device_->start(target));
    HEDDLE_RETURN_IF_ERROR(weights->share(folded, block, *device, facts_.threads));
    return start(std::move(folded), target);
  }
  std::shared_ptr<runtime::StateArrays> states() const override { return states_; }
  Status use_states(std::shared_ptr<runtime::StateArrays> states) override {
    states_ = std::move(states);
    return executable_ ? executable_->use_states(states_) : Status();
  }
  Result<std::unique_ptr<Context>> make_context(
      std::shared_ptr<runtime::Cancellation> cancellation) override;
  // Set after a context was made; null on other devices.
  const runtime::CudaDevice* gpu() const { return device_->gpu(); }
  void ran() const {
    if (keeper_) keeper_->ran();
  }

  Status load(program::Program program, const Model& model) {
    inputs_ = model.inputs();
    outputs_ = model.outputs();
    index_checks_ = model.index_checks();
    HEDDLE_RETURN_IF_ERROR(check_against(program));
    notes_ = program.notes;
    for (size_t i = program.inputs.size() - program.states.size(); i < program.inputs.size(); ++i)
      state_ports_.push_back(make_port(program.inputs[i].alias_name, "", program.inputs[i].shape));
    HEDDLE_RETURN_IF_ERROR(describe(program));
    const Clock::time_point begin = Clock::now();
    HEDDLE_ASSIGN_OR_RETURN(const target::Target target, target_of(program));
    if (device_->starts_late() || !has_code_) {
      unloaded_ = std::move(program);
      return {};
    }
    HEDDLE_RETURN_IF_ERROR(start(std::move(program), target));
    steps_.emplace_back("load", ms_since(begin));
    return {};
  }

  Status compile(std::unique_ptr<hlo::Module> module, const Model& model,
                 const Settings& settings) {
    const Clock::time_point begin = Clock::now();
    has_code_ = settings.compiler.code;
    plan::Names names;
    for (const Port& port : model.inputs()) {
      names.inputs.push_back(port.name);
      names.input_aliases.push_back(port.alias);
    }
    for (const Port& port : model.outputs()) names.outputs.push_back(port.name);
    const CacheWatch watch(settings.compiler.object_cache_directory);
    std::optional<cache::Key> once_key;
    program::Program program;
    if (settings.explain) {
      HEDDLE_ASSIGN_OR_RETURN(program, compiler::compile(std::move(module), names, settings.target,
                                                         settings.compiler, report_.get()));
    } else {
      HEDDLE_ASSIGN_OR_RETURN(compiler::Cached cached,
                              compiler::compile_cached(std::move(module), names, settings.target,
                                                       settings.compiler, report_.get()));
      program = std::move(cached.program);
      once_key = cached.once_key;
    }
    program.notes.insert(program.notes.begin(), model.notes().begin(), model.notes().end());
    program.index_checks = model.index_checks();
    facts_.cache_warm = watch.is_warm();
    steps_ = report_->times_ms;
    HEDDLE_RETURN_IF_ERROR(dump_program(program, settings.compiler.dump_directory));
    const std::string program_name = program.name;
    if (settings.compiler.progress && !settings.compiler.progress("load"))
      return cancelled_error("compilation cancelled before load");
    HEDDLE_RETURN_IF_ERROR(load(std::move(program), model));
    if (once_key) keeper_ = std::make_unique<OnceKeeper>(executable_, settings.compiler, *once_key);
    HEDDLE_RETURN_IF_ERROR(
        check_limit(program_name, facts_.temporary_pool_peak_bytes, settings.compiler));
    facts_.compile_ms = ms_since(begin);
    return {};
  }

  Status load_saved(program::Program program, const Model& model, const std::string& dump) {
    const Clock::time_point begin = Clock::now();
    HEDDLE_RETURN_IF_ERROR(dump_program(program, dump));
    HEDDLE_RETURN_IF_ERROR(load(std::move(program), model));
    facts_.cache_warm = true;
    facts_.compile_ms = ms_since(begin);
    return {};
  }

 private:
  Status describe(const program::Program& program) {
    HEDDLE_ASSIGN_OR_RETURN(const target::Target target, target_of(program));
    facts_.isa = target::isa_name(target);
    facts_.target = target.name;
    facts_.options = program.options;
    facts_.level = option_value(program.options, "level");
    facts_.precision = option_value(program.options, "precision");
    facts_.object_bytes = static_cast<int64_t>(program.object.size());
    facts_.temporary_bytes = program.memory.plan_bytes;
    facts_.temporary_lower_bound_bytes = program.memory.lower_bound_bytes;
    facts_.temporary_unshared_bytes = program.memory.unshared_bytes;
    facts_.temporary_optimal = program.memory.optimal;
    facts_.temporary_pool_peak_bytes = runtime::pool_peak_bytes(program, device_->streams());
    if (!program.pool_blocks.empty()) facts_.temporary_bytes = facts_.temporary_pool_peak_bytes;
    for (const Port& port : inputs_) facts_.input_bytes += port.bytes;
    for (const Port& port : outputs_) facts_.output_bytes += port.bytes;
    const bool gpu = target.kind == target::DeviceKind::gpu;
    const int cores = gpu ? target.cores : std::min(facts_.threads, target.cores);
    facts_.peak_flops_per_ns =
        target.peak_flops_per_ns(tensor::Type::f32) * cores / std::max(target.cores, 1);
    facts_.bandwidth_bytes_per_ns = cores <= 1
                                        ? target.memory_bandwidth_bytes_per_ns
                                        : std::min(target.memory_bandwidth_all_bytes_per_ns,
                                                   target.memory_bandwidth_bytes_per_ns * cores);
    count_commands(program, facts_);
    return {};
  }

  // Callers bind memory of our ports' sizes, the executor accesses it by the program's.
  Status check_against(const program::Program& program) const {
    const size_t inputs = program::shown_inputs(program), outputs = program::shown_outputs(program);
    HEDDLE_CHECK(inputs == inputs_.size() && outputs == outputs_.size(),
                 "{} inputs and {} outputs became {} and {}", inputs_.size(), outputs_.size(),
                 inputs, outputs);
    for (const bool input : {true, false}) {
      const std::vector<Port>& ports = input ? inputs_ : outputs_;
      const auto& program_ports = input ? program.inputs : program.outputs;
      for (size_t i = 0; i < ports.size(); ++i)
        HEDDLE_CHECK(program::stored_bytes(program_ports[i].shape) == ports[i].bytes,
                     "{}: {} bytes became {}", ports[i].name, ports[i].bytes,
                     program::stored_bytes(program_ports[i].shape));
    }
    return {};
  }

  Status check_code() const {
    if (has_code_) return {};
    return user_error("this program was compiled without code and cannot run");
  }

  Status start(program::Program program, const target::Target& target) {
    HEDDLE_ASSIGN_OR_RETURN(const runtime::Device* device, device_->start(target));
    HEDDLE_ASSIGN_OR_RETURN(executable_,
                            runtime::Executable::load(std::move(program), *device, host_functions(),
                                                      library_function(target)));
    return executable_->use_states(states_);
  }

  Status start_late() {
    const std::lock_guard lock(start_mutex_);
    if (executable_) return {};
    HEDDLE_ASSIGN_OR_RETURN(const target::Target target, target::parse_target(unloaded_.target));
    return start(program::Program(unloaded_), target);
  }

  const std::unique_ptr<OpenedDevice> device_;  // outlives the executable
  std::mutex start_mutex_;
  program::Program unloaded_;  // if the device starts late, or without code: as compiled
  bool has_code_ = true;
  std::shared_ptr<runtime::Executable> executable_;
  std::shared_ptr<runtime::StateArrays> states_ = std::make_shared<runtime::StateArrays>();
  std::unique_ptr<OnceKeeper> keeper_;  // may be null
};

class CompiledContext : public Context {
 public:
  CompiledContext(std::shared_ptr<const CompiledProgram> program,
                  std::unique_ptr<runtime::Context> context,
                  std::shared_ptr<runtime::Cancellation> cancellation)
      : Context(std::move(cancellation)),
        program_(std::move(program)),
        guard_(*program_),
        context_(std::move(context)) {
    const program::Program& p = *program_->compiled();
    program::for_each_command(
        p, p.commands, p.command_info,
        [&](const program::Command& command, const program::CommandInfo& info, int) {
          commands_.push_back(&command);
          std::vector<const char*>& nodes = nodes_.emplace_back();
          for (const std::string& node : info.nodes) nodes.push_back(node.c_str());
        });
  }

  Status bind_input(int64_t number, const void* data) override {
    HEDDLE_RETURN_IF_ERROR(check_port(true, number));
    HEDDLE_RETURN_IF_ERROR(context_->bind_input(number, data));
    guard_.bound(number, data);
    return {};
  }
  std::vector<tensor::IndexCheck>* index_checks() override { return &guard_.checks(); }
  Status bind_output(int64_t number, void* data) override {
    HEDDLE_RETURN_IF_ERROR(check_port(false, number));
    return context_->bind_output(number, data);
  }
  Status bind_device(bool input, int64_t number, void* data) override {
    if (program_->gpu() == nullptr) return Context::bind_device(input, number, data);
    HEDDLE_RETURN_IF_ERROR(check_port(input, number));
    if (!input) return context_->bind_device_output(number, data);
    HEDDLE_RETURN_IF_ERROR(context_->bind_device_input(number, data));
    guard_.bound_on(program_->gpu()->device(), number, data);
    return {};
  }
  Status run() override {
    HEDDLE_RETURN_IF_ERROR(guard_.before());
    HEDDLE_RETURN_IF_ERROR(context_->run());
    program_->ran();
    return guard_.after([&](size_t number) { return context_->hidden_output(number); });
  }
  void set_profile(bool on) override { context_->set_profile(on); }
  void reset_profile() override { context_->reset_profile(); }
  int64_t command_count() const override { return static_cast<int64_t>(commands_.size()); }
  CommandReport command(int64_t number) const override {
    const auto at = static_cast<size_t>(number);
    CommandReport report =
        report_command(*program_->compiled(), *commands_[at], context_->profile()[at]);
    report.nodes = nodes_[at];
    return report;
  }

 private:
  // Hidden ports are out of range, too.
  Status check_port(bool input, int64_t number) const {
    const std::vector<Port>& ports = input ? program_->inputs() : program_->outputs();
    if (number < std::ssize(ports)) return {};
    return user_error("program {}: no {} {}, it has {}", program_->compiled()->name,
                      input ? "input" : "output", number, ports.size());
  }
  std::shared_ptr<const CompiledProgram> program_;  // outlives the context
  IndexGuard guard_;
  std::vector<const program::Command*> commands_;  // by number, including those of regions
  std::vector<std::vector<const char*>> nodes_;    // by command: names of model nodes
  std::unique_ptr<runtime::Context> context_;
};

Result<std::unique_ptr<Context>> CompiledProgram::make_context(
    std::shared_ptr<runtime::Cancellation> cancellation) {
  HEDDLE_RETURN_IF_ERROR(check_code());
  HEDDLE_RETURN_IF_ERROR(start_late());
  HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<runtime::Context> context,
                          executable_->make_context(cancellation));
  return std::make_unique<CompiledContext>(shared_from_this(), std::move(context),
                                           std::move(cancellation));
}

Result<std::shared_ptr<CompiledProgram>> make_program(const DeviceRequest& where) {
  HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<OpenedDevice> device, open_device(where));
  return std::make_shared<CompiledProgram>(std::move(device));
}

// Writes to the caller's log.
void tell(const char* what, const Model& model, const Program& program) {
  const ProgramFacts& facts = program.facts();
  log(LogLevel::info, "{} {} for {} ({}): {} kernels, {:.1f} ms{}", what, model.name(),
      facts.device, facts.isa, facts.kernels, facts.compile_ms,
      facts.cache_warm ? ", all from the cache" : "");
  for (const auto& [step, ms] : program.steps())
    log(LogLevel::debug, "{}: {} {:.1f} ms", model.name(), step, ms);
  for (size_t i = model.notes().size(); i < program.notes().size(); ++i)  // new ones
    log(LogLevel::info, "{}: {}", model.name(), program.notes()[i]);
}

}  // namespace

Result<std::shared_ptr<Program>> compile_for_device(std::unique_ptr<hlo::Module> module,
                                                    const Model& model, const Settings& settings) {
  trace::Span span("compile", model.name());
  HEDDLE_ASSIGN_OR_RETURN(const auto program, make_program(settings.where));
  HEDDLE_RETURN_IF_ERROR(program->compile(std::move(module), model, settings));
  tell("compiled", model, *program);
  return program;
}

Result<std::shared_ptr<Program>> load_for_device(program::Program saved, const Model& model,
                                                 const DeviceRequest& where,
                                                 const std::string& dump_directory) {
  HEDDLE_ASSIGN_OR_RETURN(const auto program, make_program(where));
  HEDDLE_RETURN_IF_ERROR(program->load_saved(std::move(saved), model, dump_directory));
  tell("loaded", model, *program);
  return program;
}

}  // namespace heddle::api
