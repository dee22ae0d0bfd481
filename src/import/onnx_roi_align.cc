// RoiAlign: means or maxima of samples in regions of images, each interpolated from four elements.
#include <algorithm>
#include <cmath>

#include "import/onnx_emit.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

Instr* add(Op& op, Instr* a, Instr* b) { return op.b.binary(Opcode::add, a, b); }
Instr* times(Op& op, Instr* a, Instr* b) { return op.b.binary(Opcode::multiply, a, b); }

struct Roi {
  Instr *start, *bin;  // [R]
  int64_t bins, samples;
};

// Sample positions along one side, [R, bins, samples].
Instr* roi_positions(Op& op, const Roi& roi, int64_t count) {
  const Ints extents{count, roi.bins, roi.samples};
  const Type type = roi.start->shape().type();
  Literal offsets(Shape::array(type, {roi.bins, roi.samples}));
  for (int64_t i = 0; i < offsets.elems(); ++i)
    offsets.set_f64(
        i, static_cast<double>(i / roi.samples) +
               (static_cast<double>(i % roi.samples) + 0.5) / static_cast<double>(roi.samples));
  Instr* at = times(op, op.b.broadcast(op.b.constant(offsets), extents, {1, 2}),
                    op.b.broadcast(roi.bin, extents, {0}));
  return add(op, at, op.b.broadcast(roi.start, extents, {0}));
}

// For one side of a sample: the two positions, the weight of the second, whether it is inside.
struct Tap {
  Instr *low, *high, *weight, *counts;
};

Tap roi_tap(Op& op, Instr* x, Instr* extent) {
  Tap tap;
  tap.counts = op.b.binary(Opcode::and_, compare(op, Direction::ge, x, -1),
                           compare(op, Direction::le, x, extent));
  Instr* last = binary(op, Opcode::subtract, extent, 1);
  x = binary(op, Opcode::minimum, binary(op, Opcode::maximum, x, 0), last);
  tap.low = op.b.unary(Opcode::floor, x);
  tap.high = binary(op, Opcode::minimum, binary(op, Opcode::add, tap.low, 1), last);
  tap.weight = op.b.binary(Opcode::subtract, x, tap.low);
  return tap;
}

int64_t roi_samples(Op& op, int64_t low, int64_t bins, double scale, bool half) {
  const int64_t ratio = op.int_attr("sampling_ratio", 0);
  constexpr int64_t kMost = 1 << 12;
  if (ratio > kMost || ratio < 0) op.fail("sampling_ratio is {}", ratio);
  if (ratio > 0) return ratio;
  // The number of elements in a bin: one number for all regions, so they must agree.
  const Literal& rois = op.known_or_fail(1, "rois");
  int64_t common = 0;
  for (int64_t r = 0; r < op.shape(1).dim(0); ++r) {
    double size = (rois.get_f64(r * 4 + low + 2) - rois.get_f64(r * 4 + low)) * scale;
    if (!half) size = std::max(size, 1.0);
    const double count = std::ceil(size / static_cast<double>(bins));
    if (!(count >= 1 && count <= kMost)) op.fail("region {} has a side of {}", r, size);
    if (common != 0 && common != static_cast<int64_t>(count))
      op.fail("sampling_ratio is 0 and regions differ in size; give it a value");
    common = static_cast<int64_t>(count);
  }
  return std::max<int64_t>(common, 1);
}

// [N,H,W,C] as rows of C: every sample reads whole rows.
Instr* roi_image(Op& op) {
  Instr* image = op.b.transpose(op.b.convert(op.in(0), compute_type(op.type(0))), {0, 2, 3, 1});
  if (op.is_bounded(op.in(0), 2) || op.is_bounded(op.in(0), 3)) return image;
  const Ints e = image->shape().extents();
  return reshape(op, image, {e[0] * e[1] * e[2], e[3]});
}

// Rows of the image at positions in N, [R], and in H and W, [R, ...].
Instr* roi_rows(Op& op, Instr* image, Instr* batch, Instr* row, Instr* column) {
  const Ints all = row->shape().extents(), e = op.shape(0).extents();
  if (image->shape().rank() == 2) {
    Instr* first = op.b.broadcast(binary(op, Opcode::multiply, batch, e[2] * e[3]), all, {0});
    Instr* at = add(op, add(op, first, binary(op, Opcode::multiply, row, e[3])), column);
    return op.b.take(image, at, 0);
  }
  const auto rank = static_cast<int64_t>(all.size());
  Ints one = all;
  one.push_back(1);
  std::vector<Instr*> columns;
  for (Instr* at : {op.b.broadcast(batch, all, {0}), row, column})
    columns.push_back(reshape(op, at, one));
  hlo::GatherAttrs attrs;
  attrs.slice_sizes = {1, 1, 1, e[1]};
  attrs.collapsed_slice_dims = attrs.start_index_map = {0, 1, 2};
  attrs.offset_dims = {rank};
  attrs.index_vector_dim = rank;
  return op.b.gather(image, op.b.concatenate(columns, rank), std::move(attrs));
}

