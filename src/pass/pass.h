// A pass: one free function that changes a module (or a kernel: lower/), one row of a table. Read
// this header first; pipeline.h is the text form of a list of passes, run.h runs one.
//
// What every pass promises:
//  - it returns correctly whether it changed anything;
//  - the module is valid (its verifier) before it and after it;
//  - it terminates: each rewrite lowers a measure named in its comment, or its work is bounded;
//  - it treats equal modules equally: no time, no addresses, no random numbers.
// An error is the user's fault (it names what cannot be compiled): a pass that merely cannot
// improve something leaves it unchanged.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/check.h"
#include "base/error.h"

namespace heddle::hlo {
class Module;
}

namespace heddle::pass {

// Counts rewrites by name and prevents some: disabled ones, and all beyond a limit, so that a wrong
// rewrite can be found by bisection. A rewrite's name is "pass.rule". Not thread-safe.
class Rewrites {
 public:
  // Called before each rewrite. True: it has been counted, and the caller applies it.
  bool allow(std::string_view pass, std::string_view rule);
  // -1: no limit.
  void set_limit(int64_t limit) { limit_ = limit; }
  void disable(std::string_view name) { disabled_.emplace(name); }
  int64_t count() const { return count_; }
  const std::map<std::string, int64_t>& by_name() const { return by_name_; }

 private:
  int64_t limit_ = -1, count_ = 0;
  std::unordered_set<std::string> disabled_;
  std::map<std::string, int64_t> by_name_;
};

// Parameters of a pass besides the module. The runner owns the objects pointed to; pointers may be
// null.
struct PassContext {
  // fold_constants: bytes of one result, and scalar operations in one run of the pass.
  int64_t fold_limit_bytes = 64 * 1024;
  int64_t fold_limit_ops = 1 << 24;
  Rewrites* rewrites = nullptr;
  std::vector<std::string>* notes = nullptr;  // messages for the user, one line each

  bool allow(std::string_view pass, std::string_view rule) const {
    return !rewrites || rewrites->allow(pass, rule);
  }
  void note(std::string text) const;  // duplicates are dropped
};

// A row of a pass table. `Unit` is what the pass rewrites (an hlo::Module, a kernel), `Context` its
// other input; it derives from PassContext.
template <typename Unit, typename Context>
struct PassInfoOf {
  using Function = Result<bool> (*)(Unit& unit, const Context& context);
  std::string_view name;  // name of the function, the file, the test and the flag
  std::string_view summary;
  Function function = nullptr;
  // Needed for correctness at every level: bisection by count never skips it.
  bool required = false;
  // It changes rounding of results (docs/numerics.md): --numerics=strict skips it.
  bool rounds = false;
};

// Rows by name. Rows must outlive the table.
template <typename Unit, typename Context>
class PassTableOf {
 public:
  using Info = PassInfoOf<Unit, Context>;
  PassTableOf() = default;
  explicit PassTableOf(std::span<const Info> rows) { add(rows); }

  void add(std::span<const Info> rows) {  // CHECKs that names are unique
    for (const Info& row : rows) {
      HEDDLE_CHECK(row.function, "pass {} has no function", row.name);
      HEDDLE_CHECK(by_name_.emplace(row.name, &row).second, "two passes are called {}", row.name);
      rows_.push_back(&row);
    }
  }
  const Info* find(std::string_view name) const {
    auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }
  const std::vector<const Info*>& rows() const { return rows_; }  // in order of registration

 private:
  std::vector<const Info*> rows_;
  std::unordered_map<std::string_view, const Info*> by_name_;
};

// Passes over the graph.
using PassInfo = PassInfoOf<hlo::Module, PassContext>;
using PassTable = PassTableOf<hlo::Module, PassContext>;

}  // namespace heddle::pass
