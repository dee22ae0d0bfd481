// split_windows: the largest (or smallest) element of a window over several dimensions is found
// over one dimension after the other: of 9 + 9 elements instead of 81. Detectors of keypoints and
// pyramids of pools have such windows. Only with steps of 1, where the first dimension's results
// are no more than the elements, and where that halves what is compared; not beside bounded
// dimensions, where a window may end behind what is there. Each rewrite leaves one dimension fewer
// in a window. Exact: of zeros that are equal the sign may be another one's.
#include "hlo/combiner.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

using hlo::Builder;
using hlo::Window;
using hlo::WindowDim;

bool is_plain(const WindowDim& dim) {
  return dim.stride == 1 && dim.lhs_dilate == 1 && dim.rhs_dilate == 1;
}

// The dimension that is done first, the last one that the window has elements of; -1: none.
int64_t first_dimension(const Window& window) {
  int64_t last = -1, several = 0;
  for (size_t d = 0; d < window.dims.size(); ++d) {
    if (!is_plain(window.dims[d])) return -1;
    if (window.dims[d].size > 1) last = static_cast<int64_t>(d), ++several;
  }
  return several > 1 ? last : -1;
}

// Lines that are too large for a cache are written and read again.
constexpr int64_t kManyBytes = 4 << 20;

// Whether elements are compared half as often (a quarter, where there are many): not where windows
// overlap little, as those of a whole image do.
bool pays(const Instr* x, const Window& window, int64_t first) {
  int64_t others = 1, lines = 1;  // of a window; elements of the first dimension's results
  const int64_t size = window.dims[static_cast<size_t>(first)].size;
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    lines *= (d == first ? x : x->operand(0))->shape().dim(d);
    if (d != first) others *= window.dims[static_cast<size_t>(d)].size;
  }
  const int64_t results = x->shape().elems(), few = x->shape().bytes() > kManyBytes ? 4 : 2;
  return results * size * others >= few * (lines * size + results * others);
}

Rewriter::Proposal visit(Instr* x, Builder& b) {
  if (!x->is(Opcode::reduce_window) || x->operands().size() != 2 || !are_static_arrays(x) ||
      x->shape().elems() == 0)
    return {};
  const auto combiner = hlo::combiner_of(*x->called().at(0));
  if (combiner != Opcode::maximum && combiner != Opcode::minimum) return {};
  const auto& attrs = x->attrs_as<hlo::WindowAttrs>();
  const int64_t first = first_dimension(attrs.window);
  if (first < 0 || !pays(x, attrs.window, first)) return {};
  hlo::WindowAttrs one = attrs, others = attrs;
  for (size_t d = 0; d < attrs.window.dims.size(); ++d)
    (d == static_cast<size_t>(first) ? others : one).window.dims[d] = {};
  Instr* init = x->operand(1);
  Instr* lines = b.make(Opcode::reduce_window, {x->operand(0), init}, std::move(one), x->called());
  return {b.make(Opcode::reduce_window, {lines, init}, std::move(others), x->called()), "windows"};
}

}  // namespace

Result<bool> split_windows(hlo::Module& module, const PassContext& context) {
  if (!module.symbols.empty()) return false;
  return rewrite_module(module, context, "split_windows", visit,
                        [](const Instr* instr) { return instr->is(Opcode::reduce_window); });
}

}  // namespace heddle::opt
