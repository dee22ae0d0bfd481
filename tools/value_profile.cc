#include "value_profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/value_runs.h"
#include "calibration_runs.h"
#include "command_line.h"
#include "session_options.h"
#include "terminal.h"
#include "value_report.h"

namespace heddle::tools {
namespace {

using tensor::NamedLiterals;

constexpr int64_t kRandomSamples = 8;
constexpr size_t kPrintedValues = 20;

// The model, opened for the extents of its samples, and what each run reads.
struct SampledModel {
  ModelHandle model;
  NamedLiterals given;  // by --inputs and --input
  InputChoices inputs;
  Samples set;  // of --calib
  int64_t samples = 0;
  std::string note;

  Result<std::vector<tensor::Literal>> read(int64_t sample) const {
    HEDDLE_ASSIGN_OR_RETURN(NamedLiterals values, set.is_random()
                                                      ? Result<NamedLiterals>(NamedLiterals())
                                                      : set.read(sample));
    for (const auto& [name, value] : given)
      if (std::none_of(values.begin(), values.end(),
                       [&](const auto& one) { return one.first == name; }))
        values.emplace_back(name, value);
    InputChoices choices = inputs;
    choices.random_rest = true;
    choices.seed = static_cast<int64_t>(inputs.seed_or_default()) + sample;
    Result<InputValues> found = choices.values(model.get(), values);
    if (!found && !set.is_random())
      return error_in(fmt::format("--calib, sample {}", sample), found.error());
    if (!found) return tl::unexpected<Error>(found.error());
    return std::move(found->values);
  }
};

Result<SampledModel> open_sampled(const OpenChoices& open, const InputChoices& inputs,
                                  const std::string& calib, std::optional<int64_t> samples) {
  SampledModel all;
  all.inputs = inputs;
  HEDDLE_ASSIGN_OR_RETURN(all.given, inputs.read());
  NamedLiterals extents = all.given;
  if (!calib.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(
        const CalibrationRuns runs,
        CalibrationRuns::open(
            {open, calib, static_cast<int64_t>(inputs.seed_or_default()), "", false}));
    all.set = runs.samples();
    all.samples = std::min(samples.value_or(INT64_MAX), all.set.count());
    all.note = fmt::format("--calib {}: {} of {} samples", calib, all.samples, all.set.count());
    extents.insert(extents.end(), runs.extents().begin(), runs.extents().end());
  }
  HEDDLE_ASSIGN_OR_RETURN(all.model, open.open(extents, inputs));
  if (!calib.empty()) return all;
  HEDDLE_ASSIGN_OR_RETURN(const InputValues first, inputs.values(all.model.get(), all.given));
  // Without anything random one run is as good as many.
  all.samples = first.random.empty() ? 1 : samples.value_or(kRandomSamples);
  all.note = fmt::format("no --calib: {} sample{} ({}); real inputs may have other ranges",
                         all.samples, all.samples == 1 ? "" : "s", first.description);
  return all;
}

}  // namespace

void ValueProfile::declare(CommandLine& line) {
  line.group("Values, instead of times");
  line.output(ranges_, "--ranges", "F.json",
              "records what f32 values are over the samples, for --amp f16 --ranges F.json");
  line.flag(gradients_, "--grad-histogram",
            "for a training step: how f16 represents its gradients, by loss scale");
  line.text(calib_, "--calib", "DIR|F.npz",
            "the samples: npz files, one a sample; or one file whose arrays hold many");
  line.number(samples_, "--samples", "N", "at most N of --calib, or N random ones (8)");
  line.files()->reads([this](const FileUse::Add& add) {
    if (calib_.ends_with(".npz")) add("--calib", calib_);
  });
}

Status ValueProfile::check() const {
  if (samples_ && *samples_ < 1) return user_error("--samples {}: wanted at least 1", *samples_);
  if (!asked() && (!calib_.empty() || samples_))
    return user_error("--{}: only with --ranges F.json or --grad-histogram",
                      calib_.empty() ? "samples" : "calib");
  return {};
}

Result<int> ValueProfile::run(const OpenChoices& open, const InputChoices& inputs,
                              const CompileChoices& compile, const JsonChoice& json) const {
  HEDDLE_ASSIGN_OR_RETURN(const SampledModel sampled, open_sampled(open, inputs, calib_, samples_));
  HEDDLE_ASSIGN_OR_RETURN(const api::CompileOptions options, session_options(compile));
  const api::Model& model = api::unwrap(sampled.model.get());
  if (!json.only_json()) fmt::print("{}\n{}\n", open.model, sampled.note);
  nlohmann::ordered_json told{{"schema", 1},
                              {"model", open.model},
                              {"samples", sampled.samples},
                              {"random", calib_.empty()}};
  Progress progress;
  const Interrupt interrupt;
  api::ValueRunOptions runs;
  runs.samples = sampled.samples;
  runs.inputs = [&](int64_t sample) { return sampled.read(sample); };
  runs.progress = [&](int64_t done, int64_t all) {
    progress.show(fmt::format("{} seeing values", Progress::bar(done, all)));
    return !Interrupt::asked();
  };
  if (ranges_.given()) {
    HEDDLE_ASSIGN_OR_RETURN(const api::SeenValues seen, api::run_values(model, options, runs));
    progress.hide();
    precision::ValueRanges ranges;
    for (const api::SeenValue& value : seen.values) ranges.emplace(value.name, value.seen);
    HEDDLE_RETURN_IF_ERROR(
        ranges_.write(precision::to_text(ranges, model.name(), sampled.samples)));
    if (!json.only_json()) fmt::print("{}", ranges_text(seen.values, kPrintedValues));
    told["programs"] = seen.programs;
    told["values"] = ranges_json(seen.values);
  }
  if (gradients_) {
    runs.gradients = true;
    HEDDLE_ASSIGN_OR_RETURN(const api::SeenValues seen, api::run_values(model, options, runs));
    progress.hide();
    if (!json.only_json()) fmt::print("{}", gradients_text(seen.values));
    told["gradient_histogram"] = gradients_json(seen.values);
  }
  HEDDLE_RETURN_IF_ERROR(json.write(told));
  return 0;
}

}  // namespace heddle::tools
