// Private to api: how the C functions report, and structs of growing size.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "api/heddle.h"
#include "base/error.h"

namespace heddle::api {

// Also what heddle_last_error() tells on this thread. Out of memory while saying so: a fixed
// status.
heddle_status* make_status(Error error) noexcept;

// Runs `function` (-> Status). No exception leaves it: what memory could not hold is the machine's
// error, anything else our bug.
template <typename Function>
heddle_status* guarded(Function&& function) noexcept {
  try {
    Status status = function();
    return status ? nullptr : make_status(std::move(status).error());
  } catch (const std::bad_alloc&) {
    return make_status(Error{ErrorKind::machine, "out of memory"});
  } catch (const std::length_error&) {
    return make_status(Error{ErrorKind::machine, "out of memory"});
  } catch (const std::system_error& error) {  // of threads and files
    return make_status(Error{ErrorKind::machine, error.what()});
  }
}

// The caller's struct, of its size: what it does not have is zero.
template <typename Struct>
Struct read_struct(const Struct* from) {
  Struct result{};
  if (from != nullptr)
    std::memcpy(&result, from,
                from->struct_size < sizeof result ? from->struct_size : sizeof result);
  return result;
}

// Writes as much as the caller's struct holds.
template <typename Struct>
void write_struct(Struct* to, Struct value) {
  if (to == nullptr) return;
  value.struct_size = to->struct_size;
  std::memcpy(to, &value, to->struct_size < sizeof value ? to->struct_size : sizeof value);
}

}  // namespace heddle::api
