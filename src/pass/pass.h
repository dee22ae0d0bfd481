// A pass: one free function from a module to a changed module, one row in a table. Read this header
// first; pipeline.h is the text form of a list of passes, run.h runs one.
//
// What every pass promises:
//  - it returns whether it changed anything, and tells the truth;
//  - the module is valid (hlo/verify.h) before it and after it;
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

using PassFunction = Result<bool> (*)(hlo::Module& module, const PassContext& context);

struct PassInfo {
  std::string_view name;  // the function's name, the file's, the test's, the flag's
  std::string_view summary;
  PassFunction function = nullptr;
  // Correctness needs it at every level: bisection by count never leaves it out.
  bool required = false;
};

// Rows by name. Rows must outlive the table.
class PassTable {
 public:
  PassTable() = default;
  explicit PassTable(std::span<const PassInfo> rows) { add(rows); }
  void add(std::span<const PassInfo> rows);  // CHECKs that no name is there twice
  const PassInfo* find(std::string_view name) const;
  const std::vector<const PassInfo*>& rows() const { return rows_; }  // in order of registration

 private:
  std::vector<const PassInfo*> rows_;
  std::unordered_map<std::string_view, const PassInfo*> by_name_;
};

}  // namespace heddle::pass
