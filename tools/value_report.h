// What is shown of the values that runs have seen (api/value_runs.h): what f16 would make of them,
// and which loss scale suits gradients.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "api/value_runs.h"

namespace heddle::tools {

// Of a gradient times 2^k in f16: shares of those that are not zero.
struct ScaledLoss {
  double flushed = 0, small = 0;  // become zero; keep less than 11 bits, and are not zero
};
ScaledLoss loss_at(const precision::ValueRange& seen, int k);
// The largest k of a scale 2^k under which nothing that was seen overflows; nothing: all were zero.
std::optional<int> most_scale(const precision::ValueRange& seen);
// Within the bounds of loss scales (precision/loss_scale.h): the largest k without an overflow, or
// a smaller one that loses no bit more.
int best_scale(std::span<const api::SeenValue> gradients);

// Lines: what spans most powers of two first, at most `most` of them.
std::string ranges_text(std::span<const api::SeenValue> values, size_t most);
nlohmann::ordered_json ranges_json(std::span<const api::SeenValue> values);
std::string gradients_text(std::span<const api::SeenValue> gradients);
nlohmann::ordered_json gradients_json(std::span<const api::SeenValue> gradients);

}  // namespace heddle::tools
