// heddle opt of a kernel's text: kernel passes instead of passes over graphs.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "pass/run.h"

namespace heddle::tools {

// Told by its first line, "heddle.kernel 1".
bool is_kernel_text(std::string_view text);

// The kernel after the passes (pass/pipeline.h; "default": those of its device). `target` is the
// one that the kernel names where empty; `lanes`: threads that do a task together, on a GPU;
// `trim`: what the pass trim is asked (lower/trim.h). Errors (user): the text, the target, the
// passes or `trim`; each with `file` in front.
Result<std::string> run_kernel_passes(const std::string& file, std::string_view text,
                                      std::string_view passes, const std::string& target, int lanes,
                                      std::string_view trim, const pass::RunOptions& options,
                                      pass::RunReport* report);

// A line a pass: name, summary.
std::string list_kernel_passes();

}  // namespace heddle::tools
