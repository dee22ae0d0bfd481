// Private to api: the host function "interp", which evaluates an operator without a kernel.
#pragma once

#include <span>
#include <vector>

#include "runtime/host.h"
#include "tensor/literal.h"

namespace heddle::hlo {
class Module;
}

namespace heddle::api {

// Keyed by the name under which programs call them (program::HostCall).
runtime::HostFunctions host_functions();

// Whether a run changes the random state: equal inputs give other results in the next run.
bool draws_random_numbers(const hlo::Module& module);

// One argument per parameter, as views of memory that must stay valid for the call: `leaves` are
// the bytes of the parameters' leaves in order.
std::vector<tensor::Literal> view_arguments(const hlo::Module& module,
                                            std::span<const void* const> leaves);
// Copies the leaves of a result to memory of their sizes.
void copy_result(const tensor::Literal& result, std::span<void* const> leaves);

}  // namespace heddle::api
