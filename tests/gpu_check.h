// One kernel of a GPU against the reference interpreter, run by whatever can run it.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "compiler/gpu_kernels.h"
#include "interp/interp.h"
#include "interp/random_inputs.h"
#include "tensor/compare.h"

namespace heddle {

inline constexpr int64_t kLongestGpuReduction = 1100;  // of a row with small extents

inline bool is_positive(const std::string& text) {
  return text.find("\n// positive\n") != std::string::npos;
}

inline void gpu_leaves(const tensor::Literal& literal, std::vector<tensor::Literal>* leaves) {
  if (!literal.shape().is_tuple()) return leaves->push_back(literal);
  for (const tensor::Literal& element : literal.elements()) gpu_leaves(element, leaves);
}

// A value that is widened behind its operators has the rounding of the narrow ones.
inline bool rounds_below_f64(const hlo::Module& module) {
  for (const hlo::Instr* instr : module.entry()->instrs())
    if (instr->shape().is_array() && tensor::is_float(instr->shape().type()) &&
        instr->shape().type() != tensor::Type::f64)
      return true;
  return false;
}

// `run` has the kernel's global buffers and their bytes; it returns what went wrong. Empty: equal.
// `stored`, by buffer: elements that the run stored, where it was of a part of the blocks only.
// `longest`: the reduction that the tolerance is for.
using GpuStored = std::vector<std::vector<bool>>;
using GpuRunner =
    std::function<std::string(const std::vector<void*>& memory, const std::vector<int64_t>& bytes)>;
inline std::string check_gpu_kernel(const compiler::GpuKernel& kernel, bool positive,
                                    const GpuRunner& run, const GpuStored* stored = nullptr,
                                    int64_t longest = kLongestGpuReduction) {
  std::vector<tensor::Literal> arguments = interp::random_arguments(*kernel.module, 1);
  for (tensor::Literal& argument : arguments)
    for (int64_t i = 0; positive && i < argument.elems(); ++i)
      argument.set_f64(i, std::fabs(argument.get_f64(i)));
  auto want = interp::evaluate(*kernel.module, arguments);
  if (!want) return want.error().message;
  std::vector<tensor::Literal> wanted, got;
  gpu_leaves(*want, &wanted);
  for (const tensor::Literal& one : wanted) got.emplace_back(one.shape());
  std::vector<void*> memory;
  std::vector<int64_t> bytes;
  for (std::vector<tensor::Literal>* literals : {&arguments, &got}) {
    for (tensor::Literal& one : *literals) {
      memory.push_back(one.mutable_data());
      bytes.push_back(one.bytes());
    }
  }
  std::vector<std::vector<char>> workspaces;
  for (int64_t size : kernel.stitched.workspace_bytes) {
    workspaces.emplace_back(static_cast<size_t>(size));
    bytes.push_back(size);
  }
  for (auto& workspace : workspaces) memory.push_back(workspace.data());
  if (std::string wrong = run(memory, bytes); !wrong.empty()) return wrong;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const bool widened = wanted[i].type() == tensor::Type::f64 && rounds_below_f64(*kernel.module);
    tensor::Tolerance tolerance =
        tensor::derived_tolerance(widened ? tensor::Type::f32 : wanted[i].type(), longest);
    if (stored) {
      const std::vector<bool>& of_output = stored->at(arguments.size() + i);
      if (std::count(of_output.begin(), of_output.end(), true) == 0)
        return fmt::format("output {}: nothing is stored", i);
      for (int64_t at = 0; at < wanted[i].elems(); ++at)
        if (!of_output[static_cast<size_t>(at)]) got[i].set_f64(at, wanted[i].get_f64(at));
    }
    tolerance.relative_to_max = tolerance.absolute = tolerance.relative;
    const auto comparison = tensor::compare(got[i], wanted[i], tolerance);
    if (!comparison.equal) return fmt::format("output {}: {}", i, comparison.describe());
  }
  return {};
}

}  // namespace heddle
