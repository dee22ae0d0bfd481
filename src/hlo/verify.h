// The verifier: every invariant of module.h, by number. It collects all violations.
#pragma once

#include "base/error.h"
#include "hlo/module.h"

namespace heddle::hlo {

// Error: one line per violation, "invariant 5: %add.3 in %main: shape f32[2] but inference says …".
Status verify(const Module& module);

}  // namespace heddle::hlo
