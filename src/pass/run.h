// The runner: runs a pipeline over a module, and does for every pass what no pass does itself:
// verifies, dumps, times, counts, stops, leaves out, and keeps what reproduces a failure.
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
  bool verify = kDebug;        // the module, at first and after each pass that changed it
  bool check_changed = false;  // what a pass returns, against a hash of the printed module
  // Files "<dump_name>_000_input.hlo", then "<dump_name>_<number>_<pass>.hlo" after each pass that
  // changed something: the file before it is the module before the pass. Empty: none.
  std::string dump_directory;
  std::string dump_name = "pass";
  // Where set, the first file that cannot be written is told here, and the passes go on without
  // dumps; else it is an error of the run.
  Status* dump_failure = nullptr;
  std::vector<std::string> disabled;  // passes ("cse") and rewrites ("algebraic.add_zero")
  std::string stop_after;             // ends behind the first run of this pass
  // For bisection. Behind this many runs that changed something only required passes run; behind
  // this many rewrites no more are allowed. -1: no limit.
  int64_t bisect_limit = -1;
  int64_t rewrite_limit = -1;
  // A failure leaves a reproducer, which costs a copy of the module at the start.
  bool reproduce = true;
  // Where it leaves it; empty: dump_directory; also empty: the system's directory for temporary
  // files.
  std::string reproducer_directory;
};

struct RunReport {
  struct PassRecord {
    std::string pass;
    int64_t runs = 0, changes = 0, time_ns = 0;
  };
  bool changed = false;
  bool stopped = false;                     // by stop_after
  bool converged = true;                    // no group used up its rounds
  std::vector<PassRecord> passes;           // by first run
  std::vector<std::string> changes;         // the pass of change 1, 2, …: what bisect_limit counts
  std::map<std::string, int64_t> rewrites;  // by "pass.rule"
  std::vector<std::string> notes;
};

// Runs `pipeline`. `context` is handed to the passes; its rewrites and notes are the runner's.
// Errors: an unknown name in the pipeline or the options (user); what a pass refuses (user); a pass
// that breaks the module or lies about changes (machine, "internal error"). The last two name the
// pass and the reproducer: the module before the pass, and the pipeline that fails on it.
Result<RunReport> run(hlo::Module& module, const Pipeline& pipeline, const PassTable& table,
                      const RunOptions& options = {}, const PassContext& context = {});
// The same from text.
Result<RunReport> run(hlo::Module& module, std::string_view pipeline, const PassTable& table,
                      const RunOptions& options = {}, const PassContext& context = {});

// The pipeline text in a reproducer (which is HLO text with comments); empty: it is none.
std::string reproducer_pipeline(std::string_view text);

}  // namespace heddle::pass
