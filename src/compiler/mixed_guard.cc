#include "compiler/mixed_guard.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/hash.h"
#include "compiler/options.h"
#include "compiler/pipeline.h"
#include "compiler/run_time.h"
#include "hlo/text.h"

namespace heddle::compiler {
namespace {

Result<FusedModule> fuse_quietly(const hlo::Module& module, const Options& options,
                                 const target::Target& target) {
  pass::RunOptions run = fusing_pass_options(options, 0);
  run.dump_directory.clear();
  run.bisect_limit = -1;
  return fused_module(module.clone(), options, target, run);
}

// The key of tuning's record: the options and both programs, without the target. Weights are left
// out: their values do not change the time.
std::string record_key(const hlo::Module& f32, const hlo::Module& mixed, const std::string& type,
                       const Options& options) {
  const hlo::PrintOptions text{.max_constant_elems = 16};
  const std::string both = fmt::format(
      "{} {} {} {} {} {}", static_cast<int>(options.level), static_cast<int>(options.fuse),
      static_cast<int>(options.numerics), fmt::join(options.disable, ","),
      hlo::to_string(f32, text), hlo::to_string(mixed, text));
  return fmt::format("amp {} {}", type, hash128(both).hex());
}

}  // namespace

Result<MixedVerdict> compare_runs(const hlo::Module& f32, const hlo::Module& mixed,
                                  const std::string& type, const Options& options,
                                  const target::Target& target) {
  HEDDLE_ASSIGN_OR_RETURN(FusedModule plain, fuse_quietly(f32, options, target));
  HEDDLE_ASSIGN_OR_RETURN(FusedModule narrow, fuse_quietly(mixed, options, target));
  const bool fast_forms = options.numerics != Numerics::strict;
  MixedVerdict verdict;
  MixedTimes& times = verdict.times;
  times.key = record_key(f32, mixed, type, options);
  times.f32_ns = predicted_run_ns(*plain.module, target, fast_forms);
  times.mixed_ns = predicted_run_ns(*narrow.module, target, fast_forms);
  times.pays = times.mixed_ns <= (1 - kLeastMixedGain) * times.f32_ns;
  if (target.records)
    if (const auto known = target.records->find(times.key); known != target.records->end()) {
      times.measured = true;
      times.pays = known->second != kF32Record;
    }
  verdict.fused = std::move(times.pays ? narrow : plain);
  return verdict;
}

}  // namespace heddle::compiler
