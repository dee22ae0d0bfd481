// A pass: one free function that changes a module (or a kernel: lower/), one row in a table. Read
// this header first; pipeline.h is the text form of a list of passes, run.h runs one.
//
// What every pass promises:
//  - it returns whether it changed anything, and tells the truth;
//  - the module is valid (its verifier) before it and after it;
//  - it terminates: each rewrite lowers a measure that its comment names, or its work is counted;
//  - it does the same to equal modules: no time, no addresses, no random numbers.
// An error is the user's fault (what cannot be compiled, by name): a pass that merely cannot
// improve something leaves it alone.
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

// Counts rewrites by name, and stops them: those that are disabled, and all beyond a limit, so that
// a wrong one is found by bisection. A rewrite's name is "pass.rule". Not thread-safe.
class Rewrites {
 public:
  // Asked before each rewrite. True: it is counted, and the caller applies it.
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

// What reaches a pass besides the module. The runner owns what the pointers show; they may be null.
struct PassContext {
  // fold_constants: bytes of one result, and scalar operations of one run of the pass.
  int64_t fold_limit_bytes = 64 * 1024;
  int64_t fold_limit_ops = 1 << 24;
  Rewrites* rewrites = nullptr;
  std::vector<std::string>* notes = nullptr;  // one line each: what a user may want to know

  bool allow(std::string_view pass, std::string_view rule) const {
    return !rewrites || rewrites->allow(pass, rule);
  }
  void note(std::string text) const;  // the same line is kept once
};

// A row of a pass table. `Unit` is what the pass rewrites (an hlo::Module, a kernel), `Context`
// what it may know besides; it derives from PassContext.
template <typename Unit, typename Context>
struct PassInfoOf {
  using Function = Result<bool> (*)(Unit& unit, const Context& context);
  std::string_view name;  // the function's name, the file's, the test's, the flag's
  std::string_view summary;
  Function function = nullptr;
  // Correctness needs it at every level: bisection by count never leaves it out.
  bool required = false;
  // It changes how results round (docs/numerics.md): --numerics=strict leaves it out.
  bool rounds = false;
};

// Rows by name. Rows must outlive the table.
template <typename Unit, typename Context>
class PassTableOf {
 public:
  using Info = PassInfoOf<Unit, Context>;
  PassTableOf() = default;
  explicit PassTableOf(std::span<const Info> rows) { add(rows); }

  void add(std::span<const Info> rows) {  // CHECKs that no name is there twice
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
