// The options of a compilation, and its report.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/gpu_code.h"
#include "compiler/option_words.h"
#include "compiler/unfused_edges.h"
#include "hlo/module.h"
#include "plan/options.h"
#include "precision/mixed_plan.h"

namespace heddle::compiler {

enum class Level { O0, O1, O2 };
enum class Fuse { off, greedy, xla, stitch };
enum class Numerics { strict, standard, relaxed };
// Mixed precision (precision/mixed_plan.h); `propagate`: by a rule instead of by cost.
enum class Amp { off, automatic, bf16, f16, propagate };

enum class Memory { planned, pooled };

// Members that change the program, and members that must not: the latter are in no key of the cache
// of programs.
struct Options {
#define HEDDLE_CHOICE(part, Type, field, plain, words, help) \
  HEDDLE_MEMBER_##part(Type, field, option_choice<Type>(plain, words))
#define HEDDLE_TEXT(part, Type, field, plain, value, help) HEDDLE_MEMBER_##part(Type, field, plain)
#define HEDDLE_NUMBER(part, Type, field, C, plain, ...) HEDDLE_MEMBER_##part(Type, field, plain)
#define HEDDLE_INNER(part, Type, field, plain) Type field = plain;
#define HEDDLE_MEMBER_said(Type, field, plain) Type field = plain;
#define HEDDLE_MEMBER_told(Type, field, plain) Type field = plain;
#define HEDDLE_MEMBER_keyed(Type, field, plain) Type field = plain;
#define HEDDLE_MEMBER_target(Type, field, plain)
#define HEDDLE_MEMBER_where(Type, field, plain)
#define HEDDLE_MEMBER_none(Type, field, plain)
#include "compiler/options.def"
#undef HEDDLE_MEMBER_said
#undef HEDDLE_MEMBER_told
#undef HEDDLE_MEMBER_keyed
#undef HEDDLE_MEMBER_target
#undef HEDDLE_MEMBER_where
#undef HEDDLE_MEMBER_none

  int compile_threads = 1;                                     // objects compiled side by side
  std::string object_cache_directory;                          // empty: off
  std::shared_ptr<const precision::ValueRanges> value_ranges;  // `ranges` is their hash; or null
  bool keep_once = true;       // prepared weights may be cached, too
  GpuAssembler gpu_assembler;  // of a GPU's target; empty: NVRTC
  // Called before every step, by its name, and between the objects of code generation; on the
  // compiling thread. False: the compilation ends with an error of the cancelled kind.
  std::function<bool(const char* step)> progress;
  // At least two copies of the module with other row counts: kernels of the same structure in all
  // of them take their rows as run-time dimensions, so that their code serves any row count
  // (tuning). Not kept in the cache.
  std::vector<std::shared_ptr<const hlo::Module>> twins;
};

// Times of a whole run in f32 and in mixed precision (mixed_guard.h).
struct MixedTimes {
  double f32_ns = 0, mixed_ns = 0;  // predicted
  bool pays = false;                // the plan of mixed precision is kept
  bool measured = false;            // `pays` is from tuning, which measured both
  std::string key;                  // of tuning's record
};

// The result of mixed precision for a module.
struct MixedReport {
  std::string type;  // the small type
  std::vector<precision::MixedChoice> choices;
  int values = 0, products = 0;        // in the small type
  int casts_made = 0, casts_kept = 0;  // conversions inserted; left after simplification
  int cast_kernels = 0;                // kernels that only convert
  double f32_ns = 0, mixed_ns = 0;     // predicted by the plan
  std::optional<MixedTimes> run;       // if whole programs were compared
};

// The decisions of a compilation, for explain and inspect.
struct Report {
  struct Refusal {
    std::string producer, consumer, code, reason;
  };
  struct LibraryUse {  // a product that a vendor library computes
    std::string name, library, implementation, operation, why;
  };
  std::vector<Refusal> refusals;
  std::vector<LibraryUse> library_calls;
  std::vector<std::string> notes;
  std::vector<std::pair<std::string, double>> times_ms;  // by step
  std::string fused_module;                              // HLO text after fusion
  struct KernelFacts {
    std::string name;
    std::string places;       // one line per value
    std::string strategies;   // one line per strategy tried
    double predicted_ns = 0;  // of one launch
  };
  std::vector<KernelFacts> kernels;
  std::vector<UnfusedEdge> edges;  // that remain between commands
  std::optional<MixedReport> mixed;
  struct PassUse {
    std::string pass;
    int64_t runs = 0, changes = 0, time_ns = 0;
  };
  std::vector<PassUse> passes;              // over the module, in the order of their first runs
  std::map<std::string, int64_t> rewrites;  // their number, by "pass.rule"
};

}  // namespace heddle::compiler
