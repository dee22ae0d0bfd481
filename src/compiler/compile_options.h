// What a compilation is asked for, and what it tells of itself.
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

// What changes a program, and what may not: a member of the second kind is in no key of the cache
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
  bool keep_once = true;       // prepared weights may lie in the cache, too
  GpuAssembler gpu_assembler;  // of a GPU's target; empty: NVRTC
  // Called before every step, by its name, and between the objects of code generation; on the
  // compiling thread. False: the compilation ends with an error of the cancelled kind.
  std::function<bool(const char* step)> progress;
  // The module with other rows, at least twice: kernels that are alike in all of them are told
  // theirs, so that their code is that of any other rows, too (tuning). Not kept in the cache.
  std::vector<std::shared_ptr<const hlo::Module>> twins;
};

// A whole run in f32, and with what mixed precision chose (mixed_guard.h).
struct MixedTimes {
  double f32_ns = 0, mixed_ns = 0;  // predicted
  bool pays = false;                // what was chosen stays
  bool measured = false;            // tuning says so, which measured both
  std::string key;                  // of its record
};

// What mixed precision made of a module.
struct MixedReport {
  std::string type;  // of what is low
  std::vector<precision::MixedChoice> choices;
  int values = 0, products = 0;        // that are low
  int casts_made = 0, casts_kept = 0;  // conversions that were written; behind simplification
  int cast_kernels = 0;                // kernels that do nothing else
  double f32_ns = 0, mixed_ns = 0;     // predicted, of what was decided on
  std::optional<MixedTimes> run;       // where the plan was held against f32
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
  std::vector<std::pair<std::string, double>> times_ms;  // by step
  std::string fused_module;                              // HLO text after fusion
  struct KernelFacts {
    std::string name;
    std::string places;       // a line a value
    std::string strategies;   // a line for each that was asked
    double predicted_ns = 0;  // of one launch
  };
  std::vector<KernelFacts> kernels;
  std::vector<UnfusedEdge> edges;  // that stay between commands
  std::optional<MixedReport> mixed;
  struct PassUse {
    std::string pass;
    int64_t runs = 0, changes = 0, time_ns = 0;
  };
  std::vector<PassUse> passes;              // over the module, in the order of their first runs
  std::map<std::string, int64_t> rewrites;  // of them, by "pass.rule"
};

}  // namespace heddle::compiler
