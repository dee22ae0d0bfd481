#include "api/size_buckets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "api/bounded.h"

namespace heddle::api {
namespace {

// Programs of small buckets, before one takes all.
constexpr size_t kSmallBuckets = 2;
// Where more extents follow from those of the inputs, each is an import many times over: seconds.
constexpr size_t kMostRefused = 8, kMostRefusedWithComputed = 3;
constexpr int64_t kLeastBound = 4;  // of find_bounded
// Graphs that a framework traces are several for one model, each with its buckets: fewer and wider
// ones from here on.
constexpr int64_t kWideFrom = 64, kWide = 256;
constexpr int64_t kMostExtent = int64_t{1} << 24;
constexpr int64_t kMostStep = 64;  // no network halves an image more often
constexpr int64_t kPaddedTo = 16;
constexpr size_t kMostRuns = 64;  // that are looked at
constexpr int64_t kTight = 32;    // a bound is a multiple of it, if it is no power of two

}  // namespace

std::string SizeBucket::text() const { return rest + " " + ranges(); }

std::string SizeBucket::ranges() const {
  std::string result;
  for (const auto& [name, bound] : bounds) {
    const std::string times = step(name) == 1 ? "" : fmt::format("{}*", step(name));
    const std::string space = result.empty() ? "" : " ";
    if (const auto sum = sums.find(name); sum != sums.end()) {
      result += fmt::format("{}{}={}", space, name, fmt::join(sum->second.of, "+"));
      if (sum->second.more > 0) result += fmt::format("+{}", sum->second.more);
      continue;
    }
    result += fmt::format("{}{}={}{}..{}", space, name, times, least.at(name), bound);
  }
  if (open) result += " computed extents open";
  return result;
}

int64_t SizeBucket::step(const std::string& name) const {
  const auto found = steps.find(name);
  return found == steps.end() ? 1 : found->second;
}

SizeBuckets::SizeBuckets(const std::vector<Port>& inputs, std::set<std::string> fixed,
                         bool all_differ)
    : fixed_(std::move(fixed)), all_differ_(all_differ) {
  for (const Port& port : inputs) {
    add_names(port);
    for (const NamedDim& dim : port.named)
      if (const auto multiple = multiple_of(dim.name); all_differ_ && is_own(multiple))
        differ_.insert(multiple->name);
  }
}

void SizeBuckets::add_names(const Port& port) {
  names_.emplace_back();
  for (const NamedDim& dim : port.named) names_.back().push_back(dim.name);
}

void SizeBuckets::follow(const std::vector<Port>& more) {
  for (const Port& port : more) {
    add_names(port);
    for (const NamedDim& dim : port.named) following_.insert(dim.name);
  }
}

bool SizeBuckets::is_own(const std::optional<NamedMultiple>& dim) const {
  return dim && !fixed_.contains(dim->name);
}

bool SizeBuckets::is_in(const SizeBucket& bucket,
                        const std::map<std::string, int64_t>& extents) const {
  return std::all_of(bucket.bounds.begin(), bucket.bounds.end(), [&](const auto& bound) {
    const int64_t extent = extents.at(bound.first), step = bucket.step(bound.first);
    if (const auto sum = bucket.sums.find(bound.first); sum != bucket.sums.end())
      return extent == sum_of(sum->second, extents);
    return extent % step == 0 && extent / step >= bucket.least.at(bound.first) &&
           extent / step <= bound.second;
  });
}

std::optional<std::map<std::string, int64_t>> SizeBuckets::extents(
    const std::vector<tensor::Shape>& shapes) const {
  std::map<std::string, int64_t> result;
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (size_t d = 0; d < names_[i].size(); ++d) {
      const std::string& name = names_[i][d];
      if (d >= static_cast<size_t>(shapes[i].rank())) return std::nullopt;
      const int64_t extent = shapes[i].dim(static_cast<int64_t>(d));
      if (extent < 1 || extent > kMostExtent) return std::nullopt;
      const auto multiple = multiple_of(name);
      if (!is_own(multiple)) continue;
      if (extent % multiple->factor != 0) return std::nullopt;
      const int64_t of = extent / multiple->factor;
      if (result.emplace(multiple->name, of).first->second != of) return std::nullopt;
    }
  }
  return result;
}

std::string SizeBuckets::rest_of(const std::vector<tensor::Shape>& shapes) const {
  std::string result;
  for (size_t i = 0; i < shapes.size(); ++i) {
    std::vector<std::string> dims;
    for (int64_t d = 0; d < shapes[i].rank(); ++d) {
      const auto at = static_cast<size_t>(d);
      const std::string name = at < names_[i].size() ? names_[i][at] : "";
      const auto multiple = multiple_of(name);
      const bool open = multiple ? differ_.contains(multiple->name) : !name.empty();
      dims.push_back(open ? "*" : std::to_string(shapes[i].dim(d)));
    }
    result += fmt::format("[{}]", fmt::join(dims, ","));
  }
  return result;
}

