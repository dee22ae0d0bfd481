// Invariant 16: kernels with inner kernels, and their tables.
#include "kernel/stmt_text.h"
#include "kernel/verifier.h"
#include "kernel/verify.h"
#include "tensor/shape.h"

namespace heddle::kernel {

void Verifier::check_inner() {
  if (kernel_.inner.empty()) return;
  if (!kernel_.vars.empty() || !kernel_.dims.empty())
    fail(16, "it has inner kernels, and variables or dimensions of its own");
  for (const Buffer& buffer : kernel_.buffers)
    if (buffer.space != Space::global) fail(16, "buffer '{}' is not global", buffer.name);
  std::unordered_set<std::string> names;
  for (const Kernel& inner : kernel_.inner) {
    where_ = "inner kernel " + inner.name;
    if (!names.insert(inner.name).second) fail(16, "two are called '{}'", inner.name);
    if (!inner.inner.empty()) fail(16, "it has inner kernels");
    if (inner.scratch_bytes > kernel_.scratch_bytes)
      fail(16, "its scratch of {} bytes is more than {}", inner.scratch_bytes,
           kernel_.scratch_bytes);
    if (Status status = verify(inner); !status) fail(16, "{}", status.error().message);
  }
  where_ = "kernel " + kernel_.name;
}

void Verifier::check_table(const Group& group) {
  const auto number = static_cast<size_t>(group.inner);
  if (!group.is_table() || number >= kernel_.inner.size())
    return fail(16, "a group names no inner kernel");
  if (!group.grid.empty() || !group.body.empty()) fail(16, "a table has no grid and no body");
  const Kernel& inner = kernel_.inner[number];
  const auto phases = static_cast<int>(inner.phases.size());
  if (group.inner_phase < 0 || group.inner_phase >= phases)
    fail(16, "'{}' has no phase {}", inner.name, group.inner_phase);
  const std::string where = where_;
  for (size_t r = 0; r < group.table.size(); ++r) {
    where_ = fmt::format("{} row {}", where, r);
    check_row(inner, group.table[r]);
  }
  where_ = where;
}

void Verifier::check_row(const Kernel& inner, const Instance& row) {
  if (row.dims.size() != inner.dims.size())
    return fail(16, "{} dimensions, wanted {}", row.dims.size(), inner.dims.size());
  for (int64_t dim : row.dims)
    if (dim < 0) return fail(16, "a dimension is {}", dim);
  if (static_cast<int64_t>(row.buffers.size()) != inner.global_count())
    return fail(16, "{} buffers, wanted {}", row.buffers.size(), inner.global_count());
  for (size_t b = 0; b < row.buffers.size(); ++b) {
    if (!known(row.buffers[b])) return;
    const Buffer &own = kernel_.buffer(row.buffers[b]), &wanted = inner.buffers[b];
    std::vector<int64_t> extents = wanted.extents;
    for (int64_t& extent : extents)
      if (extent < 0) extent = row.dims[static_cast<size_t>(-1 - extent)];
    const auto elems = tensor::checked_product(extents);
    const auto own_elems = tensor::checked_product(own.extents);
    if (own.type != wanted.type || !elems || elems != own_elems)
      fail(16, "'{}' is not what '{}' wants: {} elements of {}", own.name, wanted.name,
           elems.value_or(-1), tensor::type_name(wanted.type));
    if (wanted.access != Access::in && own.access == Access::in)
      fail(16, "'{}' is an input, and '{}' is written", own.name, wanted.name);
    if (own.aligned_bytes < wanted.aligned_bytes)
      fail(16, "'{}' is aligned to {} bytes, '{}' wants {}", own.name, own.aligned_bytes,
           wanted.name, wanted.aligned_bytes);
  }
}

}  // namespace heddle::kernel
