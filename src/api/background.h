// Private to api: compilation in the background.
#pragma once

#include <memory>

#include "api/session.h"

namespace heddle::api {

// A program of level O0 that is replaced by the requested program when that is compiled: its
// contexts switch to it between two runs, keeping their bindings. Freeing it cancels the
// compilation.
Result<std::shared_ptr<Program>> compile_in_background(Model& model, const CompileOptions& options);

}  // namespace heddle::api
