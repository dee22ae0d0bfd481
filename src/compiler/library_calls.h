// Products and convolutions that a vendor library can compute. The pass call_libraries turns those
// that it shall compute into custom calls (hlo/library_call.h), which are not fused.
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

// Tuning records under a key of library::key_of(): which one was measured as faster. A library's
// record is its name; with the suffix kWhole the operation was not split into tasks.
inline constexpr const char* kOwnRecord = "own";
inline constexpr const char* kWhole = " whole";

// A product or convolution as a library's operation, with its bias.
struct LibraryProduct {
  hlo::Instr* product = nullptr;
  hlo::Instr* root = nullptr;  // the operation's result: the product, or its sum with the bias
  hlo::Instr* bias = nullptr;  // f32[n], or none
  library::Operation operation;
};

// Refusals: `library-type` (not f32, or a particular algorithm), `library-strides` (arrays that do
// not form matrices), `library-window` (a window that the library does not support).
Decision match_library(hlo::Instr* product, LibraryProduct* found);

}  // namespace heddle::compiler
