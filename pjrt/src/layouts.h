#pragma once

#include "xla/pjrt/c/pjrt_c_api.h"

namespace heddle::pjrt {

// The extension that tells layouts: every array is row-major.
PJRT_Extension_Base* layouts_extension(PJRT_Extension_Base* next);

}  // namespace heddle::pjrt
