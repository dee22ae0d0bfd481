#include "calibration_runs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "values.h"

namespace heddle::tools {

using tensor::Literal;

namespace {

constexpr int64_t kRandomSamples = 8, kMostHeldOut = 32;

}  // namespace

Result<CalibrationRuns> CalibrationRuns::open(RunChoices choices) {
  CalibrationRuns runs;
  runs.choices_ = std::move(choices);
  const std::string& calib = runs.choices_.calib;
  Result<Samples> samples = runs.samples_for({});
  if (!samples && !calib.empty()) {
    InputChoices file;
    file.file = calib.ends_with(".npz") ? calib : "";
    auto first = file.read();
    if (first && !first->empty()) {
      Result<Samples> whole = runs.samples_for(*first);
      if (whole) {
        runs.extents_ = std::move(*first);
        samples = std::move(whole);
      }
    }
  }
  if (!samples) return tl::unexpected<Error>(samples.error());
  runs.samples_ = std::move(*samples);
  if (runs.extents_.empty() && !runs.samples_.is_random() && !calib.ends_with(".npz")) {
    HEDDLE_ASSIGN_OR_RETURN(runs.extents_, runs.samples_.read(0));
  }
  return runs;
}

Result<Samples> CalibrationRuns::samples_for(tensor::NamedLiterals given) const {
  HEDDLE_ASSIGN_OR_RETURN(const ModelHandle model, choices_.open.open(given, InputChoices()));
  std::vector<std::pair<std::string, std::vector<int64_t>>> inputs;
  for (int64_t i = 0; i < info_of(model.get()).inputs; ++i) {
    const heddle_port port = input_of(model.get(), i);
    inputs.emplace_back(port.name, std::vector<int64_t>(port.dims, port.dims + port.rank));
  }
  return Samples::open(choices_.calib, kRandomSamples, inputs);
}

int64_t CalibrationRuns::held_out() const {
  return std::clamp<int64_t>(count() / 4, 1, kMostHeldOut);
}

Result<EditedModel> CalibrationRuns::compile(const import::OnnxEdit& model) const {
  return compile_edited(model, choices_.open, extents_, choices_.work_path, choices_.is_apart);
}

Result<std::vector<Literal>> CalibrationRuns::inputs(const EditedModel& model,
                                                     int64_t sample) const {
  HEDDLE_ASSIGN_OR_RETURN(const tensor::NamedLiterals given, samples_.read(sample));
  InputChoices choices;
  choices.random_rest = true;
  choices.seed = choices_.seed + sample;
  auto found = choices.values(model.model.get(), given);
  if (!found) return error_in(fmt::format("--calib, sample {}", sample), found.error());
  return std::move(found->values);
}

Result<std::vector<Literal>> CalibrationRuns::run(const EditedModel& model, int64_t sample) const {
  HEDDLE_ASSIGN_OR_RETURN(std::vector<Literal> values, inputs(model, sample));
  return run_once(model.program.get(), values);
}

std::string CalibrationRuns::identity_of(const EditedModel& model) const {
  return fmt::format("heddle.statistics 2 {:016x} {} {:016x} {}", model.hash, count(),
                     hash64(samples_.identity()), choices_.seed);
}

namespace {

// Where each wanted value stands among the results; those that are no outputs become some.
std::vector<size_t> places_of(import::OnnxEdit* model, const std::vector<std::string>& outputs,
                              const std::vector<std::string>& names, size_t* next) {
  std::vector<size_t> places;
  for (const std::string& name : names) {
    const auto output = std::find(outputs.begin(), outputs.end(), name);
    if (output == outputs.end()) model->add_output(name);
    places.push_back(output == outputs.end() ? (*next)++
                                             : static_cast<size_t>(output - outputs.begin()));
  }
  return places;
}

void add_to(std::vector<float>* sum, const Literal& value) {
  const auto x = value.values<float>();
  if (sum->empty()) sum->resize(x.size(), 0);
  for (size_t i = 0; i < x.size(); ++i) (*sum)[i] += x[i];
}

}  // namespace

Result<Collected> collect(const CalibrationRuns& runs, import::OnnxEdit* model,
                          const Wanted& wanted, StatisticsFile* file, Progress* progress,
                          std::vector<std::string>* notes) {
  const std::vector<std::string> outputs = model->outputs();
  size_t next = outputs.size();
  const std::vector<size_t> values = places_of(model, outputs, wanted.values, &next),
                            sums = places_of(model, outputs, wanted.sums, &next);
  HEDDLE_ASSIGN_OR_RETURN(const EditedModel program, runs.compile(*model));
  Collected all;
  const auto note = [&](const Status& saved) {
    if (!saved) notes->push_back(saved.error().message);
  };
  int64_t first = file->begin(runs.identity_of(program), &all.seen);
  if (first > 0)
    notes->push_back(fmt::format("{} samples were seen before, by {}", first, file->path()));
  if (wanted.values.empty()) first = wanted.sums.empty() ? runs.count() : 0;
  const int64_t already = first;
  for (int64_t s = std::min(first, runs.first_held_out()); s < runs.count(); ++s) {
    if (Interrupt::asked()) {
      if (s > already) note(file->save(s, all.seen));
      return cancelled_error("stopped after {} samples", s);
    }
    progress->show(fmt::format("{} calibrating", Progress::bar(s, runs.count())));
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<Literal> results, runs.run(program, s));
    if (s >= runs.first_held_out())
      all.expected.emplace_back(results.begin(),
                                results.begin() + static_cast<std::ptrdiff_t>(outputs.size()));
    if (s < already) continue;
    for (size_t i = 0; i < values.size(); ++i)
      all.seen.add(wanted.values[i], results[values[i]], wanted.images.contains(wanted.values[i]));
    note(file->saw(s + 1, all.seen));
    // Weights that are fitted to what they are judged by would be judged too well.
    if (s >= runs.first_held_out() && runs.count() > 1) continue;
    for (size_t i = 0; i < sums.size(); ++i) add_to(&all.sums[wanted.sums[i]], results[sums[i]]);
  }
  // Nothing new: the file has what it had, a later pass too.
  if (already < runs.count()) note(file->save(runs.count(), all.seen));
  return all;
}

}  // namespace heddle::tools
