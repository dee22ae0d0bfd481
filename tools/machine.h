// What this machine, this binary and this process are, for reports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::tools {

std::string processor_name();  // as the system calls it; "unknown"
int64_t memory_bytes();        // 0: not known
std::string version_text();    // of heddle: "0.1.0"
// The command line, the command's own name first.
std::vector<std::string> words_of_this_process();

}  // namespace heddle::tools
