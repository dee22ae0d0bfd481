// A quantised model that is near enough: rewritten, checked on the samples that are held out, and
// where its outputs are too far off written again with the worst layers left float.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agreement.h"
#include "calibration_runs.h"
#include "quantize/rewrite.h"

namespace heddle::tools {

struct Search {
  const CalibrationRuns& runs;
  const std::vector<std::vector<tensor::Literal>>& expected;  // of what is held out
  double least_cosine = 0;
  // Puts the layers that are chosen into the model, which has no other changes.
  std::function<Result<std::vector<quantize::Stored>>(import::OnnxEdit*)> rewrite;
  std::function<double(size_t)> input_sqnr;  // dB that a layer's activation keeps
  Progress* progress = nullptr;
};

struct Found {
  std::vector<quantize::Stored> stored;  // by layer
  size_t bytes = 0;                      // of all that is written
  Agreement agreement;
  bool near = false;  // false: nothing helped, and all layers are quantised
  std::vector<std::string> notes;
};

// `chosen`: what is to be quantised, and then what is. The model is then as it is to be written.
Result<Found> search(const Search& how, import::OnnxEdit* model, std::vector<bool>* chosen);

}  // namespace heddle::tools