Outputs roi_align(Op& op) {
  op.check_float(0);
  const std::string mode = op.string_attr("mode", "avg");
  const std::string transform = op.string_attr(
      "coordinate_transformation_mode", op.opset() < 16 ? "output_half_pixel" : "half_pixel");
  if ((mode != "avg" && mode != "max") ||
      (transform != "half_pixel" && transform != "output_half_pixel"))
    op.fail("mode is {}, coordinate_transformation_mode {}", quoted(mode), quoted(transform));
  const bool half = transform == "half_pixel";
  const double scale = op.float_attr("spatial_scale", 1.0);
  const int64_t height = op.int_attr("output_height", 1), width = op.int_attr("output_width", 1);
  const Ints e = op.shape(0).extents();
  if (e.size() != 4 || op.shape(0).elems() == 0 || op.rank(1) != 2 || op.shape(1).dim(1) != 4 ||
      op.rank(2) != 1 || op.shape(2).dim(0) != op.shape(1).dim(0) || height < 1 || width < 1 ||
      !tensor::is_integer(op.type(2)))
    op.fail("X is {}, rois {}, batch_indices {}", to_string(op.shape(0)), to_string(op.shape(1)),
            to_string(op.shape(2)));
  const int64_t count = op.shape(1).dim(0);
  op.demand(2, {{0, e[0] - 1}});
  const Type type = op.type(0), compute = compute_type(type);
  Instr* rois = op.b.convert(op.in(1), compute);
  const auto side = [&](int64_t column, int64_t bins) {
    const auto corner = [&](int64_t at) {
      Instr* x = reshape(op, op.b.slice(rois, {0, at}, {count, at + 1}, {}), {count});
      x = binary(op, Opcode::multiply, x, scale);
      return half ? binary(op, Opcode::subtract, x, 0.5) : x;
    };
    Roi roi{corner(column), nullptr, bins, roi_samples(op, column, bins, scale, half)};
    Instr* size = op.b.binary(Opcode::subtract, corner(column + 2), roi.start);
    if (!half) size = binary(op, Opcode::maximum, size, 1);
    roi.bin = binary(op, Opcode::divide, size, bins);
    return roi;
  };
  const Roi rows = side(1, height), columns = side(0, width);
  const Ints all{count, height, width, rows.samples, columns.samples};
  Ints with_channels = all;
  with_channels.push_back(e[1]);
  op.check_extents(with_channels);
  const Tap y = roi_tap(op, roi_positions(op, rows, count), extent_of(op, op.in(0), 2, compute));
  const Tap x = roi_tap(op, roi_positions(op, columns, count), extent_of(op, op.in(0), 3, compute));
  const auto of_row = [&](Instr* v) { return op.b.broadcast(v, all, {0, 1, 3}); };
  const auto of_column = [&](Instr* v) { return op.b.broadcast(v, all, {0, 2, 4}); };
  Instr *image = roi_image(op), *batch = op.b.convert(op.in(2), Type::s32);
  Instr* counts = op.b.binary(Opcode::and_, of_row(y.counts), of_column(x.counts));
  const auto corner = [&](bool bottom, bool right) {
    const auto weight = [&](Instr* w, bool second) {
      return second ? w : op.b.binary(Opcode::subtract, op.b.full(w->shape(), 1), w);
    };
    Instr* row = op.b.convert(of_row(bottom ? y.high : y.low), Type::s32);
    Instr* column = op.b.convert(of_column(right ? x.high : x.low), Type::s32);
    Instr* w = times(op, of_row(weight(y.weight, bottom)), of_column(weight(x.weight, right)));
    w = select(op, counts, w, op.b.scalar(compute, 0));
    return times(op, roi_rows(op, image, batch, row, column),
                 op.b.broadcast(w, with_channels, {0, 1, 2, 3, 4}));
  };
  Instr* parts[] = {corner(false, false), corner(false, true), corner(true, false),
                    corner(true, true)};
  const bool average = mode == "avg";
  Instr* result = parts[0];
  for (int i = 1; i < 4; ++i)  // for max, the maximum is over the weighted corners
    result = op.b.binary(average ? Opcode::add : Opcode::maximum, result, parts[i]);
  result = average ? mean(op, result, {3, 4}) : op.b.reduce(Opcode::maximum, result, {3, 4});
  return {op.b.convert(op.b.transpose(result, {0, 3, 1, 2}), type)};
}

constexpr OpEntry kOps[] = {{"RoiAlign", 3, 3, roi_align}};

}  // namespace

std::span<const OpEntry> region_ops() { return kOps; }

}  // namespace heddle::import
