// Private to api: the extents of one context's runs, said by the names of bounded dimensions or by
// the shapes of inputs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/bounded.h"

namespace heddle::api {

class RunExtents {
 public:
  // All of them outlive this.
  RunExtents(const Bounded& bounded, const std::vector<Port>& inputs,
             const std::vector<Port>& outputs);

  // Of one dimension. What was said by shapes is forgotten: these inputs follow. Errors (user): no
  // such name, an extent out of range.
  Status set(const std::string& name, int64_t extent);
  // Of the dimensions of an input. Errors (shape): dimensions that are not bounded have another
  // extent, an extent out of range or no multiple.
  Status set_input_shape(size_t input, const std::vector<int64_t>& dims);
  // Errors: what was said does not fit together.
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
  // Of extents that follow from others: what is said of them until one of these changes; 0:
  // nothing.
  Sizes asked_;
  std::vector<std::optional<Sizes>> shapes_;             // by input: what was said
  mutable std::optional<std::vector<Port>> at_extents_;  // outputs(), once asked for
};

}  // namespace heddle::api
