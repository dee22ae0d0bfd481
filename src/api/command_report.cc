#include "api/command_report.h"

#include "program/views.h"

namespace heddle::api {

CommandReport report_command(const program::Program& program, const program::Command& command,
                             const runtime::CommandProfile& profile) {
  CommandReport report;
  report.name = profile.info->name.c_str();
  report.operators = profile.info->operators.c_str();
  report.count = profile.time.count;
  report.total_ns = profile.time.total_ns;
  report.min_ns = profile.time.min_ns;
  if (const auto* launch = std::get_if<program::Launch>(&command)) {
    const program::Kernel& kernel = program.kernels[launch->kernel.index()];
    report.kind = "kernel";
    report.kernel = kernel.name.c_str();
    report.label = kernel.label.c_str();
    report.flops = kernel.flops;
    report.bytes = kernel.min_bytes;
    return report;
  }
  constexpr const char* kKinds[] = {"kernel", "copy",   "host",        "update",
                                    "loop",   "branch", "concatenate", "library"};
  report.kind = report.label = kKinds[command.index()];
  if (const auto* call = std::get_if<program::LibraryCall>(&command)) report.flops = call->flops;
  if (!program::regions_of(command).empty()) return report;
  program::for_each_view(command, [&](const program::View& view, program::Use) {
    report.bytes += program::stored_bytes(view.shape);
  });
  return report;
}

}  // namespace heddle::api
