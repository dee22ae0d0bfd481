// The device functions that texts may call, written out where they are used: what CUDA C++ computes
// otherwise than kernel.h says (NaN in max, division by zero, wrapping), and the types that it has
// only in headers.
#pragma once

#include <set>
#include <string>

namespace heddle::emit::cuda {

// In a fixed order. Precondition: every name is one of the table's.
std::string prelude_text(const std::set<std::string>& names);

}  // namespace heddle::emit::cuda
