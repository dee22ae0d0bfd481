#include "plan/sections.h"

#include <algorithm>
#include <unordered_map>

#include "plan/sharing.h"

namespace heddle::plan {

using program::BufferKind;

Orders::Orders(const Flow& flow, const std::vector<BufferKind>& kinds, const Options& options,
               const std::vector<int64_t>& streams)
    : flow_(flow), kinds_(kinds), options_(options), streams_(streams) {
  order_regions();
}

// The reads of a node, including all reads in its regions.
void Orders::add_reads(const Node& node, std::vector<StorageId>& reads) const {
  for (const Leaf& leaf : node.operands) reads.push_back(leaf.storage);
  for (RegionId region : node.regions) {
    for (const Leaf& leaf : flow_.region(region).results) reads.push_back(leaf.storage);
    for (NodeId inside : nodes_of_[region.index()]) add_reads(flow_.node(inside), reads);
  }
}

// Operands whose memory a result takes: in place if they die here, or because it must.
void Orders::add_overwrites(const Node& node, const std::function<int(StorageId)>& value,
                            std::vector<int>& overwrites) const {
  for (size_t r = 0; r < node.results.size(); ++r) {
    const StorageId result = node.results[r].storage;
    for (size_t o = 0; o < node.operands.size(); ++o) {
      const StorageId operand = node.operands[o].storage;
      const bool may = node.use != nullptr && r < node.use->in_place.size() &&
                       node.use->in_place[r] == static_cast<int>(o);
      if (!may && home_of(flow_, operand) != home_of(flow_, result)) continue;
      if (kinds_[result.index()] != BufferKind::temporary ||
          flow_.storage(operand).bytes != flow_.storage(result).bytes)
        continue;
      const int v = value(operand);
      if (std::find(overwrites.begin(), overwrites.end(), v) == overwrites.end())
        overwrites.push_back(v);
      break;
    }
  }
}

// Tasks are the nodes; values are numbered in order of appearance.
TaskGraph Orders::task_graph(const std::vector<NodeId>& nodes, RegionId region) const {
  TaskGraph graph;
  std::unordered_map<size_t, int> task_of, value_of;  // by node, by storage
  for (size_t t = 0; t < nodes.size(); ++t) task_of[nodes[t].index()] = static_cast<int>(t);
  auto value = [&](size_t i) {
    const auto [found, added] = value_of.try_emplace(i, static_cast<int>(graph.values.size()));
    if (added) {
      const bool counts = kinds_[i] == BufferKind::temporary &&
                          flow_.storages[i].region == region &&
                          flow_.storages[i].space == program::Space::device;
      graph.values.push_back({counts ? flow_.storages[i].bytes : 0, !counts});
    }
    return found->second;
  };
  for (const Leaf& leaf : flow_.region(region).results)
    graph.values[static_cast<size_t>(value(leaf.storage.index()))].kept = true;
  for (NodeId id : nodes) {
    const Node& node = flow_.node(id);
    TaskGraph::Task& task = graph.tasks.emplace_back();
    for (NodeId before : node.after)
      if (const auto found = task_of.find(before.index()); found != task_of.end())
        task.after.push_back(found->second);
    for (const Leaf& leaf : node.results) task.makes.push_back(value(leaf.storage.index()));
    std::vector<StorageId> reads;
    add_reads(node, reads);
    for (StorageId read : reads) task.reads.push_back(value(read.index()));
    std::sort(task.reads.begin(), task.reads.end());
    task.reads.erase(std::unique(task.reads.begin(), task.reads.end()), task.reads.end());
    add_overwrites(node, [&](StorageId id) { return value(id.index()); }, task.overwrites);
    for (StorageId workspace : node.workspaces)
      task.workspace_bytes += align_up(flow_.storage(workspace).bytes);
    for (RegionId inside : node.regions)
      task.workspace_bytes = std::max(task.workspace_bytes, region_peak_[inside.index()]);
  }
  return graph;
}

std::vector<std::vector<int>> Orders::candidate_orders(const TaskGraph& graph) const {
  const int64_t work = options_.memory_limit_bytes >= 0 ? kBeamWorkUnderLimit : kBeamWork;
  switch (options_.order) {
    case Order::as_is:
      return {as_is_order(graph)};
    case Order::bfs:
      return {bfs_order(graph)};
    case Order::dfs:
      return {dfs_order(graph)};
    case Order::list:
      return {list_order(graph)};
    case Order::beam:
      return {beam_order(graph, work)};
    case Order::cheapest:
      break;
  }
  return {as_is_order(graph), dfs_order(graph), list_order(graph), bfs_order(graph),
          beam_order(graph, work)};
}

// Orders the nodes of every region by its peak; inner regions first.
void Orders::order_regions() {
  nodes_of_.resize(flow_.regions.size());
  region_peak_.resize(flow_.regions.size());
  for (size_t n = 0; n < flow_.nodes.size(); ++n)
    if (flow_.nodes[n].region.index() != 0)
      nodes_of_[flow_.nodes[n].region.index()].push_back(NodeId(n));
  for (size_t r = flow_.regions.size(); r-- > 1;) {
    const std::vector<NodeId> nodes = nodes_of_[r];
    const TaskGraph graph = task_graph(nodes, RegionId(r));
    int64_t best_bytes = -1;
    for (const std::vector<int>& candidate : candidate_orders(graph)) {
      const int64_t bytes = peak_bytes(graph, candidate);
      if (best_bytes >= 0 && bytes >= best_bytes) continue;
      best_bytes = bytes;
      for (size_t t = 0; t < candidate.size(); ++t)
        nodes_of_[r][t] = nodes[static_cast<size_t>(candidate[t])];
    }
    region_peak_[r] = best_bytes;
  }
}

void Orders::append(NodeId id, Sequence& sequence) const {
  sequence.step[id.index()] = std::ssize(sequence.nodes);
  sequence.nodes.push_back(id);
  const bool own = flow_.node(id).region.index() == 0;
  sequence.command.push_back(
      sequence.command.empty() ? 0 : sequence.command.back() + static_cast<int64_t>(own));
  for (RegionId region : flow_.node(id).regions) {
    for (NodeId inside : nodes_of_[region.index()]) append(inside, sequence);
    sequence.region_end[region.index()] = std::ssize(sequence.nodes) - 1;
  }
  sequence.end[id.index()] = std::ssize(sequence.nodes) - 1;
}

// Chooses among candidate orders by their real peak (with sharing in place); of equals the first.
Section Orders::section(bool once) const {
  std::vector<NodeId> nodes;
  for (size_t n = 0; n < flow_.nodes.size(); ++n)
    if (flow_.nodes[n].region.index() == 0 && flow_.nodes[n].once == once)
      nodes.push_back(NodeId(n));
  const TaskGraph graph = task_graph(nodes, RegionId(0));
  Section best;
  int64_t best_bytes = -1;
  for (const std::vector<int>& candidate : candidate_orders(graph)) {
    Section section;
    section.sequence.step.assign(flow_.nodes.size(), -1);
    section.sequence.end.assign(flow_.nodes.size(), -1);
    section.sequence.region_end.assign(flow_.regions.size(), -1);
    for (int task : candidate) append(nodes[static_cast<size_t>(task)], section.sequence);
    if (!once && options_.static_memory && options_.most_streams != 1)
      section.ordering = ordering_of(section.sequence);
    find_blocks(section, options_.static_memory);
    const int64_t bytes = lower_bound_bytes(section.device.blocks);
    if (best_bytes >= 0 && bytes >= best_bytes) continue;
    best_bytes = bytes;
    best = std::move(section);
  }
  return best;
}

// Whether the host executes it or decides about it.
bool Orders::stands_alone(const Node& node) const {
  if (node.kind != NodeKind::copy) return node.kind != NodeKind::work || node.use == nullptr;
  const Storage& from = flow_.storage(node.operands[0].storage);
  return flow_.storage(node.results[0].storage).space == program::Space::host &&
         (from.kind == StorageKind::constant || from.space == program::Space::host);
}

// By data and control, and by the streams if they are known. A command that runs alone is ordered
// against all others (program/streams.h).
Ordering Orders::ordering_of(const Sequence& sequence) const {
  std::vector<std::vector<size_t>> before;
  std::vector<int64_t> number(flow_.nodes.size(), -1), last_of_stream;
  size_t alone = 0, behind = 0;  // the last command that runs alone; the first after it
  for (NodeId id : sequence.nodes) {
    const Node& node = flow_.node(id);
    if (node.region.index() != 0) continue;
    const size_t i = before.size();
    number[id.index()] = static_cast<int64_t>(i);
    std::vector<size_t>& mine = before.emplace_back();
    if (behind > 0) mine.push_back(alone);
    if (stands_alone(node)) {
      for (size_t p = behind; p < i; ++p) mine.push_back(p);
      alone = i;
      behind = i + 1;
      continue;
    }
    for (NodeId other : node.after)
      if (number[other.index()] >= 0) mine.push_back(static_cast<size_t>(number[other.index()]));
    if (streams_.empty()) continue;
    const auto stream = static_cast<size_t>(streams_[id.index()]);
    if (stream >= last_of_stream.size()) last_of_stream.resize(stream + 1, -1);
    if (last_of_stream[stream] >= 0) mine.push_back(static_cast<size_t>(last_of_stream[stream]));
    last_of_stream[stream] = static_cast<int64_t>(i);
  }
  return Ordering::predecessor(before);
}

// Whether all commands of `one` are certain to have run before any of `other`.
static bool is_over(const std::vector<int64_t>& one, const std::vector<int64_t>& other,
                    const Ordering& ordering) {
  for (int64_t a : one)
    for (int64_t b : other)
      if (!ordering.runs_before(static_cast<size_t>(a), static_cast<size_t>(b))) return false;
  return true;
}

void Orders::find_blocks(Section& section, bool in_place) const {
  section.lifetimes = find_lifetimes(flow_, kinds_, section.sequence, section.ordering, in_place);
  const Lifetimes& lifetimes = section.lifetimes;
  for (size_t i = 0; i < flow_.storages.size(); ++i) {
    if (kinds_[i] != BufferKind::temporary || lifetimes.home[i] != StorageId(i) ||
        lifetimes.first[i] < 0)
      continue;
    const bool host = flow_.storages[i].space == program::Space::host;
    Arena& arena = host ? section.host : section.device;
    arena.temporaries.push_back(StorageId(i));
    arena.blocks.push_back(
        {align_up(flow_.storages[i].bytes), lifetimes.first[i], lifetimes.last[i]});
  }
}

void Orders::find_conflicts(Section& section) {
  if (section.ordering.is_sequential()) return;
  const Lifetimes& lifetimes = section.lifetimes;
  for (Arena* arena : {&section.device, &section.host}) {
    const size_t count = arena->blocks.size();
    arena->conflicts.assign(count, std::vector<bool>(count, false));
    for (size_t a = 0; a < count; ++a)
      for (size_t b = 0; b < a; ++b) {
        const auto& one = lifetimes.commands[arena->temporaries[a].index()];
        const auto& other = lifetimes.commands[arena->temporaries[b].index()];
        const bool first = arena->blocks[a].first <= arena->blocks[b].first;
        arena->conflicts[a][b] = arena->conflicts[b][a] = !(
            first ? is_over(one, other, section.ordering) : is_over(other, one, section.ordering));
      }
  }
}

}  // namespace heddle::plan
