// A sample with another number of rows of its product.
#pragma once

#include <cstdint>
#include <memory>

#include "hlo/module.h"

namespace heddle::compiler {

// The entry of `sample`, in which one dot has rows that nothing else counts: its left side's free
// dimensions, followed through maps, broadcasts, transposes and reshapes to the arrays that have
// them too. All become `rows` (if the rows are several dimensions the last one has them all, the
// others are 1). Null where something else depends on them (a constant, a reduction, the other side
// of the dot), or where rows do not lead the dimensions of a result.
std::unique_ptr<hlo::Module> with_rows(const hlo::Module& sample, int64_t rows);

}  // namespace heddle::compiler
