// The files of a compilation (--dump) as a report shows them: what each pass changed, and the code
// of each kernel.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/error.h"
#include "compiler/compile_options.h"
#include "page_texts.h"

namespace heddle::tools {

// By name of the kernel: numbers of its texts by what they are, "stages", "llvm", "assembly",
// "cuda".
using KernelTexts = std::map<std::string, std::map<std::string, int64_t>>;
Result<KernelTexts> kernel_texts(const std::string& folder, PageTexts* texts);

// A list of all passes that changed the module, in order: {"stage": "simplify" or "fuse", "pass",
// "summary", "rounds": it may change rounding, "instructions": before and after, "gone", "come":
// lines, "diff": number of the text}. Error (machine): a file cannot be read.
Result<nlohmann::ordered_json> pass_changes(const std::string& folder, PageTexts* texts);
// Of all passes that ran: {"pass", "summary", "rounds", "runs", "changes", "ms"}; and counts of
// their rewrites by "pass.rule".
nlohmann::ordered_json passes_json(const compiler::Report& report);
nlohmann::ordered_json rewrites_json(const compiler::Report& report);

}  // namespace heddle::tools
