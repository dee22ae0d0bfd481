// Private to api: compilation in the background.
#pragma once

#include <memory>

#include "api/session.h"

namespace heddle::api {

// A program of level O0 that becomes the one that was asked for when that is compiled: its contexts
// go over to it between two of their runs, with what is bound. Freeing it cancels the compilation.
Result<std::shared_ptr<Program>> compile_in_background(Model& model, const CompileOptions& options);

}  // namespace heddle::api
