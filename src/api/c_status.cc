#include "api/c_status.h"

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>

#include "import/onnx_support.h"
#include "tensor/type.h"

struct heddle_status {
  heddle::Error error;
  std::vector<heddle::import::Unsupported> unsupported;
};

namespace heddle::api {
namespace {

std::string& last_error() {
  thread_local std::string message;
  return message;
}

heddle_status& out_of_memory() {
  static heddle_status status{Error{ErrorKind::memory, "out of memory"}, {}};
  return status;
}

}  // namespace

heddle_status* make_status(Error error) noexcept {
  try {
    // One line, even if the names in it contain line breaks.
    for (char& c : error.message)
      if (c == '\n' || c == '\r') c = ' ';
    last_error() = error.message;
    return new heddle_status{std::move(error), {}};
  } catch (const std::bad_alloc&) {
    return &out_of_memory();
  }
}

void set_unsupported(heddle_status* status, std::vector<import::Unsupported> unsupported) noexcept {
  if (status != nullptr && status != &out_of_memory()) status->unsupported = std::move(unsupported);
}

namespace {

// No struct of heddle.h is nearly as large: a larger size was never set.
constexpr size_t kMostStruct = 4096;
// Nor does any caller's array have more elements.
constexpr uint64_t kMostElements = uint64_t{1} << 24;

}  // namespace

tl::unexpected<Error> Call::wrong(std::string_view argument, std::string_view got,
                                  std::string_view wanted) const {
  return user_error("{}: {} is {}; wanted {}", function_, argument, got, wanted);
}

Status Call::given(std::initializer_list<Pointer> pointers) const {
  for (const Pointer& pointer : pointers)
    if (pointer.value == nullptr) return wrong(pointer.argument, "NULL", "a valid pointer");
  return {};
}

Status Call::array(std::string_view argument, const void* data, uint64_t count) const {
  if (count > kMostElements)
    return wrong(argument, fmt::format("an array of {} elements", count),
                 fmt::format("at most {}", kMostElements));
  if (count > 0 && data == nullptr)
    return wrong(argument, "NULL", fmt::format("an array of {} elements", count));
  return {};
}

Status Call::in_range(std::string_view argument, int64_t got, int64_t least, int64_t most) const {
  if (got >= least && got <= most) return {};
  std::string wanted = fmt::format("{} to {}", least, most);
  if (most == INT64_MAX) wanted = fmt::format("{} or more", least);
  if (most == least) wanted = std::to_string(least);
  if (most < least) wanted = "none: there are none";
  return wrong(argument, std::to_string(got), wanted);
}

Status Call::struct_size(const char* argument, size_t got, size_t known) const {
  if (got >= sizeof(size_t) && got <= kMostStruct && got % alignof(size_t) == 0) return {};
  return wrong(fmt::format("{}->struct_size", argument), std::to_string(got),
               fmt::format("sizeof *{}, {} in this version", argument, known));
}

Status Call::no_tail(const char* argument, const void* from, size_t size, size_t known) const {
  for (size_t at = known; at < size; ++at)
    if (static_cast<const unsigned char*>(from)[at] != 0)
      return wrong(
          argument, fmt::format("a struct of {} bytes with byte {} set", size, at),
          fmt::format("nothing set after the {} bytes that this version of heddle knows", known));
  return {};
}

Status Call::about(Status status) const {
  if (status || whose(status.error().kind) != ErrorKind::user) return status;
  return error_in(function_, std::move(status).error());
}

Error error_of_exception(const char* where) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {ErrorKind::memory, "out of memory"};
  } catch (const std::length_error&) {
    return {ErrorKind::memory, "out of memory"};
  } catch (const std::system_error& error) {  // from threads and files
    return {ErrorKind::machine, error.what()};
  } catch (const std::exception& error) {
    return {ErrorKind::machine, fmt::format("{}: a bug in heddle: {}", where, error.what())};
  } catch (...) {
    return {ErrorKind::machine, fmt::format("{}: a bug in heddle: an exception", where)};
  }
}

heddle_status* status_of_exception(const char* function_name) noexcept {
  try {
    return make_status(error_of_exception(function_name));
  } catch (...) {
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
  const heddle::ErrorKind kind = heddle::whose(status->error.kind);
  if (kind == heddle::ErrorKind::cancelled) return HEDDLE_CANCELLED;
  return kind == heddle::ErrorKind::user ? HEDDLE_USER_ERROR : HEDDLE_MACHINE_ERROR;
}

int heddle_status_code(const heddle_status* status) {
  if (status == nullptr) return HEDDLE_CODE_NONE;
  switch (status->error.kind) {
    case heddle::ErrorKind::unsupported:
      return HEDDLE_CODE_UNSUPPORTED;
    case heddle::ErrorKind::shape:
      return HEDDLE_CODE_SHAPE;
    case heddle::ErrorKind::value:
      return HEDDLE_CODE_VALUE;
    case heddle::ErrorKind::memory:
      return HEDDLE_CODE_MEMORY;
    case heddle::ErrorKind::device:
      return HEDDLE_CODE_DEVICE;
    default:
      return HEDDLE_CODE_NONE;
  }
}

const char* heddle_status_message(const heddle_status* status) {
  return status == nullptr ? "" : status->error.message.c_str();
}

void heddle_status_free(heddle_status* status) {
  if (status != &heddle::api::out_of_memory()) delete status;
}

int64_t heddle_status_unsupported_count(const heddle_status* status) {
  return status == nullptr ? 0 : std::ssize(status->unsupported);
}

void heddle_status_unsupported(const heddle_status* status, int64_t number,
                               heddle_unsupported* unsupported) {
  heddle::api::told(__func__, [&](const heddle::api::Call& call) -> heddle::Status {
    const int64_t count = heddle_status_unsupported_count(status);
    heddle_unsupported result{};
    if (number >= 0 && number < count) {
      const heddle::import::Unsupported& from = status->unsupported[static_cast<size_t>(number)];
      result.kind = from.kind.c_str();
      result.what = from.what.c_str();
      result.detail = from.detail.c_str();
      result.way_out = from.way_out.c_str();
      result.place = from.places.empty() ? "" : from.places.front().c_str();
      result.opset = from.opset;
      result.count = from.count;
    }
    HEDDLE_RETURN_IF_ERROR(call.write("unsupported", unsupported, result));
    HEDDLE_RETURN_IF_ERROR(call.given({{"status", status}}));
    return call.in_range("number", number, 0, count - 1);
  });
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
