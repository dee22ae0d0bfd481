// Private to late: which dimensions of the inputs differ from run to run, and the buckets of their
// extents. The first run's shapes have an exact program; from the first run of other shapes on, a
// dimension that has differed is a bounded one (bounded.h), and one program serves a bucket of its
// extents.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/named_multiple.h"
#include "api/session.h"
#include "api/size_sums.h"

namespace heddle::api {

// The extents that one program is for, by the dimensions' names. With a step they are counted in
// steps, so that what strides make of them are whole numbers of the same symbol.
struct SizeBucket {
  std::map<std::string, int64_t> bounds, least;
  std::map<std::string, int64_t> steps;      // those that are not 1
  std::map<std::string, SumOfExtents> sums;  // those that are sums of others
  bool open = false;                         // import::Options::open_extents
  std::string rest;                          // all dimensions of the inputs, but for these
  std::string text() const;                  // of all of it
  // "batch=1..4 length=5..16 height=32*1..4 total=length+tokens+2"
  std::string ranges() const;
  int64_t step(const std::string& name) const;
  bool operator==(const SizeBucket&) const = default;
};

// Thread safety: none.
class SizeBuckets {
 public:
  // Of the model's inputs; dimensions of the names `fixed` never differ. `all_differ`: the others
  // do from the first run on, which has a bucket then, too.
  SizeBuckets(const std::vector<Port>& inputs, std::set<std::string> fixed,
              bool all_differ = false);

  // More inputs, whose dimensions follow from those of the others: they differ as soon as one of
  // these does.
  void follow(const std::vector<Port>& more);
  // The bucket for inputs of these shapes; nothing: an exact program. Each is one bucket of another
  // one before, or at most four times as large as its least extents (where all differ, at 17 to 256
  // sixteen times); behind a few of these one takes all extents that there were.
  std::optional<SizeBucket> choose(const std::vector<tensor::Shape>& shapes);
  // There is no such program: one may be in which extents are sums of others, if they were in all
  // runs (size_sums.h), a smaller one, and then one whose extents are counted in steps, the largest
  // power of two that divides all that there were, and at last one whose computed extents are open.
  // choose() has it next. After a few of them there are no new buckets.
  void refuse(const SizeBucket& bucket);
  // Nor is there one for other extents: there are no buckets from here on, beside those that were
  // chosen already. A wide one says nothing of the narrower.
  void stop(const SizeBucket& bucket);

 private:
  void add_names(const Port& port);
  bool is_wide(const SizeBucket& bucket) const;
  // By name. Nothing: one name has several extents, or an extent is 0.
  std::optional<std::map<std::string, int64_t>> extents(
      const std::vector<tensor::Shape>& shapes) const;
  std::string rest_of(const std::vector<tensor::Shape>& shapes) const;

  bool is_own(const std::optional<NamedMultiple>& dim) const;
  bool is_in(const SizeBucket& bucket, const std::map<std::string, int64_t>& extents) const;
  int64_t step_of(const std::string& name) const;
  void add_up(SizeBucket* bucket) const;
  void narrow(const std::map<std::string, int64_t>& extents, size_t small,
              SizeBucket* bucket) const;

  std::vector<std::vector<std::string>> names_;  // by input and dimension; empty: none
  std::set<std::string> fixed_;
  bool all_differ_ = false;
  std::set<std::string> differ_, following_;
  std::vector<SizeBucket> made_;
  std::set<std::string> refused_;
  std::map<std::string, int64_t> steps_;  // what divides all extents that there were
  std::vector<Extents> runs_;             // of the first run, and those that no bucket had
  bool in_steps_ = false, open_ = false;
  bool stopped_ = false;
};

}  // namespace heddle::api
