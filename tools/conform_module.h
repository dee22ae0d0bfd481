// How one module fares in `heddle conform hlo`.
#pragma once

#include <memory>
#include <string>

#include "api/session.h"
#include "hlo/module.h"

namespace heddle::tools {

// "round trip", "mismatch" and "error" (it compiles and does not run) fail the board (and crash and
// timeout, which the caller sees); the others say why a module was not compared.
struct ModuleOutcome {
  std::string outcome;  // "equal", "mismatch", "error", "invalid", "round trip", "refused", …
  std::string reason;   // one line; empty for equal
};

struct ConformChoices {
  api::CompileOptions compile;
  uint64_t seed = 0;
  double max_work = 1e9;  // scalar operations that the interpreter is asked for, loops counted once
};

// Scalar operations of a module, about; loops counted once.
double work_of(const hlo::Module& module);

// Verifies, prints and parses, compiles, and compares runs with the interpreter: two beside their
// inputs, one over the inputs that an output may overwrite.
ModuleOutcome conform_module(std::unique_ptr<hlo::Module> module, const ConformChoices& choices);

}  // namespace heddle::tools
