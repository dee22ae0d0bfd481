// What tuning measures: the products and convolutions of a module as samples, rows of them that may
// be one kernel, and, under relaxed numerics, convolutions against Winograd's algorithm; and the
// records to try for each (docs/gemm.md). The measuring itself is the caller's: this folder
// runs nothing.
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
  std::string name;  // the instruction that has it first
  int64_t uses = 1;  // kernels of the module with this key
  double flops = 0;  // of one run
  // The records to try, what is done without one first: of stage::Gemm; `apart` and `chain`;
  // `direct` and those of stage::Winograd.
  std::vector<std::string> records;
  int64_t candidates = 0;  // that the rules gave, of which `records` are the most promising
  // How far results may lie apart, in relation to the largest: sums in another order.
  double tolerance = 1e-5;
  double least_gain = 1.02;                // of a record before it displaces the first one
  bool library = false;                    // the records name a library or our own best
  Numerics numerics = Numerics::standard;  // of the sample
  // The sample is the module: its kernels leave the caches as they do, and its results in 16 bits
  // are what was asked for.
  bool whole = false;
  // Of a product with packed weights, whose rows may be others in the sample; else 0.
  int64_t rows = 0, columns = 0, depth = 0;
  // The fusion as a module of its own: the epilogue as it is, packed weights as a constant. Every
  // input must be bound; those that no longer matter are still there.
  std::unique_ptr<hlo::Module> sample;
};

// The tasks of a module, most work (flops times uses) first; rows of products behind them, as they
// build on their records. The module is consumed. At most `candidates` records each.
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
