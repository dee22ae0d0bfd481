#include "quantize/histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace heddle::quantize {

namespace {

constexpr int kLevels = 256;

}  // namespace

void Histogram::grow(double most) {
  if (limit_ == 0) limit_ = std::ldexp(1.0, static_cast<int>(std::ceil(std::log2(most))));
  while (most >= limit_) {
    std::vector<int64_t> wide(bins_.size(), 0);
    for (int bin = 0; bin < kHalf; ++bin) {  // pairs, from 0 outwards
      wide[static_cast<size_t>(kHalf + bin / 2)] += bins_[static_cast<size_t>(kHalf + bin)];
      wide[static_cast<size_t>(kHalf - 1 - bin / 2)] += bins_[static_cast<size_t>(kHalf - 1 - bin)];
    }
    bins_ = std::move(wide);
    limit_ *= 2;
  }
}

void Histogram::add(std::span<const float> values) {
  float low = 0, high = 0;
  for (float x : values) {
    if (!std::isfinite(x)) continue;
    low = std::min(low, x);
    high = std::max(high, x);
  }
  low_ = std::min(low_, static_cast<double>(low));
  high_ = std::max(high_, static_cast<double>(high));
  const double most = std::max(-static_cast<double>(low), static_cast<double>(high));
  if (most > 0 && most >= limit_) grow(most);
  const float scale = limit_ > 0 ? static_cast<float>(kHalf / limit_) : 0;
  double sum = 0, squares = 0;
  for (float x : values) {
    if (!std::isfinite(x)) {
      ++unusable_;
      continue;
    }
    ++count_;
    if (x == 0) {
      ++zeros_;
      continue;
    }
    sum += x;
    squares += static_cast<double>(x) * x;
    const int bin = kHalf + static_cast<int>(std::floor(x * scale));
    ++bins_[static_cast<size_t>(std::clamp(bin, 0, 2 * kHalf - 1))];
  }
  sum_ += sum;
  squares_ += squares;
}

double Histogram::error(const Range& range) const {
  if (count_ == 0) return 0;
  const double step = (range.high - range.low) / (kLevels - 1);
  double sum = 0;
  for (int bin = 0; bin < 2 * kHalf; ++bin) {
    const auto n = static_cast<double>(bins_[static_cast<size_t>(bin)]);
    if (n == 0) continue;
    const double x = center(bin);
    const double beyond = std::max({0.0, x - range.high, range.low - x});
    sum += n * (beyond > 0 ? beyond * beyond : step * step / 12);
  }
  return sum / static_cast<double>(count_);
}

// The range without a share `tail` of the values at either end.
Range Histogram::cut(double tail) const {
  const auto most = static_cast<int64_t>(tail * static_cast<double>(count_));
  Range range{low_, high_};
  int64_t above = 0, below = 0;
  for (int bin = 2 * kHalf; bin-- > kHalf;) {
    above += bins_[static_cast<size_t>(bin)];
    if (above > most) {
      range.high = std::min(high_, center(bin) + limit_ / kHalf / 2);
      break;
    }
  }
  for (int bin = 0; bin < kHalf; ++bin) {
    below += bins_[static_cast<size_t>(bin)];
    if (below > most) {
      range.low = std::max(low_, center(bin) - limit_ / kHalf / 2);
      break;
    }
  }
  return range;
}

// The range with the least expected error; tries fractions of the actual range at both ends.
Range Histogram::best(bool symmetric) const {
  constexpr int kSteps = 64;
  const double most = std::max(-low_, high_);
  const double below = low_ < 0 ? -most : 0;
  Range best = symmetric ? Range{below, most} : Range{low_, high_};
  double least = error(best);
  const auto consider = [&](const Range& range) {
    const double here = error(range);
    if (here < least) {
      least = here;
      best = range;
    }
  };
  for (int i = 2; i < kSteps; ++i) {
    const double share = static_cast<double>(i) / kSteps;
    if (symmetric) {
      consider({below * share, most * share});
      continue;
    }
    consider({low_, high_ * share});
  }
  if (!symmetric && low_ < 0)
    for (int i = 2; i < kSteps; ++i) consider({low_ * i / kSteps, best.high});
  return best;
}

