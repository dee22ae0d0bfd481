// Private to api: the host function "interp", which evaluates an operator that has no kernel.
#pragma once

#include <span>
#include <vector>

#include "runtime/host.h"
#include "tensor/literal.h"

namespace heddle::hlo {
class Module;
}

namespace heddle::api {

// By the name under which programs call it (program::HostCall).
runtime::HostFunctions host_functions();

// Does a run of it move the state on: do equal inputs give other results in the next run?
bool draws_random_numbers(const hlo::Module& module);

// One argument a parameter, from memory that stands still for the call: `leaves` are the bytes of
// the parameters' leaves in order. The literals are views.
std::vector<tensor::Literal> view_arguments(const hlo::Module& module,
                                            std::span<const void* const> leaves);
// The leaves of a result to memory, of their bytes.
void copy_result(const tensor::Literal& result, std::span<void* const> leaves);

}  // namespace heddle::api
