// Products and convolutions that a vendor library does: which ones it could do, and those that it
// shall do as custom calls (hlo/library_call.h), which no fusion takes apart.
#pragma once

#include <string>
#include <vector>

#include "base/decision.h"
#include "base/error.h"
#include "compiler/compiler.h"
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

// Replaces what the library shall do. `library`: its name (all that it can do), or "auto": where a
// record says so. Every other product has a refusal with a code: those above, those of
// library::open() and make_call(), `library-once` (it is done once), `library-order` (control
// edges), `library-unmeasured`, `library-slower`. Error (user): a library asked for by name that is
// not here.
Status call_libraries(hlo::Module* module, const target::Target& target, const std::string& library,
                      std::vector<std::string>* notes, Report* report);

}  // namespace heddle::compiler
