// Private to late: extents that a model computes from those of its inputs (what an image measures
// that is resized by a factor which follows from its size). Programs for many sizes have an input
// for each, behind the model's, whose shape says it (import::Options::named_extents); the extents
// are known before a run, as the part of the model that computes them needs shapes only.
#pragma once

#include <memory>
#include <vector>

#include "api/late.h"

namespace heddle::api {

class ComputedExtents {
 public:
  // Of a model with inputs of such shapes. Null: it has none, or it is not known what they are.
  static std::shared_ptr<const ComputedExtents> find(const Late& late,
                                                     const std::vector<tensor::Shape>& shapes);

  const std::vector<Port>& ports() const { return ports_; }  // of these inputs
  // For inputs of these shapes. Errors: an extent that is not positive, or too large.
  Result<std::vector<tensor::Shape>> shapes(const std::vector<tensor::Shape>& inputs) const;

 private:
  std::unique_ptr<hlo::Module> module_;  // of extents, s32[] each
  std::vector<Port> ports_, inputs_;     // the latter: the model's
  std::vector<std::string> names_;       // by parameter, of its extent; empty: it is not read
};

}  // namespace heddle::api
