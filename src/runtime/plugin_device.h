// Devices of other source trees: a shared library that exports `const heddle_hal*
// heddle_device(void)`.
#pragma once

#include <string>

#include "runtime/device.h"

namespace heddle::runtime {

// The library is never closed. Errors: no such library, no such function (user); an incomplete HAL
// (machine).
Result<Device> open_plugin(const std::string& path);

}  // namespace heddle::runtime
