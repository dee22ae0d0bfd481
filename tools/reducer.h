// The search of `heddle reduce`: delta debugging over a module, with a predicate that says whether
// a smaller one still fails in the same way.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_set>

#include "base/error.h"
#include "hlo/module.h"
#include "reduce_edits.h"

namespace heddle::tools {

struct ReducerHooks {
  // Does this module, which verifies, fail in the same way? Error: ends the search.
  std::function<Result<bool>(const std::string& text)> fails;
  // A smaller module was found.
  std::function<Status(const std::string& text, const ModuleSize& size, const std::string& what)>
      accepted;
  std::function<bool()> out_of_time;
};

class Reducer {
 public:
  // `module` fails.
  Reducer(std::unique_ptr<hlo::Module> module, ReducerHooks hooks);

  // Until no edit is accepted, or the time is over. Every module that is accepted is smaller
  // (ModuleSize) than the one before, so it ends.
  Status run();
  const hlo::Module& module() const { return *module_; }
  int64_t trials() const { return trials_; }

 private:
  using Edit = std::function<bool(hlo::Module&)>;
  // Whether the edited module is smaller and fails; then it is the module.
  Result<bool> attempt(const std::string& what, const Edit& edit);
  Status round();
  Status drop_chunks(int64_t computation);
  Status free_all_constants();
  Status run_passes();
  Status edit_instrs(int64_t computation);
  Status shrink_extents();
  std::vector<int64_t> computations() const;
  const hlo::Computation* find(int64_t computation) const;
  bool done() const { return hooks_.out_of_time(); }

  std::unique_ptr<hlo::Module> module_;
  ReducerHooks hooks_;
  std::unordered_set<std::string> tried_;
  int64_t trials_ = 0;
  bool progress_ = false;
};

}  // namespace heddle::tools
