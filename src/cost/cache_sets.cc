#include "cost/cache_sets.h"

#include <algorithm>
#include <numeric>

#include "stage/epilogue.h"

namespace heddle::cost {

namespace {

constexpr int64_t kLine = 64, kSpan = 4096;  // bytes; of all sets
// Per line that is fetched again. On Zen 5, a 768x3072 gradient followed by Adam: 11 ns; Sapphire
// Rapids loses many times as much.
constexpr double kLateNs = 11;

// Arrays whose rows follow the tile's, by row stride in bytes. Only loads wait: reads count up to
// the number of stores that hold them up.
struct Streams {
  int64_t row_bytes = 0, read = 0, written = 0;
};

}  // namespace

double shared_sets_ns(const stage::PlacedFusion& placed, const target::Target& target) {
  if (!is_gemm(placed) || is_chain(placed)) return 0;
  const stage::Row& row = std::get<stage::Row>(placed.schedule.nodes[0]);
  std::vector<std::vector<index::Expr>> digits;
  if (row.joined.size() < 2 || !invert_epilogue(placed.graph, row.joined, &digits)) return 0;
  const stage::GemmShape& shape = row.gemm()->shape;
  if (shape.m < 0 || shape.n < 0) return 0;
  const stage::Stage& product = placed.graph.stage(row.joined[0]);
  const std::vector<int64_t> extents = product.extents();
  std::vector<Streams> streams;
  for (stage::StageId id : row.joined) {
    const stage::Stage& stage = placed.graph.stage(id);
    auto count = [&](const index::Expr& at, bool is_read) {
      const index::Expr place = substitute(at, digits[id.index()], extents);
      if (place.uses_runtime() || place.factor_of(shape.n) != 1) return;
      const int64_t bytes = std::abs(place.factor_of(shape.m)) * 4;
      auto known = std::find_if(streams.begin(), streams.end(),
                                [&](const Streams& s) { return s.row_bytes == bytes; });
      if (known == streams.end()) known = streams.insert(known, {bytes, 0, 0});
      ++(is_read ? known->read : known->written);
    };
    for (const stage::Value& value : stage.values)
      if (value.output >= 0) count(stage.position, false);
    if (id == row.joined[0]) continue;
    for (const stage::Load& load : stage.loads)
      if (load.source.input >= 0 && load.guards.empty()) count(load.coordinates[0], true);
  }
  const int64_t first = target.first_cache_bytes();
  const auto ways = static_cast<double>(first / kSpan);
  const stage::Gemm& gemm = row.gemm()->record;
  double lines = 0;  // of a tile and a vector of its columns, fetched again
  for (const Streams& s : streams) {
    if (s.row_bytes == 0) continue;
    const auto sets = static_cast<double>(kSpan / std::max(kLine, std::gcd(s.row_bytes, kSpan)));
    const double all = static_cast<double>(std::min(s.read, s.written)) * gemm.mr * gemm.my;
    lines += std::max(0.0, all - ways * sets);
  }
  const auto tiles = static_cast<double>(product.out_elems()) /
                     (static_cast<double>(gemm.mr) * gemm.my * kLine / 4);
  return lines * tiles * kLateNs;
}

}  // namespace heddle::cost
