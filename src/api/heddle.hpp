// heddle: the C++ interface, over the C interface (heddle.h) and nothing else. C++17; with C++20
// heddle::span is std::span.
//
//   #include <heddle/heddle.hpp>
//
//   heddle::Model model = heddle::Model::open("model.onnx");
//   heddle::Program program = model.compile();
//   heddle::Context context = program.context();
//   heddle::Tensor x = heddle::Tensor::of<float>({1, 3}, {1, 2, 3});
//   heddle::Tensors y = context.run({{"x", x}});
//   for (float value : y.at("y").span<float>()) …
//
// Errors are exceptions: heddle::UserError (bad file, name, shape, option), with ShapeError,
// UnsupportedError and ValueError; heddle::MachineError, with OutOfMemory and DeviceError;
// heddle::Cancelled. All are heddle::Error, with kind(), code(), message(), unsupported(). If
// HEDDLE_EXPECTED is defined before the first inclusion, nothing is thrown and the same functions
// return heddle::expected<T, heddle::Error> (std::expected if available); this also works with
// exceptions disabled. It covers memory of heddle's objects and of Tensors only: containers of the
// standard library still throw std::bad_alloc.
//
// Ownership: every object frees its resources and may outlive the others; a Context keeps what is
// bound to it. Threads: as in heddle.h. get() returns the C handle, for functions that are missing
// here.
#ifndef HEDDLE_API_HEDDLE_HPP
#define HEDDLE_API_HEDDLE_HPP

#if !defined(_MSVC_LANG) && __cplusplus < 201703L
#error "heddle.hpp needs C++17 or later: compile with -std=c++17 or -std=c++20"
#endif

#include "heddle_error.hpp"
#include "heddle_log.hpp"
#include "heddle_model.hpp"
#include "heddle_program.hpp"
#include "heddle_tensor.hpp"

namespace heddle {
inline namespace HEDDLE_INLINE_NAMESPACE {

// The version of the library: "0.1.0".
inline std::string version() {
  const std::uint32_t number = heddle_version();
  return std::to_string(number / 1000000) + "." + std::to_string(number / 1000 % 1000) + "." +
         std::to_string(number % 1000);
}

}  // namespace HEDDLE_INLINE_NAMESPACE
}  // namespace heddle

#undef HEDDLE_CHECK_STATUS
#undef HEDDLE_TRY
#undef HEDDLE_TRY_VOID

#endif  // HEDDLE_API_HEDDLE_HPP
