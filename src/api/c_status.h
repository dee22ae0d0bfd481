// Private to api: argument checks and error reports of the C functions.
//
//   heddle_status* heddle_thing_do(heddle_thing* thing, int64_t number) {
//     return guarded(__func__, [&](const Call& call) -> Status {
//       HEDDLE_RETURN_IF_ERROR(call.given({{"thing", thing}}));
//       HEDDLE_RETURN_IF_ERROR(call.in_range("number", number, 0, thing->count - 1));
//       …
//     });
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "api/heddle.h"
#include "base/error.h"

namespace heddle::import {
struct Unsupported;
}

namespace heddle::api {

// Also sets heddle_last_error() of this thread. If memory runs out, returns a fixed status.
heddle_status* make_status(Error error) noexcept;
// Sets the data for heddle_status_unsupported. If memory runs out, it stays empty.
void set_unsupported(heddle_status* status, std::vector<import::Unsupported> unsupported) noexcept;

// A call of a C function. Its checks return user errors that name the function, the argument, the
// actual and the expected value.
class Call {
 public:
  explicit Call(const char* function) : function_(function) {}

  struct Pointer {
    const char* argument;
    const void* value;
  };
  // Checks that none is NULL.
  Status given(std::initializer_list<Pointer> pointers) const;
  // Checks `count` elements at `data`: NULL only if there are none, and no implausibly large count.
  Status array(std::string_view argument, const void* data, uint64_t count) const;
  // An empty range means an empty list.
  Status in_range(std::string_view argument, int64_t got, int64_t least, int64_t most) const;
  // Checks the size of a caller's struct: it must be that of some past or possible future version.
  Status struct_size(const char* argument, size_t got, size_t known) const;
  // "function: argument is got; wanted wanted".
  tl::unexpected<Error> wrong(std::string_view argument, std::string_view got,
                              std::string_view wanted) const;
  // Converts a user error of a function that only checked arguments to one of this call.
  Status about(Status status) const;

  // Reads the caller's struct: members beyond its size are zero, and so is all of it if the caller
  // passes NULL. Error: a wrong size; members unknown to this library that are set.
  template <typename Struct>
  Result<Struct> read(const char* argument, const Struct* from) const {
    Struct result{};
    if (from == nullptr) return result;
    HEDDLE_RETURN_IF_ERROR(struct_size(argument, from->struct_size, sizeof result));
    HEDDLE_RETURN_IF_ERROR(no_tail(argument, from, from->struct_size, sizeof result));
    std::memcpy(&result, from,
                from->struct_size < sizeof result ? from->struct_size : sizeof result);
    return result;
  }

  // Writes as much as fits into the caller's struct.
  template <typename Struct>
  Status write(const char* argument, Struct* to, Struct value) const {
    HEDDLE_RETURN_IF_ERROR(given({{argument, to}}));
    HEDDLE_RETURN_IF_ERROR(struct_size(argument, to->struct_size, sizeof value));
    value.struct_size = to->struct_size;
    std::memcpy(to, &value, to->struct_size < sizeof value ? to->struct_size : sizeof value);
    return {};
  }

 private:
  Status no_tail(const char* argument, const void* from, size_t size, size_t known) const;
  const char* function_;
};

// Converts the current exception: memory, threads and files are errors of the machine, anything
// else is a bug of ours. Call it in a catch block.
Error error_of_exception(const char* where);
heddle_status* status_of_exception(const char* function_name) noexcept;

// Runs `function` (const Call& -> Status) for the C function `name`. No exception leaves it.
template <typename Function>
heddle_status* guarded(const char* name, Function&& function) noexcept {
  try {
    Status status = function(Call(name));
    return status ? nullptr : make_status(std::move(status).error());
  } catch (...) {
    return status_of_exception(name);
  }
}

// The same for a C function that returns no status: heddle_last_error() has the error.
template <typename Function>
void told(const char* name, Function&& function) noexcept {
  heddle_status_free(guarded(name, std::forward<Function>(function)));
}

// The same for one that returns a value (const Call& -> Result<Value>); `otherwise` after an error.
template <typename Value, typename Function>
Value answered(const char* name, Value otherwise, Function&& function) noexcept {
  Value value = otherwise;
  told(name, [&](const Call& call) -> Status {
    HEDDLE_ASSIGN_OR_RETURN(value, function(call));
    return {};
  });
  return value;
}

}  // namespace heddle::api
