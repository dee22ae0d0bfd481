// Greedy suppression of overlapping boxes (NonMaxSuppression of ONNX's specification): of each
// class of each image the boxes by falling score, but those that overlap one that was taken.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "tensor/literal.h"

namespace heddle::tensor {

struct BoxSelection {
  bool centred = false;    // boxes are [x centre, y centre, width, height], else two corners
  int64_t most = 0;        // boxes of a class
  double most_shared = 0;  // of intersection over union with a box that was taken
  double least_score = 0;  // with has_least: scores must be above it
  bool has_least = false;
  int64_t there = INT64_MAX;  // boxes; those behind are not looked at
};

// boxes: [images, n, 4], scores: [images, classes, n], floats. Rows of image, class, box. Ties in
// score: the box that comes first. Errors (user): other shapes or types.
Result<std::vector<int64_t>> select_boxes(const Literal& boxes, const Literal& scores,
                                          const BoxSelection& how);

}  // namespace heddle::tensor
