// One step of k in the GEMM family: the instruction, the words in which B is packed or copied, and
// how much of the batch shares a copy.
#include <algorithm>

#include "schedule/bounded_rows.h"
#include "schedule/gemm_tiles.h"

namespace heddle::schedule {

bool is_rounding(const Stage& stage, const Node& node) {
  if (node.kind != Node::Kind::op || node.opcode != hlo::Opcode::convert) return false;
  const Node& from = stage.nodes[static_cast<size_t>(node.operands[0])];
  return from.kind == Node::Kind::load && tensor::is_float(node.type) &&
         tensor::is_float(from.type) && tensor::type_bits(node.type) < tensor::type_bits(from.type);
}

Type load_type(const Stage& stage, int load) {
  Type type = Type::f32;
  for (const Node& node : stage.nodes)
    if (node.kind == Node::Kind::load && node.load == load) type = node.type;
  for (const Node& node : stage.nodes)
    if (is_rounding(stage, node) && stage.nodes[static_cast<size_t>(node.operands[0])].load == load)
      type = node.type;
  return type;
}

namespace {

// How many elements of a batch digit share a copy of B: of the divisors of its extent that leave
// every core four of the `tasks`, the least with which a copy serves enough rows, else the
// greatest.
int64_t shared_copies(int64_t extent, int64_t rows, int64_t tasks, const target::Target& target) {
  constexpr int64_t kEnoughRows = 64;
  int64_t best = 1;
  for (int64_t by = 2; by <= extent && best * rows < kEnoughRows; ++by)
    if (extent % by == 0 && tasks / by >= 4 * target.cores) best = by;
  return best;
}

}  // namespace

int64_t choose_shared(const GemmShape& shape, const Stage& stage, int64_t rows, int64_t width,
                      const target::Target& target) {
  const int digit = shared_batch(shape, stage);
  if (digit < 0 || is_bounded(stage.instr)) return 1;
  const int64_t all = shape.m_extent * shape.y_extent;
  int64_t tasks = (shape.n_extent + width - 1) / width * ((all + rows - 1) / rows);
  for (int d : shape.batch) tasks *= stage.out[static_cast<size_t>(d)].extent;
  return shared_copies(stage.out[static_cast<size_t>(digit)].extent, rows, tasks, target);
}

namespace {

// Moves a digit of whole words innermost: one without a window (the images of a filter's gradient),
// because a window's range of k depends on the position. Packed panels keep their order.
void put_words_inside(const Stage& stage, int64_t word, GemmShape* shape) {
  if (shape->b_panel > 0) return;
  const auto last = std::find_if(shape->k.rbegin(), shape->k.rend(), [&](int k) {
    return !shape->window_over(k) && stage.extents()[static_cast<size_t>(k)] % word == 0;
  });
  if (last == shape->k.rend()) return;
  const auto from = last.base() - 1;
  std::rotate(from, from + 1, shape->k.end());
}

}  // namespace

const kernel::MmaDescriptor* find_product(Type a, Type b, Type sums, const target::Target& target) {
  for (const kernel::MmaDescriptor& mma : kernel::mma_table())
    if (mma.is_dot() && mma.a == a && mma.b == b && mma.d == sums && target.has_any(mma.features) &&
        (find_tile(mma, target) || target.peak_flops_per_ns(b) > target.peak_flops_per_ns(sums)))
      return &mma;
  return kernel::plain_mma();
}

const kernel::MmaDescriptor* find_product(const GemmShape& shape, const Stage& stage,
                                          const target::Target& target) {
  constexpr int64_t kRowsForCopy = 16;
  const kernel::MmaDescriptor* mma = find_product(
      load_type(stage, shape.a_load), load_type(stage, shape.b_load), shape.type, target);
  const int k = shape.k.back();
  const int64_t rows = shape.m_extent * shape.y_extent;
  auto copied_rows = [&] {
    return rows * choose_shared(shape, stage, rows, 2 * target.lanes(shape.type), target);
  };
  const bool fits = shape.b_panel > 0 ? shape.b_word == mma->k : copied_rows() >= kRowsForCopy;
  const bool whole = stage.extents()[static_cast<size_t>(k)] % mma->k == 0;
  // Types that only tile instructions make faster are used in words only where tiles apply.
  if (shape.b_panel == 0 && mma->is_dot() &&
      target.peak_flops_per_ns(mma->b) <= target.peak_flops_per_ns(shape.type) &&
      !tile_of(shape, stage, *mma, target))
    return kernel::plain_mma();
  return fits && whole && !shape.window_over(k) ? mma : kernel::plain_mma();
}

const kernel::MmaDescriptor* choose_product(GemmShape* shape, const Stage& stage,
                                            const target::Target& target) {
  const int64_t word = find_product(load_type(stage, shape->a_load),
                                    load_type(stage, shape->b_load), shape->type, target)
                           ->k;
  GemmShape ordered = *shape;
  if (word > 1) put_words_inside(stage, word, &ordered);
  const kernel::MmaDescriptor* mma = find_product(ordered, stage, target);
  if (mma != kernel::plain_mma()) *shape = ordered;
  return mma;
}

target::Target without_flushing(target::Target target) {
  for (const kernel::MmaDescriptor& mma : kernel::mma_table())
    if (mma.numerics == kernel::MmaNumerics::flushes)
      for (const std::string_view rate : {tensor::type_name(mma.b), mma.name})
        target.mac_rate.erase(std::string(rate));
  return target;
}

}  // namespace heddle::schedule
