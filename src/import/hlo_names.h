// Private to import: turns a module of HLO, text or proto, into an Imported.
#pragma once

#include <memory>

#include "base/error.h"
#include "import/onnx.h"

namespace heddle::import {

// Verified; names of inputs and outputs as in CLI.md; constants without values only if Options
// allow it; bounded dimensions at their bounds. Errors (user).
Result<Imported> with_names(std::unique_ptr<hlo::Module> module, const Options& options);

}  // namespace heddle::import
