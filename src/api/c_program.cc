// Programs and traces: the C functions over Program.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>

#include "api/c_handles.h"
#include "api/c_status.h"
#include "api/settings.h"
#include "api/tune.h"
#include "base/trace.h"
#include "runtime/state_arrays.h"

namespace heddle::api {
namespace {

// Read members of heddle_compile_options into CompileOptions; NULL and 0 keep the default.
void read_member(const char* from, std::string& to) {
  if (from != nullptr) to = from;
}
void read_member(const char* from, std::vector<std::string>& to) {  // separated by commas
  std::string names;
  read_member(from, names);
  for (size_t at = 0; at < names.size();) {
    const size_t end = std::min(names.size(), names.find(',', at));
    if (end > at) to.push_back(names.substr(at, end - at));
    at = end + 1;
  }
}
void read_member(int64_t from, int64_t& to) {
  if (from != 0) to = from;
}
void read_member(int32_t from, int& to) {
  if (from != 0) to = from;
}
void read_member(int32_t from, bool& to) { to = from != 0; }

// Every row of compiler/options.def is a member of the struct with the same type and position, and
// every member has a row.
constexpr bool rows_are_members() {
  struct Member {
    size_t offset, size;
  };
  constexpr Member kMembers[] = {
#define HEDDLE_MEMBER(field, C) {offsetof(heddle_compile_options, field), sizeof(C)},
#define HEDDLE_CHOICE(part, Type, field, ...) HEDDLE_MEMBER(field, const char*)
#define HEDDLE_TEXT(part, Type, field, ...) HEDDLE_MEMBER(field, const char*)
#define HEDDLE_NUMBER(part, Type, field, C, ...) HEDDLE_MEMBER(field, C)
#define HEDDLE_FOLDER(part, field, help) HEDDLE_MEMBER(field, const char*)
#define HEDDLE_FLAG(part, field) HEDDLE_MEMBER(field, int32_t)
#define HEDDLE_HOOK(field) HEDDLE_MEMBER(field, void*)
#include "compiler/options.def"
#undef HEDDLE_MEMBER
  };
  size_t end = sizeof(size_t);  // struct_size
  for (const Member& member : kMembers) {
    end = (end + member.size - 1) / member.size * member.size;
    if (member.offset != end) return false;
    end += member.size;
  }
  return sizeof(heddle_compile_options) - end < sizeof(void*);
}
static_assert(rows_are_members(), "heddle_compile_options and compiler/options.def differ");

Status check_numbers(const Call& call, const heddle_compile_options& c) {
#define HEDDLE_NUMBER(part, Type, field, C, plain, least, most, value, help) \
  HEDDLE_RETURN_IF_ERROR(call.in_range("options->" #field, c.field, least, most));
#include "compiler/options.def"
  return {};
}

CompileOptions compile_options_of(const heddle_compile_options& c) {
  CompileOptions options;
#define HEDDLE_CHOICE(part, Type, field, ...) read_member(c.field, options.field);
#define HEDDLE_TEXT(part, Type, field, ...) read_member(c.field, options.field);
#define HEDDLE_NUMBER(part, Type, field, ...) read_member(c.field, options.field);
#define HEDDLE_FOLDER(part, field, help) read_member(c.field, options.field);
#define HEDDLE_FLAG(part, field) read_member(c.field, options.field);
#include "compiler/options.def"
  if (c.progress != nullptr)
    options.progress = [c](const CompileProgress& progress) {
      const heddle_compile_progress told{sizeof(heddle_compile_progress), progress.step,
                                         progress.done, progress.steps, progress.seconds};
      return c.progress(&told, c.progress_context) == 0;
    };
  return options;
}

Result<CompileOptions> compile_options(const Call& call, const heddle_compile_options* from) {
  HEDDLE_ASSIGN_OR_RETURN(const heddle_compile_options c, call.read("options", from));
  HEDDLE_RETURN_IF_ERROR(check_numbers(call, c));
  CompileOptions options = compile_options_of(c);
  if (c.allocator != nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(const heddle_allocator given,
                            call.read("options->allocator", c.allocator));
    if (given.allocate == nullptr || given.release == nullptr)
      return call.wrong("options->allocator", "one without both of its functions",
                        "allocate and release");
    options.allocator = {given.allocate, given.release, given.context};
  }
  return options;
}

Result<TuneOptions> tune_options(const Call& call, const heddle_tune_options* from) {
  HEDDLE_ASSIGN_OR_RETURN(const heddle_tune_options c, call.read("tuning", from));
  if (!(c.budget_seconds >= 0) || std::isinf(c.budget_seconds))
    return call.wrong("tuning->budget_seconds", fmt::format("{}", c.budget_seconds),
                      "a number of seconds, 0 for the default");
  HEDDLE_RETURN_IF_ERROR(call.in_range("tuning->candidates", c.candidates, 0, INT64_MAX));
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

heddle_program_info info_of(const Program& from) {
  const ProgramFacts& facts = from.facts();
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
  result.states = std::ssize(from.state_ports());
  result.bucket = facts.bucket.c_str();
  result.temporary_unshared_bytes = facts.temporary_unshared_bytes;
  result.object_bytes = facts.object_bytes;
  result.compile_ms = facts.compile_ms;
  result.peak_flops_per_ns = facts.peak_flops_per_ns;
  result.bandwidth_bytes_per_ns = facts.bandwidth_bytes_per_ns;
  return result;
}

Status check_state(const Call& call, const heddle_program* program, int64_t number,
                   const void* data, int64_t bytes) {
  HEDDLE_RETURN_IF_ERROR(call.given({{"program", program}}));
  const std::vector<Port>& ports = program->program->state_ports();
  HEDDLE_RETURN_IF_ERROR(call.in_range("number", number, 0, std::ssize(ports) - 1));
  HEDDLE_RETURN_IF_ERROR(call.given({{"data", data}}));
  const Port& port = ports[static_cast<size_t>(number)];
  if (bytes == port.bytes) return {};
  return call.wrong("bytes", std::to_string(bytes),
                    fmt::format("the {} of '{}'", port.bytes, port.name));
}

}  // namespace

const Program& unwrap(const heddle_program* program) { return *program->program; }
heddle_program* wrap(std::shared_ptr<Program> program) {
  return new heddle_program{std::move(program)};
}
CompileOptions unwrap(const heddle_compile_options& options) { return compile_options_of(options); }

}  // namespace heddle::api

using namespace heddle;  // NOLINT: the C functions are in no namespace
using api::answered;
using api::Call;
using api::check_state;
using api::guarded;
using api::told;

extern "C" {

heddle_status* heddle_compile(heddle_model* model, const heddle_compile_options* options,
                              heddle_program** program) {
  return guarded(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"model", model}, {"program", program}}));
    HEDDLE_ASSIGN_OR_RETURN(const api::CompileOptions wanted, api::compile_options(call, options));
    HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<api::Program> compiled,
                            api::Program::compile(*model->model, wanted));
    *program = new heddle_program{std::move(compiled)};
    return {};
  });
}

