// Kernel text: parse(print(k)) equals k up to numbering, and print is a fixed point.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "kernel/kernel.h"

namespace heddle::kernel {

// Grammar in kernel/README.md. First line: "heddle.kernel 1".
Result<Kernel> parse_kernel(std::string_view text);  // errors: "line:column: …"
std::string to_string(const Kernel& kernel);

}  // namespace heddle::kernel
