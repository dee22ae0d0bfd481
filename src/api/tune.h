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
  double ns = 0, untuned_ns = 0;  // with the best record, and with the static rule's choice
  double seconds = 0;             // since the start
  bool known = false;             // it already had a record
  int64_t candidates = 0;         // number given by the rules
  std::string measured;           // those tried: "record: ns", separated by semicolons
};

struct TuneOptions {
  double budget_s = 300;
  int64_t candidates = 12;                            // records tried per task, at most
  bool again = false;                                 // also measures tasks that have a record
  std::function<bool(const TuneProgress&)> progress;  // false: stops and keeps what is done
};

struct TuneResult {
  int64_t tasks = 0, measured = 0, known = 0, left = 0, faster = 0;
  double ns = 0, untuned_ns = 0;  // sums over measured tasks, weighted by their uses
  double seconds = 0;
  int64_t samples = 0, compiled = 0;  // programs that were run; those not found in the object cache
  std::string store;
};

// Measures the products and convolutions of a model and stores the best record of each in the cache
// folder. One sample program per candidate; its weights are evicted from the caches before every
// run; candidates take turns in every round, on one thread timed by the thread's clock. A record
// replaces the static rule's choice if it is faster by at least 2%, twice in a row, and gives the
// same numbers. A sample's code depends on extents and the record only: another model with the same
// ones finds it in the object cache. Errors: user (a compiled program, no cache folder), machine.
Result<TuneResult> tune(const Model& model, const CompileOptions& options,
                        const TuneOptions& tuning);

// The key under which records for a target are stored.
std::string tuning_device(const target::Target& target);

}  // namespace heddle::api
