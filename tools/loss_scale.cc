#include "loss_scale.h"

#include <fmt/format.h>

#include "handles.h"

namespace heddle::tools {

Result<std::optional<LossScale>> loss_scale_of(const heddle_program* program) {
  for (int64_t i = 0; i < info_of(program).states; ++i) {
    const heddle_port port = state_of(program, i);
    float numbers[5] = {};
    if (port.name != std::string_view("loss_scale") || port.bytes != sizeof numbers) continue;
    HEDDLE_RETURN_IF_ERROR(to_status(heddle_program_read_state(program, i, numbers, port.bytes)));
    LossScale at{numbers[0], static_cast<int64_t>(numbers[1]), static_cast<int64_t>(numbers[2]),
                 static_cast<int64_t>(numbers[3]), ""};
    const auto input = static_cast<int64_t>(numbers[4]);
    if (input >= 0 && input < info_of(program).inputs) at.bad_input = input_of(program, input).name;
    return at;
  }
  return std::nullopt;
}

Status check_loss_scale(const LossScale& at) {
  constexpr double kLeast = 1.0 / 1024;
  constexpr int64_t kMostSkipped = 20;
  if (at.scale > kLeast || at.skipped_now < kMostSkipped) return {};
  return user_error(
      "loss scale: {} steps in a row changed nothing, down to the smallest scale, 1/1024; the "
      "first "
      "gradient that is not finite is that of {}: look at its values (--amp off), or lower the "
      "learning rate",
      at.skipped_now, at.bad_input);
}

std::string to_string(const LossScale& at) {
  return fmt::format("loss scale: {:g}, {} good steps since it changed, {} skipped{}", at.scale,
                     at.good_steps, at.skipped_steps,
                     at.bad_input.empty() ? "" : "; not finite: the gradient of " + at.bad_input);
}

nlohmann::ordered_json to_json(const LossScale& at) {
  return {{"scale", at.scale},
          {"good_steps", at.good_steps},
          {"skipped_steps", at.skipped_steps},
          {"skipped_now", at.skipped_now},
          {"bad_input", at.bad_input}};
}

}  // namespace heddle::tools
