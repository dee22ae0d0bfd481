#include "lower/share_with_twins.h"

#include <algorithm>

#include "kernel/text.h"

namespace heddle::lower {
namespace {

// The one scratch buffer of a kernel that has one; else null.
kernel::Buffer* only_scratch(kernel::Kernel* kernel) {
  kernel::Buffer* found = nullptr;
  for (kernel::Buffer& buffer : kernel->buffers) {
    if (buffer.space != kernel::Space::scratch) continue;
    if (found || buffer.offset_bytes != 0 || buffer.extents.size() != 1) return nullptr;
    found = &buffer;
  }
  return found;
}

// Extents of scratch must be numbers: all kernels get the largest one.
void level_scratch(std::vector<kernel::Kernel>* kernels) {
  int64_t elems = 0, bytes = 0;
  for (kernel::Kernel& kernel : *kernels) {
    const kernel::Buffer* scratch = only_scratch(&kernel);
    if (!scratch) return;
    elems = std::max(elems, scratch->extents[0]);
    bytes = std::max(bytes, kernel.scratch_bytes);
  }
  for (kernel::Kernel& kernel : *kernels) {
    only_scratch(&kernel)->extents[0] = elems;
    kernel.scratch_bytes = bytes;
  }
}

}  // namespace

std::optional<SharedExtents> share_with_twins(std::vector<kernel::Kernel> twins,
                                              const kernel::Kernel& own, const OpenPass& pass) {
  HEDDLE_CHECK(twins.size() >= 2, "{} twins of {}", twins.size(), own.name);
  twins.push_back(own);
  level_scratch(&twins);
  std::vector<std::vector<int64_t>> values;
  std::string form;
  std::optional<kernel::Kernel> first;
  for (const kernel::Kernel& kernel : twins) {
    if (!kernel.dims.empty() || !kernel.inner.empty()) return std::nullopt;
    OpenExtents open = opened(kernel, pass);
    std::string text = kernel::to_string(open.kernel);
    if (!first) {
      form = std::move(text);
      first = std::move(open.kernel);
    } else if (text != form) {
      return std::nullopt;
    }
    values.push_back(std::move(open.dims));
  }
  return share_extents(*first, values);
}

}  // namespace heddle::lower
