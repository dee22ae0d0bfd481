#include "tensor/box_selection.h"

#include <algorithm>
#include <numeric>

namespace heddle::tensor {
namespace {

struct Box {
  double top, left, bottom, right;
  double area() const { return (bottom - top) * (right - left); }
};

Box read_box(const Literal& boxes, int64_t at, bool centred) {
  double v[4];
  for (int64_t i = 0; i < 4; ++i) v[i] = boxes.get_f64(at * 4 + i);
  if (centred) return {v[1] - v[3] / 2, v[0] - v[2] / 2, v[1] + v[3] / 2, v[0] + v[2] / 2};
  return {std::min(v[0], v[2]), std::min(v[1], v[3]), std::max(v[0], v[2]), std::max(v[1], v[3])};
}

double overlap(const Box& a, const Box& b) {
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (!(height > 0) || !(width > 0) || !(a.area() > 0) || !(b.area() > 0)) return 0;
  const double shared = height * width;
  return shared / (a.area() + b.area() - shared);
}

// The selected boxes in vector blocks: most are nowhere near a new box, so a whole block is tested
// at once.
class Taken {
 public:
  void clear() { count_ = 0; }
  int64_t count() const { return count_; }
  void add(const Box& box) {
    if (static_cast<size_t>(count_) == kBlock * blocks_.size()) blocks_.emplace_back();
    Block& block = blocks_[static_cast<size_t>(count_) / kBlock];
    const auto at = static_cast<size_t>(count_) % kBlock;
    if (at == 0) block = Block();
    block.top[at / kLanes][at % kLanes] = box.top;
    block.left[at / kLanes][at % kLanes] = box.left;
    block.bottom[at / kLanes][at % kLanes] = box.bottom;
    block.right[at / kLanes][at % kLanes] = box.right;
    ++count_;
  }
  bool overlaps(const Box& box, double most_shared) const {
    for (int64_t first = 0; first < count_; first += static_cast<int64_t>(kBlock)) {
      const Block& block = blocks_[static_cast<size_t>(first) / kBlock];
      Places near = {};
      for (size_t i = 0; i < kBlock / kLanes; ++i)  // (a sum of masks: GCC splits a vector or)
        near -= (block.bottom[i] > box.top) & (block.top[i] < box.bottom) &
                (block.right[i] > box.left) & (block.left[i] < box.right);
      // Boxes without intersection cannot exceed a threshold of 0 or more.
      if (most_shared >= 0 && (near[0] | near[1]) == 0) continue;
      for (size_t i = 0; i < kBlock && first + static_cast<int64_t>(i) < count_; ++i)
        if (overlap(box, block.box(i)) > most_shared) return true;
    }
    return false;
  }

 private:
  static constexpr size_t kBlock = 16, kLanes = 2;
  using Lanes = double __attribute__((vector_size(16)));
  using Places = int64_t __attribute__((vector_size(16)));
  struct Block {
    Lanes top[kBlock / kLanes] = {}, left[kBlock / kLanes] = {}, bottom[kBlock / kLanes] = {},
                       right[kBlock / kLanes] = {};
    Box box(size_t i) const {
      const size_t v = i / kLanes, lane = i % kLanes;
      return {top[v][lane], left[v][lane], bottom[v][lane], right[v][lane]};
    }
  };
  std::vector<Block> blocks_;
  int64_t count_ = 0;
};

}  // namespace

Result<std::vector<int64_t>> select_boxes(const Literal& boxes, const Literal& scores,
                                          const BoxSelection& how) {
  const std::vector<int64_t> b = boxes.shape().extents(), s = scores.shape().extents();
  if (b.size() != 3 || s.size() != 3 || b[0] != s[0] || b[1] != s[2] || b[2] != 4 ||
      !is_float(boxes.type()) || !is_float(scores.type()))
    return user_error("boxes is {}, scores {}: wanted [images,n,4] and [images,classes,n]",
                      to_string(boxes.shape()), to_string(scores.shape()));
  const int64_t images = b[0], classes = s[1], n = b[1];
  const int64_t there = std::clamp<int64_t>(how.there, 0, n);
  std::vector<int64_t> selected, order;
  std::vector<Box> all(static_cast<size_t>(n));
  Taken taken;
  std::vector<double> score(static_cast<size_t>(n));
  for (int64_t image = 0; image < images; ++image) {
    for (int64_t i = 0; i < there; ++i)
      all[static_cast<size_t>(i)] = read_box(boxes, image * n + i, how.centred);
    for (int64_t of = 0; of < classes; ++of) {
      order.clear();
      for (int64_t i = 0; i < there; ++i) {
        const double at = scores.get_f64((image * classes + of) * n + i);
        score[static_cast<size_t>(i)] = at;
        if (!how.has_least || at > how.least_score) order.push_back(i);
      }
      std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
        return score[static_cast<size_t>(i)] > score[static_cast<size_t>(j)];
      });
      taken.clear();
      for (const int64_t i : order) {
        if (taken.count() >= how.most) break;
        const Box& box = all[static_cast<size_t>(i)];
        if (taken.overlaps(box, how.most_shared)) continue;
        taken.add(box);
        selected.insert(selected.end(), {image, of, i});
      }
    }
  }
  return selected;
}

}  // namespace heddle::tensor
