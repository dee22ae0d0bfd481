// Loss scaling (Micikevicius et al., "Mixed Precision Training", 2018) in the graph of a training
// step: the backward pass computes gradients times a scale S, so that 16 bits do not flush small
// ones to zero; the update multiplies them by 1/S, which is exact because S is a power of two.
//
// Automatic: the program keeps S from step to step. If a gradient is not finite the step leaves all
// kept arrays unchanged and halves S; after 2,000 good steps S is doubled. This needs no extra pass
// over memory and no wait of the host: the kernels of the products that compute the gradients count
// non-finite elements by column, and the update selects old or new values.
#pragma once

#include "base/error.h"
#include "hlo/module.h"

namespace heddle::precision {

struct LossScale {
  bool is_automatic = false;
  double scale = 1;  // if not automatic: a power of two
};

// The state array of an automatic scale: f32[5] with this name.
constexpr const char* kLossScaleState = "loss_scale";
enum LossScaleState {
  kScale,
  kGoodSteps,     // since S changed or a step was skipped
  kSkippedSteps,  // in total
  kSkippedNow,    // consecutively, up to now
  kFirstBad,      // number of the parameter whose gradient was not finite in the last step, or -1
  kLossScaleNumbers,
};
constexpr double kFirstScale = 32768, kLeastScale = 1.0 / 1024, kMostScale = 16777216;
constexpr double kStepsToGrow = 2000;

struct LossScaleCounts {
  int starts = 0, carriers = 0, gradients = 0;  // all 0: the module is not a training step
};

// The module must be simplified and not yet fused.
LossScaleCounts scale_loss(const LossScale& scale, hlo::Module* module);

}  // namespace heddle::precision
