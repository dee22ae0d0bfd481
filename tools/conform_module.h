// How one module fares in `heddle conform hlo`.
#pragma once

#include <memory>
#include <string>

#include "api/session.h"
#include "hlo/module.h"

namespace heddle::tools {

// "round trip" and "mismatch" fail the board (and crash and timeout, which the caller sees); the
// others say why a module was not compared.
struct ModuleOutcome {
  std::string outcome;  // "equal", "mismatch", "invalid", "round trip", "refused", "too big"
  std::string reason;   // one line; empty for equal
};

struct ConformChoices {
  api::CompileOptions compile;
  uint64_t seed = 0;
  double max_work = 1e9;  // scalar operations that the interpreter is asked for, loops counted once
};

// Scalar operations of a module, about; loops counted once.
double work_of(const hlo::Module& module);

// Verifies, prints and parses, compiles, runs and compares with the interpreter.
ModuleOutcome conform_module(std::unique_ptr<hlo::Module> module, const ConformChoices& choices);

}  // namespace heddle::tools
