// What `heddle compile --emit cuda` does.
#pragma once

#include <string>

#include "base/error.h"
#include "model_options.h"
#include "report.h"

namespace heddle::tools {

// Writes the kernels' text to `output`, or to standard output where that is empty.
Result<int> emit_cuda(const heddle_model* model, const std::string& name,
                      const CompileChoices& choices, const OutputFile& output,
                      const JsonChoice& json);

}  // namespace heddle::tools
