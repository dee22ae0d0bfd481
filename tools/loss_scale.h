// What a program's automatic loss scale is at (state "loss_scale", heddle_program_state).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "api/heddle.h"
#include "base/error.h"

namespace heddle::tools {

struct LossScale {
  double scale = 0;
  int64_t good_steps = 0, skipped_steps = 0, skipped_now = 0;
  std::string bad_input;  // whose gradient was not finite in the last step; or empty
};

// Empty: the program has none.
Result<std::optional<LossScale>> loss_scale_of(const heddle_program* program);
// Error (user): the scale is as small as it gets, and the last 20 steps or more changed nothing.
Status check_loss_scale(const LossScale& at);
std::string to_string(const LossScale& at);
nlohmann::ordered_json to_json(const LossScale& at);

}  // namespace heddle::tools
