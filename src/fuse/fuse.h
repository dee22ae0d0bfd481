// fuse: covers the entry and the computations of whiles and conditionals with fusions, each one
// future kernel. Only fusions that place() can schedule are formed. Every refused edge has a code
// and a reason. This header runs whole pipelines; passes.def lists their passes.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "fuse/mode.h"
#include "fuse/refusal.h"
#include "fuse/search_options.h"
#include "hlo/module.h"
#include "target/target.h"

namespace heddle::fuse {

// Instructions that have a stage form end up in `fusion` instructions (kind kLoop); views without
// work (reshape, bitcast) and all others stay as they are. Values that depend on constants alone
// get separate fusions, for the program's once section; in a loop's body, so do values that depend
// on loop-invariant leaves: plan moves them out of the loop. `options` and `report` are the
// search's.
Result<bool> fuse(hlo::Module* module, const target::Target& target, Mode mode,
                  std::vector<Refusal>* refusals = nullptr, const SearchOptions& options = {},
                  SearchReport* report = nullptr);

// Rewrites dots with a constant right operand (in a loop's body: a loop-invariant one) so that
// their fusion reads it in the panels of its GEMM record: packing is a pad, reshape and transpose
// of the constant (at load time), and the fusion contains the inverse, which index maps cancel
// (stages.md §4.6).
// `relaxed`: convolutions that Winograd's algorithm is predicted to compute faster, and accurately
// enough, get its transformed filter (schedule/winograd.h); a note says how many, a refusal why
// not.
Result<bool> pack_weights(hlo::Module* module, const target::Target& target, bool relaxed = false,
                          std::vector<std::string>* notes = nullptr,
                          std::vector<Refusal>* refusals = nullptr);

}  // namespace heddle::fuse
