// How a fusion of fusions is compiled. Its parts are already kernels; only views and tuple elements
// may be between them. The pass that forms it records the kind as a fact (facts.h), which passes
// keep.
#pragma once

#include "hlo/module.h"

namespace heddle::hlo {

// Join::none: a fusion of operators. `phases`: one kernel with as many phases as the dependencies
// between the parts require. `table`: the same, and identical parts share their code as rows of a
// table (docs/stages.md, instances). `loop`: it contains a while, or several that do not read each
// other, whose steps are kernels; one kernel runs all steps.
inline Join join_of(const Instr& fusion) { return fusion.facts().join; }
inline void set_join(Instr* fusion, Join join) { fusion->facts().join = join; }

}  // namespace heddle::hlo