heddle_status* heddle_tune(const heddle_model* model, const heddle_compile_options* options,
                           const heddle_tune_options* tuning, heddle_tune_result* result) {
  return guarded(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"model", model}}));
    HEDDLE_ASSIGN_OR_RETURN(const api::CompileOptions wanted, api::compile_options(call, options));
    HEDDLE_ASSIGN_OR_RETURN(const api::TuneOptions how, api::tune_options(call, tuning));
    if (result != nullptr)
      HEDDLE_RETURN_IF_ERROR(call.struct_size("result", result->struct_size, sizeof *result));
    HEDDLE_ASSIGN_OR_RETURN(const api::TuneResult done, api::tune(*model->model, wanted, how));
    if (result == nullptr) return {};
    return call.write(
        "result", result,
        heddle_tune_result{sizeof(heddle_tune_result), done.tasks, done.measured, done.known,
                           done.left, done.faster, done.ns, done.untuned_ns, done.seconds,
                           done.samples, done.compiled});
  });
}

void heddle_program_free(heddle_program* program) { delete program; }

heddle_status* heddle_compile_until(const heddle_model* model,
                                    const heddle_compile_options* options, const char* point,
                                    char** text) {
  return guarded(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"model", model}, {"point", point}, {"text", text}}));
    HEDDLE_ASSIGN_OR_RETURN(const api::CompileOptions wanted, api::compile_options(call, options));
    HEDDLE_ASSIGN_OR_RETURN(const std::string result,
                            api::compile_until(*model->model, wanted, point));
    char* copy = static_cast<char*>(std::malloc(result.size() + 1));
    if (copy == nullptr) throw std::bad_alloc();
    std::memcpy(copy, result.c_str(), result.size() + 1);
    *text = copy;
    return {};
  });
}

void heddle_string_free(char* text) { std::free(text); }

void heddle_program_get_info(const heddle_program* program, heddle_program_info* info) {
  told(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(
        call.write("info", info,
                   program == nullptr ? heddle_program_info{} : api::info_of(*program->program)));
    return call.given({{"program", program}});
  });
}

void heddle_program_input(const heddle_program* program, int64_t number, heddle_port* port) {
  told(__func__, [&](const Call& call) -> Status {
    return api::write_port(
        call, "program", program == nullptr ? nullptr : &program->program->inputs(), number, port);
  });
}

