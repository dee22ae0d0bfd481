// Tuning records of Winograd's algorithm.
#include <fmt/format.h>

#include "schedule/tuning.h"
#include "schedule/winograd_tuning.h"

namespace heddle::schedule {

namespace {

// As in tuning.cc: changes if records get a new meaning, or if new code invalidates old
// measurements.
constexpr int kRecordVersion = 1;

}  // namespace

std::string winograd_key(const WinogradShape& shape) {
  return fmt::format(
      "v{} winograd images {} map {}x{} channels {} features {} window {:+}<{} {:+}<{}",
      kRecordVersion, shape.images, shape.height, shape.width, shape.channels, shape.features,
      shape.y_offset, shape.y_span, shape.x_offset, shape.x_span);
}

std::optional<TunedWinograd> tuned_winograd(const std::string& key, const WinogradShape& shape,
                                            int nv, const target::Target& target) {
  if (!target.records) return std::nullopt;
  const auto found = target.records->find(key);
  if (found == target.records->end()) return std::nullopt;
  if (found->second == kDirectRecord) return TunedWinograd{true, {}};
  const Result<Winograd> record = stage::parse_winograd(found->second);
  if (!record) return std::nullopt;
  const Gemm& tile = record->tile;
  const int lanes = target.lanes(Type::f32);
  const int64_t width = int64_t{tile.nv} * lanes;
  const int64_t lines = (shape.height + record->m - 1) / record->m;
  // The record may be imported text.
  if (tile.lanes != lanes || (nv && tile.nv != nv) || !fits_registers(tile, target) ||
      tile.ku < 1 || tile.ku > 64 || shape.channels % tile.ku != 0 || tile.prefetch < 0 ||
      tile.prefetch > 1024 || shape.features % width != 0 || record->columns < width ||
      record->columns % width != 0 || shape.features % record->columns != 0 || record->lines < 1 ||
      record->lines > lines || winograd_error(record->m, shape.channels) > kWinogradErrorLimit)
    return std::nullopt;
  Winograd result = *record;
  result.tile.kc = shape.channels;
  return TunedWinograd{false, result};
}

}  // namespace heddle::schedule
