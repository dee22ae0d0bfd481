// Products and convolutions that a vendor library does: which ones it could do. The pass
// call_libraries makes custom calls (hlo/library_call.h) of those that it shall do, which no fusion
// takes apart.
#pragma once

#include <string>
#include <vector>

#include "base/decision.h"
#include "base/error.h"
#include "compiler/compile_options.h"
#include "hlo/module.h"
#include "library/operation.h"
#include "target/target.h"

namespace heddle::compiler {

// Records of a key of library::key_of(): who was faster when it was measured (tuning). A library's
// record is its name; with this behind it, the operation was not cut into tasks.
inline constexpr const char* kOwnRecord = "own";
inline constexpr const char* kWhole = " whole";

// A product or convolution as a library's operation, with the bias behind it.
struct LibraryProduct {
  hlo::Instr* product = nullptr;
  hlo::Instr* root = nullptr;  // whose value the operation gives: the product, or the sum behind it
  hlo::Instr* bias = nullptr;  // f32[n], or none
  library::Operation operation;
};

// No, by code: `library-type` (not f32, an algorithm of its own), `library-strides` (arrays that
// are no matrices for it), `library-window` (a window that it does not have).
Decision match_library(hlo::Instr* product, LibraryProduct* found);

}  // namespace heddle::compiler
