// LiteralProto to Literal.
#pragma once

#include <memory>

#include "import/hlo_proto_reader.h"
#include "tensor/literal.h"

namespace heddle::import {

// Throws Failure if the values do not fit the shape.
tensor::Literal read_literal(HloReader& message, const std::shared_ptr<const void>& owner);

}  // namespace heddle::import
