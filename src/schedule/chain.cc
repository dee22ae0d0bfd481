#include "schedule/chain.h"

#include <algorithm>

#include "schedule/chain_rows.h"
#include "stage/gemm_axis.h"

namespace heddle::schedule {

using index::Expr;

namespace {

// Lines of at most this many rows are too short to be a block.
constexpr int64_t kShortLine = 64;

// Assigns every stage to the last link that it depends on; a reduction of a product's value begins
// a link of rows.
Decision collect(const StageGraph& graph, Chain* chain, std::vector<int>* link_of) {
  link_of->assign(graph.stages.size(), -1);
  auto add = [&](bool rows) {
    chain->links.emplace_back();
    chain->links.back().rows = rows;
    return static_cast<int>(chain->links.size()) - 1;
  };
  for (size_t i = 0; i < graph.stages.size(); ++i) {
    const Stage& stage = graph.stages[i];
    int latest = -1;
    for (const Load& load : stage.loads)
      if (load.source.input < 0) latest = std::max(latest, (*link_of)[load.source.stage.index()]);
    const int last = static_cast<int>(chain->links.size()) - 1;
    if (is_product(stage)) {
      if (latest != last)
        return Decision::no("chain-operand", "{} does not follow the previous product", stage.name);
      latest = add(false);
    } else if (latest < 0) {
      if (last > 0 || (last == 0 && !chain->links[0].rows))
        return Decision::no("gemm-epilogue", "{} is not in the epilogue of a product", stage.name);
      latest = last < 0 ? add(true) : 0;
    } else if (stage.is_reduction() && !chain->links[static_cast<size_t>(latest)].rows) {
      const bool begun = latest + 1 == last && chain->links[static_cast<size_t>(last)].rows;
      if (latest != last && !begun)
        return Decision::no("gemm-epilogue", "{} reduces a value from two products back",
                            stage.name);
      latest = begun ? last : add(true);
    }
    (*link_of)[i] = latest;
    chain->links[static_cast<size_t>(latest)].joined.push_back(StageId(i));
  }
  return Decision::yes();
}

// Finds the values of this link that later links read.
Decision find_kept(const StageGraph& graph, const std::vector<int>& link_of, size_t number,
                   Chain* chain) {
  Link& link = chain->links[number];
  for (StageId id : link.joined) {
    const bool read = std::any_of(graph.stages.begin(), graph.stages.end(), [&](const Stage& to) {
      return link_of[static_cast<size_t>(&to - graph.stages.data())] != static_cast<int>(number) &&
             std::any_of(to.loads.begin(), to.loads.end(), [&](const Load& load) {
               return load.source.input < 0 && load.source.stage == id;
             });
    });
    if (!read) continue;
    if (graph.stage(id).values.size() != 1)
      return Decision::no("chain-rows", "{} has several values", graph.stage(id).name);
    link.kept.push_back({id, {}, -1, {}});
  }
  return Decision::yes();
}

// Maps the digits of the values kept by a product's link to digits of the product.
Decision find_digits(const StageGraph& graph, Link* link) {
  std::vector<std::vector<Expr>> digits;
  if (Decision inverted = invert_epilogue(graph, link->joined, &digits); !inverted) return inverted;
  const std::vector<int64_t> extents = graph.stage(link->base).out_extents();
  for (Kept& kept : link->kept) {
    const Stage& value = graph.stage(kept.stage);
    for (size_t d = 0; d < value.out.size(); ++d) {
      int digit = -1;
      if (!digits[kept.stage.index()][d].is_digit(&digit) ||
          extents[static_cast<size_t>(digit)] != value.out[d].extent)
        return Decision::no("chain-operand",
                            "{} has different dimensions from the previous product", value.name);
      kept.digits.push_back(digit);
      if (digit == link->shape.n) kept.column = static_cast<int>(d);
    }
  }
  return Decision::yes();
}

// The value of a link that is the left operand of the following product.
StageId operand_of(const StageGraph& graph, const Link& link, const Link& next) {
  if (!next.rows)
    for (const Load& load : graph.stage(next.joined[0]).loads)
      for (const Kept& kept : link.kept)
        if (load.source.input < 0 && load.source.stage == kept.stage) return kept.stage;
  for (const Kept& kept : link.kept)
    if (kept.column >= 0) return kept.stage;
  return link.kept.empty() ? StageId() : link.kept[0].stage;
}

Decision choose_value(const StageGraph& graph, const Link& next, Link* link) {
  link->value = operand_of(graph, *link, next);
  for (const Kept& kept : link->kept)
    if (kept.stage == link->value) link->value_digits = kept.digits;
  if (!link->value.valid())
    return Decision::no("chain-operand", "{} does not read the previous link",
                        graph.stage(next.joined[0]).name);
  return Decision::yes();
}

// The shape of a prologue: its rows are all digits of its value except the one that the product
// reduces over.
Decision begin_with_rows(const StageGraph& graph, const Link& next, Link* link) {
  const Stage& product = graph.stage(next.joined[0]);
  const Load* read = nullptr;
  for (const Load& load : product.loads)
    if (load.source.input < 0) read = read ? nullptr : &load;
  if (!read)
    return Decision::no("chain-operand", "{} does not have a single left operand", product.name);
  link->base = read->source.stage;
  GemmShape& shape = link->shape;
  const Stage& value = graph.stage(link->base);
  const auto out = static_cast<int>(product.out.size());
  for (int d = 0; d < static_cast<int>(value.out.size()); ++d) {
    bool summed = false;
    for (int r = 0; r < static_cast<int>(product.red.size()); ++r)
      summed |= read->coordinates[static_cast<size_t>(d)].uses(out + r);
    if (summed && shape.n >= 0)
      return Decision::no("chain-operand", "{} contracts more than columns", product.name);
    if (summed)
      shape.n = d;
    else
      shape.batch.push_back(d);
  }
  if (shape.n < 0 || shape.batch.empty())
    return Decision::no("chain-operand", "{} has no rows or no columns", value.name);
  auto in_right = [&](int digit) {
    return std::any_of(product.loads.begin(), product.loads.end(), [&](const Load& load) {
      for (int d = 0; d < out && &load != read; ++d)
        for (const Expr& x : load.coordinates)
          if (x.uses(d) && read->coordinates[static_cast<size_t>(digit)].uses(d)) return true;
      return false;
    });
  };
  shape.m = shape.batch.back();
  shape.batch.pop_back();
  shape.m_extent = value.out[static_cast<size_t>(shape.m)].extent;
  // A block covers several lines if lines are short.
  if (shape.m_extent <= kShortLine && !shape.batch.empty() && !in_right(shape.batch.back())) {
    shape.y = shape.batch.back();
    shape.batch.pop_back();
    shape.y_extent = value.out[static_cast<size_t>(shape.y)].extent;
  }
  shape.n_extent = value.out[static_cast<size_t>(shape.n)].extent;
  shape.type = Type::f32;
  return Decision::yes();
}

// A link of rows takes the rows of the product before it, and as many columns as its value has.
Decision follow_with_rows(const StageGraph& graph, size_t number, Chain* chain) {
  Link& link = chain->links[number];
  if (number > 0) {
    const Link& before = chain->links[number - 1];
    link.base = before.base;
    link.shape = before.shape;
    link.shape.windows.clear();
    link.shape.k.clear();
    link.shape.k_extent = 1;
    link.counted = before.counted;
  }
  RowDigits& digits = link.row_digits;
  if (Decision match = match_row_digits(graph, *chain, number, &digits); !match) return match;
  for (Kept& kept : link.kept) {
    kept.digits = digits[kept.stage.index()];
    for (size_t d = 0; d < kept.digits.size(); ++d)
      if (kept.digits[d] == link.shape.n) kept.column = static_cast<int>(d);
  }
  return Decision::yes();
}

int64_t largest_divisor(int64_t extent, int64_t most) {
  for (int64_t by = std::min(most, extent); by > 1; --by)
    if (extent % by == 0) return by;
  return 1;
}

// Bytes per row of A, of the intermediate values and of the result.
int64_t bytes_of_row(const Chain& chain, const StageGraph& graph) {
  const GemmShape& first = chain.links[0].shape;
  const Stage& stage = graph.stage(chain.links[0].base);
  const int64_t rows = std::max<int64_t>(1, stage.out_elems() / first.n_extent);
  int64_t bytes = first.n_extent * 4;
  if (!chain.links[0].rows) {
    const Load& a = stage.loads[static_cast<size_t>(first.a_load)];
    bytes = graph.inputs[static_cast<size_t>(a.source.input)].shape.bytes() / rows;
  }
  for (const Link& link : chain.links)
    for (const Kept& kept : link.kept)
      if (!kept.over.valid()) bytes += row_bytes(graph, kept);
  return bytes + chain.links.back().shape.n_extent * 4;
}

int64_t bytes_of_weights(const Chain& chain, const std::vector<Gemm>& records) {
  int64_t bytes = 0;
  for (size_t i = 0; i < chain.links.size(); ++i) {
    const GemmShape& shape = chain.links[i].shape;
    if (chain.links[i].rows) continue;
    const int64_t lanes = records[i].lanes;
    bytes += (shape.n_extent + lanes - 1) / lanes * lanes * shape.k_extent *
             tensor::type_bytes(shape.type);
  }
  return bytes;
}

}  // namespace

bool is_product(const Stage& stage) {
  return (stage.kind == hlo::StageKind::dot || stage.kind == hlo::StageKind::conv) &&
         !stage.red.empty();
}

bool has_chain(const StageGraph& graph) {
  return std::count_if(graph.stages.begin(), graph.stages.end(), is_product) > 1;
}

bool may_have_rows(const StageGraph& graph) {
  const auto product = std::find_if(graph.stages.begin(), graph.stages.end(), is_product);
  if (product == graph.stages.end() || has_chain(graph)) return false;
  return product != graph.stages.begin() ||
         std::any_of(product + 1, graph.stages.end(),
                     [](const Stage& stage) { return stage.is_reduction(); });
}

namespace {

Decision begin(const StageGraph& graph, Chain* chain) {
  Link& link = chain->links[0];
  if (link.rows) {
    if (chain->links.size() == 1)
      return Decision::no("chain-operand", "{} is not in a sequence of products", graph.name);
    return begin_with_rows(graph, chain->links[1], &link);
  }
  link.base = link.joined[0];
  GemmShapeOrNot first = match_gemm(graph, link.base);
  if (first.decision && first.shape.b_word > 1)
    return Decision::no("chain-operand", "{}: its right operand is packed in words",
                        graph.stage(link.base).name);
  if (first.decision && first.shape.m < 0)
    return Decision::no("chain-operand", "{} has one row", graph.stage(link.base).name);
  link.shape = std::move(first.shape);
  return first.decision;
}

Decision match_next(const StageGraph& graph, size_t number, Chain* chain) {
  Link& link = chain->links[number];
  if (link.rows) return follow_with_rows(graph, number, chain);
  if (number > 0) {
    link.base = link.joined[0];
    if (Decision match = match_link(graph, chain->links[number - 1], &link); !match) return match;
  }
  return find_digits(graph, &link);
}

}  // namespace

Chain match_chain(const StageGraph& graph) {
  Chain chain;
  std::vector<int> link_of;
  chain.decision = collect(graph, &chain, &link_of);
  if (chain.decision && chain.links.size() < 2)
    chain.decision = Decision::no("chain-operand", "{} is not a sequence of products", graph.name);
  if (!chain.decision) return chain;
  for (size_t i = 0; i < chain.links.size() && chain.decision; ++i)
    chain.decision = find_kept(graph, link_of, i, &chain);
  if (chain.decision) chain.decision = begin(graph, &chain);
  for (size_t i = 0; i < chain.links.size() && chain.decision; ++i) {
    Link& link = chain.links[i];
    chain.decision = match_next(graph, i, &chain);
    if (chain.decision && i + 1 < chain.links.size())
      chain.decision = choose_value(graph, chain.links[i + 1], &link);
    for (const Kept& kept : link.kept)
      if (link.rows && kept.stage == link.value && kept.column >= 0)
        link.shape.n_extent = graph.stage(kept.stage).out[static_cast<size_t>(kept.column)].extent;
  }
  if (chain.decision) share_places(graph, &chain);
  return chain;
}

namespace {

// A product's tile; choose_chain() sets the blocks.
Gemm tile_of(const Link& link, const StageGraph& graph, const target::Target& target) {
  const Stage& stage = graph.stage(link.base);
  const Load& a = stage.loads[static_cast<size_t>(link.shape.a_load)];
  const int64_t a_bytes = a.source.input >= 0
                              ? graph.inputs[static_cast<size_t>(a.source.input)].shape.bytes()
                              : stage.out_elems() / link.shape.n_extent * link.shape.k_extent * 4;
  Gemm gemm = choose_gemm(link.shape, stage, a_bytes, target);
  gemm.kc = link.shape.k_extent;
  gemm.panels = 0;
  gemm.prefetch = 0;
  gemm.panels_first = false;
  gemm.shared = 1;
  if (link.shape.y < 0) gemm.my = 1, gemm.y_block = 1;
  return gemm;
}

}  // namespace

std::vector<Gemm> choose_chain(const Chain& chain, const StageGraph& graph,
                               const target::Target& target) {
  std::vector<Gemm> records;
  for (const Link& link : chain.links)
    records.push_back(link.rows ? Gemm() : tile_of(link, graph, target));
  const size_t product = static_cast<size_t>(&first_product(chain) - chain.links.data());
  const GemmShape& shape = chain.links[0].shape;
  const Stage& stage = graph.stage(chain.links[0].base);
  Gemm& first = records[0];
  first.mr = records[product].mr;
  first.lanes = records[product].lanes;
  // Blocks are sized for the first cache if the weights fit there too, but not if every block
  // copies them.
  const int64_t near = target.first_cache_bytes();
  const int64_t far = target.second_cache_bytes();
  const bool copies =
      std::any_of(records.begin(), records.end(), [](const Gemm& gemm) { return gemm.copy_b; });
  const bool in_first = !copies && bytes_of_weights(chain, records) <= near / 2;
  const bool lines = shape.y >= 0;
  const int64_t unit = lines ? shape.m_extent : 1;  // rows per element of the digit that is cut
  const int64_t extent = lines ? shape.y_extent : shape.m_extent;
  const int64_t tile = lines ? first.my : first.mr;
  int64_t block = (in_first ? near / 2 : far / 4) / (bytes_of_row(chain, graph) * unit);
  if (!lines) block = std::min<int64_t>(block, 256);
  int64_t batch = 1;
  for (int d : shape.batch) batch *= stage.out[static_cast<size_t>(d)].extent;
  // Every core gets several blocks if there are enough rows.
  block = std::min(block, extent * batch / (4 * std::max(target.cores, 1)));
  if (copies && block > 0 && block < extent) {  // as few blocks as possible, of equal size
    const int64_t blocks = (extent + block - 1) / block;
    block = (extent + blocks - 1) / blocks + tile - 1;
  }
  block = block >= extent ? extent : std::clamp<int64_t>(block / tile * tile, tile, extent);
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
