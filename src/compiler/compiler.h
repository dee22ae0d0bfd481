// compiler: a module becomes a program. Options, levels, kernel selection.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "compiler/gpu_code.h"
#include "compiler/unfused_edges.h"
#include "hlo/module.h"
#include "pass/run.h"
#include "plan/plan.h"
#include "program/program.h"
#include "target/target.h"

namespace heddle::compiler {

enum class Level { O0, O1, O2 };
enum class Fuse { off, greedy, xla, stitch };
enum class Numerics { strict, standard, relaxed };

struct Options {
  Level level = Level::O2;
  Fuse fuse = Fuse::stitch;
  Numerics numerics = Numerics::standard;
  bool static_memory = true;
  int64_t memory_limit_bytes = -1;
  int64_t most_streams = 1;          // that memory is planned for, as in plan::Options
  bool own_memory = false;           // the device has: as in plan::Options
  std::optional<plan::Order> order;  // none: by level, and another where the limit asks for it
  std::string precision = "f32";
  std::string library = "none";  // vendor libraries: none, auto (where records say so), or a name
  std::string dump_directory;    // every stage as text; empty: none
  std::string stop_after;        // name of a point; empty: none
  std::vector<std::string> disabled_passes;
  int64_t bisect_limit = -1;           // run only the first n changes of passes; -1: all
  int compile_threads = 1;             // objects compiled side by side
  std::string object_cache_directory;  // empty: off
  bool keep_once = true;               // prepared weights may lie in the cache, too
  GpuAssembler gpu_assembler;          // of a GPU's target; empty: NVRTC
  bool code = true;        // false: all but the machine code, which no run can do without
  bool any_chain = false;  // joins products that may pay as a chain (tuning)
  // Called before every step, by its name, and between the objects of code generation; on the
  // compiling thread. False: the compilation ends with an error of the cancelled kind.
  std::function<bool(const char* step)> progress;
  // The module with other rows, at least twice: kernels that are alike in all of them are told
  // theirs, so that their code is that of any other rows, too (tuning).
  std::vector<std::shared_ptr<const hlo::Module>> twins;
};

// What was decided on the way, for explain and inspect.
struct Report {
  struct Refusal {
    std::string producer, consumer, code, reason;
  };
  struct LibraryUse {  // a product that a vendor library does
    std::string name, library, implementation, operation, why;
  };
  std::vector<Refusal> refusals;
  std::vector<LibraryUse> library_calls;
  std::vector<std::string> notes;
  std::vector<std::pair<std::string, double>> times_ms;      // by step
  std::string fused_module;                                  // HLO text after fusion
  std::vector<std::pair<std::string, std::string>> places;   // by kernel: a line a value
  std::vector<std::pair<std::string, double>> predicted_ns;  // by kernel: of one launch
  std::vector<UnfusedEdge> edges;                            // that stay between commands
};

// The module is consumed. Errors are the user's (what cannot be compiled, by name) or the
// machine's.
Result<program::Program> compile(std::unique_ptr<hlo::Module> module, const plan::Names& names,
                                 const target::Target& target, const Options& options,
                                 Report* report = nullptr);

// How the passes run under these options: what is left out (under strict numerics also those that
// change rounding), where they stop, what is dumped.
pass::RunOptions pass_options(const Options& options);

// The first steps of the same: every fusion of the result becomes one kernel.
Result<std::unique_ptr<hlo::Module>> fuse_only(std::unique_ptr<hlo::Module> module,
                                               const target::Target& target,
                                               const Options& options);

}  // namespace heddle::compiler