// KL divergence of the absolute values: of the first `inside` bins, with all larger values in the
// last one, against their representation in 128 levels.
double Histogram::divergence(int inside) const {
  constexpr int kQuantized = 128;
  const auto at = [&](int bin) {
    return static_cast<double>(bins_[static_cast<size_t>(kHalf + bin)] +
                               bins_[static_cast<size_t>(kHalf - 1 - bin)]);
  };
  std::vector<double> p(static_cast<size_t>(inside)), q(p.size());
  double beyond = 0, all = 0;
  for (int bin = 0; bin < kHalf; ++bin)
    (bin < inside ? p[static_cast<size_t>(bin)] : beyond) += at(bin);
  std::vector<double> kept = p;
  p.back() += beyond;
  for (int level = 0; level < kQuantized; ++level) {
    const int first = level * inside / kQuantized, end = (level + 1) * inside / kQuantized;
    double mass = 0;
    int used = 0;
    for (int bin = first; bin < end; ++bin) {
      mass += kept[static_cast<size_t>(bin)];
      used += p[static_cast<size_t>(bin)] > 0 ? 1 : 0;
    }
    for (int bin = first; bin < end; ++bin)
      if (p[static_cast<size_t>(bin)] > 0) q[static_cast<size_t>(bin)] = mass / used;
  }
  double of_q = 0;
  for (size_t i = 0; i < p.size(); ++i) all += p[i], of_q += q[i];
  if (all == 0 || of_q == 0) return 0;
  constexpr double kSmooth = 1e-4;
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i)
    if (p[i] > 0) sum += p[i] / all * std::log((p[i] / all) / std::max(q[i] / of_q, kSmooth / all));
  return sum;
}

Range Histogram::least_divergence() const {
  const double most = std::max(-low_, high_);
  const int used = limit_ > 0 ? std::min(kHalf, static_cast<int>(most / limit_ * kHalf) + 1) : 0;
  double least = 0, found = most;
  for (int inside = 128; inside <= used; ++inside) {
    const double here = divergence(inside);
    if (inside == 128 || here < least) {
      least = here;
      found = inside * limit_ / kHalf;
    }
  }
  return {std::max(low_, -found), std::min(high_, found)};
}

Range Histogram::range(Method method, bool symmetric, double percentile) const {
  Range found{low_, high_};
  if (method == Method::percentile) found = cut((1 - percentile / 100) / 2);
  if (method == Method::mse) found = best(symmetric);
  if (method == Method::kl) found = least_divergence();
  if (!symmetric) return found;
  const double most = std::max(-found.low, found.high);
  return {low_ < 0 ? -most : 0, most};
}

std::string Histogram::save() const {
  std::string text = fmt::format("{} {} {} {} {} {} {} {}", limit_, count_, zeros_, unusable_, low_,
                                 high_, sum_, squares_);
  for (size_t bin = 0; bin < bins_.size(); ++bin)
    if (bins_[bin] > 0) text += fmt::format(" {}:{}", bin, bins_[bin]);
  return text;
}

bool Histogram::load(const std::string& line, Histogram* to) {
  std::istringstream in(line);
  Histogram read;
  in >> read.limit_ >> read.count_ >> read.zeros_ >> read.unusable_ >> read.low_ >> read.high_ >>
      read.sum_ >> read.squares_;
  if (!in) return false;
  size_t bin = 0;
  int64_t n = 0;
  char colon = 0;
  while (in >> bin >> colon >> n) {
    if (bin >= read.bins_.size() || colon != ':' || n < 0) return false;
    read.bins_[bin] = n;
  }
  *to = std::move(read);
  return true;
}

}  // namespace heddle::quantize
