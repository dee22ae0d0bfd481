// The passes of this folder: one function each, and one row each in passes.def. They follow the
// rules of pass/pass.h. A pass rewrites a module (form_loops), or the open cover of one of its
// computations (merge_turns), so the runner's unit holds both: Covers.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fuse/mode.h"
#include "fuse/refusal.h"
#include "fuse/search_options.h"
#include "hlo/module.h"
#include "pass/pass.h"
#include "pass/run.h"
#include "target/target.h"

namespace heddle::fuse {

struct OpenCover;  // open_cover.h

// A module and, from open_cover to make_kernels, its future kernels by computation (callees first).
// In between nothing else may change the module.
struct Covers {
  explicit Covers(hlo::Module* rewritten);
  ~Covers();
  hlo::Module* module;
  std::vector<std::unique_ptr<OpenCover>> open;
  bool is_open = false;                     // also if no computation has a kernel
  std::unique_ptr<hlo::Module> own_module;  // of a copy
};

// Further inputs of a pass. The caller owns the objects pointed to; all pointers but `target` may
// be null.
struct Context : pass::PassContext {
  const target::Target* target = nullptr;
  std::vector<Refusal>* refusals = nullptr;  // every edge that stays, and why
  bool any_chain = false;  // also merges that are predicted to lose a little (tuning measures them)
  SearchOptions search;
  SearchReport* search_report = nullptr;
};

#define HEDDLE_FUSE_PASS(name, required, rounds, summary) \
  Result<bool> name(hlo::Module& module, const Context& context);
#define HEDDLE_COVERS_PASS(name, required, rounds, summary) \
  Result<bool> name(Covers& covers, const Context& context);
#define HEDDLE_COVER_PASS(name, required, rounds, summary) \
  Result<bool> name(OpenCover& cover, const Context& context);
#include "fuse/passes.def"

// Adapters to one kind of pass; the context may be derived from Context. Errors (user): a cover is
// open where none may be, or none where one is needed.
Status check_closed(const Covers& covers);
template <auto kPass, typename AnyContext>
Result<bool> over_module(Covers& covers, const AnyContext& context) {
  HEDDLE_RETURN_IF_ERROR(check_closed(covers));
  return kPass(*covers.module, context);
}
Result<bool> over_each(Covers& covers, const Context& context,
                       Result<bool> (*pass)(OpenCover&, const Context&));
template <auto kPass, typename AnyContext>
Result<bool> over_covers(Covers& covers, const AnyContext& context) {
  return over_each(covers, context, kPass);
}

template <typename AnyContext>
std::span<const pass::PassInfoOf<Covers, AnyContext>> passes() {
  static constexpr pass::PassInfoOf<Covers, AnyContext> kRows[] = {
#define HEDDLE_FUSE_PASS(name, required, rounds, summary) \
  {#name, summary, over_module<name, AnyContext>, required, rounds},
#define HEDDLE_COVERS_PASS(name, required, rounds, summary)                                   \
  {#name, summary,                                                                            \
   [](Covers& covers, const AnyContext& context) { return name(covers, context); }, required, \
   rounds},
#define HEDDLE_COVER_PASS(name, required, rounds, summary) \
  {#name, summary, over_covers<name, AnyContext>, required, rounds},
#include "fuse/passes.def"
  };
  return kRows;
}

// For the runner (pass/runner.h). An open cover is printed as comments before the module: one line
// per kernel, its operators in order, the recomputed ones in parentheses.
Status verify(const Covers& covers);
std::string to_string(const Covers& covers, int64_t max_constant_elems = -1);
std::unique_ptr<Covers> copy(const Covers& covers);  // while none is open

}  // namespace heddle::fuse
