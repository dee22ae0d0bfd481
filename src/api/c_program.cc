// Programs, contexts and traces: the C functions over Program and Context.
#include <algorithm>
#include <cstdlib>

#include "api/c_handles.h"
#include "api/c_status.h"
#include "api/tune.h"
#include "base/trace.h"

namespace heddle::api {
namespace {

void set_text(const char* from, std::string& to) {
  if (from != nullptr) to = from;
}

CompileOptions compile_options(const heddle_compile_options* from) {
  const heddle_compile_options c = read_struct(from);
  CompileOptions options;
  set_text(c.device, options.device);
  set_text(c.target, options.target);
  set_text(c.level, options.level);
  set_text(c.fuse, options.fuse);
  set_text(c.memory, options.memory);
  set_text(c.numerics, options.numerics);
  set_text(c.precision, options.precision);
  set_text(c.library, options.library);
  set_text(c.cache, options.cache);
  set_text(c.dump, options.dump);
  set_text(c.order, options.order);
  std::string names;
  set_text(c.disable, names);
  for (size_t at = 0; at < names.size();) {
    const size_t end = std::min(names.size(), names.find(',', at));
    if (end > at) options.disabled.push_back(names.substr(at, end - at));
    at = end + 1;
  }
  if (c.memory_limit_bytes > 0) options.memory_limit_bytes = c.memory_limit_bytes;
  options.threads = c.threads;
  options.streams = c.streams;
  options.consume_model = c.consume_model != 0;
  options.explain = c.explain != 0;
  options.background = c.background != 0;
  if (c.progress != nullptr)
    options.progress = [c](const CompileProgress& progress) {
      const heddle_compile_progress told{sizeof(heddle_compile_progress), progress.step,
                                         progress.done, progress.steps, progress.seconds};
      return c.progress(&told, c.progress_context) == 0;
    };
  if (c.allocator != nullptr) {
    const heddle_allocator given = read_struct(c.allocator);
    options.allocator = {given.allocate, given.release, given.context};
  }
  return options;
}

TuneOptions tune_options(const heddle_tune_options* from) {
  const heddle_tune_options c = read_struct(from);
  TuneOptions options;
  if (c.budget_seconds != 0) options.budget_s = c.budget_seconds;
  if (c.candidates != 0) options.candidates = c.candidates;
  options.again = c.again != 0;
  if (c.progress != nullptr)
    options.progress = [c](const TuneProgress& progress) {
      const heddle_tune_progress told{sizeof(heddle_tune_progress),
                                      progress.done,
                                      progress.tasks,
                                      progress.key.c_str(),
                                      progress.record.c_str(),
                                      progress.ns,
                                      progress.untuned_ns,
                                      progress.seconds,
                                      progress.known,
                                      progress.candidates,
                                      progress.measured.c_str()};
      return c.progress(&told, c.context) == 0;
    };
  return options;
}

}  // namespace

const Program& unwrap(const heddle_program* program) { return *program->program; }
CompileOptions unwrap(const heddle_compile_options& options) { return compile_options(&options); }

}  // namespace heddle::api

using namespace heddle;  // NOLINT: the C functions are outside of all namespaces
using api::guarded;
using api::write_struct;

extern "C" {

heddle_status* heddle_compile(heddle_model* model, const heddle_compile_options* options,
                              heddle_program** program) {
  return guarded([&]() -> Status {
    HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<api::Program> compiled,
                            api::Program::compile(*model->model, api::compile_options(options)));
    *program = new heddle_program{std::move(compiled)};
    return {};
  });
}

heddle_status* heddle_tune(const heddle_model* model, const heddle_compile_options* options,
                           const heddle_tune_options* tuning, heddle_tune_result* result) {
  return guarded([&]() -> Status {
    HEDDLE_ASSIGN_OR_RETURN(
        const api::TuneResult done,
        api::tune(*model->model, api::compile_options(options), api::tune_options(tuning)));
    write_struct(result,
                 heddle_tune_result{sizeof(heddle_tune_result), done.tasks, done.measured,
                                    done.known, done.left, done.faster, done.ns, done.untuned_ns,
                                    done.seconds, done.samples, done.compiled});
    return {};
  });
}

void heddle_program_free(heddle_program* program) { delete program; }

heddle_status* heddle_compile_until(const heddle_model* model,
                                    const heddle_compile_options* options, const char* point,
                                    char** text) {
  return guarded([&]() -> Status {
    HEDDLE_ASSIGN_OR_RETURN(
        const std::string result,
        api::compile_until(*model->model, api::compile_options(options), point));
    char* copy = static_cast<char*>(std::malloc(result.size() + 1));
    if (copy == nullptr) throw std::bad_alloc();
    std::memcpy(copy, result.c_str(), result.size() + 1);
    *text = copy;
    return {};
  });
}

void heddle_string_free(char* text) { std::free(text); }

