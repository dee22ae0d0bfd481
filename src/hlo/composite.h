// A fusion of fusions: its parts are kernels already, and become one kernel, in as many phases as
// they wait for one another. Between them stand views and elements of tuples, no more.
#pragma once

#include <string_view>

#include "hlo/module.h"

namespace heddle::hlo {

bool is_composite(const Computation& computation);

// A composite whose parts are rows of tables: those that do the same share their code (stages.md
// §2, instances table). Its parts are of the kind kRowKind; the text keeps it.
constexpr std::string_view kRowKind = "kCustom";
bool is_table(const Computation& computation);

}  // namespace heddle::hlo
