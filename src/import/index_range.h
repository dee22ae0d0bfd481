// What integers a graph can compute, from its operators alone.
#pragma once

#include <optional>

#include "hlo/module.h"
#include "tensor/index_check.h"

namespace heddle::import {

// All elements of an integer value lie in this interval, whatever the inputs. None: that cannot be
// seen from its operators.
std::optional<tensor::IndexRange> index_range(const hlo::Instr* value);

}  // namespace heddle::import