void heddle_program_output(const heddle_program* program, int64_t number, heddle_port* port) {
  told(__func__, [&](const Call& call) -> Status {
    return api::write_port(
        call, "program", program == nullptr ? nullptr : &program->program->outputs(), number, port);
  });
}

int64_t heddle_program_output_donor(const heddle_program* program, int64_t number) {
  return answered(__func__, int64_t{-1}, [&](const Call& call) -> Result<int64_t> {
    HEDDLE_RETURN_IF_ERROR(call.given({{"program", program}}));
    const int64_t outputs = std::ssize(program->program->outputs());
    HEDDLE_RETURN_IF_ERROR(call.in_range("number", number, 0, outputs - 1));
    const program::Program* compiled = program->program->compiled();
    if (compiled == nullptr) return -1;
    const auto& output = compiled->outputs[static_cast<size_t>(number)];
    const program::BufferId donor = compiled->buffers[output.buffer.index()].alias;
    return donor.valid() ? compiled->buffers[donor.index()].number : -1;
  });
}

void heddle_program_state(const heddle_program* program, int64_t number, heddle_port* port) {
  told(__func__, [&](const Call& call) -> Status {
    return api::write_port(call, "program",
                           program == nullptr ? nullptr : &program->program->state_ports(), number,
                           port);
  });
}

heddle_status* heddle_program_read_state(const heddle_program* program, int64_t number, void* data,
                                         int64_t bytes) {
  return guarded(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(check_state(call, program, number, data, bytes));
    return program->program->states()->read(static_cast<size_t>(number),
                                            {static_cast<char*>(data), static_cast<size_t>(bytes)});
  });
}

heddle_status* heddle_program_write_state(heddle_program* program, int64_t number, const void* data,
                                          int64_t bytes) {
  return guarded(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(check_state(call, program, number, data, bytes));
    return program->program->states()->write(
        static_cast<size_t>(number), {static_cast<const char*>(data), static_cast<size_t>(bytes)});
  });
}

heddle_status* heddle_program_input_dim(const heddle_program* program, int64_t number,
                                        int64_t dimension, heddle_port_dim* dim) {
  return guarded(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"program", program}}));
    return api::write_dim(call, program->program->inputs(), number, dimension, dim);
  });
}

heddle_status* heddle_program_output_dim(const heddle_program* program, int64_t number,
                                         int64_t dimension, heddle_port_dim* dim) {
  return guarded(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"program", program}}));
    return api::write_dim(call, program->program->outputs(), number, dimension, dim);
  });
}

const char* heddle_program_note(const heddle_program* program, int64_t number) {
  return answered<const char*>(__func__, nullptr, [&](const Call& call) -> Result<const char*> {
    HEDDLE_RETURN_IF_ERROR(call.given({{"program", program}}));
    const auto& notes = program->program->notes();
    HEDDLE_RETURN_IF_ERROR(call.in_range("number", number, 0, std::ssize(notes) - 1));
    return notes[static_cast<size_t>(number)].c_str();
  });
}

const char* heddle_program_step(const heddle_program* program, int64_t number, double* ms) {
  return answered<const char*>(__func__, nullptr, [&](const Call& call) -> Result<const char*> {
    HEDDLE_RETURN_IF_ERROR(call.given({{"program", program}}));
    const auto& steps = program->program->steps();
    HEDDLE_RETURN_IF_ERROR(call.in_range("number", number, 0, std::ssize(steps) - 1));
    const auto& [name, took] = steps[static_cast<size_t>(number)];
    if (ms != nullptr) *ms = took;
    return name.c_str();
  });
}

heddle_status* heddle_program_wait(heddle_program* program, int64_t most_ms, int32_t* ready) {
  return guarded(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"program", program}}));
    HEDDLE_RETURN_IF_ERROR(call.in_range("most_ms", most_ms, 0, INT64_MAX));
    constexpr int64_t kYear = int64_t{365} * 86'400'000;
    HEDDLE_ASSIGN_OR_RETURN(
        const bool done,
        program->program->wait(std::chrono::milliseconds(std::min(most_ms, kYear))));
    if (ready != nullptr) *ready = done;
    return {};
  });
}

heddle_status* heddle_program_save(heddle_program* program, const char* path) {
  return guarded(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"program", program}, {"path", path}}));
    if (*path == '\0') return call.wrong("path", "empty", "the name of a file");
    return program->program->save(path);
  });
}

void heddle_trace_start(void) {
  told(__func__, [](const Call&) -> Status {
    trace::start();
    return {};
  });
}

heddle_status* heddle_trace_stop(const char* path) {
  return guarded(__func__, [&](const Call& call) -> Status {
    trace::stop();
    HEDDLE_RETURN_IF_ERROR(call.given({{"path", path}}));
    return trace::write(path);
  });
}

}  // extern "C"
