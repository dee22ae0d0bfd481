// The device functions that kernels may call, included in a text where used: operations that CUDA
// C++ defines differently from kernel.h (NaN in max, division by zero, wrapping), and types that it
// has only in headers.
#pragma once

#include <set>
#include <string>

namespace heddle::emit::cuda {

// In a fixed order. Precondition: every name is one of the table's.
std::string prelude_text(const std::set<std::string>& names);

}  // namespace heddle::emit::cuda
