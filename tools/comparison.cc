#include "comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace heddle::tools {
namespace {

std::vector<int64_t> multi_index(std::vector<int64_t> extents, int64_t linear) {
  for (size_t d = extents.size(); d-- > 0;) {
    const int64_t extent = extents[d];
    extents[d] = linear % extent;
    linear /= extent;
  }
  return extents;
}

double cosine_of(const tensor::Literal& a, const tensor::Literal& b) {
  double ab = 0, aa = 0, bb = 0;
  for (int64_t i = 0; i < a.elems(); ++i) {
    const double x = a.get_f64(i), y = b.get_f64(i);
    ab += x * y;
    aa += x * x;
    bb += y * y;
  }
  return aa == bb && aa == 0 ? 1 : ab / std::sqrt(aa * bb);
}

}  // namespace

double OutputCheck::relative_error() const {
  if (comparison.worst_error == 0) return 0;
  return comparison.worst_error / comparison.max_want;
}

OutputCheck check_output(const std::string& name, const tensor::Literal& got,
                         const tensor::Literal& want, const tensor::Tolerance& tolerance) {
  OutputCheck check;
  check.name = name;
  check.shape = tensor::to_string(got.shape(), false);
  check.tolerance = tolerance;
  if (!got.shape().compatible(want.shape())) {
    check.wanted_shape = tensor::to_string(want.shape(), false);
    check.comparison.equal = false;
    check.comparison.mismatches = std::max(got.elems(), want.elems());
    return check;
  }
  check.comparison = tensor::compare(got, want, tolerance);
  if (tensor::is_float(want.type()) && got.elems() == want.elems())
    check.cosine = cosine_of(got, want);
  if (check.comparison.worst_index >= 0)
    check.worst_at = multi_index(got.shape().extents(), check.comparison.worst_index);
  return check;
}

Result<OutputCheck> recheck(const OutputCheck& failed, size_t number, const tensor::Literal& got,
                            const tensor::Literal& want, api::SecondReference& reference) {
  OutputCheck check = failed;
  if (!failed.wanted_shape.empty()) return check;
  for (const api::Measure measure : api::kMeasures) {
    HEDDLE_ASSIGN_OR_RETURN(const tensor::Tolerance tolerance,
                            reference.tolerance(measure, number, failed.tolerance, want));
    check = check_output(failed.name, got, want, tolerance);
    check.widened_by = measure;
    check.derived = failed.tolerance;
    if (check.equal()) break;
  }
  return check;
}

namespace {

std::string tolerance_text(const tensor::Tolerance& t) {
  return fmt::format("{:.3g} + {:.3g}|b| + {:.3g}max|b|", t.absolute, t.relative,
                     t.relative_to_max);
}

nlohmann::ordered_json tolerance_json(const tensor::Tolerance& t) {
  return {
      {"absolute", t.absolute}, {"relative", t.relative}, {"relative_to_max", t.relative_to_max}};
}

}  // namespace

std::string to_string(const OutputCheck& check) {
  const tensor::Comparison& c = check.comparison;
  std::string text = fmt::format("{} {}: ", check.name, check.shape);
  if (!check.wanted_shape.empty())
    return text + fmt::format("wanted {}: DIFFERS", check.wanted_shape);
  if (c.worst_index < 0) return text + "equal";
  if (!check.equal()) text += fmt::format("{} elements differ, ", c.mismatches);
  text += fmt::format("worst [{}] got {:.9g} want {:.9g}, max|a-b| {:.3g}, max|a-b|/max|b| {:.3g}",
                      fmt::join(check.worst_at, ","), c.worst_got, c.worst_want, c.worst_error,
                      check.relative_error());
  if (check.least_cosine)
    return text + fmt::format(", cosine {:.6f} of {:.6g}{}", check.cosine, *check.least_cosine,
                              check.equal() ? "" : ": DIFFERS");
  text += ", tolerance " + tolerance_text(check.tolerance);
  if (check.widened_by)
    text += fmt::format(" (widened from {}: {})", tolerance_text(check.derived),
                        api::measure_text(*check.widened_by));
  return text + (check.equal() ? "" : ": DIFFERS");
}

nlohmann::ordered_json to_json(const OutputCheck& check) {
  const tensor::Comparison& c = check.comparison;
  nlohmann::ordered_json json;
  json["name"] = check.name;
  json["shape"] = check.shape;
  if (!check.wanted_shape.empty()) json["wanted_shape"] = check.wanted_shape;
  json["equal"] = check.equal();
  json["mismatches"] = c.mismatches;
  json["max_error"] = c.worst_error;
  json["max_error_over_max"] = check.relative_error();
  json["worst_ulp"] = c.worst_ulp;
  json["cosine"] = check.cosine;
  if (check.least_cosine) json["least_cosine"] = *check.least_cosine;
  if (c.worst_index >= 0)
    json["worst"] = {{"index", check.worst_at}, {"got", c.worst_got}, {"want", c.worst_want}};
  json["tolerance"] = tolerance_json(check.tolerance);
  if (check.widened_by) {
    json["widened_by"] = *check.widened_by == api::Measure::f64 ? "f64" : "roundings";
    json["derived_tolerance"] = tolerance_json(check.derived);
  }
  return json;
}

}  // namespace heddle::tools
