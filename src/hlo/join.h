// What a fusion of fusions becomes. Its parts are kernels already; between them stand views and
// elements of tuples, no more. Whoever forms it says so: a fact (facts.h) that passes keep.
#pragma once

#include "hlo/module.h"

namespace heddle::hlo {

// Join::none: a fusion of operators. `phases`: one kernel, in as many phases as the parts wait for
// one another. `table`: the same, and parts that do the same share their code, as rows of a table
// (docs/stages.md, instances). `loop`: it holds a while, or several that do not read each other,
// whose steps are kernels; one kernel makes all steps.
inline Join join_of(const Instr& fusion) { return fusion.facts().join; }
inline void set_join(Instr* fusion, Join join) { fusion->facts().join = join; }

}  // namespace heddle::hlo
