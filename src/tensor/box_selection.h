// Non-maximum suppression (NonMaxSuppression of ONNX's specification): takes the boxes of each
// class of each image by falling score, skipping those that overlap a selected one.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "tensor/literal.h"

namespace heddle::tensor {

struct BoxSelection {
  bool centred = false;    // boxes are [x centre, y centre, width, height], else two corners
  int64_t most = 0;        // maximum number of boxes per class
  double most_shared = 0;  // maximum intersection over union with a selected box
  double least_score = 0;  // if has_least: scores must be above it
  bool has_least = false;
  int64_t there = INT64_MAX;  // boxes; those behind are not looked at
};

// boxes: [images, n, 4], scores: [images, classes, n], floats. Returns rows of image, class, box.
// For equal scores the first box wins. Errors (user): other shapes or types.
Result<std::vector<int64_t>> select_boxes(const Literal& boxes, const Literal& scores,
                                          const BoxSelection& how);

}  // namespace heddle::tensor
