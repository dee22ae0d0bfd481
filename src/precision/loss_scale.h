// Loss scaling (Micikevicius et al., "Mixed Precision Training", 2018) in the graph of a training
// step: the backward pass computes gradients times a scale S, so that those that 16 bits would
// flush to zero are kept; the update reads them times 1/S, exactly, for S is a power of two.
//
// Automatic: S is kept by the program from step to step. Where a gradient is not finite the step
// keeps all that it would have changed and halves S; after 2,000 good steps S is doubled. Nothing
// of this is a pass over memory or waits for the host: what is not finite is counted by columns in
// the products that make the gradients, and the update chooses between old and new values.
#pragma once

#include "base/error.h"
#include "hlo/module.h"

namespace heddle::precision {

struct LossScale {
  bool is_automatic = false;
  double scale = 1;  // not automatic: a power of two
};

// The state array of an automatic scale: f32[5], this name.
constexpr const char* kLossScaleState = "loss_scale";
enum LossScaleState {
  kScale,
  kGoodSteps,     // since S changed, or a step was skipped
  kSkippedSteps,  // in all
  kSkippedNow,    // without a good one in between
  kFirstBad,      // number of the parameter whose gradient was not finite in the last step; or -1
  kLossScaleNumbers,
};
constexpr double kFirstScale = 32768, kLeastScale = 1.0 / 1024, kMostScale = 16777216;
constexpr double kStepsToGrow = 2000;

struct LossScaleCounts {
  int starts = 0, carriers = 0, gradients = 0;  // all 0: the module is no step of training
};

// The module is simplified and not fused.
LossScaleCounts scale_loss(const LossScale& scale, hlo::Module* module);

}  // namespace heddle::precision
