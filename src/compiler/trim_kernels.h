// Private to compiler: kernels of a module with bounded symbols (opt/mask_padding.cc) read the
// actual extents and stop there (lower/trim.h). Masks make the results right whatever stands
// behind the extent; this makes the kernels as fast as there is work.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/compile_options.h"
#include "compiler/pending.h"
#include "hlo/module.h"

namespace heddle::compiler {

// A pass over kernels that runs behind `trim`, which expects whole loops: nobody else runs it on
// kernels of a module with symbols.
inline constexpr std::string_view kBehindTrim = "line_starts";

// Behind the pass pass_extents, which gives kernels the extents of their symbols. Texts of kernels
// before and after. A kernel that stays as it is, and so runs over the whole bound, is a refusal of
// the report.
std::vector<std::pair<std::string, std::string>> trim_kernels(const hlo::Module& module,
                                                              std::vector<Pending>* all,
                                                              const RunPass& run, Report* report);

}  // namespace heddle::compiler
