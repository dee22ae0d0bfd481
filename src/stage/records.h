// The text form of tile records, used by schedules and tuning.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "stage/winograd_shape.h"

namespace heddle::stage {

std::string to_string(const Gemm& gemm);
std::string to_string(const Winograd& winograd);
// Inverses of to_string(). Errors (user) name the text found and the one expected.
Result<Gemm> parse_gemm(std::string_view text);
Result<Winograd> parse_winograd(std::string_view text);

}  // namespace heddle::stage
