// Private to host_native.cc: sorting by one key, and the types of native calls.
#pragma once

#include <optional>

#include "hlo/module.h"
#include "runtime/host.h"

namespace heddle::api {

// Calls `function` with a value of the type; false: not one of the four.
template <typename Function>
bool with_type(tensor::Type type, Function&& function) {
  switch (type) {
    case tensor::Type::f32:
      return function(float{}), true;
    case tensor::Type::f64:
      return function(double{}), true;
    case tensor::Type::s32:
      return function(int32_t{}), true;
    case tensor::Type::s64:
      return function(int64_t{}), true;
    default:
      return false;
  }
}

// As native_call() for a sort. Its operands must be dense arrays in parameter order.
std::optional<runtime::HostCallable> native_sort(const hlo::Instr& instr);

}  // namespace heddle::api
