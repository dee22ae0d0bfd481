// How a C function of the table calls what it does: with a struct of this version's size, and
// without an exception leaving it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "error.h"

namespace heddle::pjrt {

// Every struct of a caller begins with its size. Callers of other versions have fewer or more
// members behind those that are known here: what they do not have is zero and is not written back.
constexpr size_t kLeastStruct = sizeof(size_t) + sizeof(void*);

template <typename Struct>
Struct read_struct(const Struct* from, const char* name) {
  Struct result{};
  const size_t size = given(from, name)->struct_size;
  if (size < kLeastStruct)
    invalid(std::string(name) + ": struct_size is " + std::to_string(size) + ", wanted at least " +
            std::to_string(kLeastStruct));
  std::memcpy(&result, from, std::min(size, sizeof result));
  return result;
}

template <typename Struct>
void write_struct(const Struct& from, Struct* to) {
  std::memcpy(to, &from, std::min(to->struct_size, sizeof from));
}

template <typename Args, typename Function>
PJRT_Error* guarded(const char* name, Args* args, Function&& function) noexcept {
  try {
    Args mine = read_struct(args, name);
    function(mine);
    write_struct(mine, args);
    return nullptr;
  } catch (...) {
    Failure failure = failure_of_exception();
    return make_error(std::move(failure));
  }
}

}  // namespace heddle::pjrt