std::optional<SizeBucket> SizeBuckets::choose(const std::vector<tensor::Shape>& shapes) {
  const auto now = extents(shapes);
  if (!now) return std::nullopt;
  if (runs_.empty()) runs_.push_back(*now);
  for (const auto& [name, extent] : *now) {
    int64_t& step = steps_.emplace(name, kMostStep).first->second;
    while (extent % step != 0) step /= 2;
  }
  for (const auto& [name, extent] : *now)
    if (const auto at_first = runs_[0].find(name);
        at_first != runs_[0].end() && at_first->second != extent)
      differ_.insert(name);
  if (differ_.empty()) return std::nullopt;
  for (const std::string& name : following_) {
    if (!now->contains(name)) return std::nullopt;
    differ_.insert(name);
  }
  SizeBucket bucket;
  bucket.rest = rest_of(shapes);
  size_t small = 0;
  for (const SizeBucket& made : made_) {
    if (made.rest != bucket.rest) continue;
    ++small;
    if (is_in(made, *now)) return made;
  }
  if (runs_.size() < kMostRuns && std::find(runs_.begin(), runs_.end(), *now) == runs_.end())
    runs_.push_back(*now);
  const size_t most = following_.empty() ? kMostRefused : kMostRefusedWithComputed;
  if (stopped_ || refused_.size() >= most) return std::nullopt;
  open_ = std::ranges::any_of(made_, [](const SizeBucket& made) { return made.open; });
  // Height and width that are padded: levels of a pyramid are then multiples of each other.
  in_steps_ = in_steps_ || (made_.empty() && refused_.empty() &&
                            std::ranges::count_if(differ_, [&](const std::string& name) {
                              return steps_.at(name) >= kPaddedTo;
                            }) >= 2);
  narrow(*now, small, &bucket);
  const bool has_steps =
      std::ranges::any_of(differ_, [&](const auto& name) { return steps_.at(name) > 1; });
  const auto again = [&] {
    const std::string rest = bucket.rest;
    bucket = SizeBucket();
    bucket.rest = rest;
    narrow(*now, small, &bucket);
  };
  if (refused_.contains(bucket.text()) && !in_steps_ && has_steps) {
    in_steps_ = true;
    again();
  }
  if (refused_.contains(bucket.text()) && !open_ && following_.empty()) {
    open_ = true;
    const bool in_steps = std::exchange(in_steps_, false);
    again();
    in_steps_ = in_steps;
  }
  if (refused_.contains(bucket.text())) return std::nullopt;
  made_.push_back(bucket);
  return bucket;
}

int64_t SizeBuckets::step_of(const std::string& name) const {
  return in_steps_ ? steps_.at(name) : 1;
}

// Extents that are sums have the sums of the others' bounds.
void SizeBuckets::add_up(SizeBucket* bucket) const {
  for (const auto& [name, sum] : bucket->sums) {
    bucket->bounds[name] = sum_of(sum, bucket->bounds);
    bucket->least[name] = sum_of(sum, bucket->least);
  }
}

// The bounds of the first bucket for these extents that was not refused, or of one that was.
void SizeBuckets::narrow(const std::map<std::string, int64_t>& extents, size_t small,
                         SizeBucket* bucket) const {
  const auto now = [&](const std::string& name) { return extents.at(name) / step_of(name); };
  bucket->open = open_;
  for (const std::string& name : differ_)
    if (step_of(name) > 1) bucket->steps[name] = step_of(name);
  // What follows from other extents is computed, and says how.
  if (!refused_.empty() && bucket->steps.empty() && following_.empty())
    bucket->sums = sums_among(runs_, differ_);
  for (const bool wide : {all_differ_, false}) {
    for (const std::string& name : differ_) {
      int64_t bound = kLeastBound;
      while (bound < now(name)) bound *= 4;
      int64_t below = bound == kLeastBound ? 0 : bound / 4;
      if (wide && bound >= kWideFrom && bound <= kWide) bound = kWide, below = kWideFrom / 4;
      bucket->bounds[name] = bound;
      bucket->least[name] = below + 1;
    }
    add_up(bucket);
    if (!refused_.contains(bucket->text())) break;
  }
  if (small >= kSmallBuckets) {
    for (const SizeBucket& made : made_)
      for (const auto& [name, bound] : made.bounds)
        if (made.rest == bucket->rest)
          bucket->bounds[name] =
              std::max(bucket->bounds[name], bound * made.step(name) / bucket->step(name));
    for (auto& [name, least] : bucket->least) least = 1;
    add_up(bucket);
  }
  // A table of a few positions may be another model, and one of positions may end before the bound.
  // One that takes all does so nevertheless.
  const auto extreme = [&](const std::string& name, bool largest) {
    int64_t result = now(name);
    for (const Extents& run : runs_)
      if (const auto found = run.find(name); small >= kSmallBuckets && found != run.end()) {
        const int64_t extent = found->second / step_of(name);
        result = largest ? std::max(result, extent) : std::min(result, extent);
      }
    return result;
  };
  if (refused_.contains(bucket->text()))
    for (auto& [name, least] : bucket->least)
      if (extreme(name, false) > kLeastBound) least = std::max(least, kLeastBound + 1);
  add_up(bucket);
  if (refused_.contains(bucket->text()))
    for (auto& [name, bound] : bucket->bounds) {
      const int64_t most = extreme(name, true);
      if (bound > kLeastBound && bound / 2 >= most)
        bound /= 2;
      else if (small >= kSmallBuckets)
        bound = std::min(bound, (most + kTight - 1) / kTight * kTight);
    }
  add_up(bucket);
}

bool SizeBuckets::is_wide(const SizeBucket& bucket) const {
  return all_differ_ && std::ranges::any_of(bucket.bounds, [&](const auto& bound) {
           return bound.second == kWide && bucket.least.at(bound.first) == kWideFrom / 4 + 1;
         });
}

void SizeBuckets::stop(const SizeBucket& bucket) { stopped_ = stopped_ || !is_wide(bucket); }

void SizeBuckets::refuse(const SizeBucket& bucket) {
  refused_.insert(bucket.text());
  std::erase(made_, bucket);
}

}  // namespace heddle::api
