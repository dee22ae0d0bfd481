#include "compiler/pending.h"

#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "compiler/options.h"
#include "cost/rates.h"
#include "kernel/gathered.h"
#include "kernel/text.h"
#include "kernel/verify.h"
#include "lower/pipeline.h"

namespace heddle::compiler {

namespace {

constexpr std::string_view kShiftReads = "shift_reads";

// The fewest kernels, different only in read offsets or in extents, that are merged into one with
// dims.
size_t fewest_alike(Level level) { return level == Level::O0 ? 2 : 3; }

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
  use.kernel.scratch_bytes = gpu ? 0 : stitched.kernel.scratch_bytes;  // GPU blocks have their own
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
    phase.serial = cost::runs_serially(static_cast<double>(flops), static_cast<double>(bytes),
                                       static_cast<double>(phase.tasks));
    use.kernel.phases.push_back(phase);
  }
  use.workspace_bytes = stitched.workspace_bytes;
  use.in_part = stitched.in_part;
  use.dims = pending.dims;
  return use;
}

RunPass run_pass_of(const Options& options, const target::Target& target,
                    std::vector<std::string>* changes, Status* dump_failure) {
  return
      [&options, &target, changes, dump_failure](kernel::Kernel* kernel, std::string_view pass,
                                                 lower::Context context, const hlo::Instr* fusion) {
        context.target = &target;
        pass::RunOptions run =
            kernel_pass_options(options, fusion ? fmt::format("{}_{}", fusion->name(), pass) : "",
                                changes->size(), dump_failure);
        if (!fusion) {
          run.dump_directory.clear();
          run.bisect_limit = -1;
        }
        const Result<pass::RunReport> done = lower::run(*kernel, pass, context, run);
        HEDDLE_CHECK(done.has_value(), "{}: {}", kernel->name, done.error().message);
        if (fusion) changes->insert(changes->end(), done->changes.begin(), done->changes.end());
        return done->changed;
      };
}

lower::OpenPass open_pass(const RunPass& run, const hlo::Instr* fusion) {
  return [&run, fusion](kernel::Kernel* kernel, const lower::Context& context) {
    return run(kernel, "open_extents", context, fusion);
  };
}

void share_alike(std::vector<Pending>* all, const RunPass& run, Level level) {
  struct Form {
    kernel::Kernel kernel;
    std::vector<int64_t> dims;
    std::string text;
  };
  std::unordered_map<std::string, Form> forms;      // by a kernel's own text
  std::unordered_map<std::string, size_t> kernels;  // by the text of a form
  for (const Pending& one : *all) {
    if (forms.count(one.text)) continue;
    Form form{one.stitched.kernel, {}, {}};
    lower::Context context;
    context.dims = &form.dims;
    if (run(&form.kernel, kShiftReads, context, nullptr))
      ++kernels[form.text = kernel::to_string(form.kernel)];
    forms.emplace(one.text, std::move(form));
  }
  std::unordered_map<std::string_view, bool> kept;
  for (Pending& one : *all) {
    const Form& form = forms.at(one.text);
    if (form.dims.empty() || kernels.at(form.text) < fewest_alike(level)) continue;
    const auto [known, added] = kept.emplace(one.text, false);
    if (added) known->second = run(&one.stitched.kernel, kShiftReads, {}, one.fusion);
    if (!known->second) continue;
    one.stitched.kernel = form.kernel;
    one.dims = form.dims;
    if (added) check(one);
  }
}

void share_extents_of(std::vector<Pending>* all, const RunPass& run, Level level) {
  struct Form {
    kernel::Kernel kernel;
    std::vector<const Pending*> of;  // the kernels of this form
    std::vector<std::vector<int64_t>> values;
  };
  std::map<std::string, Form> forms;  // by the opened text
  std::unordered_set<std::string> seen;
  for (const Pending& one : *all) {
    if (!one.waits_for_memory || !one.dims.empty() || !seen.insert(one.text).second) continue;
    lower::OpenExtents open = lower::opened(one.stitched.kernel, open_pass(run, nullptr));
    if (open.dims.empty()) continue;
    Form& form = forms[kernel::to_string(open.kernel)];
    if (form.of.empty()) form.kernel = std::move(open.kernel);
    form.of.push_back(&one);
    form.values.push_back(std::move(open.dims));
  }
  std::unordered_map<std::string, std::pair<std::shared_ptr<lower::SharedExtents>, size_t>> shared;
  for (const auto& [text, form] : forms) {
    if (form.of.size() < fewest_alike(level)) continue;
    auto one = lower::share_extents(form.kernel, form.values);
    if (!one) continue;
    const auto held = std::make_shared<lower::SharedExtents>(std::move(*one));
    for (size_t i = 0; i < form.of.size(); ++i) {
      kernel::Kernel open = form.of[i]->stitched.kernel;
      if (open_pass(run, form.of[i]->fusion)(&open, {}))
        shared.emplace(form.of[i]->text, std::pair(held, i));
    }
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
