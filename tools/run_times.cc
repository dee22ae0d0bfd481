#include "run_times.h"

#include <chrono>

namespace heddle::tools {

Result<RunTimes> time_runs(heddle_context* context, int64_t runs) {
  RunTimes times;
  heddle_context_reset_profile(context);
  heddle_context_set_profile(context, 1);
  times.commands.resize(static_cast<size_t>(heddle_context_command_count(context)));
  for (int64_t i = 0; i < runs; ++i) {
    heddle_context_reset_profile(context);
    const auto begin = std::chrono::steady_clock::now();
    HEDDLE_RETURN_IF_ERROR(to_status(heddle_context_run(context)));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    times.runs.push_back(took.count());
    for (size_t c = 0; c < times.commands.size(); ++c) {
      auto one = sized<heddle_command_profile>();
      heddle_context_get_profile(context, static_cast<int64_t>(c), &one);
      times.commands[c].push_back(static_cast<double>(one.total_ns) / 1e6);
    }
  }
  heddle_context_set_profile(context, 0);
  return times;
}

}  // namespace heddle::tools
