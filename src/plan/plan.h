// plan: turns a fused module and its kernels into a program: order, liveness, aliases, offsets.
//
// The module's entry contains parameters, constants, fusions (each with a kernel), views without
// work (bitcast, reshape of equal layout, get-tuple-element, tuple), copies, and instructions
// without a kernel, which become host calls.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "hlo/module.h"
#include "plan/kernel_use.h"
#include "plan/options.h"
#include "program/program.h"
#include "target/target.h"

namespace heddle::plan {

// Names of the ports, one per leaf of the entry's parameters and of its root; missing ones are
// arg<n> and out<n> (CLI.md). `input_aliases`: other accepted names of inputs. Work that depends on
// constants only goes to the once section.
struct Names {
  std::vector<std::string> inputs, input_aliases, outputs;
};
Result<program::Program> plan(const hlo::Module& module, const Kernels& kernels, const Names& names,
                              const target::Target& target, const Options& options);

}  // namespace heddle::plan
