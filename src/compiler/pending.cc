#include "compiler/pending.h"

#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "compiler/shared_extents.h"
#include "compiler/shifted_reads.h"
#include "kernel/gathered.h"
#include "kernel/text.h"
#include "kernel/verify.h"

namespace heddle::compiler {

namespace {

// Kernels that differ in where they read, or in extents, to be one with dims.
constexpr int kFewestAlike = 3;

}  // namespace

void check(const Pending& pending) {
  if (Status verified = kernel::verify(pending.stitched.kernel); !verified)
    HEDDLE_UNREACHABLE("kernel of {}: {}\n{}", pending.fusion->name(), verified.error().message,
                       kernel::to_string(pending.stitched.kernel));
}

plan::KernelUse use_of(const Pending& pending, const std::string& name, const std::string& code,
                       const std::string& text, bool gpu) {
  const stitch::Stitched& stitched = pending.stitched;
  plan::KernelUse use;
  use.kernel.name = name;
  use.kernel.scratch_bytes = gpu ? 0 : stitched.kernel.scratch_bytes;  // a block has its own
  use.kernel.flops = stitched.flops;
  use.kernel.min_bytes = stitched.min_bytes;
  use.kernel.gathered = kernel::gathered_inputs(stitched.kernel);
  use.kernel.schedule = pending.schedule;
  use.kernel.text = text;
  for (size_t p = 0; p < stitched.kernel.phases.size(); ++p) {
    program::Phase phase;
    phase.symbol = fmt::format("{}_p{}", code, p);
    phase.tasks = kernel::task_count(stitched.kernel, stitched.kernel.phases[p], pending.dims);
    const bool several = p < stitched.phase_flops.size();
    const int64_t flops = several ? stitched.phase_flops[p] : stitched.flops;
    const int64_t bytes = several ? stitched.phase_bytes[p] : stitched.min_bytes;
    phase.serial = phase.tasks == 1 || (flops < kSerialFlops && bytes < kSerialBytes);
    use.kernel.phases.push_back(phase);
  }
  use.workspace_bytes = stitched.workspace_bytes;
  use.in_part = stitched.in_part;
  use.dims = pending.dims;
  return use;
}

void share_alike(std::vector<Pending>* all) {
  struct Form {
    ShiftedReads reads;
    std::string text;
  };
  std::unordered_map<std::string, Form> forms;   // by a kernel's own text
  std::unordered_map<std::string, int> kernels;  // by the text of a form
  for (const Pending& one : *all) {
    if (forms.count(one.text)) continue;
    Form form{shift_reads(one.stitched.kernel), {}};
    if (!form.reads.dims.empty()) ++kernels[form.text = kernel::to_string(form.reads.kernel)];
    forms.emplace(one.text, std::move(form));
  }
  std::unordered_set<std::string_view> checked;
  for (Pending& one : *all) {
    const Form& form = forms.at(one.text);
    if (form.reads.dims.empty() || kernels.at(form.text) < kFewestAlike) continue;
    one.stitched.kernel = form.reads.kernel;
    one.dims = form.reads.dims;
    if (checked.insert(one.text).second) check(one);
  }
}

void share_extents_of(std::vector<Pending>* all) {
  struct Form {
    kernel::Kernel kernel;
    std::vector<std::string> texts;  // of the kernels alike
    std::vector<std::vector<int64_t>> values;
  };
  std::map<std::string, Form> forms;  // by the opened text
  std::unordered_set<std::string> seen;
  for (const Pending& one : *all) {
    if (!one.waits_for_memory || !one.dims.empty() || !seen.insert(one.text).second) continue;
    OpenExtents open = open_extents(one.stitched.kernel);
    Form& form = forms[kernel::to_string(open.kernel)];
    if (form.texts.empty()) form.kernel = std::move(open.kernel);
    form.texts.push_back(one.text);
    form.values.push_back(std::move(open.dims));
  }
  std::unordered_map<std::string, std::pair<std::shared_ptr<SharedExtents>, size_t>> shared;
  for (const auto& [text, form] : forms) {
    if (form.texts.size() < kFewestAlike) continue;
    auto one = share_extents(form.kernel, form.values);
    if (!one) continue;
    const auto held = std::make_shared<SharedExtents>(std::move(*one));
    for (size_t i = 0; i < form.texts.size(); ++i)
      shared.emplace(form.texts[i], std::pair(held, i));
  }
  for (Pending& one : *all) {
    const auto found = shared.find(one.text);
    if (found == shared.end() || !one.waits_for_memory || !one.dims.empty()) continue;
    const auto& [kernel, place] = found->second;
    one.stitched.kernel = kernel->kernel;
    one.dims = kernel->dims[place];
    one.shares_extents = true;
  }
}

}  // namespace heddle::compiler
