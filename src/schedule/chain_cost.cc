#include "schedule/chain_cost.h"

#include <algorithm>
#include <cmath>

#include "schedule/chain_rows.h"
#include "schedule/gemm_axis.h"
#include "schedule/tuning.h"

namespace heddle::schedule {

namespace {

// Bytes a nanosecond, of all cores, of what occupies so many bytes: from the first cache of which
// it fills half at most.
double bandwidth(double bytes, const target::Target& target) {
  const double cores = std::max(target.cores, 1);
  for (size_t i = 1; i < target.caches.size(); ++i) {
    const target::Cache& cache = target.caches[i];
    if (bytes <= static_cast<double>(cache.bytes) / 2 && cache.bandwidth_bytes_per_ns > 0)
      return cache.bandwidth_bytes_per_ns * cores;
  }
  return std::max(target.memory_bandwidth_all_bytes_per_ns, 1.0);
}

double rows_of(const Link& link, const StageGraph& graph) {
  return static_cast<double>(graph.stage(link.base).out_elems()) /
         static_cast<double>(std::max<int64_t>(link.shape.n_extent, 1));
}

// Tiles of one product, on one core.
double tiles_ns(const Link& link, const Gemm& record, const StageGraph& graph,
                const target::Target& target) {
  const GemmShape& shape = link.shape;
  Gemm gemm = record;
  gemm.kc = shape.k_extent;
  int64_t rows = shape.m_extent;  // that are cut into tiles together
  if (link.counted) rows = std::min(rows, gemm.m_block);
  if (gemm.my > 1) {
    gemm.mr = static_cast<int>(gemm.my * shape.m_extent);
    rows = shape.y_extent * shape.m_extent;
  }
  const double cycles = gemm_cycles(gemm, rows, shape.n_extent, shape.k_extent, target);
  return cycles * rows_of(link, graph) / static_cast<double>(rows) / target.clock_ghz;
}

double weights_bytes(const Link& link, const Gemm& gemm) {
  if (link.rows) return 0;
  const int64_t lanes = gemm.lanes;
  return static_cast<double>((link.shape.n_extent + lanes - 1) / lanes * lanes *
                             link.shape.k_extent * tensor::type_bytes(link.shape.type));
}

// Blocks of rows, each of which passes by all weights.
double blocks_of(const Link& first, const Gemm& gemm, const StageGraph& graph) {
  const Stage& stage = graph.stage(first.base);
  double blocks = 1;
  for (int d : first.shape.batch) blocks *= static_cast<double>(stage.out[d].extent);
  auto cut = [](int64_t extent, int64_t by) {
    return static_cast<double>((extent + by - 1) / std::max<int64_t>(by, 1));
  };
  return blocks * cut(first.shape.m_extent, gemm.m_block) * cut(first.shape.y_extent, gemm.y_block);
}

// Rows, and the operators of an element and of a row.
std::string rows_key(const Link& link, const StageGraph& graph) {
  int64_t columns = 0, scalars = 0;
  for (StageId id : link.joined) {
    const Stage& stage = graph.stage(id);
    int64_t operators = stage.is_reduction();
    for (const Node& node : stage.nodes) operators += node.kind == Node::Kind::op;
    const bool row = stage.red.empty() && stage.out.size() < graph.stage(link.base).out.size();
    (row ? scalars : columns) += operators;
  }
  return fmt::format("rows of {} by {}+{}", link.shape.n_extent, columns, scalars);
}

// A right side that each block of rows copies into panels.
double copies_ns(const Link& link, const Gemm& gemm, double blocks, const target::Target& target) {
  if (link.rows || !gemm.copy_b) return 0;
  const double cycles = link.shape.b_n == 1 ? 2 : 4;  // a vector; turned
  return cycles * blocks * static_cast<double>(link.shape.n_extent * link.shape.k_extent) /
         target.lanes(Type::f32) / target.clock_ghz;
}

// The last round of tasks leaves cores idle.
double idle_factor(double tasks, const target::Target& target) {
  const double cores = std::max(target.cores, 1);
  return std::ceil(tasks / cores) * cores / tasks;
}

double traffic_ns(const StageGraph& graph, const target::Target& target) {
  double ns = 0;
  std::vector<bool> read(graph.inputs.size(), true);
  for (const Output& output : graph.outputs) {
    ns += moved_ns(static_cast<double>(graph.stored_bytes(output)), target);
    if (output.array >= 0) read[static_cast<size_t>(output.array)] = false;
  }
  for (size_t i = 0; i < read.size(); ++i)
    if (read[i]) ns += moved_ns(static_cast<double>(graph.inputs[i].shape.bytes()), target);
  return ns;
}

}  // namespace

double moved_ns(double bytes, const target::Target& target) {
  return bytes / bandwidth(bytes, target);
}

std::string chain_key(const PlacedFusion& placed) {
  const Chain& chain = *placed.chain();
  const Link& first = first_product(chain);
  const Stage& stage = placed.graph.stage(first.base);
  const Load& a = stage.loads[static_cast<size_t>(first.shape.a_load)];
  const int64_t a_bytes =
      a.source.input >= 0 ? placed.graph.inputs[static_cast<size_t>(a.source.input)].shape.bytes()
                          : stage.out_elems() / first.shape.n_extent * first.shape.k_extent * 4;
  std::string key;
  for (const Link& link : chain.links) {
    if (!key.empty()) key += " then ";
    if (link.rows)
      key += rows_key(link, placed.graph);
    else
      key += &link == &first ? gemm_key(first.shape, stage, a_bytes)
                             : fmt::format("{}", link.shape.n_extent);
  }
  return key;
}

std::optional<bool> tuned_chain(const PlacedFusion& chain, const target::Target& target) {
  if (!target.records) return std::nullopt;
  const auto found = target.records->find(chain_key(chain));
  if (found == target.records->end()) return std::nullopt;
  if (found->second == kChainRecord) return true;
  if (found->second == kApartRecord) return false;
  return std::nullopt;
}

namespace {

// A kernel of rows, by itself.
double rows_ns(const PlacedFusion& placed, const target::Target& target) {
  std::vector<StageId> stages;
  for (size_t i = 0; i < placed.graph.stages.size(); ++i) stages.emplace_back(i);
  double tasks = 1;
  for (const ScheduleNode& node : placed.schedule.nodes)
    if (const Loop* loop = std::get_if<Loop>(&node); loop && loop->kind == LoopKind::parallel)
      tasks *= static_cast<double>(loop->trips);
  const double cycles = rows_cycles(placed.graph, stages, target);
  return cycles / target.clock_ghz / std::max(target.cores, 1) * idle_factor(tasks, target) +
         target.launch_ns + traffic_ns(placed.graph, target);
}

}  // namespace

namespace {

// A product alone, as the chain of one link that it is.
Chain chain_of_one(const PlacedFusion& placed) {
  const Row& row = std::get<Row>(placed.schedule.nodes[0]);
  Chain chain;
  chain.links.emplace_back();
  chain.links[0].joined = {row.joined[0]};
  chain.links[0].base = row.joined[0];
  chain.links[0].shape = row.gemm()->shape;
  chain.records = {row.gemm()->record};
  return chain;
}

}  // namespace

double predicted_ns(const PlacedFusion& placed, const target::Target& target) {
  if (!is_gemm(placed)) return rows_ns(placed, target);
  const Chain chain = is_chain(placed) ? *placed.chain() : chain_of_one(placed);
  const std::vector<Gemm>& records = chain.records;
  const double blocks = blocks_of(chain.links[0], records[0], placed.graph);
  double weights = 0, tiles = 0, tasks = blocks;
  for (size_t i = 0; i < chain.links.size(); ++i)
    weights += weights_bytes(chain.links[i], records[i]);
  const double near = weights + static_cast<double>(resident_bytes(chain, placed.graph, records));
  for (size_t i = 0; i < chain.links.size(); ++i) {
    if (chain.links[i].rows) {
      tiles += rows_cycles(placed.graph, chain.links[i].joined, target) / target.clock_ghz;
      continue;
    }
    const double stream = weights_bytes(chain.links[i], records[i]) * blocks /
                          bandwidth(near, target) * std::max(target.cores, 1);
    const double computed = tiles_ns(chain.links[i], records[i], placed.graph, target) +
                            copies_ns(chain.links[i], records[i], blocks, target);
    // What comes from beyond the second cache hides behind the sums only if it is fetched ahead.
    const bool hides = records[i].prefetch > 0 || target.caches.size() < 2 ||
                       near <= static_cast<double>(target.caches[1].bytes) / 2;
    tiles += hides ? std::max(computed, stream) : computed + stream;
  }
  if (chain.links.size() == 1) {
    const int64_t width =
        int64_t{records[0].nv} * records[0].lanes * std::max<int64_t>(records[0].panels, 1);
    tasks *= static_cast<double>((chain.links[0].shape.n_extent + width - 1) / width);
  }
  // What is read and written adds to that rather than hiding behind it.
  return tiles / std::max(target.cores, 1) * idle_factor(tasks, target) + target.launch_ns +
         traffic_ns(placed.graph, target);
}

}  // namespace heddle::schedule
