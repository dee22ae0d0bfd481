// What the functions of PJRT_Api do, by their names there without PJRT_. Each gets a struct of
// this version's size (call.h) and throws Failure.
#pragma once

#include "xla/pjrt/c/pjrt_c_api.h"

namespace heddle::pjrt {

#define FUNCTION(name) void name(PJRT_##name##_Args& args);
#define MISSING(name)
#include "functions.def"
#undef FUNCTION
#undef MISSING

}  // namespace heddle::pjrt
