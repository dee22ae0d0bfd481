// Functions for custom calls that heddle does not know, by target name.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "hlo/module.h"
#include "tensor/literal.h"

namespace heddle::interp {

// Writes the result, which is allocated and zeroed. May be called by several threads at once.
using CustomFunction = std::function<Status(
    const hlo::Instr& call, std::span<const tensor::Literal> operands, tensor::Literal* result)>;

// For all modules of the process, from now on; an empty function unregisters the name. Names with a
// meaning in heddle keep it. Thread-safe.
void register_custom_function(const std::string& target, CustomFunction function);
// Null: there is none.
std::shared_ptr<const CustomFunction> find_custom_function(const hlo::Instr& custom_call);

}  // namespace heddle::interp
