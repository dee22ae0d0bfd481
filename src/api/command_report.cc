#include "api/command_report.h"

#include "api/program_facts.h"

namespace heddle::api {

CommandReport report_command(const program::Program& program, const program::Command& command,
                             const runtime::CommandProfile& profile) {
  CommandReport report;
  report.name = profile.info->name.c_str();
  report.operators = profile.info->operators.c_str();
  report.count = profile.time.count;
  report.total_ns = profile.time.total_ns;
  report.min_ns = profile.time.min_ns;
  const CommandWork work = work_of(program, command);
  report.flops = work.flops;
  report.bytes = work.bytes;
  constexpr const char* kKinds[] = {"kernel", "copy",   "host",        "update",
                                    "loop",   "branch", "concatenate", "library"};
  report.kind = report.label = kKinds[command.index()];
  if (const auto* launch = std::get_if<program::Launch>(&command)) {
    const program::Kernel& kernel = program.kernels[launch->kernel.index()];
    report.kernel = kernel.name.c_str();
    report.label = kernel.label.c_str();
  }
  return report;
}

}  // namespace heddle::api
