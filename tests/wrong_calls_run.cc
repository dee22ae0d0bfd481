// Compiling, programs, contexts, queues, custom calls, traces.
#include <limits>

#include "wrong_calls.h"

namespace heddle::wrong_calls {
namespace {

using Change = std::function<void(heddle_compile_options&)>;

void* allocate(void*, int64_t) { return nullptr; }
void release(void*, void*, int64_t) {}
const heddle_allocator kNoSize{0, allocate, release, nullptr};
const heddle_allocator kNoAllocate{sizeof(heddle_allocator), nullptr, release, nullptr};
const heddle_allocator kNoRelease{sizeof(heddle_allocator), allocate, nullptr, nullptr};

std::vector<std::pair<std::string, Change>> wrong_options() {
  return {
      {"options->struct_size", [](auto& o) { o.struct_size = 0; }},
      {"options->struct_size", [](auto& o) { o.struct_size = 7; }},
      {"options->struct_size", [](auto& o) { o.struct_size = 12; }},
      {"options->struct_size", [](auto& o) { o.struct_size = size_t{1} << 40; }},
      {"options->memory_limit_bytes", [](auto& o) { o.memory_limit_bytes = -1; }},
      {"options->memory_limit_bytes", [](auto& o) { o.memory_limit_bytes = INT64_MIN; }},
      {"options->threads", [](auto& o) { o.threads = -1; }},
      {"options->threads", [](auto& o) { o.threads = 1025; }},
      {"options->threads", [](auto& o) { o.threads = INT32_MIN; }},
      {"options->threads", [](auto& o) { o.threads = -3, o.background = 1; }},
      {"options->streams", [](auto& o) { o.streams = -2; }},
      {"options->streams", [](auto& o) { o.streams = INT32_MAX; }},
      {"options->allocator->struct_size", [](auto& o) { o.allocator = &kNoSize; }},
      {"options->allocator", [](auto& o) { o.allocator = &kNoAllocate; }},
      {"options->allocator", [](auto& o) { o.allocator = &kNoRelease; }},
      {"options->allocator", [](auto& o) { o.allocator = &kNoRelease, o.background = 1; }},
  };
}

heddle_queue_options queue_of(int32_t mode, int64_t slots) {
  auto options = sized<heddle_queue_options>();
  options.mode = mode;
  options.slots = slots;
  return options;
}

void queue_rows(std::vector<Row>& rows) {
  CALL(heddle_queue_create, "program", nullptr, nullptr, &g.no_queue);
  CALL(heddle_queue_create, "queue", g.program, nullptr, nullptr);
  const heddle_queue_options no_size{};
  CALL(heddle_queue_create, "options->struct_size", g.program, &no_size, &g.no_queue);
  for (const int32_t mode : {-1, 3, INT32_MAX}) {
    const heddle_queue_options options = queue_of(mode, 0);
    CALL(heddle_queue_create, "options->mode", g.program, &options, &g.no_queue);
  }
  for (const int64_t slots : {int64_t{-1}, int64_t{4097}, INT64_MAX}) {
    const heddle_queue_options options = queue_of(HEDDLE_QUEUE_SERIAL, slots);
    CALL(heddle_queue_create, "options->slots", g.program, &options, &g.no_queue);
  }
  const Later<heddle_queue_options> later;
  CALL(heddle_queue_create, "options", g.program, &later.known, &g.no_queue);
  SILENT(heddle_queue_is_pipelined, "queue", nullptr);
  SILENT(heddle_queue_drain, "queue", nullptr);
  CALL(heddle_run_wait, "run", nullptr);
  SILENT(heddle_run_is_done, "run", nullptr);

  CALL(heddle_queue_submit, "request", g.queue, nullptr, &g.no_run);
  static const void* const kNoInput[1] = {nullptr};
  static void* const kNoOutput[1] = {nullptr};
  static const heddle_dim kNoName{nullptr, 2};
  const std::pair<const char*, std::function<void(heddle_run_request&)>> requests[] = {
      {"request->struct_size", [](auto& r) { r.struct_size = 0; }},
      {"request->struct_size", [](auto& r) { r.struct_size = 36; }},
      {"request->input_count", [](auto& r) { r.input_count = 0; }},
      {"request->input_count", [](auto& r) { r.input_count = -1; }},
      {"request->input_count", [](auto& r) { r.input_count = 2; }},
      {"request->output_count", [](auto& r) { r.output_count = 0; }},
      {"request->output_count", [](auto& r) { r.output_count = INT64_MAX; }},
      {"request->inputs", [](auto& r) { r.inputs = nullptr; }},
      {"request->inputs[0]", [](auto& r) { r.inputs = kNoInput; }},
      {"request->outputs", [](auto& r) { r.outputs = nullptr; }},
      {"request->outputs[0]", [](auto& r) { r.outputs = kNoOutput; }},
      {"request->dim_count", [](auto& r) { r.dim_count = -1; }},
      {"request->dim_count", [](auto& r) { r.dim_count = INT64_MAX; }},
      {"request->dims", [](auto& r) { r.dim_count = 1; }},
      {"request->dims[0].name", [](auto& r) { r.dims = &kNoName, r.dim_count = 1; }},
  };
  for (const auto& [member, change] : requests)
    rows.push_back({"heddle_queue_submit", member, [change](Good& g) {
                      auto request = sized<heddle_run_request>();
                      request.inputs = g.inputs;
                      request.outputs = g.outputs;
                      request.input_count = request.output_count = 1;
                      change(request);
                      return heddle_queue_submit(g.queue, &request, &g.no_run);
                    }});
  const auto request = sized<heddle_run_request>();
  CALL(heddle_queue_submit, "queue", nullptr, &request, &g.no_run);
  const Later<heddle_run_request> newer;
  CALL(heddle_queue_submit, "request", g.queue, &newer.known, nullptr);
}

void context_rows(std::vector<Row>& rows) {
  CALL(heddle_context_create, "program", nullptr, &g.no_context);
  CALL(heddle_context_create, "context", g.program, nullptr);
  CALL(heddle_context_bind_input, "context", nullptr, 0, g.x);
  CALL(heddle_context_bind_input, "data", g.context, 0, nullptr);
  CALL(heddle_context_bind_output, "context", nullptr, 0, g.y);
  CALL(heddle_context_bind_output, "data", g.context, 0, nullptr);
  for (const int64_t number : {int64_t{-1}, int64_t{1}, INT64_MIN, INT64_MAX}) {
    CALL(heddle_context_bind_input, "number", g.context, number, g.x);
    CALL(heddle_context_bind_output, "number", g.context, number, g.y);
  }
  CALL(heddle_context_bind_device_input, "context", nullptr, 0, g.x);
  CALL(heddle_context_bind_device_input, "number", g.context, 1, g.x);
  CALL(heddle_context_bind_device_input, "data", g.context, 0, nullptr);
  CALL(heddle_context_bind_device_input, "device cuda", g.context, 0, g.x);
  CALL(heddle_context_bind_device_output, "context", nullptr, 0, g.y);
  CALL(heddle_context_bind_device_output, "number", g.context, -1, g.y);
  CALL(heddle_context_bind_device_output, "data", g.context, 0, nullptr);
  CALL(heddle_context_bind_device_output, "device cuda", g.context, 0, g.y);
  CALL(heddle_context_bind_input_named, "context", nullptr, "x", g.x);
  CALL(heddle_context_bind_input_named, "name", g.context, nullptr, g.x);
  CALL(heddle_context_bind_input_named, "'width'", g.context, "width", g.x);
  CALL(heddle_context_bind_input_named, "name", g.context, "", g.x);
  CALL(heddle_context_bind_input_named, "data", g.context, "x", nullptr);
  CALL(heddle_context_bind_output_named, "context", nullptr, "out0", g.y);
  CALL(heddle_context_bind_output_named, "name", g.context, nullptr, g.y);
  CALL(heddle_context_bind_output_named, "out0", g.context, "arg0", g.y);
  CALL(heddle_context_bind_output_named, "data", g.context, "out0", nullptr);
  CALL(heddle_context_set_dim, "context", nullptr, "length", 2);
  CALL(heddle_context_set_dim, "name", g.bounded, nullptr, 2);
  CALL(heddle_context_set_dim, "'width'", g.bounded, "width", 2);
  CALL(heddle_context_set_dim, "'length'", g.context, "length", 2);
  for (const int64_t extent : {int64_t{0}, int64_t{-1}, int64_t{17}, INT64_MAX})
    CALL(heddle_context_set_dim, "'length'", g.bounded, "length", extent);
  static const int64_t kTooLong[2] = {4, 17}, kOther[2] = {5, 16}, kNegative[2] = {4, -1};
  CALL(heddle_context_set_input_shape, "context", nullptr, 0, kOther, 2);
  CALL(heddle_context_set_input_shape, "number", g.bounded, 1, kOther, 2);
  CALL(heddle_context_set_input_shape, "rank", g.bounded, 0, kOther, 1);
  CALL(heddle_context_set_input_shape, "dims", g.bounded, 0, nullptr, 2);
  CALL(heddle_context_set_input_shape, "dims[1]", g.bounded, 0, kNegative, 2);
  CALL(heddle_context_set_input_shape, "length<=16", g.bounded, 0, kTooLong, 2);
  CALL(heddle_context_set_input_shape, "length<=16", g.bounded, 0, kOther, 2);
  CALL(heddle_context_set_input_shape, "fixed", g.context, 0, kOther, 2);
  CALL(heddle_context_prepare, "context", nullptr);
  auto port = std::make_shared<heddle_port>(sized<heddle_port>());
  SILENT(heddle_context_output, "context", nullptr, 0, port.get());
  SILENT(heddle_context_output, "number", g.context, 1, port.get());
  SILENT(heddle_context_output, "port", g.context, 0, nullptr);
  SILENT(heddle_context_output_count, "context", nullptr);
  CALL(heddle_context_run, "context", nullptr);
  SILENT(heddle_context_cancel, "context", nullptr);
  SILENT(heddle_context_set_profile, "context", nullptr, 1);
  SILENT(heddle_context_reset_profile, "context", nullptr);
  SILENT(heddle_context_command_count, "context", nullptr);
  auto profile = std::make_shared<heddle_command_profile>(sized<heddle_command_profile>());
  auto no_size = std::make_shared<heddle_command_profile>();
  SILENT(heddle_context_get_profile, "context", nullptr, 0, profile.get());
  SILENT(heddle_context_get_profile, "profile", g.context, 0, nullptr);
  SILENT(heddle_context_get_profile, "profile->struct_size", g.context, 0, no_size.get());
  SILENT(heddle_context_get_profile, "number", g.context, -1, profile.get());
  SILENT(heddle_context_get_profile, "number", g.context, INT64_MAX, profile.get());
}

}  // namespace

std::vector<Row> program_rows() {
  std::vector<Row> rows;
  CALL(heddle_compile, "model", nullptr, nullptr, &g.no_program);
  CALL(heddle_compile, "program", g.model, nullptr, nullptr);
  for (const auto& [member, change] : wrong_options()) {
    auto options = sized<heddle_compile_options>();
    change(options);
    CALL(heddle_compile, member, g.model, &options, &g.no_program);
  }
  const Later<heddle_compile_options> later;
  CALL(heddle_compile, "options", g.model, &later.known, &g.no_program);
  CALL(heddle_compile_until, "model", nullptr, nullptr, "import", &g.no_text);
  CALL(heddle_compile_until, "point", g.model, nullptr, nullptr, &g.no_text);
  CALL(heddle_compile_until, "text", g.model, nullptr, "import", nullptr);
  const heddle_compile_options no_size{};
  auto threads = sized<heddle_compile_options>();
  threads.threads = -1;
  CALL(heddle_compile_until, "options->struct_size", g.model, &no_size, "import", &g.no_text);
  CALL(heddle_compile_until, "options->threads", g.model, &threads, "import", &g.no_text);

  auto info = std::make_shared<heddle_program_info>(sized<heddle_program_info>());
  auto port = std::make_shared<heddle_port>(sized<heddle_port>());
  auto dim = std::make_shared<heddle_port_dim>(sized<heddle_port_dim>());
  auto no_port_size = std::make_shared<heddle_port>();
  auto no_dim_size = std::make_shared<heddle_port_dim>();
  SILENT(heddle_program_get_info, "program", nullptr, info.get());
  SILENT(heddle_program_get_info, "info", g.program, nullptr);
  info = std::make_shared<heddle_program_info>();
  SILENT(heddle_program_get_info, "info->struct_size", g.program, info.get());
  SILENT(heddle_program_input, "program", nullptr, 0, port.get());
  SILENT(heddle_program_output, "program", nullptr, 0, port.get());
  SILENT(heddle_program_input, "port", g.program, 0, nullptr);
  SILENT(heddle_program_output, "port", g.program, 0, nullptr);
  SILENT(heddle_program_output_donor, "program", nullptr, 0);
  SILENT(heddle_program_output_donor, "number", g.program, -1);
  SILENT(heddle_program_input, "port->struct_size", g.program, 0, no_port_size.get());
  SILENT(heddle_program_output, "port->struct_size", g.program, 0, no_port_size.get());
  for (const int64_t number : {int64_t{-1}, int64_t{1}, INT64_MAX}) {
    SILENT(heddle_program_input, "number", g.program, number, port.get());
    SILENT(heddle_program_output, "number", g.program, number, port.get());
    CALL(heddle_program_input_dim, "number", g.program, number, 0, dim.get());
    CALL(heddle_program_output_dim, "number", g.program, number, 0, dim.get());
    const int64_t dimension = number == 1 ? 2 : number;
    CALL(heddle_program_input_dim, "dimension", g.program, 0, dimension, dim.get());
    CALL(heddle_program_output_dim, "dimension", g.program, 0, dimension, dim.get());
  }
  CALL(heddle_program_input_dim, "program", nullptr, 0, 0, dim.get());
  CALL(heddle_program_output_dim, "program", nullptr, 0, 0, dim.get());
  CALL(heddle_program_input_dim, "dim", g.program, 0, 0, nullptr);
  CALL(heddle_program_output_dim, "dim", g.program, 0, 0, nullptr);
  CALL(heddle_program_input_dim, "dim->struct_size", g.program, 0, 0, no_dim_size.get());
  CALL(heddle_program_output_dim, "dim->struct_size", g.program, 0, 0, no_dim_size.get());
  SILENT(heddle_program_state, "program", nullptr, 0, port.get());
  SILENT(heddle_program_state, "number", g.program, 0, port.get());
  static char byte = 0;
  CALL(heddle_program_read_state, "program", nullptr, 0, &byte, 1);
  CALL(heddle_program_read_state, "number", g.program, 0, &byte, 1);
  CALL(heddle_program_write_state, "program", nullptr, 0, &byte, 1);
  CALL(heddle_program_write_state, "number", g.program, 0, &byte, 1);
  SILENT(heddle_program_note, "program", nullptr, 0);
  SILENT(heddle_program_note, "number", g.program, -1);
  SILENT(heddle_program_note, "number", g.program, 999);
  SILENT(heddle_program_step, "program", nullptr, 0, nullptr);
  SILENT(heddle_program_step, "number", g.program, -1, nullptr);
  SILENT(heddle_program_step, "number", g.program, 999, nullptr);
  CALL(heddle_program_wait, "program", nullptr, 1, nullptr);
  CALL(heddle_program_wait, "most_ms", g.program, -1, nullptr);
  CALL(heddle_program_wait, "most_ms", g.program, INT64_MIN, nullptr);
  CALL(heddle_program_save, "program", nullptr, "/tmp/x");
  CALL(heddle_program_save, "path", g.program, nullptr);
  CALL(heddle_program_save, "path", g.program, "");

  CALL(heddle_tune, "model", nullptr, nullptr, nullptr, nullptr);
  CALL(heddle_tune, "options->struct_size", g.model, &no_size, nullptr, nullptr);
  const heddle_tune_options no_tune_size{};
  CALL(heddle_tune, "tuning->struct_size", g.model, nullptr, &no_tune_size, nullptr);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double seconds : {-1.0, kInfinity, kInfinity - kInfinity}) {
    auto tuning = sized<heddle_tune_options>();
    tuning.budget_seconds = seconds;
    CALL(heddle_tune, "tuning->budget_seconds", g.model, nullptr, &tuning, nullptr);
  }
  auto tuning = sized<heddle_tune_options>();
  tuning.candidates = -1;
  CALL(heddle_tune, "tuning->candidates", g.model, nullptr, &tuning, nullptr);
  auto result = std::make_shared<heddle_tune_result>();
  CALL(heddle_tune, "result->struct_size", g.model, nullptr, nullptr, result.get());
  return rows;
}

std::vector<Row> run_rows() {
  std::vector<Row> rows;
  context_rows(rows);
  queue_rows(rows);
  SILENT(heddle_register_custom_call, "target", nullptr, nullptr, nullptr);
  SILENT(heddle_register_custom_call, "target", "", nullptr, nullptr);
  CALL(heddle_trace_stop, "path", nullptr);
  CALL(heddle_set_log, "most", nullptr, nullptr, -1);
  CALL(heddle_set_log, "most", nullptr, nullptr, 4);
  CALL(heddle_set_log, "most", nullptr, nullptr, INT32_MAX);
  return rows;
}

}  // namespace heddle::wrong_calls
