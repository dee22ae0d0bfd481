#include "lower/pipeline.h"

#include "kernel/text.h"
#include "kernel/verify.h"
#include "pass/runner.h"

namespace heddle::pass {

template <>
struct UnitTraits<kernel::Kernel> {
  static constexpr std::string_view kSuffix = ".kernel";
  static Status verify(const kernel::Kernel& kernel) { return kernel::verify(kernel); }
  static std::unique_ptr<kernel::Kernel> copy(const kernel::Kernel& kernel) {
    return std::make_unique<kernel::Kernel>(kernel);
  }
  static std::string text(const kernel::Kernel& kernel) { return kernel::to_string(kernel); }
  static std::string short_text(const kernel::Kernel& kernel) { return text(kernel); }
};

}  // namespace heddle::pass

namespace heddle::lower {

// fetch_ahead before store_behind: its prefetches move with the rows. share_scratch after it: a row
// that is stored later lives longer. line_starts last: it splits loops that the others expect
// whole.
// On a GPU the same nests become blocks: threads first, so that scratch of a single thread can be
// found, then the rest of scratch is laid out; barriers last, for the scratch that is then shared.
std::string_view pipeline_for(target::DeviceKind kind) {
  return kind == target::DeviceKind::gpu
             ? "fetch_ahead,store_behind,line_starts,cut_into_threads,hold_in_registers,"
               "share_scratch,make_blocks,add_barriers"
             : "fetch_ahead,store_behind,share_scratch,line_starts";
}

Result<pass::RunReport> run(kernel::Kernel& kernel, std::string_view pipeline,
                            const Context& context, const pass::RunOptions& options) {
  static const KernelPassTable kTable(kernel_passes());
  HEDDLE_ASSIGN_OR_RETURN(const pass::Pipeline parsed, pass::parse_pipeline(pipeline));
  return pass::run_passes(kernel, parsed, kTable, options, context);
}

}  // namespace heddle::lower
