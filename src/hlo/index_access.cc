#include "hlo/index_access.h"

#include <numeric>

namespace heddle::hlo {

using index::Expr;

std::vector<size_t> layers(const Instr& instr) {
  if (instr.is(Opcode::dynamic_update_slice)) return {0, 1};
  if (instr.is(Opcode::pad)) return {1, 0};
  if (!instr.is(Opcode::concatenate)) return {0};
  std::vector<size_t> parts(instr.operands().size());
  std::iota(parts.rbegin(), parts.rend(), size_t{0});
  return parts;
}

Access access(const Instr& instr, size_t k, const std::vector<Expr>& at,
              const std::vector<int64_t>& box, const PositionOf& position) {
  const Shape& x = instr.operand(k)->shape();
  Access result;
  result.at.resize(static_cast<size_t>(x.rank()));
  const IndexMap map = index_map(instr, k);
  HEDDLE_CHECK(!map.is_opaque, "{} needs more than one element", instr.name());
  for (const DimLink& link : map.links) {
    Expr& made = result.at[static_cast<size_t>(link.from)];
    const bool has_result = link.to < link.to_end;
    const Expr y = has_result ? at[static_cast<size_t>(link.to)] : Expr(0);
    const int64_t extent = x.dim(link.from);
    switch (link.kind) {
      case DimKind::same:
      case DimKind::overlaid:
        made = extent == 1 ? Expr(0) : y;
        break;
      case DimKind::regrouped: {
        const auto part = [](const Shape& shape, int64_t begin, int64_t end) {
          const Ints all = shape.extents();
          return Ints(all.begin() + begin, all.begin() + end);
        };
        const std::vector<Expr> here(at.begin() + link.to, at.begin() + link.to_end);
        const index::Map map = index::reshape(part(instr.shape(), link.to, link.to_end),
                                              part(x, link.from, link.from_end));
        for (size_t i = 0; i < map.results.size(); ++i)
          result.at[static_cast<size_t>(link.from) + i] = substitute(map.results[i], here, box);
        break;
      }
      case DimKind::strided: {
        const Expr times = y * link.stride + Expr(link.offset);
        made = extent == 1 ? Expr(0) : floor_div(times, link.divisor, box);
        if (!link.is_partial) break;
        const int64_t span = (extent - 1) * link.divisor + 1;
        const index::Range range = bounds(times, box);
        result.is_nowhere |= extent == 0 || range.high < 0 || range.low >= span;
        // For a concatenate the guard is on the result's index, so that all parts test the same
        // number.
        const bool is_part = opcode_info(instr.opcode()).mapping == Mapping::join;
        if (range.low < 0 || range.high >= span)
          result.inside.push_back(is_part ? index::Guard{y, -link.offset, -link.offset + span}
                                          : index::Guard{times, 0, span});
        if (link.divisor > 1) result.inside.push_back({mod(times, link.divisor, box), 0, 1});
        break;
      }
      case DimKind::located:
        made = y + (link.other < 0 ? Expr(0) : position(link));
        break;
      case DimKind::placed:
        made = y - position(link);
        result.inside.push_back({made, 0, extent});
        break;
      case DimKind::window:
      case DimKind::reduced:
      case DimKind::opaque:
        HEDDLE_CHECK(false, "{} needs more than one element", instr.name());
    }
  }
  return result;
}

}  // namespace heddle::hlo
