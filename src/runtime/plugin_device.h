// A device of another tree: a shared library that exports `const heddle_hal* heddle_device(void)`.
#pragma once

#include <string>

#include "runtime/device.h"

namespace heddle::runtime {

// The library stays open. Errors: no such library, no such function (user); a HAL that is not
// complete (machine).
Result<Device> open_plugin(const std::string& path);

}  // namespace heddle::runtime
