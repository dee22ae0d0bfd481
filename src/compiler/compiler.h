// compiler: turns a module into a program. Options, levels, kernel selection.
#pragma once

#include <memory>

#include "base/error.h"
#include "compiler/compile_options.h"
#include "hlo/module.h"
#include "pass/run.h"
#include "plan/plan.h"
#include "program/program.h"
#include "target/target.h"

namespace heddle::compiler {

// The module is consumed. Errors: user (names what cannot be compiled) or machine.
Result<program::Program> compile(std::unique_ptr<hlo::Module> module, const plan::Names& names,
                                 const target::Target& target, const Options& options,
                                 Report* report = nullptr);

// How the passes run under these options: which are disabled (under strict numerics also those that
// change rounding), where they stop, what is dumped.
pass::RunOptions pass_options(const Options& options);

// The first steps of compile(): every fusion of the result becomes one kernel.
Result<std::unique_ptr<hlo::Module>> fuse_only(std::unique_ptr<hlo::Module> module,
                                               const target::Target& target, const Options& options,
                                               Report* report = nullptr);

}  // namespace heddle::compiler
