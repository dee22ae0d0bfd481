#include "cost/chain_cost.h"

#include <algorithm>
#include <cmath>

#include "cost/gemm_time.h"
#include "cost/operator_cycles.h"

namespace heddle::cost {

namespace {

// Bytes per nanosecond, of all cores, for data of this size: from the first cache of which it fills
// half at most.
double bandwidth(double bytes, const target::Target& target) {
  const double cores = std::max(target.cores, 1);
  for (size_t i = 1; i < target.caches.size(); ++i) {
    const target::Cache& cache = target.caches[i];
    if (bytes <= static_cast<double>(cache.bytes) / 2 && cache.bandwidth_bytes_per_ns > 0)
      return cache.bandwidth_bytes_per_ns * cores;
  }
  return std::max(target.memory_bandwidth_all_bytes_per_ns, 1.0);
}

double rows_of(const stage::Link& link, const stage::StageGraph& graph) {
  return static_cast<double>(graph.stage(link.base).out_elems()) /
         static_cast<double>(std::max<int64_t>(link.shape.n_extent, 1));
}

// Steps of k: words, if the record's instruction multiplies words.
int64_t steps_of(const stage::GemmShape& shape, const stage::Gemm& record) {
  return (shape.k_extent + record.word() - 1) / record.word();
}

// The time of a step in words, relative to a plain step.
double step_time(const stage::GemmShape& shape, const stage::Gemm& record,
                 const target::Target& target) {
  return static_cast<double>(record.word()) * target.peak_flops_per_ns(shape.type) /
         flops_per_ns(record, shape.type, target);
}

// The time of all tiles of one product, on one core.
double tiles_ns(const stage::Link& link, const stage::Gemm& record, const stage::StageGraph& graph,
                const target::Target& target) {
  const stage::GemmShape& shape = link.shape;
  stage::Gemm gemm = record;
  gemm.kc = steps_of(shape, record);
  int64_t rows = shape.m_extent;  // that are cut into tiles together
  if (link.counted) rows = std::min(rows, gemm.m_block);
  if (gemm.my > 1) {
    gemm.mr = static_cast<int>(gemm.my * shape.m_extent);
    rows = shape.y_extent * shape.m_extent;
  }
  const double cycles =
      gemm_cycles(gemm, rows, shape.n_extent, gemm.kc, target) * step_time(shape, record, target);
  return cycles * rows_of(link, graph) / static_cast<double>(rows) / target.clock_ghz;
}

double weights_bytes(const stage::Link& link, const stage::Gemm& gemm) {
  if (link.rows) return 0;
  const int64_t lanes = gemm.lanes;
  return static_cast<double>((link.shape.n_extent + lanes - 1) / lanes * lanes *
                             steps_of(link.shape, gemm) * tensor::type_bytes(link.shape.type));
}

// Blocks of rows, each of which reads all weights.
double blocks_of(const stage::Link& first, const stage::Gemm& gemm,
                 const stage::StageGraph& graph) {
  const stage::Stage& stage = graph.stage(first.base);
  double blocks = 1;
  for (int d : first.shape.batch) blocks *= static_cast<double>(stage.out[d].extent);
  auto cut = [](int64_t extent, int64_t by) {
    return static_cast<double>((extent + by - 1) / std::max<int64_t>(by, 1));
  };
  return blocks * cut(first.shape.m_extent, gemm.m_block) * cut(first.shape.y_extent, gemm.y_block);
}

// The time in which each block of rows copies the right operand into panels.
double copies_ns(const stage::Link& link, const stage::Gemm& gemm, double blocks,
                 const target::Target& target) {
  if (link.rows || !gemm.copy_b) return 0;
  const double cycles = link.shape.b_n == 1 ? 2 : 4;  // per vector; transposed
  return cycles * blocks * static_cast<double>(link.shape.n_extent * steps_of(link.shape, gemm)) /
         target.lanes(tensor::Type::f32) / target.clock_ghz;
}

// The factor by which the last round of tasks leaves cores idle.
double idle_factor(double tasks, const target::Target& target) {
  const double cores = std::max(target.cores, 1);
  return std::ceil(tasks / cores) * cores / tasks;
}

double traffic_ns(const stage::StageGraph& graph, const target::Target& target) {
  double ns = 0;
  std::vector<bool> read(graph.inputs.size(), true);
  for (const stage::Output& output : graph.outputs) {
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

namespace {

// Cycles of all elements of stages that work row by row, on one core.
double rows_cycles(const stage::StageGraph& graph, const std::vector<stage::StageId>& stages,
                   const target::Target& target) {
  double cycles = 0;
  for (stage::StageId id : stages) {
    const stage::Stage& stage = graph.stage(id);
    double each = stage.red.empty() ? 1 : 0.5;  // the store, or the combining
    for (const stage::Node& node : stage.nodes) {
      if (node.kind == stage::Node::Kind::load) each += 0.5;
      if (node.kind == stage::Node::Kind::op)
        each += operator_cycles(node.opcode, node.fast, target);
    }
    const auto out = static_cast<double>(stage.out_elems());
    cycles += each * out * static_cast<double>(stage.red_elems()) / target.lanes(tensor::Type::f32);
    constexpr double kTree = 24;  // reduction across the lanes
    if (!stage.red.empty()) cycles += kTree * out;
  }
  return cycles;
}

// The time of a separate kernel of rows.
double rows_ns(const stage::PlacedFusion& placed, const target::Target& target) {
  std::vector<stage::StageId> stages;
  for (size_t i = 0; i < placed.graph.stages.size(); ++i) stages.emplace_back(i);
  double tasks = 1;
  for (const stage::ScheduleNode& node : placed.schedule.nodes)
    if (const stage::Loop* loop = std::get_if<stage::Loop>(&node);
        loop && loop->kind == stage::LoopKind::parallel)
      tasks *= static_cast<double>(loop->trips);
  const double cycles = rows_cycles(placed.graph, stages, target);
  return cycles / target.clock_ghz / std::max(target.cores, 1) * idle_factor(tasks, target) +
         target.launch_ns + traffic_ns(placed.graph, target);
}

// A single product, as a chain of one link.
stage::Chain chain_of_one(const stage::PlacedFusion& placed) {
  const stage::Row& row = std::get<stage::Row>(placed.schedule.nodes[0]);
  stage::Chain chain;
  chain.links.emplace_back();
  chain.links[0].joined = {row.joined[0]};
  chain.links[0].base = row.joined[0];
  chain.links[0].shape = row.gemm()->shape;
  chain.records = {row.gemm()->record};
  return chain;
}

}  // namespace

double predicted_ns(const stage::PlacedFusion& placed, const target::Target& target) {
  if (!is_gemm(placed)) return rows_ns(placed, target);
  const stage::Chain chain = is_chain(placed) ? *placed.chain() : chain_of_one(placed);
  const std::vector<stage::Gemm>& records = chain.records;
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
    // Data from beyond the second cache overlaps with arithmetic only if it is prefetched.
    const bool hides = records[i].prefetch > 0 || target.caches.size() < 2 ||
                       near <= static_cast<double>(target.caches[1].bytes) / 2;
    tiles += hides ? std::max(computed, stream) : computed + stream;
  }
  if (chain.links.size() == 1) {
    const int64_t width =
        int64_t{records[0].nv} * records[0].lanes * std::max<int64_t>(records[0].panels, 1);
    tasks *= static_cast<double>((chain.links[0].shape.n_extent + width - 1) / width);
  }
  // Memory traffic adds to that, rather than overlapping with it.
  return tiles / std::max(target.cores, 1) * idle_factor(tasks, target) + target.launch_ns +
         traffic_ns(placed.graph, target);
}

}  // namespace heddle::cost
