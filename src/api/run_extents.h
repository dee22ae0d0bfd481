// Private to api: the extents of one context's runs, set by the names of bounded dimensions or by
// the shapes of inputs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/bounded.h"

namespace heddle::api {

class RunExtents {
 public:
  // The arguments must outlive it.
  RunExtents(const Bounded& bounded, const std::vector<Port>& inputs,
             const std::vector<Port>& outputs);

  // Sets the extent of one dimension. Shapes set before are forgotten: these inputs follow the
  // extents. Errors (user): no such name, an extent out of range.
  Status set(const std::string& name, int64_t extent);
  // Sets extents by the dimensions of an input. Errors (shape): a dimension that is not bounded has
  // another extent, an extent is out of range or not a multiple.
  Status set_input_shape(size_t input, const std::vector<int64_t>& dims);
  // Errors: the extents set so far are inconsistent.
  Status check() const;

  const Sizes& extents() const { return extents_; }  // by symbol
  const std::vector<Port>& outputs() const;          // at these extents

 private:
  Sizes dims_of(size_t input) const;  // at these extents
  int64_t times_in(size_t input, int64_t dimension, size_t symbol) const;
  void set_own(size_t symbol, int64_t extent);
  std::string wanted(size_t input) const;

  const Bounded& bounded_;
  const std::vector<Port>&inputs_, &outputs_;
  Sizes extents_;
  // Requested derived extents, until one of the others changes; 0: none.
  Sizes asked_;
  std::vector<std::optional<Sizes>> shapes_;             // by input, if set
  mutable std::optional<std::vector<Port>> at_extents_;  // outputs(), computed on demand
};

}  // namespace heddle::api
