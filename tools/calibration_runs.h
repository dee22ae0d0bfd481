// A model, as it is and changed, run over a calibration set.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "calibration.h"
#include "edited_model.h"
#include "model_options.h"
#include "terminal.h"
#include "value_statistics.h"

namespace heddle::tools {

struct RunChoices {
  OpenChoices open;
  std::string calib;      // of Samples::open; empty: random values
  int64_t seed = 0;       // of these
  std::string work_path;  // where changed models lie while they are opened
  bool is_apart = false;  // with their weights beside them
};

class CalibrationRuns {
 public:
  // The extents of the first sample bind dynamic dimensions, where the model's own do not fit it.
  // Errors: those of opening the model and the samples.
  static Result<CalibrationRuns> open(RunChoices choices);

  const Samples& samples() const { return samples_; }
  const tensor::NamedLiterals& extents() const { return extents_; }
  int64_t count() const { return samples_.count(); }
  // A quarter of the samples, the last ones, and at most 32: what is made is judged by them.
  int64_t held_out() const;
  int64_t first_held_out() const { return count() - held_out(); }

  Result<EditedModel> compile(const import::OnnxEdit& model) const;
  Result<std::vector<tensor::Literal>> inputs(const EditedModel& model, int64_t sample) const;
  Result<std::vector<tensor::Literal>> run(const EditedModel& model, int64_t sample) const;
  // One line: changes with the model as it runs, its samples, the seed.
  std::string identity_of(const EditedModel& model) const;

 private:
  Result<Samples> samples_for(tensor::NamedLiterals given) const;

  RunChoices choices_;
  Samples samples_;
  tensor::NamedLiterals extents_;  // values whose shapes bind dimensions
};

// What one pass over the whole set is to show.
struct Wanted {
  std::vector<std::string> values;  // statistics of them
  std::set<std::string> images;     // those of them whose channels come second
  std::vector<std::string> sums;    // f32 outputs, added up over the samples that are not held out
};

struct Collected {
  ValueStatistics seen;
  std::map<std::string, std::vector<float>> sums;
  std::vector<std::vector<tensor::Literal>> expected;  // outputs of what is held out
};

// The model with the changes that it has; outputs are added to them. Error (cancelled): Ctrl-C;
// what was seen is then saved.
Result<Collected> collect(const CalibrationRuns& runs, import::OnnxEdit* model,
                          const Wanted& wanted, StatisticsFile* file, Progress* progress,
                          std::vector<std::string>* notes);

}  // namespace heddle::tools
