// Assertions that are written as custom calls.
#pragma once

#include <string_view>

#include "import/stablehlo_importer.h"

namespace heddle::import {

// Whether `target` is an assertion; if so, records it.
bool check_custom_call(ShloOp& op, std::string_view target);

}  // namespace heddle::import
