// Private to compiler: options as the parts of a compilation read them.
#pragma once

#include <optional>
#include <string>

#include "compiler/compile_options.h"
#include "fuse/mode.h"
#include "pass/run.h"

namespace heddle::compiler {

// User's fault: a disabled pass or rewrite that no table knows, or without which nothing runs.
Status check_pass_names(const Options& options);
// Of the passes that make kernels of a module's operators, after so many that changed something.
pass::RunOptions fusing_pass_options(const Options& options, size_t changes);
// Of kernel passes over the kernel of `fusion`, after so many passes that changed something.
// `dump_failure`: see pass::RunOptions.
pass::RunOptions kernel_pass_options(const Options& options, const std::string& fusion,
                                     size_t changes, Status* dump_failure);
fuse::Mode fuse_mode(const Options& options);
plan::Options plan_options(const Options& options);
// As a program says them (program::Program::options): "level=O2 fuse=stitch …".
std::string options_text(const Options& options);
// All that makes another program, in the key of the cache of programs. Nothing: such a program is
// not kept there.
std::optional<std::string> options_key(const Options& options);

}  // namespace heddle::compiler