void heddle_program_get_info(const heddle_program* program, heddle_program_info* info) {
  const api::Program& from = *program->program;
  const api::ProgramFacts& facts = from.facts();
  heddle_program_info result{};
  result.device = facts.device.c_str();
  result.isa = facts.isa.c_str();
  result.target = facts.target.c_str();
  result.level = facts.level.c_str();
  result.precision = facts.precision.c_str();
  result.options = facts.options.c_str();
  result.threads = facts.threads;
  result.cache_warm = facts.cache_warm;
  result.inputs = static_cast<int64_t>(from.inputs().size());
  result.outputs = static_cast<int64_t>(from.outputs().size());
  result.notes = static_cast<int64_t>(from.notes().size());
  result.steps = static_cast<int64_t>(from.steps().size());
  result.kernels = facts.kernels;
  result.run_kernels = facts.run_kernels;
  result.launches = facts.launches;
  result.flops = facts.flops;
  result.min_bytes = facts.min_bytes;
  result.constant_bytes = facts.constant_bytes;
  result.input_bytes = facts.input_bytes;
  result.output_bytes = facts.output_bytes;
  result.temporary_bytes = facts.temporary_bytes;
  result.temporary_lower_bound_bytes = facts.temporary_lower_bound_bytes;
  result.temporary_pool_peak_bytes = facts.temporary_pool_peak_bytes;
  result.temporary_optimal = facts.temporary_optimal;
  result.pending = facts.pending;
  result.swap = facts.swap.c_str();
  result.compilations = facts.compilations;
  result.bucket = facts.bucket.c_str();
  result.temporary_unshared_bytes = facts.temporary_unshared_bytes;
  result.object_bytes = facts.object_bytes;
  result.compile_ms = facts.compile_ms;
  result.peak_flops_per_ns = facts.peak_flops_per_ns;
  result.bandwidth_bytes_per_ns = facts.bandwidth_bytes_per_ns;
  write_struct(info, result);
}

void heddle_program_input(const heddle_program* program, int64_t number, heddle_port* port) {
  write_struct(port, api::c_port(program->program->inputs(), number));
}

void heddle_program_output(const heddle_program* program, int64_t number, heddle_port* port) {
  write_struct(port, api::c_port(program->program->outputs(), number));
}

const char* heddle_program_note(const heddle_program* program, int64_t number) {
  const auto& notes = program->program->notes();
  return api::is_place(number, notes.size()) ? notes[static_cast<size_t>(number)].c_str() : nullptr;
}

const char* heddle_program_step(const heddle_program* program, int64_t number, double* ms) {
  const auto& steps = program->program->steps();
  if (!api::is_place(number, steps.size())) return nullptr;
  const auto& [name, took] = steps[static_cast<size_t>(number)];
  if (ms != nullptr) *ms = took;
  return name.c_str();
}

heddle_status* heddle_program_wait(heddle_program* program, int64_t most_ms, int32_t* ready) {
  return guarded([&]() -> Status {
    constexpr int64_t kDay = int64_t{86'400'000};
    HEDDLE_ASSIGN_OR_RETURN(const bool done, program->program->wait(std::chrono::milliseconds(
                                                 std::clamp<int64_t>(most_ms, 0, 365 * kDay))));
    if (ready != nullptr) *ready = done;
    return {};
  });
}

heddle_status* heddle_program_save(heddle_program* program, const char* path) {
  return guarded([&] { return program->program->save(path); });
}

heddle_status* heddle_context_create(heddle_program* program, heddle_context** context) {
  return guarded([&]() -> Status {
    HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<api::Context> made, program->program->make_context());
    *context = new heddle_context{std::move(made)};
    return {};
  });
}

void heddle_context_free(heddle_context* context) { delete context; }

heddle_status* heddle_context_bind_input(heddle_context* context, int64_t number,
                                         const void* data) {
  return guarded([&] { return context->context->bind_input(number, data); });
}

heddle_status* heddle_context_bind_output(heddle_context* context, int64_t number, void* data) {
  return guarded([&] { return context->context->bind_output(number, data); });
}

heddle_status* heddle_context_set_dim(heddle_context* context, const char* name, int64_t extent) {
  return guarded([&] { return context->context->set_extent(name, extent); });
}

heddle_status* heddle_context_run(heddle_context* context) {
  return guarded([&] { return context->context->run(); });
}

void heddle_context_cancel(heddle_context* context) { context->context->cancel(); }

void heddle_context_set_profile(heddle_context* context, int32_t on) {
  context->context->set_profile(on != 0);
}

void heddle_context_reset_profile(heddle_context* context) { context->context->reset_profile(); }

int64_t heddle_context_command_count(const heddle_context* context) {
  return context->context->command_count();
}

void heddle_context_get_profile(const heddle_context* context, int64_t number,
                                heddle_command_profile* profile) {
  heddle_command_profile result{};
  if (number >= 0 && number < context->context->command_count()) {
    const api::CommandReport from = context->context->command(number);
    result.name = from.name;
    result.operators = from.operators;
    result.kind = from.kind;
    result.kernel = from.kernel;
    result.flops = from.flops;
    result.bytes = from.bytes;
    result.count = from.count;
    result.total_ns = from.total_ns;
    result.min_ns = from.min_ns;
  }
  write_struct(profile, result);
}

void heddle_trace_start(void) { trace::start(); }

heddle_status* heddle_trace_stop(const char* path) {
  return guarded([&] {
    trace::stop();
    return trace::write(path);
  });
}

}  // extern "C"
