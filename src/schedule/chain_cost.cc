#include "schedule/chain_cost.h"

#include <algorithm>
#include <cmath>

#include "schedule/chain.h"
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
  return static_cast<double>(graph.stage(link.joined[0]).out_elems()) /
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
  const int64_t lanes = gemm.lanes;
  return static_cast<double>((link.shape.n_extent + lanes - 1) / lanes * lanes *
                             link.shape.k_extent * tensor::type_bytes(link.shape.type));
}

// Blocks of rows, each of which passes by all weights.
double blocks_of(const Link& first, const Gemm& gemm, const StageGraph& graph) {
  const Stage& stage = graph.stage(first.joined[0]);
  double blocks = 1;
  for (int d : first.shape.batch) blocks *= static_cast<double>(stage.out[d].extent);
  auto cut = [](int64_t extent, int64_t by) {
    return static_cast<double>((extent + by - 1) / std::max<int64_t>(by, 1));
  };
  return blocks * cut(first.shape.m_extent, gemm.m_block) * cut(first.shape.y_extent, gemm.y_block);
}

// The last round of tasks leaves cores idle.
double idle_factor(double tasks, const target::Target& target) {
  const double cores = std::max(target.cores, 1);
  return std::ceil(tasks / cores) * cores / tasks;
}

}  // namespace

double moved_ns(double bytes, const target::Target& target) {
  return bytes / bandwidth(bytes, target);
}

std::string chain_key(const PlacedFusion& placed) {
  const Chain chain = match_chain(placed.graph);
  const Link& first = chain.links[0];
  const Stage& stage = placed.graph.stage(first.joined[0]);
  const Load& a = stage.loads[static_cast<size_t>(first.shape.a_load)];
  std::string key = gemm_key(
      first.shape, stage, placed.graph.inputs[static_cast<size_t>(a.source.input)].shape.bytes());
  for (size_t i = 1; i < chain.links.size(); ++i)
    key += fmt::format(" then {}", chain.links[i].shape.n_extent);
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

double predicted_ns(const PlacedFusion& placed, const target::Target& target) {
  Chain chain;
  if (is_chain(placed)) {
    chain = match_chain(placed.graph);
  } else {
    const StageId product = std::get<Row>(placed.schedule.nodes[0]).joined[0];
    chain.links.push_back({{product}, match_gemm(placed.graph, product).shape});
  }
  std::vector<Gemm> records;
  for (size_t i = 0; i < chain.links.size(); ++i)
    records.push_back(*std::get<Row>(placed.schedule.nodes[i]).gemm);
  const double blocks = blocks_of(chain.links[0], records[0], placed.graph);
  double weights = 0, tiles = 0, tasks = blocks;
  for (size_t i = 0; i < chain.links.size(); ++i)
    weights += weights_bytes(chain.links[i], records[i]);
  const double near = weights + static_cast<double>(resident_bytes(chain, placed.graph, records));
  for (size_t i = 0; i < chain.links.size(); ++i) {
    const double stream = weights_bytes(chain.links[i], records[i]) * blocks /
                          bandwidth(near, target) * std::max(target.cores, 1);
    const double computed = tiles_ns(chain.links[i], records[i], placed.graph, target);
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
  double ns = tiles / std::max(target.cores, 1) * idle_factor(tasks, target) + target.launch_ns;
  // What is read and written adds to that rather than hiding behind it.
  for (const Input& input : placed.graph.inputs)
    ns += moved_ns(static_cast<double>(input.shape.bytes()), target);
  for (const Output& output : placed.graph.outputs)
    ns += moved_ns(static_cast<double>(output.shape.bytes()), target);
  return ns;
}

}  // namespace heddle::schedule
