// split_input_dilation: a convolution over a dilated input (a transposed one) becomes one plain
// convolution per phase: outputs that are `dilation` apart use the same elements of the window, and
// its other elements meet only the zeros between the input's elements. The phases are interleaved.
// Only products with these zeros are dropped; sums keep their order. Each rewrite leaves one
// dilated dimension fewer in a convolution.
#include <numeric>

#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

using hlo::Builder;
using hlo::ConvolutionAttrs;
using hlo::WindowDim;

// More phases add more code than they save.
constexpr int64_t kMostPhases = 8;

// The first element of a window that meets the input at outputs `phase` mod dilation; the others
// follow in steps of the dilation. For some dilations of the window itself there is no such
// element: -1.
int64_t first_element(const WindowDim& dim, int64_t phase) {
  for (int64_t k = 0; k < dim.lhs_dilate; ++k)
    if ((phase + dim.rhs_dilate * k - dim.pad_low) % dim.lhs_dilate == 0) return k;
  return -1;
}

bool splits(const WindowDim& dim) {
  return dim.lhs_dilate > 1 && dim.lhs_dilate <= kMostPhases && dim.stride == 1 &&
         std::gcd(dim.lhs_dilate, dim.rhs_dilate) == 1;
}

class Splitter {
 public:
  Splitter(Instr* convolution, size_t which, Builder& b)
      : convolution_(convolution),
        attrs_(convolution->attrs_as<ConvolutionAttrs>()),
        which_(which),
        dim_(attrs_.window.dims[which]),
        b_(b) {}

  Instr* run() {
    const int64_t at = attrs_.dims.output_spatial[which_];
    const Ints extents = convolution_->shape().extents();
    rows_ = (extents[static_cast<size_t>(at)] + dim_.lhs_dilate - 1) / dim_.lhs_dilate;
    Ints one = extents, all = extents;
    one[static_cast<size_t>(at)] = rows_;
    all[static_cast<size_t>(at)] = rows_ * dim_.lhs_dilate;
    Ints apart = one;
    apart.insert(apart.begin() + at + 1, 1);
    std::vector<Instr*> phases;
    for (int64_t p = 0; p < dim_.lhs_dilate; ++p)
      phases.push_back(b_.reshape(phase(p, one), apart));
    Instr* whole = b_.reshape(b_.concatenate(phases, at + 1), all);
    return all == extents ? whole : b_.slice(whole, Ints(extents.size(), 0), extents, {});
  }

 private:
  // The outputs phase, phase + dilation, …: a plain convolution with every dilation-th element.
  Instr* phase(int64_t number, const Ints& extents) {
    const Shape shape = Shape::array(convolution_->shape().type(), extents);
    const int64_t first = first_element(dim_, number), step = dim_.lhs_dilate;
    const int64_t size = first < dim_.size ? (dim_.size - first + step - 1) / step : 0;
    if (size == 0) return b_.full(shape, 0);
    Instr* input = convolution_->operand(0);
    ConvolutionAttrs attrs = attrs_;
    WindowDim& dim = attrs.window.dims[which_];
    dim.size = size;
    dim.lhs_dilate = 1;
    dim.pad_low = (dim_.pad_low - number - dim_.rhs_dilate * first) / step;
    dim.pad_high = rows_ - input->shape().dim(attrs.dims.input_spatial[which_]) - dim.pad_low +
                   dim.rhs_dilate * (size - 1);
    return b_.make(Opcode::convolution, {input, elements(first, size)}, attrs, {}, &shape);
  }

  // Elements first, first + dilation, … of the window; counted from the end for a reversed one.
  Instr* elements(int64_t first, int64_t size) {
    Instr* kernel = convolution_->operand(1);
    const size_t at = static_cast<size_t>(attrs_.dims.kernel_spatial[which_]);
    const int64_t last = first + dim_.lhs_dilate * (size - 1);
    const int64_t start = dim_.reversal ? dim_.size - 1 - last : first;
    Ints starts(static_cast<size_t>(kernel->shape().rank()), 0), strides(starts.size(), 1);
    Ints limits = kernel->shape().extents();
    starts[at] = start;
    limits[at] = start + last - first + 1;
    strides[at] = dim_.lhs_dilate;
    return b_.slice(kernel, starts, limits, strides);
  }

  Instr* convolution_;
  const ConvolutionAttrs attrs_;
  size_t which_;
  const WindowDim dim_;
  Builder& b_;
  int64_t rows_ = 0;  // outputs per phase
};

Rewriter::Proposal visit(Instr* x, Builder& b) {
  if (!x->is(Opcode::convolution) || !are_static_arrays(x) || x->shape().elems() == 0) return {};
  const auto& attrs = x->attrs_as<ConvolutionAttrs>();
  if (attrs.batch_group_count != 1 || !attrs.rest.empty()) return {};
  for (size_t i = 0; i < attrs.window.dims.size(); ++i)
    if (splits(attrs.window.dims[i])) return {Splitter(x, i, b).run(), "phases"};
  return {};
}

}  // namespace

Result<bool> split_input_dilation(hlo::Module& module, const PassContext& context) {
  return rewrite_module(module, context, "split_input_dilation", visit,
                        [](const Instr* instr) { return instr->is(Opcode::convolution); });
}

}  // namespace heddle::opt
