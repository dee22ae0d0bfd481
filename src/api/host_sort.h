// Private to host_native.cc: sorting by one key, and the types that native calls have.
#pragma once

#include <optional>

#include "hlo/module.h"
#include "runtime/host.h"

namespace heddle::api {

// Calls `function` with a value of the type; false: none of the four.
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

// As native_call() for a sort. Precondition: its operands are dense arrays in order.
std::optional<runtime::HostCallable> native_sort(const hlo::Instr& instr);

}  // namespace heddle::api
