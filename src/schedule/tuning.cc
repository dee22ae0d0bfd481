#include "schedule/tuning.h"

#include <algorithm>

#include "cost/gemm_time.h"
#include "stage/gemm_axis.h"

namespace heddle::schedule {

namespace {

// Changes if records get a new meaning, or if new code invalidates old measurements.
constexpr int kRecordVersion = 4;

// Whether B is packed is not part of the key: with one panel that cannot be told.
std::string product_key(int64_t m, int64_t n, int64_t k, int64_t batch) {
  return fmt::format("v{} dot {}x{}x{} batch {}", kRecordVersion, m, n, k, batch);
}

int64_t extent(const Stage& stage, int digit) {
  if (digit < 0) return 1;
  const size_t d = static_cast<size_t>(digit);
  return d < stage.out.size() ? stage.out[d].extent : stage.red[d - stage.out.size()].extent;
}

// Products of many rows try the same tiles whatever the number of rows, so that they share code.
bool has_many_rows(const GemmShape& shape) {
  return shape.windows.empty() && shape.y < 0 && shape.m_extent >= 64;
}

// Predicted cycles of a record's tiles, including the waste in tails. The blocks of a task and
// prefetching are not modelled: they are decided by measuring.
double cost(const Gemm& gemm, const GemmShape& shape, const target::Target& target) {
  int64_t rows = gemm.my > 1 ? shape.y_extent * shape.m_extent : shape.m_extent;
  if (has_many_rows(shape)) rows = 5040;  // whole tiles, whatever their height
  const int64_t tile_rows = gemm.my > 1 ? gemm.my * shape.m_extent : gemm.mr;
  Gemm flat = gemm;
  flat.mr = static_cast<int>(std::min(tile_rows, rows));
  flat.kc = shape.k_extent;
  const double lines = gemm.my > 1 ? 1 : static_cast<double>(shape.y_extent);
  return lines * cost::gemm_cycles(flat, rows, shape.n_extent, shape.k_extent, target);
}

void add_tiles(const Gemm& from, const GemmShape& shape, const target::Target& target,
               bool any_panels, std::vector<Gemm>* found) {
  const int vectors = static_cast<int>((shape.n_extent + from.lanes - 1) / from.lanes);
  const int fixed = any_panels ? 0 : static_cast<int>(shape.b_panel / from.lanes);
  for (int nv = 1; nv <= std::min(vectors, 8); ++nv) {
    if (fixed > 0 && nv != fixed) continue;
    for (int rows : {1, 2, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28}) {
      Gemm gemm = from;
      gemm.nv = nv;
      gemm.mr = static_cast<int>(std::min<int64_t>(rows, shape.m_extent));
      gemm.my = 1;
      if (shape.y >= 0 && rows >= 2 * shape.m_extent)
        gemm.my = static_cast<int>(std::min<int64_t>(rows / shape.m_extent, shape.y_extent));
      if (!fits_registers(gemm, target)) continue;
      const int64_t tiles =
          (gemm.m_block + gemm.mr - 1) / gemm.mr * ((gemm.y_block + gemm.my - 1) / gemm.my);
      if (gemm.my > 1)
        gemm.y_block = std::min(shape.y_extent, (gemm.y_block + gemm.my - 1) / gemm.my * gemm.my);
      if (from.prefetch > 0)
        gemm.prefetch = static_cast<int>((int64_t{gemm.nv} * gemm.ku + tiles - 1) / tiles);
      found->push_back(gemm);
    }
  }
}

// Other blocks and loop orders with the same tile.
void add_blocks(const Gemm& from, const GemmShape& shape, std::vector<Gemm>* found) {
  auto add = [&](auto&& change) {
    Gemm gemm = from;
    change(&gemm);
    found->push_back(gemm);
  };
  if (shape.y >= 0 && from.my == 1) {
    add([&](Gemm* gemm) { gemm->y_block = std::max<int64_t>(1, from.y_block / 2); });
    add([&](Gemm* gemm) { gemm->y_block = std::min(shape.y_extent, from.y_block * 2); });
  } else if (shape.y < 0 && shape.m_extent > 2 * from.mr) {
    add([&](Gemm* gemm) { gemm->m_block = shape.m_extent; });
    for (int64_t rows : {128, 256})
      if (shape.m_extent >= 2 * rows)
        add([&](Gemm* gemm) { gemm->m_block = (rows + gemm->mr - 1) / gemm->mr * gemm->mr; });
  }
  // Only with several blocks and several panels; otherwise the code is the same.
  const int64_t blocks = (shape.m_extent + from.m_block - 1) / from.m_block *
                         ((shape.y_extent + from.y_block - 1) / from.y_block);
  if ((blocks > 1 || !shape.batch.empty()) && shape.n_extent > int64_t{from.nv} * from.lanes)
    add([&](Gemm* gemm) { gemm->panels_first = !from.panels_first; });
  if (from.prefetch > 0) add([&](Gemm* gemm) { gemm->prefetch = 0; });
  if (from.panels > 0) {
    add([&](Gemm* gemm) {
      gemm->panels = 0;
      gemm->kc = shape.k_extent;
    });
    add([&](Gemm* gemm) { gemm->panels = std::max<int64_t>(1, from.panels / 2); });
  }
}

}  // namespace

std::string gemm_key(int64_t m, int64_t n, int64_t k) { return product_key(m, n, k, 1); }

std::string gemm_key(const GemmShape& shape, const Stage& stage, int64_t a_bytes) {
  const index::Expr& xb = stage.loads[static_cast<size_t>(shape.b_load)].coordinates[0];
  int64_t batch = 1, rows = shape.m_extent * shape.y_extent;
  for (int d : shape.batch) (xb.uses(d) ? batch : rows) *= extent(stage, d);
  if (stage.kind != hlo::StageKind::conv)
    return product_key(rows, shape.n_extent, shape.k_extent, batch);
  // Rows, lines and reduced digits are listed separately: windows tie them together.
  std::string text = fmt::format("v{} conv n {} rows {} lines {} of {} groups {} k", kRecordVersion,
                                 shape.n_extent, shape.m_extent, shape.y_extent, rows, batch);
  for (int k : shape.k) text += fmt::format(" {}", extent(stage, k));
  for (const Window& window : shape.windows)
    text += fmt::format(" window {}+{}{:+}<{}", window.stride, window.dilation, window.offset,
                        window.span);
  return text + fmt::format(" bytes {}", a_bytes);
}

bool fits_registers(const Gemm& gemm, const target::Target& target) {
  const int64_t accumulators = int64_t{gemm.nv} * gemm.mr * std::max(gemm.my, 1);
  // Where memory operands broadcast, A takes no register; one vector of B is enough then.
  const int64_t others = target.has("avx512f") ? std::min(gemm.nv, 2) : gemm.nv + 1;
  return gemm.mr >= 1 && gemm.nv >= 1 && accumulators + others <= target.vector_registers;
}

namespace {

// A record may be imported text: it must not lead to unbounded code.
bool is_sane(const Gemm& gemm) {
  constexpr int64_t kMost = int64_t{1} << 40;
  return gemm.ku >= 1 && gemm.ku <= 64 && gemm.prefetch >= 0 && gemm.prefetch <= 1024 &&
         gemm.kc >= 0 && gemm.kc < kMost && gemm.m_block >= 1 && gemm.m_block < kMost &&
         gemm.y_block >= 1 && gemm.y_block < kMost;
}

// The record with the height of its tallest balanced tile: several heights give the same tiles.
Gemm in_balance(Gemm gemm, const GemmShape& shape) {
  if (!shape.windows.empty() || shape.y >= 0 || has_many_rows(shape)) return gemm;
  const int64_t rows = std::min(gemm.m_block, shape.m_extent);
  const int64_t tiles = (rows + gemm.mr - 1) / gemm.mr;
  gemm.mr = static_cast<int>((rows + tiles - 1) / tiles);
  return gemm;
}

}  // namespace

std::optional<Gemm> tuned_gemm(const std::string& key, int nv, const target::Target& target) {
  if (!target.records) return std::nullopt;
  auto found = target.records->find(key);
  if (found == target.records->end()) return std::nullopt;
  Result<Gemm> gemm = stage::parse_gemm(found->second);
  if (!gemm || gemm->lanes != target.lanes(Type::f32) || (nv && gemm->nv != nv) ||
      !fits_registers(*gemm, target) || !is_sane(*gemm))
    return std::nullopt;
  return *gemm;
}

std::vector<Gemm> gemm_candidates(const GemmShape& shape, const Stage& stage, int64_t a_bytes,
                                  const target::Target& target, bool any_panels, size_t most,
                                  int64_t* considered) {
  target::Target untuned = target;
  untuned.records = nullptr;
  const Gemm first = choose_gemm(shape, stage, a_bytes, untuned);
  std::vector<Gemm> found;
  add_tiles(first, shape, target, any_panels, &found);
  std::stable_sort(found.begin(), found.end(), [&](const Gemm& a, const Gemm& b) {
    return cost(a, shape, target) < cost(b, shape, target);
  });
  // Other tiles come first, up to half of the measurements, then other blocks.
  std::vector<Gemm> others;
  add_blocks(first, shape, &others);
  if (considered) *considered = static_cast<int64_t>(1 + found.size() + others.size());
  const auto half = static_cast<std::ptrdiff_t>(std::min(found.size(), most / 2));
  found.insert(found.begin() + half, others.begin(), others.end());
  std::vector<Gemm> result{first};
  for (const Gemm& gemm : found) {
    if (result.size() >= most) break;
    const Gemm balanced = in_balance(gemm, shape);
    if (std::any_of(result.begin(), result.end(),
                    [&](const Gemm& other) { return in_balance(other, shape) == balanced; }))
      continue;
    GemmShape packed = shape;
    if (any_panels && shape.b_panel > 0) packed.b_panel = int64_t{gemm.nv} * gemm.lanes;
    if (fits_family(gemm, packed, stage)) result.push_back(gemm);
  }
  return result;
}

}  // namespace heddle::schedule
