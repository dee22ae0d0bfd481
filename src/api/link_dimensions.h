// Private to api: which of a graph's dimensions are bounded, before it is masked.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "hlo/symbol.h"
#include "import/onnx.h"

namespace heddle::api {

// The symbols of these names, with their bounds, at the inputs' dimensions that have them.
std::vector<hlo::Symbol> symbols_named(const std::map<std::string, int64_t>& bounded,
                                       const import::Imported& imported);

// Links dimensions to those of the inputs that have these names, and to counts: dimensions without
// a link through the operators would be constants. So dimensions of these names are no longer
// merged and split again; what is there of a merged dimension, or of rows that are joined, sorted
// or cut, is put in front; and gathers at the number of each sequence are read in place.
Status link_dimensions(const std::map<std::string, int64_t>& bounded, import::Imported* imported);

}  // namespace heddle::api
