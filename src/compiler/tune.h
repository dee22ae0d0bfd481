// What tuning measures: the products and convolutions of a module as samples, and rows of them that
// may be one kernel, and the records to try for each (templates.md §1.2). The measuring itself is
// the caller's: this folder runs nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "compiler/compiler.h"
#include "schedule/gemm.h"

namespace heddle::compiler {

struct TuneTask {
  std::string key;                         // of its record (schedule/tuning.h)
  std::string name;                        // the instruction that has it first
  int64_t uses = 1;                        // kernels of the module with this key
  double flops = 0;                        // of one run
  std::vector<schedule::Gemm> candidates;  // the static rule's first; a chain: none
  bool chain_first = false;                // a chain that is joined without a record
  std::vector<std::string> choices;        // the records of a library's task; of others: none
  double least_gain = 1.02;                // of a record before it displaces the first one
  // The records to try as text: the candidates; or `apart` and `chain` (schedule/chain_cost.h).
  std::vector<std::string> records() const;
  // The fusion as a module of its own: the epilogue as it is, packed weights as a constant. Every
  // input must be bound; those that no longer matter are still there.
  std::unique_ptr<hlo::Module> sample;
};

// The tasks of a module, most work (flops times uses) first; the module is consumed. At most
// `candidates` records each.
Result<std::vector<TuneTask>> find_tune_tasks(std::unique_ptr<hlo::Module> module,
                                              const target::Target& target, const Options& options,
                                              size_t candidates);

// A fusion's computation as a module of its own; packed weights become a constant.
std::unique_ptr<hlo::Module> make_sample(const hlo::Computation& fused);
// Values in [-1, 1) that differ; no denormals, which would change the time.
tensor::Literal sample_weights(const tensor::Shape& shape);

// `target` with the record of one key replaced.
target::Target with_record(const target::Target& target, const std::string& key,
                           const schedule::Gemm& record);
target::Target with_record(const target::Target& target, const std::string& key,
                           const std::string& record);

}  // namespace heddle::compiler
