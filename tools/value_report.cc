#include "value_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "precision/loss_scale.h"

namespace heddle::tools {
namespace {

using api::SeenValue;
using nlohmann::ordered_json;
using precision::kLeastF16;
using precision::kLeastNormalF16;
using precision::kMostF16;
using precision::ValueRange;

constexpr int kFirstScale = 15;  // as loss_scale.h has it: 2^15

// The power of two of the largest one, and that below which 1 in 1,000 lies.
int top_of(const ValueRange& seen) { return seen.most > 0 ? std::ilogb(seen.most) : 0; }
int bottom_of(const ValueRange& seen) {
  constexpr double kTail = 1e-3;
  for (int e = ValueRange::kLeastExponent; e < top_of(seen); ++e)
    if (seen.share_below(e + 1) > kTail) return e;
  return top_of(seen);
}

// As mixed precision has it: of weights the largest alone matters.
bool fits(const SeenValue& value) {
  return value.is_constant ? !precision::overflows_f16(value.seen)
                           : precision::fits_f16(value.seen);
}

std::string verdict(const SeenValue& value) {
  const ValueRange& seen = value.seen;
  if (fits(value)) return "fits";
  if (seen.not_finite > 0) return "not finite";
  if (seen.most > kMostF16) return "overflows";
  return precision::overflows_f16(seen) ? "near" : "small";
}

std::string percent(double share) { return fmt::format("{:.3g}%", 100 * share); }
std::string power(int k) { return k == 0 ? "1" : fmt::format("2^{}", k); }

// All gradients as one.
ValueRange all_of(std::span<const SeenValue> gradients) {
  ValueRange all;
  for (const SeenValue& one : gradients) {
    all.elements += one.seen.elements;
    all.not_finite += one.seen.not_finite;
    all.most = std::max(all.most, one.seen.most);
    for (size_t i = 0; i < all.counts.size(); ++i) all.counts[i] += one.seen.counts[i];
  }
  return all;
}

ordered_json loss_json(const ValueRange& seen, int k) {
  const ScaledLoss loss = loss_at(seen, k);
  return {{"flushed", loss.flushed}, {"small", loss.small}};
}

ordered_json counts_json(const ValueRange& seen) {
  return {{"elements", seen.elements},
          {"nonzeros", seen.nonzeros()},
          {"most", seen.most},
          {"not_finite", seen.not_finite}};
}

}  // namespace

ScaledLoss loss_at(const ValueRange& seen, int k) {
  const double flushed = seen.share_below(kLeastF16 - k);
  return {flushed, seen.share_below(kLeastNormalF16 - k) - flushed};
}

std::optional<int> most_scale(const ValueRange& seen) {
  if (!(seen.most > 0)) return std::nullopt;
  return static_cast<int>(std::floor(std::log2(kMostF16 / seen.most)));
}

int best_scale(std::span<const SeenValue> gradients) {
  const ValueRange all = all_of(gradients);
  const int least = std::ilogb(precision::kLeastScale), most = std::ilogb(precision::kMostScale);
  const int limit = std::clamp(most_scale(all).value_or(0), least, most);
  const int64_t lost = all.below(kLeastNormalF16 - limit);
  if (lost > all.below(kLeastF16 - limit)) return limit;  // less would take bits of what is small
  int best = limit;
  while (best > least && all.below(kLeastNormalF16 - (best - 1)) == lost) --best;
  return best;
}

std::string ranges_text(std::span<const SeenValue> values, size_t most) {
  std::vector<const SeenValue*> sorted;
  for (const SeenValue& value : values) sorted.push_back(&value);
  const auto width = [](const SeenValue* x) { return top_of(x->seen) - bottom_of(x->seen); };
  std::stable_sort(sorted.begin(), sorted.end(), [&](const SeenValue* a, const SeenValue* b) {
    return std::pair(width(a), a->seen.most) > std::pair(width(b), b->seen.most);
  });
  std::string text = fmt::format("{:>10} {:>15} {:>10} {:>10}  {:<10} {}\n", "largest",
                                 "powers of 2", "subnormal", "flushed", "f16", "value");
  for (size_t i = 0; i < std::min(most, sorted.size()); ++i) {
    const ValueRange& seen = sorted[i]->seen;
    text += fmt::format("{:>10.4g} {:>15} {:>10} {:>10}  {:<10} {}\n", seen.most,
                        fmt::format("{} to {}", bottom_of(seen), top_of(seen)),
                        percent(seen.share_below(kLeastNormalF16)),
                        percent(seen.share_below(kLeastF16)), verdict(*sorted[i]), sorted[i]->name);
  }
  if (sorted.size() > most)
    text += fmt::format("  and {} more; --json has all\n", sorted.size() - most);
  const auto fit = std::count_if(values.begin(), values.end(), fits);
  return text + fmt::format("f16 holds {} of {} values\n", fit, values.size());
}

ordered_json ranges_json(std::span<const SeenValue> values) {
  ordered_json json = ordered_json::array();
  for (const SeenValue& value : values) {
    ordered_json one{{"value", value.name}};
    one.update(counts_json(value.seen));
    one["subnormal"] = value.seen.below(kLeastNormalF16);
    one["flushed"] = value.seen.below(kLeastF16);
    one["f16"] = verdict(value);
    json.push_back(std::move(one));
  }
  return json;
}

std::string gradients_text(std::span<const SeenValue> gradients) {
  std::string text =
      fmt::format("{:>10} {:>9} {:>8} {:>12} {:>10} {:>6}  {}\n", "largest", "flushed@1", "small@1",
                  "flushed@2^15", "small@2^15", "most", "gradient of");
  for (const SeenValue& one : gradients) {
    const ScaledLoss plain = loss_at(one.seen, 0), scaled = loss_at(one.seen, kFirstScale);
    const std::optional<int> most = most_scale(one.seen);
    text += fmt::format(
        "{:>10.4g} {:>9} {:>8} {:>12} {:>10} {:>6}  {} ({}){}\n", one.seen.most,
        percent(plain.flushed), percent(plain.small), percent(scaled.flushed),
        percent(scaled.small), most ? power(*most) : "any", one.input, one.name,
        one.seen.not_finite > 0 ? fmt::format(": {} not finite", one.seen.not_finite) : "");
  }
  const ValueRange all = all_of(gradients);
  const int best = best_scale(gradients);
  const ScaledLoss plain = loss_at(all, 0), least = loss_at(all, best);
  return text + fmt::format(
                    "all: f16 flushes {} and keeps {} with fewer bits; least is lost at scale {}: "
                    "{} and {}\n",
                    percent(plain.flushed), percent(plain.small), power(best),
                    percent(least.flushed), percent(least.small));
}

ordered_json gradients_json(std::span<const SeenValue> gradients) {
  const auto entry = [](const ValueRange& seen) {
    ordered_json one = counts_json(seen);
    one["at_1"] = loss_json(seen, 0);
    one["at_2^15"] = loss_json(seen, kFirstScale);
    const std::optional<int> most = most_scale(seen);
    one["most_scale"] = most ? ordered_json(std::ldexp(1.0, *most)) : ordered_json();
    return one;
  };
  ordered_json json{{"gradients", ordered_json::array()}};
  for (const SeenValue& one : gradients) {
    ordered_json told{{"input", one.input}, {"value", one.name}};
    told.update(entry(one.seen));
    json["gradients"].push_back(std::move(told));
  }
  const int best = best_scale(gradients);
  json["all"] = entry(all_of(gradients));
  json["all"]["best_scale"] = std::ldexp(1.0, best);
  json["all"]["at_best"] = loss_json(all_of(gradients), best);
  return json;
}

}  // namespace heddle::tools
