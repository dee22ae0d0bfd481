// The handles of heddle.h as owners, its statuses as Status.
#pragma once

#include <memory>

#include "api/heddle.h"
#include "base/error.h"

namespace heddle::tools {

template <typename T, void (*Free)(T*)>
struct HandleFree {
  void operator()(T* handle) const { Free(handle); }
};
using ModelHandle = std::unique_ptr<heddle_model, HandleFree<heddle_model, heddle_model_free>>;
using ProgramHandle =
    std::unique_ptr<heddle_program, HandleFree<heddle_program, heddle_program_free>>;
using ContextHandle =
    std::unique_ptr<heddle_context, HandleFree<heddle_context, heddle_context_free>>;

// Frees the status.
inline Status to_status(heddle_status* status) {
  if (status == nullptr) return {};
  const int kind = heddle_status_kind(status);
  Error error{kind == HEDDLE_USER_ERROR  ? ErrorKind::user
              : kind == HEDDLE_CANCELLED ? ErrorKind::cancelled
                                         : ErrorKind::machine,
              heddle_status_message(status)};
  heddle_status_free(status);
  return tl::unexpected<Error>(std::move(error));
}

template <typename Struct>
Struct sized() {
  Struct value{};
  value.struct_size = sizeof value;
  return value;
}

inline heddle_model_info info_of(const heddle_model* model) {
  auto info = sized<heddle_model_info>();
  heddle_model_get_info(model, &info);
  return info;
}
inline heddle_program_info info_of(const heddle_program* program) {
  auto info = sized<heddle_program_info>();
  heddle_program_get_info(program, &info);
  return info;
}
// `Get`: one of the functions that describe a port by number.
template <auto Get, typename Owner>
heddle_port port_of(const Owner* owner, int64_t number) {
  auto port = sized<heddle_port>();
  Get(owner, number, &port);
  return port;
}
inline heddle_port input_of(const heddle_model* model, int64_t number) {
  return port_of<heddle_model_input>(model, number);
}
inline heddle_port output_of(const heddle_model* model, int64_t number) {
  return port_of<heddle_model_output>(model, number);
}
inline heddle_port input_of(const heddle_program* program, int64_t number) {
  return port_of<heddle_program_input>(program, number);
}
inline heddle_port state_of(const heddle_program* program, int64_t number) {
  return port_of<heddle_program_state>(program, number);
}
inline heddle_port output_of(const heddle_program* program, int64_t number) {
  return port_of<heddle_program_output>(program, number);
}

}  // namespace heddle::tools
