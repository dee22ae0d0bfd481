#include "schedule/bounded_rows.h"

#include <algorithm>

#include "hlo/dim_classes.h"

namespace heddle::schedule {

bool is_bounded(const hlo::Instr* instr) {
  return instr && !instr->parent()->module()->symbols.empty();
}

int64_t least_rows(const hlo::Instr* dot, int64_t rows) {
  int64_t least = rows;
  if (dot)
    for (const hlo::Symbol& symbol : dot->parent()->module()->symbols)
      if (symbol.bound > 1 && rows % symbol.bound == 0)
        least = std::min(least, rows / symbol.bound * symbol.least);
  return least;
}

}  // namespace heddle::schedule
