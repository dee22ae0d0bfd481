// Contexts: the C functions over Context.
#include "api/c_handles.h"
#include "api/c_status.h"

namespace heddle::api {
namespace {

const std::vector<Port>& ports_of(const heddle_context* context, bool input) {
  if (input) return context->program->inputs();
  const std::vector<Port>* late = context->context->late_outputs();
  return late != nullptr ? *late : context->program->outputs();
}

enum class Side { host, device };

Status bind(const Call& call, heddle_context* context, bool input, int64_t number, const void* data,
            Side side = Side::host) {
  HEDDLE_RETURN_IF_ERROR(call.given({{"context", context}}));
  const std::vector<Port>& ports = ports_of(context, input);
  HEDDLE_RETURN_IF_ERROR(call.in_range("number", number, 0, std::ssize(ports) - 1));
  const Port& port = ports[static_cast<size_t>(number)];
  if (data == nullptr && port.bytes > 0)
    return call.wrong("data", "NULL", fmt::format("the memory of '{}'", port.name));
  if (side == Side::device)
    return call.about(context->context->bind_device(input, number, const_cast<void*>(data)));
  return input ? context->context->bind_input(number, data)
               : context->context->bind_output(number, const_cast<void*>(data));
}

// By the port's name or alias.
Status bind_named(const Call& call, heddle_context* context, bool input, const char* name,
                  const void* data) {
  HEDDLE_RETURN_IF_ERROR(call.given({{"context", context}, {"name", name}}));
  const std::vector<Port>& ports = ports_of(context, input);
  std::string names;
  for (size_t i = 0; i < ports.size(); ++i) {
    if (ports[i].name == name || (!ports[i].alias.empty() && ports[i].alias == name))
      return bind(call, context, input, static_cast<int64_t>(i), data);
    names += (names.empty() ? "" : ", ") + ports[i].name;
  }
  return call.wrong("name", fmt::format("'{}'", name),
                    names.empty() ? "none: there are none" : "one of " + names);
}

}  // namespace
}  // namespace heddle::api

using namespace heddle;  // NOLINT: the C functions are in no namespace
using api::answered;
using api::Call;
using api::guarded;
using api::told;

extern "C" {

heddle_status* heddle_context_create(heddle_program* program, heddle_context** context) {
  return guarded(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"program", program}, {"context", context}}));
    HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<api::Context> made, program->program->make_context());
    *context = new heddle_context{program->program, std::move(made)};
    return {};
  });
}

void heddle_context_free(heddle_context* context) { delete context; }

heddle_status* heddle_context_bind_input(heddle_context* context, int64_t number,
                                         const void* data) {
  return guarded(__func__,
                 [&](const Call& call) { return api::bind(call, context, true, number, data); });
}

heddle_status* heddle_context_bind_output(heddle_context* context, int64_t number, void* data) {
  return guarded(__func__,
                 [&](const Call& call) { return api::bind(call, context, false, number, data); });
}

heddle_status* heddle_context_bind_device_input(heddle_context* context, int64_t number,
                                                const void* data) {
  return guarded(__func__, [&](const Call& call) {
    return api::bind(call, context, true, number, data, api::Side::device);
  });
}

heddle_status* heddle_context_bind_device_output(heddle_context* context, int64_t number,
                                                 void* data) {
  return guarded(__func__, [&](const Call& call) {
    return api::bind(call, context, false, number, data, api::Side::device);
  });
}

heddle_status* heddle_context_bind_input_named(heddle_context* context, const char* name,
                                               const void* data) {
  return guarded(
      __func__, [&](const Call& call) { return api::bind_named(call, context, true, name, data); });
}

heddle_status* heddle_context_bind_output_named(heddle_context* context, const char* name,
                                                void* data) {
  return guarded(__func__, [&](const Call& call) {
    return api::bind_named(call, context, false, name, data);
  });
}

heddle_status* heddle_context_set_dim(heddle_context* context, const char* name, int64_t extent) {
  return guarded(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"context", context}, {"name", name}}));
    return call.about(context->context->set_extent(name, extent));
  });
}

heddle_status* heddle_context_set_input_shape(heddle_context* context, int64_t number,
                                              const int64_t* dims, int64_t rank) {
  return guarded(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"context", context}}));
    const std::vector<api::Port>& inputs = context->program->inputs();
    HEDDLE_RETURN_IF_ERROR(call.in_range("number", number, 0, std::ssize(inputs) - 1));
    const auto& port = inputs[static_cast<size_t>(number)];
    HEDDLE_RETURN_IF_ERROR(
        call.in_range("rank", rank, std::ssize(port.dims), std::ssize(port.dims)));
    HEDDLE_RETURN_IF_ERROR(call.array("dims", dims, static_cast<uint64_t>(rank)));
    for (int64_t d = 0; d < rank; ++d)
      HEDDLE_RETURN_IF_ERROR(call.in_range(fmt::format("dims[{}]", d), dims[d], 0, INT64_MAX));
    return call.about(context->context->set_input_shape(number, {dims, dims + rank}));
  });
}

heddle_status* heddle_context_prepare(heddle_context* context) {
  return guarded(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"context", context}}));
    return context->context->prepare();
  });
}

void heddle_context_output(const heddle_context* context, int64_t number, heddle_port* port) {
  told(__func__, [&](const Call& call) -> Status {
    return api::write_port(call, "context",
                           context == nullptr ? nullptr : &api::ports_of(context, false), number,
                           port);
  });
}

int64_t heddle_context_output_count(const heddle_context* context) {
  return answered<int64_t>(__func__, 0, [&](const Call& call) -> Result<int64_t> {
    HEDDLE_RETURN_IF_ERROR(call.given({{"context", context}}));
    return std::ssize(api::ports_of(context, false));
  });
}

heddle_status* heddle_context_run(heddle_context* context) {
  return guarded(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"context", context}}));
    return context->context->run();
  });
}

void heddle_context_cancel(heddle_context* context) {
  told(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"context", context}}));
    context->context->cancel();
    return {};
  });
}

void heddle_context_set_profile(heddle_context* context, int32_t on) {
  told(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"context", context}}));
    context->context->set_profile(on != 0);
    return {};
  });
}

void heddle_context_reset_profile(heddle_context* context) {
  told(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"context", context}}));
    context->context->reset_profile();
    return {};
  });
}

int64_t heddle_context_command_count(const heddle_context* context) {
  return answered<int64_t>(__func__, 0, [&](const Call& call) -> Result<int64_t> {
    HEDDLE_RETURN_IF_ERROR(call.given({{"context", context}}));
    return context->context->command_count();
  });
}

void heddle_context_get_profile(const heddle_context* context, int64_t number,
                                heddle_command_profile* profile) {
  told(__func__, [&](const Call& call) -> Status {
    heddle_command_profile result{};
    const int64_t count = context == nullptr ? 0 : context->context->command_count();
    if (number >= 0 && number < count) {
      const api::CommandReport from = context->context->command(number);
      result.name = from.name;
      result.operators = from.operators;
      result.kind = from.kind;
      result.kernel = from.kernel;
      result.label = from.label;
      result.nodes = from.nodes.data();
      result.node_count = std::ssize(from.nodes);
      result.flops = from.flops;
      result.bytes = from.bytes;
      result.count = from.count;
      result.total_ns = from.total_ns;
      result.min_ns = from.min_ns;
    }
    HEDDLE_RETURN_IF_ERROR(call.write("profile", profile, result));
    HEDDLE_RETURN_IF_ERROR(call.given({{"context", context}}));
    return call.in_range("number", number, 0, count - 1);
  });
}

}  // extern "C"
