#include "precision/value_ranges.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

namespace heddle::precision {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kKind = "ranges";

Result<ValueRange> read_range(const Json& json, const std::string& name) {
  const auto wrong = [&](std::string_view what) {
    return user_error("value {}: {}; record it again with heddle profile --ranges", name, what);
  };
  ValueRange seen;
  for (const auto& [key, to] :
       {std::pair("elements", &seen.elements), {"not_finite", &seen.not_finite}}) {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_number_integer() || found->get<int64_t>() < 0)
      return wrong(fmt::format("{} is no count", key));
    *to = found->get<int64_t>();
  }
  const auto most = json.find("most"), exponents = json.find("exponents");
  if (most == json.end() || !most->is_number() || !(most->get<double>() >= 0))
    return wrong("most is no number that is not negative");
  seen.most = most->get<double>();
  if (exponents == json.end() || !exponents->is_array()) return wrong("exponents is no list");
  int last = ValueRange::kLeastExponent - 1;
  int64_t left = seen.elements - seen.not_finite;
  for (const Json& one : *exponents) {
    if (!one.is_array() || one.size() != 2 || !one[0].is_number_integer() ||
        !one[1].is_number_integer())
      return wrong("exponents has more than pairs of numbers");
    const auto exponent = one[0].get<int64_t>(), count = one[1].get<int64_t>();
    if (exponent <= last || exponent > ValueRange::kMostExponent || count < 1 || count > left)
      return wrong("exponents has what no values give");
    last = static_cast<int>(exponent);
    left -= count;
    seen.counts[static_cast<size_t>(last - ValueRange::kLeastExponent)] = count;
  }
  // `most` and the counts must agree on the largest exponent.
  const bool any = last >= ValueRange::kLeastExponent;
  if (left < 0 || any != (seen.most > 0) || (any && std::ilogb(seen.most) != last))
    return wrong("its counts contradict each other");
  return seen;
}

}  // namespace

void ValueRange::add(std::span<const float> values) {
  constexpr uint32_t kSpecial = 0xff, kMantissa = 0x7fffff;
  constexpr int kBias = 127;
  std::array<int64_t, kSpecial + 1> by_field{};
  float largest = 0;
  for (const float x : values) {
    const auto bits = std::bit_cast<uint32_t>(x);
    const uint32_t field = bits >> 23 & kSpecial;
    ++by_field[field];
    if (field == 0 && (bits & kMantissa) != 0)
      ++counts[static_cast<size_t>(std::bit_width(bits & kMantissa) - 1)];
    if (field != kSpecial) largest = std::max(largest, std::abs(x));
  }
  for (uint32_t field = 1; field < kSpecial; ++field)
    counts[static_cast<size_t>(static_cast<int>(field) - kBias - kLeastExponent)] +=
        by_field[field];
  not_finite += by_field[kSpecial];
  elements += static_cast<int64_t>(values.size());
  most = std::max(most, static_cast<double>(largest));
}

int64_t ValueRange::below(int exponent) const {
  const int end = std::clamp(exponent, kLeastExponent, kMostExponent + 1) - kLeastExponent;
  return std::accumulate(counts.begin(), counts.begin() + end, int64_t{0});
}

double ValueRange::share_below(int exponent) const {
  const int64_t all = nonzeros();
  return all > 0 ? static_cast<double>(below(exponent)) / static_cast<double>(all) : 0;
}

bool overflows_f16(const ValueRange& seen) {
  constexpr double kHeadroom = 8;
  return seen.not_finite > 0 || kHeadroom * seen.most > kMostF16;
}

bool fits_f16(const ValueRange& seen) {
  constexpr double kMostSmall = 1e-3;
  return !overflows_f16(seen) && seen.share_below(kLeastNormalF16) <= kMostSmall;
}

std::string to_text(const ValueRanges& ranges, const std::string& model, int64_t samples) {
  const auto dump = [](const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  std::string text = fmt::format(R"({{"schema":1,"kind":"{}","model":{},"samples":{},"values":[)",
                                 kKind, dump(model), samples);
  const char* between = "\n";
  for (const auto& [name, seen] : ranges) {
    Json exponents = Json::array();
    for (size_t i = 0; i < seen.counts.size(); ++i)
      if (seen.counts[i] > 0)
        exponents.push_back({static_cast<int>(i) + ValueRange::kLeastExponent, seen.counts[i]});
    text += between + dump({{"value", name},
                            {"elements", seen.elements},
                            {"nonzeros", seen.nonzeros()},
                            {"most", seen.most},
                            {"subnormal", seen.below(kLeastNormalF16)},
                            {"flushed", seen.below(kLeastF16)},
                            {"not_finite", seen.not_finite},
                            {"exponents", std::move(exponents)}});
    between = ",\n";
  }
  return text + "\n]}\n";
}

Result<ValueRanges> parse_ranges(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("kind", Json()) != kKind)
    return user_error("not a file of ranges ({} bytes); heddle profile MODEL --ranges F makes one",
                      text.size());
  if (json.value("schema", Json()) != 1)
    return user_error("schema {}, wanted 1; record it again with heddle profile --ranges",
                      json.value("schema", Json()).dump());
  const auto values = json.find("values");
  if (values == json.end() || !values->is_array())
    return user_error("holds no list of values; record it again with heddle profile --ranges");
  ValueRanges ranges;
  for (const Json& one : *values) {
    const auto name = one.is_object() ? one.find("value") : one.end();
    if (!one.is_object() || name == one.end() || !name->is_string())
      return user_error("value {}: it has no name; record it again with heddle profile --ranges",
                        ranges.size());
    HEDDLE_ASSIGN_OR_RETURN(ValueRange seen, read_range(one, name->get<std::string>()));
    if (!ranges.emplace(name->get<std::string>(), seen).second)
      return user_error("value {}: it is there twice; record it again with heddle profile --ranges",
                        name->get<std::string>());
  }
  return ranges;
}

}  // namespace heddle::precision
