// Private to compiler: options as the parts of a compilation read them.
#pragma once

#include <optional>
#include <string>

#include "compiler/compile_options.h"
#include "fuse/mode.h"
#include "pass/run.h"

namespace heddle::compiler {

// Error (user): `disable` names a pass (or a rewrite of one) that no table has, or a required pass.
Status check_pass_names(const Options& options);
// For the fusing passes, after `changes` passes that changed something.
pass::RunOptions fusing_pass_options(const Options& options, size_t changes);
// For kernel passes over the kernel of `fusion`, after `changes` passes that changed something.
// `dump_failure`: see pass::RunOptions.
pass::RunOptions kernel_pass_options(const Options& options, const std::string& fusion,
                                     size_t changes, Status* dump_failure);
fuse::Mode fuse_mode(const Options& options);
plan::Options plan_options(const Options& options);
// The text of the options in a program (program::Program::options): "level=O2 fuse=stitch …".
std::string options_text(const Options& options);
// All options that change the program, for the key of the cache of programs. Nullopt: the program
// is not cached.
std::optional<std::string> options_key(const Options& options);

}  // namespace heddle::compiler
