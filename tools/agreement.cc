#include "agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "quantize/numbers.h"

namespace heddle::tools {

using tensor::Literal;

namespace {

int64_t largest(const Literal& value, int64_t row, int64_t classes) {
  int64_t best = 0;
  for (int64_t c = 1; c < classes; ++c)
    if (value.get_f64(row * classes + c) > value.get_f64(row * classes + best)) best = c;
  return best;
}

}  // namespace

void Agreement::add(const std::vector<Literal>& got, const std::vector<Literal>& want) {
  sums_.resize(want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    const Literal &a = got[i], &b = want[i];
    if (!b.shape().is_array() || !tensor::is_float(b.type())) continue;
    Sums& sums = sums_[i];
    sums.is_float = true;
    for (int64_t e = 0; e < b.elems(); ++e) {
      const double x = a.get_f64(e), y = b.get_f64(e);
      if (x == y && !std::isfinite(x)) continue;  // a mask's infinity
      sums.product += x * y;
      sums.got += x * x;
      sums.want += y * y;
      sums.noise += (x - y) * (x - y);
    }
    if (b.shape().rank() != 2 || b.shape().dim(1) < 2) continue;
    for (int64_t row = 0; row < b.shape().dim(0); ++row, ++rows_)
      same_ += largest(a, row, b.shape().dim(1)) == largest(b, row, b.shape().dim(1)) ? 1 : 0;
  }
}

double Agreement::cosine() const {
  double least = 1;
  for (const Sums& sums : sums_) {
    if (!sums.is_float) continue;
    const double lengths = std::sqrt(sums.got * sums.want);
    const double here = lengths > 0 ? sums.product / lengths : sums.noise == 0 ? 1 : 0;
    least = here >= least ? least : here;  // also NaN
  }
  return least;
}

double Agreement::sqnr() const {
  double least = std::numeric_limits<double>::infinity();
  for (const Sums& sums : sums_)
    if (sums.is_float) least = std::min(least, quantize::decibels(sums.want, sums.noise));
  return least;
}

double Agreement::top1() const {
  return rows_ == 0 ? -1 : static_cast<double>(same_) / static_cast<double>(rows_);
}

std::string to_string(const Agreement& agreement) {
  std::string text = fmt::format("cosine {:.5f}, {:.1f} dB", agreement.cosine(), agreement.sqnr());
  if (agreement.top1() >= 0) text += fmt::format(", the same class {:.1f} %", 100 * agreement.top1());
  return text;
}

nlohmann::ordered_json to_json(const Agreement& agreement) {
  nlohmann::ordered_json json = {{"cosine", agreement.cosine()}, {"sqnr_db", agreement.sqnr()}};
  if (agreement.top1() >= 0) json["top1_agreement"] = agreement.top1();
  return json;
}

}  // namespace heddle::tools
