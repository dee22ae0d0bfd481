// Ranges of the integers that a graph can compute, from its operators alone.
#pragma once

#include <optional>

#include "hlo/module.h"
#include "tensor/index_check.h"

namespace heddle::import {

// An interval that contains all elements of an integer value for any inputs. None: the operators do
// not determine one.
std::optional<tensor::IndexRange> index_range(const hlo::Instr* value);

// Of index vectors [n, dimensions] that were coordinates, a row [1, n] for each dimension, as those
// that NonZero finds: what joins these rows. Null: they have another form.
const hlo::Instr* joined_coordinates(const hlo::Instr* vectors);

}  // namespace heddle::import
