// The runner: runs a pipeline on a module, and for every pass it verifies, dumps, times and counts,
// stops or skips as the options say, and keeps a reproducer of a failure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "pass/pass.h"
#include "pass/pipeline.h"

namespace heddle::pass {

#ifdef NDEBUG
inline constexpr bool kDebug = false;
#else
inline constexpr bool kDebug = true;
#endif

struct RunOptions {
  bool verify = kDebug;        // the module, first and after each pass that changed it
  bool check_changed = false;  // checks returned flags by a hash of the printed module
  // Files "<dump_name>_000_input.hlo", then "<dump_name>_<number>_<pass>.hlo" after each pass that
  // changed something: the file before it is the module before the pass. Empty: no files.
  std::string dump_directory;
  std::string dump_name = "pass";
  // If set, it receives the error of the first file that cannot be written, and the passes continue
  // without dumps; otherwise that is an error of the run.
  Status* dump_failure = nullptr;
  std::vector<std::string> disabled;  // passes ("cse") and rewrites ("algebraic.add_zero")
  std::string stop_after;             // stops after the first run of this pass
  // For bisection. After this many runs that changed something only required passes run; after this
  // many rewrites no more are allowed. -1: no limit.
  int64_t bisect_limit = -1;
  int64_t rewrite_limit = -1;
  // A failure leaves a reproducer; this costs a copy of the module at the start.
  bool reproduce = true;
  // Its directory; empty: dump_directory; if that is also empty: the system's temporary directory.
  std::string reproducer_directory;
};

struct RunReport {
  struct PassRecord {
    std::string pass;
    int64_t runs = 0, changes = 0, time_ns = 0;
  };
  bool changed = false;
  bool stopped = false;                     // by stop_after
  bool converged = true;                    // no group reached its limit of rounds
  std::vector<PassRecord> passes;           // in the order of first runs
  std::vector<std::string> changes;         // the pass of change 1, 2, …: what bisect_limit counts
  std::map<std::string, int64_t> rewrites;  // by "pass.rule"
  std::vector<std::string> notes;
};

// Runs `pipeline`. `context` is passed to the passes; its rewrites and notes are set by the runner.
// Errors: an unknown name in the pipeline or the options (user); an error of a pass (user); a pass
// that breaks the module or returns a wrong change flag (machine, "internal error"). The last two
// name the pass and the reproducer: the module before the pass, and the pipeline that fails on it.
Result<RunReport> run(hlo::Module& module, const Pipeline& pipeline, const PassTable& table,
                      const RunOptions& options = {}, const PassContext& context = {});
// The same for a pipeline as text.
Result<RunReport> run(hlo::Module& module, std::string_view pipeline, const PassTable& table,
                      const RunOptions& options = {}, const PassContext& context = {});

// The pipeline in the text of a reproducer (HLO text with comments); empty: not a reproducer.
std::string reproducer_pipeline(std::string_view text);

}  // namespace heddle::pass
