// The tasks of tuning: the products and convolutions of a module as samples, chains of them that
// may be one kernel, and, under relaxed numerics, convolutions against Winograd's algorithm; and
// the records to try for each (docs/gemm.md). The caller measures: this folder runs nothing.
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
  std::string key;   // of its record (schedule/tuning.h, chain_cost.h, winograd.h)
  std::string name;  // the first instruction with this key
  int64_t uses = 1;  // kernels of the module with this key
  double flops = 0;  // of one run
  // The records to try, the default first: of stage::Gemm; `apart` and `chain`; `direct` and those
  // of stage::Winograd.
  std::vector<std::string> records;
  int64_t candidates = 0;  // that the rules gave, of which `records` are the most promising
  // The allowed difference of results, relative to the largest: sums may be in another order.
  double tolerance = 1e-5;
  double least_gain = 1.02;                // that a record needs to displace the first one
  bool library = false;                    // the records name a library or our own best
  Numerics numerics = Numerics::standard;  // of the sample
  // The sample is the whole module: it runs without clearing the caches, and its results in 16 bits
  // are accepted as they are.
  bool whole = false;
  // Of a product with packed weights, whose sample may have other rows; else 0.
  int64_t rows = 0, columns = 0, depth = 0;
  // The fusion as a module: the epilogue unchanged, packed weights as a constant. Every input must
  // be bound, even if it is no longer used.
  std::unique_ptr<hlo::Module> sample;
};

// The tasks of a module, most work (flops times uses) first; chains after the products, whose
// records they use. The module is consumed. At most `candidates` records each.
Result<std::vector<TuneTask>> find_tune_tasks(std::unique_ptr<hlo::Module> module,
                                              const target::Target& target, const Options& options,
                                              size_t candidates);

// A fusion's computation as a module of its own; packed weights become a constant.
std::unique_ptr<hlo::Module> make_sample(const hlo::Computation& fused);
// Values in [-1, 1) that differ; no denormals, which would change the time.
tensor::Literal sample_weights(const tensor::Shape& shape);

// `target` with the record of one key replaced.
target::Target with_record(const target::Target& target, const std::string& key,
                           const std::string& record);

}  // namespace heddle::compiler
