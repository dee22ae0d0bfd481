// Private to api: tuning by measurement (heddle_tune).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "api/session.h"
#include "api/settings.h"

namespace heddle::api {

struct TuneProgress {
  int64_t done = 0, tasks = 0;
  std::string key, record;        // of the task that is done
  double ns = 0, untuned_ns = 0;  // best, and the static rule's
  double seconds = 0;             // since the start
  bool known = false;             // its record was there already
  int64_t candidates = 0;         // that the rules gave
  std::string measured;           // what was tried: "record: ns" by semicolons
};

struct TuneOptions {
  double budget_s = 300;
  int64_t candidates = 12;                            // records tried a task, at most
  bool again = false;                                 // measures what has a record, too
  std::function<bool(const TuneProgress&)> progress;  // false: stop here, what is done stays
};

struct TuneResult {
  int64_t tasks = 0, measured = 0, known = 0, left = 0, faster = 0;
  double ns = 0, untuned_ns = 0;  // of all measured tasks, by their uses
  double seconds = 0;
  int64_t samples = 0, compiled = 0;  // programs that were run; not found in the cache of objects
  std::string store;
};

// Measures the products and convolutions of a model and keeps the best record of each in the cache
// folder. One sample program a candidate, its weights out of the caches before every run; rounds go
// by turns, on one thread by the clock of the thread. A record displaces the static rule's for at
// least 2%, twice in a row, and only if it gives the same numbers. A sample's code depends on
// extents and the record alone: another model with the same ones finds it in the cache of objects.
// Errors: user (a compiled program, no cache folder), machine.
Result<TuneResult> tune(const Model& model, const CompileOptions& options,
                        const TuneOptions& tuning);

// Under which records of a target are kept.
std::string tuning_device(const target::Target& target);

}  // namespace heddle::api
