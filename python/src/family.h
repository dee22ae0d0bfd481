// Models that Python writes for extents (heddle.Family).
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "api/heddle.h"

namespace heddle::python {

// `source`: (a function of {name: extent}, ((input, dimension, name), …)). The model keeps the
// function. Called with the interpreter's lock, which is released meanwhile.
heddle_status* open_family(nanobind::handle source, const std::string& name,
                           const heddle_open_options* options, heddle_model** model);

}  // namespace heddle::python
