// select_top_k: a stable sort of the last dimension of which only the first few elements are read
// is a top-k, which a kernel does for several rows at a time, together with what makes the rows and
// what reads the elements; sorts are host calls. What is sorted are the keys and positions along
// them, as exporters write TopK and JAX writes top_k.
//
// A comparator says nothing of NaNs, and a zero is not less than another: zeros become positive
// here, and NaNs get the place they have in the total order, so strict numerics keep the sort. Not
// done for more elements than lists have (schedules keep up to 128), nor along a dynamic dimension,
// where the sort knows what is there. select_short_top_k: where there is no kernel for long lists.
#include <algorithm>
#include <cstdint>

#include "hlo/dim_classes.h"
#include "hlo/sort_order.h"
#include "opt/coordinate.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

using hlo::Builder;

// As stage/top_k.h has them, which asks of schedules what this layer cannot.
constexpr int64_t kMostK = 128;  // 16 to 120 times as fast as a sort, 4 times for half of 64
constexpr int64_t kMostShortK = 16, kLongestShortRow = 512, kFewestShortRows = 4;

// How many elements of each row are read; 0: all may be, or it does not pay.
int64_t elements_read(const Instr* sort, int64_t d) {
  int64_t most = 0;
  for (const Instr* result : sort->users()) {
    if (!result->is(Opcode::get_tuple_element) || result->users().empty()) return 0;
    for (const Instr* part : result->users()) {
      if (!part->is(Opcode::slice)) return 0;
      const auto& attrs = part->attrs_as<hlo::SliceAttrs>();
      const auto at = static_cast<size_t>(d);
      if (attrs.starts[at] != 0) return 0;
      most = std::max(most, attrs.limits[at]);
    }
  }
  return most;
}

bool has_kernel(const Instr* sort, int64_t d, bool short_only) {
  const Shape& shape = sort->operand(0)->shape();
  const int64_t n = shape.dim(d), k = elements_read(sort, d);
  if (k < 1 || k > kMostK || n < 2 || n > INT32_MAX) return false;
  return !short_only ||
         (k <= kMostShortK && n <= kLongestShortRow && shape.elems() >= kFewestShortRows * n);
}

bool has_top_k(Type type) {
  return type == Type::f16 || type == Type::bf16 || type == Type::f32 || type == Type::f64 ||
         type == Type::s32 || type == Type::s64;
}

// The order of a sort that a top-k could stand for.
std::optional<hlo::SortOrder> top_k_order(const Instr* sort, bool short_only) {
  const std::optional<hlo::SortOrder> order = hlo::sort_order(*sort);
  if (!order || sort->operands().size() < 2 || !sort->operand(0)->shape().is_static() ||
      !has_top_k(sort->operand(order->key)->shape().type()))
    return {};
  const int64_t d = hlo::sorted_dimension(*sort);
  if (d + 1 != sort->operand(0)->shape().rank()) return {};
  for (size_t i = 0; i < sort->operands().size(); ++i) {
    if (i == order->key) continue;
    const std::optional<Coordinate> place = coordinate_in(sort->operand(i));
    if (!place || place->dimension != d || place->step != 1 || place->offset != 0) return {};
  }
  return has_kernel(sort, d, short_only) ? order : std::nullopt;
}

void rewrite(Instr* sort, const hlo::SortOrder& order) {
  Builder b(sort->parent());
  Instr* keys = sort->operand(order.key);
  const Shape& shape = keys->shape();
  if (tensor::is_float(shape.type()))  // -0 + 0 = 0
    keys = b.binary(Opcode::add, keys, b.full(shape, 0));
  const int64_t d = hlo::sorted_dimension(*sort);
  hlo::TopKAttrs attrs;
  attrs.k = elements_read(sort, d);
  attrs.largest = order.descending;
  attrs.is_stable = true;
  Instr* top = b.make(Opcode::topk, {keys}, attrs);
  top->copy_notes(*sort);
  for (Instr* result : std::vector<Instr*>(sort->users())) {
    const bool places = static_cast<size_t>(result->tuple_index()) != order.key;
    Instr* first = b.get_tuple_element(top, places ? 1 : 0);
    if (places) first = b.convert(first, result->shape().type());
    for (Instr* part : std::vector<Instr*>(result->users())) {
      const auto& cut = part->attrs_as<hlo::SliceAttrs>();
      sort->parent()->replace_all_uses(part, b.slice(first, cut.starts, cut.limits, cut.strides));
    }
  }
  b.check();
}

bool is_dynamic(const Instr* sort, const hlo::DimClasses& classes) {
  return classes.symbol_of(sort->operand(0), hlo::sorted_dimension(*sort)) >= 0;
}

Result<bool> select(hlo::Module& module, const PassContext& context, bool short_only) {
  std::vector<Instr*> sorts;
  for (Computation* computation : module.post_order())
    for (Instr* instr : computation->instrs())
      if (top_k_order(instr, short_only)) sorts.push_back(instr);
  if (const std::vector<hlo::Symbol> symbols = hlo::symbols_of(module);
      !sorts.empty() && !symbols.empty()) {
    hlo::DimClasses classes(module, hlo::DimClasses::Made::free);
    if (!classes.assign(symbols)) return false;
    std::erase_if(sorts, [&](const Instr* sort) {
      return sort->parent() != module.entry() || is_dynamic(sort, classes);
    });
  }
  bool changed = false;
  for (Instr* sort : sorts) {
    if (!context.allow("select_top_k", "first_elements")) break;
    const hlo::SortOrder order = *hlo::sort_order(*sort);
    rewrite(sort, order);
    if (tensor::is_float(sort->operand(order.key)->shape().type()))
      context.note(
          "select_top_k: the first elements of sorted rows are a top-k (zeros are positive)");
    sort->parent()->remove_dead();
    changed = true;
  }
  return changed;
}

}  // namespace

Result<bool> select_top_k(hlo::Module& module, const PassContext& context) {
  return select(module, context, /*short_only=*/false);
}

Result<bool> select_short_top_k(hlo::Module& module, const PassContext& context) {
  return select(module, context, /*short_only=*/true);
}

}  // namespace heddle::opt
