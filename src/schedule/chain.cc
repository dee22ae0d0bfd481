#include "schedule/chain.h"

#include <algorithm>

#include "schedule/gemm_axis.h"

namespace heddle::schedule {

using index::Expr;

namespace {

bool is_product(const Stage& stage) {
  return stage.kind == hlo::StageKind::dot || stage.kind == hlo::StageKind::conv;
}

// Every map goes to the last product that it depends on.
Decision collect(const StageGraph& graph, Chain* chain, std::vector<int>* link_of) {
  link_of->assign(graph.stages.size(), -1);
  for (size_t i = 0; i < graph.stages.size(); ++i) {
    const Stage& stage = graph.stages[i];
    int latest = -1;
    for (const Load& load : stage.loads)
      if (load.source.input < 0) latest = std::max(latest, (*link_of)[load.source.stage.index()]);
    const int last = static_cast<int>(chain->links.size()) - 1;
    if (is_product(stage)) {
      if (latest != last)
        return Decision::no("chain-operand", "{} does not follow the product before", stage.name);
      chain->links.emplace_back();
      latest = last + 1;
    } else if (stage.is_reduction() || latest < 0) {
      return Decision::no("gemm-epilogue", "{} does not hang on a product", stage.name);
    }
    (*link_of)[i] = latest;
    chain->links[static_cast<size_t>(latest)].joined.push_back(StageId(i));
  }
  return Decision::yes();
}

// The one value of a link that the next link reads; nothing else of it is read there or later, or
// leaves.
Decision find_value(const StageGraph& graph, const std::vector<int>& link_of, int number,
                    Chain* chain) {
  Link& link = chain->links[static_cast<size_t>(number)];
  const StageId next = chain->links[static_cast<size_t>(number) + 1].joined[0];
  for (size_t i = 0; i < graph.stages.size(); ++i) {
    const Stage& stage = graph.stages[i];
    for (const Load& load : stage.loads) {
      if (load.source.input >= 0 || link_of[load.source.stage.index()] != number ||
          link_of[i] == number)
        continue;
      const Stage& read = graph.stage(load.source.stage);
      if (!(StageId(i) == next) || (link.value.valid() && !(link.value == load.source.stage)))
        return Decision::no("chain-consumers", "{} reads {} too", stage.name, read.name);
      link.value = load.source.stage;
    }
  }
  for (StageId id : link.joined)
    for (const Value& value : graph.stage(id).values)
      if (value.output >= 0)
        return Decision::no("chain-consumers", "{} is read outside the kernel too",
                            graph.stage(id).name);
  const Stage& value = graph.stage(link.value);
  std::vector<std::vector<Expr>> digits;
  if (Decision inverted = invert_epilogue(graph, link.joined, &digits); !inverted) return inverted;
  const std::vector<int64_t> extents = graph.stage(link.joined[0]).out_extents();
  for (size_t d = 0; d < value.out.size(); ++d) {
    int digit = -1;
    if (!digits[link.value.index()][d].is_digit(&digit) ||
        extents[static_cast<size_t>(digit)] != value.out[d].extent)
      return Decision::no("chain-operand", "{} has other dimensions than the product before",
                          value.name);
    link.value_digits.push_back(digit);
  }
  return Decision::yes();
}

int64_t largest_divisor(int64_t extent, int64_t most) {
  for (int64_t by = std::min(most, extent); by > 1; --by)
    if (extent % by == 0) return by;
  return 1;
}

Type type_of(const StageGraph& graph, const Link& link) {
  return graph.stage(link.value.valid() ? link.value : link.joined.back()).values[0].type;
}

// Bytes of A, of the values between and of the result, by row.
int64_t bytes_of_row(const Chain& chain, const StageGraph& graph) {
  const GemmShape& first = chain.links[0].shape;
  const Stage& stage = graph.stage(chain.links[0].joined[0]);
  const Load& a = stage.loads[static_cast<size_t>(first.a_load)];
  const int64_t rows = std::max<int64_t>(1, stage.out_elems() / first.n_extent);
  int64_t bytes = graph.inputs[static_cast<size_t>(a.source.input)].shape.bytes() / rows;
  for (const Link& link : chain.links)
    bytes += row_pitch(graph, link) * tensor::type_bytes(type_of(graph, link));
  return bytes;
}

int64_t bytes_of_weights(const Chain& chain, const std::vector<Gemm>& records) {
  int64_t bytes = 0;
  for (size_t i = 0; i < chain.links.size(); ++i) {
    const GemmShape& shape = chain.links[i].shape;
    const int64_t lanes = records[i].lanes;
    bytes += (shape.n_extent + lanes - 1) / lanes * lanes * shape.k_extent *
             tensor::type_bytes(shape.type);
  }
  return bytes;
}

}  // namespace

bool has_chain(const StageGraph& graph) {
  return std::count_if(graph.stages.begin(), graph.stages.end(), is_product) > 1;
}

Chain match_chain(const StageGraph& graph) {
  Chain chain;
  std::vector<int> link_of;
  chain.decision = collect(graph, &chain, &link_of);
  if (!chain.decision) return chain;
  GemmShapeOrNot first = match_gemm(graph, chain.links[0].joined[0]);
  chain.decision = first.decision;
  if (chain.decision && first.shape.m < 0)
    chain.decision =
        Decision::no("chain-operand", "{} has one row", graph.stage(chain.links[0].joined[0]).name);
  if (!chain.decision) return chain;
  chain.links[0].shape = std::move(first.shape);
  for (size_t i = 0; i + 1 < chain.links.size() && chain.decision; ++i) {
    chain.decision = find_value(graph, link_of, static_cast<int>(i), &chain);
    if (chain.decision) chain.decision = match_link(graph, chain.links[i], &chain.links[i + 1]);
  }
  return chain;
}

int64_t row_pitch(const StageGraph& graph, const Link& link) {
  const int64_t bytes = tensor::type_bytes(type_of(graph, link));
  const int64_t line = 64 / bytes;
  int64_t pitch = (link.shape.n_extent + line - 1) / line * line;
  if (pitch * bytes % 1024 == 0) pitch += line;
  return pitch;
}

int64_t resident_bytes(const Chain& chain, const StageGraph& graph,
                       const std::vector<Gemm>& records) {
  const Link& first = chain.links[0];
  const Stage& stage = graph.stage(first.joined[0]);
  int64_t rows = 0;
  for (const AxisPart& lines : line_parts(records[0], first.shape, stage))
    for (const AxisPart& part : row_parts(records[0], first.shape, stage))
      rows = std::max(rows, count_rows(lines) * count_rows(part));
  int64_t bytes = 0;
  for (size_t i = 0; i + 1 < chain.links.size(); ++i)
    bytes += (rows * row_pitch(graph, chain.links[i]) *
                  tensor::type_bytes(type_of(graph, chain.links[i])) +
              63) /
             64 * 64;
  return bytes;
}

int64_t resident_limit(const target::Target& target) {
  return target.caches.size() > 1 ? target.caches[1].bytes / 2 : 512 << 10;
}

std::vector<Gemm> choose_chain(const Chain& chain, const StageGraph& graph,
                               const target::Target& target) {
  std::vector<Gemm> records;
  for (const Link& link : chain.links) {
    const Stage& stage = graph.stage(link.joined[0]);
    const Load& a = stage.loads[static_cast<size_t>(link.shape.a_load)];
    const int64_t a_bytes = a.source.input >= 0
                                ? graph.inputs[static_cast<size_t>(a.source.input)].shape.bytes()
                                : stage.out_elems() / link.shape.n_extent * link.shape.k_extent * 4;
    Gemm gemm = choose_gemm(link.shape, stage, a_bytes, target);
    gemm.kc = link.shape.k_extent;
    gemm.panels = 0;
    gemm.prefetch = 0;
    gemm.panels_first = false;
    if (link.shape.y < 0) gemm.my = 1, gemm.y_block = 1;
    records.push_back(gemm);
  }
  const GemmShape& shape = chain.links[0].shape;
  const Stage& stage = graph.stage(chain.links[0].joined[0]);
  Gemm& first = records[0];
  // In the first cache where the weights fit there too.
  const int64_t near = target.caches.empty() ? 32 << 10 : target.caches[0].bytes;
  const int64_t far = target.caches.size() > 1 ? target.caches[1].bytes : 512 << 10;
  const bool in_first = bytes_of_weights(chain, records) <= near / 2;
  const bool lines = shape.y >= 0;
  const int64_t unit = lines ? shape.m_extent : 1;  // rows of what is cut
  const int64_t extent = lines ? shape.y_extent : shape.m_extent;
  const int64_t tile = lines ? first.my : first.mr;
  int64_t block = (in_first ? near / 2 : far / 4) / (bytes_of_row(chain, graph) * unit);
  if (!lines) block = std::min<int64_t>(block, 256);
  int64_t batch = 1;
  for (int d : shape.batch) batch *= stage.out[static_cast<size_t>(d)].extent;
  // Every core has several blocks where there are enough rows.
  block = std::min(block, extent * batch / (4 * std::max(target.cores, 1)));
  block = std::clamp<int64_t>(block / tile * tile, tile, extent);
  const bool counted =
      std::any_of(chain.links.begin(), chain.links.end(), [](auto& link) { return link.counted; });
  if (counted && batch > 1) block = largest_divisor(extent, block);
  first.m_block = lines ? shape.m_extent : block;
  first.y_block = lines ? block : 1;
  for (size_t i = 1; i < records.size(); ++i) {
    records[i].m_block = chain.links[i].counted ? block * unit : first.m_block;
    records[i].y_block = chain.links[i].counted ? 1 : first.y_block;
    if (records[i].my > records[i].y_block) records[i].my = static_cast<int>(records[i].y_block);
  }
  return records;
}

}  // namespace heddle::schedule
