#include "api/size_buckets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "api/bounded.h"

namespace heddle::api {
namespace {

// Programs of small buckets, before one takes all.
constexpr size_t kSmallBuckets = 2;
constexpr size_t kMostRefused = 6;
constexpr int64_t kLeastBound = 4;  // of find_bounded
// Graphs that a framework traces are several for one model, each with its buckets: fewer and wider
// ones from here on.
constexpr int64_t kWideFrom = 64, kWide = 256;
constexpr int64_t kMostExtent = int64_t{1} << 24;

bool is_in(const SizeBucket& bucket, const std::map<std::string, int64_t>& extents) {
  return std::all_of(bucket.bounds.begin(), bucket.bounds.end(), [&](const auto& bound) {
    const int64_t extent = extents.at(bound.first);
    return extent >= bucket.least.at(bound.first) && extent <= bound.second;
  });
}

}  // namespace

std::string SizeBucket::text() const { return rest + " " + ranges(); }

std::string SizeBucket::ranges() const {
  std::string result;
  for (const auto& [name, bound] : bounds)
    result += fmt::format("{}{}={}..{}", result.empty() ? "" : " ", name, least.at(name), bound);
  return result;
}

SizeBuckets::SizeBuckets(const std::vector<Port>& inputs, std::set<std::string> fixed,
                         bool all_differ)
    : fixed_(std::move(fixed)), all_differ_(all_differ) {
  for (const Port& port : inputs) {
    names_.emplace_back();
    for (const NamedDim& dim : port.named) {
      names_.back().push_back(dim.name);
      const bool is_own = !dim.name.empty() && !is_derived(dim.name) && !fixed_.contains(dim.name);
      if (all_differ_ && is_own) differ_.insert(dim.name);
    }
  }
}

bool is_derived(const std::string& name) {
  return !std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
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
      if (name.empty() || is_derived(name) || fixed_.contains(name)) continue;
      if (result.emplace(name, extent).first->second != extent) return std::nullopt;
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
      const bool open = differ_.contains(name) || (!name.empty() && is_derived(name));
      dims.push_back(open ? "*" : std::to_string(shapes[i].dim(d)));
    }
    result += fmt::format("[{}]", fmt::join(dims, ","));
  }
  return result;
}

std::optional<SizeBucket> SizeBuckets::choose(const std::vector<tensor::Shape>& shapes) {
  const auto now = extents(shapes);
  if (!now) return std::nullopt;
  if (!first_) first_ = now;
  for (const auto& [name, extent] : *now)
    if (const auto at_first = first_->find(name);
        at_first != first_->end() && at_first->second != extent)
      differ_.insert(name);
  if (differ_.empty()) return std::nullopt;
  SizeBucket bucket;
  bucket.rest = rest_of(shapes);
  size_t small = 0;
  for (const SizeBucket& made : made_) {
    if (made.rest != bucket.rest) continue;
    ++small;
    if (is_in(made, *now)) return made;
  }
  if (stopped_ || refused_.size() >= kMostRefused) return std::nullopt;
  for (const bool wide : {all_differ_, false}) {
    for (const std::string& name : differ_) {
      int64_t bound = kLeastBound;
      while (bound < now->at(name)) bound *= 4;
      int64_t below = bound == kLeastBound ? 0 : bound / 4;
      if (wide && bound >= kWideFrom && bound <= kWide) bound = kWide, below = kWideFrom / 4;
      bucket.bounds[name] = bound;
      bucket.least[name] = below + 1;
    }
    if (!refused_.contains(bucket.text())) break;
  }
  if (small >= kSmallBuckets) {
    for (const SizeBucket& made : made_)
      for (const auto& [name, bound] : made.bounds)
        if (made.rest == bucket.rest) bucket.bounds[name] = std::max(bucket.bounds[name], bound);
    for (auto& [name, least] : bucket.least) least = 1;
  }
  // A table of a few positions may be another model, and one of positions may end before the bound.
  if (refused_.contains(bucket.text()))
    for (auto& [name, least] : bucket.least)
      if (now->at(name) > kLeastBound) least = std::max(least, kLeastBound + 1);
  if (refused_.contains(bucket.text()))
    for (auto& [name, bound] : bucket.bounds)
      if (bound > kLeastBound && bound / 2 >= now->at(name)) bound /= 2;
  if (refused_.contains(bucket.text())) return std::nullopt;
  made_.push_back(bucket);
  return bucket;
}

void SizeBuckets::stop(const SizeBucket& bucket) {
  const bool wide = std::any_of(bucket.bounds.begin(), bucket.bounds.end(), [&](const auto& bound) {
    return bound.second == kWide && bucket.least.at(bound.first) == kWideFrom / 4 + 1;
  });
  stopped_ = stopped_ || !(all_differ_ && wide);
}

void SizeBuckets::refuse(const SizeBucket& bucket) {
  refused_.insert(bucket.text());
  std::erase(made_, bucket);
}

}  // namespace heddle::api
