#include "opt_kernel.h"

#include <fmt/ranges.h>

#include <set>

#include "kernel/text.h"
#include "kernel/verify.h"
#include "lower/pipeline.h"
#include "lower/trim.h"
#include "target/target.h"

namespace heddle::tools {
namespace {

void collect_lanes(const std::vector<kernel::Stmt>& block, std::set<int>* lanes) {
  for (const kernel::Stmt& stmt : block) {
    if (stmt.kind == kernel::StmtKind::loop && stmt.loop == kernel::LoopKind::vector)
      lanes->insert(stmt.lanes);
    collect_lanes(stmt.body, lanes);
    collect_lanes(stmt.otherwise, lanes);
  }
}

// Threads that do a task together: those of the kernel's vector loops, which are all alike.
Result<int> lanes_of(const kernel::Kernel& kernel, int wanted, int otherwise) {
  std::set<int> lanes;
  for (const kernel::Phase& phase : kernel.phases)
    for (const kernel::Group& group : phase.groups) collect_lanes(group.body, &lanes);
  if (wanted > 0) lanes.insert(wanted);
  if (lanes.size() > 1)
    return user_error(
        "threads that share a task: {}; the vector loops of a GPU's kernel and --lanes must have "
        "one number",
        fmt::join(lanes, " and "));
  return lanes.empty() ? otherwise : *lanes.begin();
}

}  // namespace

bool is_kernel_text(std::string_view text) { return text.starts_with("heddle.kernel"); }

Result<std::string> run_kernel_passes(const std::string& file, std::string_view text,
                                      std::string_view passes, const std::string& target_name,
                                      int lanes, std::string_view trim,
                                      const pass::RunOptions& options, pass::RunReport* report) {
  Result<kernel::Kernel> kernel = kernel::parse_kernel(text);
  if (!kernel) return error_in(file, kernel.error());
  if (Status verified = kernel::verify(*kernel); !verified) return error_in(file, verified.error());
  const std::string name = target_name.empty() ? kernel->target : target_name;
  Result<target::Target> target = target::find_target(name);
  if (!target) return error_in("--target", target.error());
  lower::Context context;
  context.target = &*target;
  if (target->kind == target::DeviceKind::gpu) {
    Result<int> known = lanes_of(*kernel, lanes, target->warp_size);
    if (!known) return error_in(file, known.error());
    context.lanes = *known;
  }
  lower::Trim wanted;
  if (!trim.empty()) {
    Result<lower::TrimRequest> request = lower::parse_trim_request(*kernel, trim);
    if (!request) return error_in("--trim", request.error());
    wanted.request = std::move(*request);
    context.trim = &wanted;
  }
  if (passes == "default") passes = lower::pipeline_for(target->kind);
  Result<pass::RunReport> done = lower::run(*kernel, passes, context, options);
  if (!done) return error_in(file, done.error());
  *report = std::move(*done);
  if (context.trim && !wanted.done)
    report->notes.push_back(fmt::format("trim: {}: {}", wanted.done.code(), wanted.done.reason()));
  return kernel::to_string(*kernel);
}

std::string list_kernel_passes() {
  std::string text;
  for (const lower::KernelPass& pass : lower::kernel_passes())
    text +=
        fmt::format("{:<24} {}{}\n", pass.name, pass.summary, pass.required ? " (required)" : "");
  return text;
}

}  // namespace heddle::tools
