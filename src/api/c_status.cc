#include "api/c_status.h"

#include <memory>
#include <string>

#include "tensor/type.h"

struct heddle_status {
  heddle::Error error;
};

namespace heddle::api {
namespace {

std::string& last_error() {
  thread_local std::string message;
  return message;
}

heddle_status& out_of_memory() {
  static heddle_status status{Error{ErrorKind::machine, "out of memory"}};
  return status;
}

}  // namespace

heddle_status* make_status(Error error) noexcept {
  try {
    // One line, whatever was in the names that it tells.
    for (char& c : error.message)
      if (c == '\n' || c == '\r') c = ' ';
    last_error() = error.message;
    return new heddle_status{std::move(error)};
  } catch (const std::bad_alloc&) {
    return &out_of_memory();
  }
}

}  // namespace heddle::api

extern "C" {

uint32_t heddle_version(void) {
  return HEDDLE_VERSION_MAJOR * 1000000 + HEDDLE_VERSION_MINOR * 1000 + HEDDLE_VERSION_PATCH;
}

int heddle_status_kind(const heddle_status* status) {
  if (status == nullptr) return HEDDLE_OK;
  if (status->error.kind == heddle::ErrorKind::cancelled) return HEDDLE_CANCELLED;
  return status->error.kind == heddle::ErrorKind::user ? HEDDLE_USER_ERROR : HEDDLE_MACHINE_ERROR;
}

const char* heddle_status_message(const heddle_status* status) {
  return status == nullptr ? "" : status->error.message.c_str();
}

void heddle_status_free(heddle_status* status) {
  if (status != &heddle::api::out_of_memory()) delete status;
}

const char* heddle_last_error(void) { return heddle::api::last_error().c_str(); }

const char* heddle_type_name(heddle_type type) {
  if (type < 0 || type > HEDDLE_TOKEN) return "?";
  return heddle::tensor::type_name(static_cast<heddle::tensor::Type>(type)).data();
}

int64_t heddle_type_bytes(heddle_type type) {
  if (type < 0 || type > HEDDLE_C128) return 0;
  return heddle::tensor::type_bytes(static_cast<heddle::tensor::Type>(type));
}

}  // extern "C"
