#include "import/onnx_window.h"

#include <algorithm>

namespace heddle::import {
namespace {

constexpr int64_t kLargest = int64_t{1} << 31;  // limit for a kernel, stride, dilation or pad

// Pads of auto_pad SAME_*: the output has ceil(extent / stride) elements.
void pad_same(Spatial& s, size_t i, int64_t extent, bool upper) {
  const int64_t span = (s.kernel[i] - 1) * s.dilations[i] + 1;
  s.output[i] = (extent + s.strides[i] - 1) / s.strides[i];
  const int64_t total = std::max<int64_t>(0, (s.output[i] - 1) * s.strides[i] + span - extent);
  s.low[i] = upper ? total / 2 : total - total / 2;
  s.high[i] = total - s.low[i];
}

void read_pads(Op& op, Spatial& s) {
  const Ints pads = op.ints_attr("pads", Ints(2 * s.rank(), 0));
  if (pads.size() != 2 * s.rank())
    op.fail("{} pads for {} spatial dimensions, wanted two each", pads.size(), s.rank());
  for (int64_t pad : pads) {
    if (pad < 0 || pad > kLargest) op.fail("pads [{}] must not be negative", fmt::join(pads, ","));
  }
  s.low.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(s.rank()));
  s.high.assign(pads.begin() + static_cast<std::ptrdiff_t>(s.rank()), pads.end());
}

// floor or ceil((extent + pads - span) / stride) + 1; not counting a last window that would begin
// in the high padding. With ceil, one window may be longer than all that there is: PyTorch's pools
// over whatever is left.
void count_windows(Op& op, Spatial& s, size_t i, int64_t extent, bool ceil) {
  const int64_t span = (s.kernel[i] - 1) * s.dilations[i] + 1;
  const int64_t room = extent + s.low[i] + s.high[i] - span;
  if (ceil && room < 0 && room > -s.strides[i] && s.low[i] < span) {
    s.output[i] = 1;
    s.high[i] -= room;
    return;
  }
  if (room < 0)
    op.fail("a window of {} (dilated) over a dimension of {} with pads {} and {}", span, extent,
            s.low[i], s.high[i]);
  s.output[i] = room / s.strides[i] + 1;
  // Where extents differ from run to run, padding that gives as many windows for each of them: none
  // of them begins in it, and a maximum does not see it.
  const bool is_open = op.is_bounded(op.in(0), static_cast<int64_t>(i) + 2);
  if (ceil && is_open && op.node().op_type == "MaxPool" && !op.wants(1) &&
      span >= s.high[i] + s.strides[i]) {
    s.output[i] = (room + s.strides[i] - 1) / s.strides[i] + 1;
    s.high[i] += s.strides[i] - 1;
    return;
  }
  if (!ceil || room % s.strides[i] == 0) return;
  if (s.output[i] * s.strides[i] >= extent + s.low[i]) return;
  ++s.output[i];
  s.high[i] += s.strides[i] - room % s.strides[i];
}

// Pads that depend on the extent are the same for up to three extents in a row, which are what is
// compared (api/bounded.h), or differ there; not so with longer steps.
void check_pads(Op& op, const Spatial& s, size_t i, bool same, bool ceil) {
  constexpr int64_t kCompared = 3;
  const int64_t span = (s.kernel[i] - 1) * s.dilations[i] + 1;
  const bool may_hide = s.strides[i] > kCompared && (ceil || (same && span < s.strides[i]));
  if (may_hide && op.is_bounded(op.in(0), static_cast<int64_t>(i) + 2))
    op.fail("the padding of steps of {} depends on an extent that differs from run to run",
            s.strides[i]);
}

}  // namespace

hlo::Window Spatial::window() const {
  hlo::Window window;
  for (size_t i = 0; i < rank(); ++i) {
    hlo::WindowDim dim;
    dim.size = kernel[i];
    dim.stride = strides[i];
    dim.rhs_dilate = dilations[i];
    dim.pad_low = low[i];
    dim.pad_high = high[i];
    window.dims.push_back(dim);
  }
  return window;
}

Ints positive_attr(Op& op, const char* name, size_t rank, const Ints& otherwise) {
  Ints values = op.ints_attr(name, otherwise);
  if (values.size() != rank)
    op.fail("{} has {} entries for {} spatial dimensions", name, values.size(), rank);
  for (int64_t value : values) {
    if (value < 1 || value > kLargest)
      op.fail("{} [{}] must be positive", name, fmt::join(values, ","));
  }
  return values;
}

Spatial read_spatial(Op& op, const Ints& extents, Ints kernel) {
  Spatial s;
  const size_t rank = extents.size();
  s.kernel = positive_attr(op, "kernel_shape", rank, kernel);
  if (!kernel.empty() && s.kernel != kernel)
    op.fail("kernel_shape is [{}], the weights have [{}]", fmt::join(s.kernel, ","),
            fmt::join(kernel, ","));
  s.strides = positive_attr(op, "strides", rank, Ints(rank, 1));
  s.dilations = positive_attr(op, "dilations", rank, Ints(rank, 1));
  s.output.resize(rank);
  const bool ceil = op.int_attr("ceil_mode", 0) != 0;
  const std::string auto_pad = op.string_attr("auto_pad", "NOTSET");
  if (auto_pad != "NOTSET" && auto_pad != "VALID" && auto_pad != "SAME_UPPER" &&
      auto_pad != "SAME_LOWER")
    op.fail("auto_pad is {}, wanted NOTSET, VALID, SAME_UPPER or SAME_LOWER", quoted(auto_pad));
  read_pads(op, s);
  if (auto_pad != "NOTSET") s.low = s.high = Ints(rank, 0);
  for (size_t i = 0; i < rank; ++i) {
    if ((s.kernel[i] - 1) > kLargest / s.dilations[i])
      op.fail("a kernel of {} dilated by {} is too large", s.kernel[i], s.dilations[i]);
    check_pads(op, s, i, auto_pad.starts_with("SAME"), ceil);
    if (auto_pad.starts_with("SAME")) {
      pad_same(s, i, extents[i], auto_pad == "SAME_UPPER");
    } else {
      count_windows(op, s, i, extents[i], ceil);
    }
  }
  return s;
}

}  // namespace heddle::import
