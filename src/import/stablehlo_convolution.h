// Convolutions of StableHLO, whose padding may be an operand.
#pragma once

#include "import/stablehlo_importer.h"

namespace heddle::import {

// `padding`: low and high of each spatial dimension in turn.
void give_convolution(ShloOp& op, const Ints& padding);

}  // namespace heddle::import
