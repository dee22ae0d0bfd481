#include "tensor/box_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::tensor {
namespace {

using ::testing::ElementsAre;

Literal floats(const std::vector<int64_t>& dims, const std::vector<float>& values) {
  return Literal::from<float>(Shape::array(Type::f32, dims), values);
}

// Two boxes that share half of the smaller one, and one disjoint.
const std::vector<float> kCorners{0, 0, 2, 2, 0, 0, 2, 1, 5, 5, 6, 6};

TEST(BoxSelection, TheBestOfThoseThatOverlap) {
  const Literal boxes = floats({1, 3, 4}, kCorners), scores = floats({1, 1, 3}, {0.5, 0.9, 0.1});
  BoxSelection how;
  how.most = 3;
  how.most_shared = 0.4;
  auto rows = select_boxes(boxes, scores, how);
  ASSERT_TRUE(rows);
  EXPECT_THAT(*rows, ElementsAre(0, 0, 1, 0, 0, 2));
  how.most_shared = 0.6;
  EXPECT_THAT(*select_boxes(boxes, scores, how), ElementsAre(0, 0, 1, 0, 0, 0, 0, 0, 2));
  how.most = 1;
  EXPECT_THAT(*select_boxes(boxes, scores, how), ElementsAre(0, 0, 1));
  how.most = 3;
  how.has_least = true;
  how.least_score = 0.5;
  EXPECT_THAT(*select_boxes(boxes, scores, how), ElementsAre(0, 0, 1)) << "above, not at";
}

TEST(BoxSelection, ClassesAreApartAndTiesGoByPlace) {
  const Literal boxes = floats({1, 3, 4}, kCorners);
  const Literal scores = floats({1, 2, 3}, {0.5, 0.5, 0.5, 0, 1, 0});
  BoxSelection how;
  how.most = 2;
  how.most_shared = 0.4;
  EXPECT_THAT(*select_boxes(boxes, scores, how), ElementsAre(0, 0, 0, 0, 0, 2, 0, 1, 1, 0, 1, 2));
}

TEST(BoxSelection, OtherShapesAreErrors) {
  const auto wrong = select_boxes(floats({1, 3, 4}, kCorners), floats({1, 1, 2}, {1, 2}), {});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, ::testing::HasSubstr("boxes is f32[1,3,4]"));
}

}  // namespace
}  // namespace heddle::tensor
