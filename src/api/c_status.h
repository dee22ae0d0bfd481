// Private to api: how the C functions check what they are given, and how they report.
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

// Also what heddle_last_error() tells on this thread. Out of memory while saying so: a fixed
// status.
heddle_status* make_status(Error error) noexcept;
// What heddle_status_unsupported tells of it. A status without memory for it tells nothing.
void set_unsupported(heddle_status* status, std::vector<import::Unsupported> unsupported) noexcept;

// A call of a C function. Its checks give user errors that name the function, the argument, what
// was got and what was wanted.
class Call {
 public:
  explicit Call(const char* function) : function_(function) {}

  struct Pointer {
    const char* argument;
    const void* value;
  };
  // None of them is NULL.
  Status given(std::initializer_list<Pointer> pointers) const;
  // `count` elements from `data` on: NULL only where there are none, and no more than a caller can
  // have meant.
  Status array(std::string_view argument, const void* data, uint64_t count) const;
  // An empty range is one of nothing.
  Status in_range(std::string_view argument, int64_t got, int64_t least, int64_t most) const;
  // A struct of the caller's: of a size that a version of this library has had or may have.
  Status struct_size(const char* argument, size_t got, size_t known) const;
  // "function: argument is got; wanted wanted".
  tl::unexpected<Error> wrong(std::string_view argument, std::string_view got,
                              std::string_view wanted) const;
  // A user error of a function that looked at arguments alone, as one of this call.
  Status about(Status status) const;

  // The caller's struct, of its size: what it does not have is zero, and so is all of it where the
  // caller gives none. Error: its size; members that this library does not know and that are set.
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

  // Writes as much as the caller's struct holds.
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

// The exception that is being handled: memory, threads and files are the machine's error, anything
// else is our bug. Called in a catch block.
Error error_of_exception(const char* where);
heddle_status* status_of_exception(const char* function_name) noexcept;

// Runs `function` (const Call& -> Status) of the C function of that name. No exception leaves it.
template <typename Function>
heddle_status* guarded(const char* name, Function&& function) noexcept {
  try {
    Status status = function(Call(name));
    return status ? nullptr : make_status(std::move(status).error());
  } catch (...) {
    return status_of_exception(name);
  }
}

// The same of a C function that has no status to return: heddle_last_error() tells the error.
template <typename Function>
void told(const char* name, Function&& function) noexcept {
  heddle_status_free(guarded(name, std::forward<Function>(function)));
}

// The same of one with an answer (const Call& -> Result<Value>); `otherwise` where there is none.
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
