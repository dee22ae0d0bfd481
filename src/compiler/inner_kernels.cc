#include "compiler/inner_kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernel/text.h"

namespace heddle::compiler {

using hlo::Instr;

void InnerKernels::add(const kernel::Kernel& kernel, const Instr* fusion) {
  if (!seen_.emplace(kernel::to_string(kernel), Use{}).second) return;
  lower::OpenExtents open = lower::opened(kernel, open_pass(run_, nullptr));
  Form& form = forms_[kernel::to_string(open.kernel)];
  if (form.kernels.empty()) form.open = std::move(open.kernel);
  form.kernels.push_back(kernel);
  form.fusions.push_back(fusion);
  form.values.push_back(std::move(open.dims));
}

void InnerKernels::finish() {
  for (const auto& [text, form] : forms_) {
    std::optional<lower::SharedExtents> shared;
    if (form.kernels.size() > 1) shared = lower::share_extents(form.open, form.values);
    int common = -1;
    for (size_t i = 0; i < form.kernels.size(); ++i) {
      Use& use = seen_.at(kernel::to_string(form.kernels[i]));
      use.inner = static_cast<int>(to_.inner.size());
      kernel::Kernel open = form.kernels[i];
      if (!shared || !open_pass(run_, form.fusions[i])(&open, {})) {
        push(form.kernels[i]);
        continue;
      }
      use.dims = shared->dims[i];
      if (common < 0) {
        common = use.inner;
        push(shared->kernel);
      }
      use.inner = common;
    }
  }
}

const InnerKernels::Use& InnerKernels::of(const kernel::Kernel& kernel) const {
  return seen_.at(kernel::to_string(kernel));
}

void InnerKernels::push(kernel::Kernel kernel) {
  kernel.name = fmt::format("i{}", to_.inner.size());
  kernel.target.clear();
  to_.scratch_bytes = std::max(to_.scratch_bytes, kernel.scratch_bytes);
  to_.inner.push_back(std::move(kernel));
}

}  // namespace heddle::compiler
