#include "fuse/memory.h"

#include <algorithm>
#include <map>

#include "hlo/views.h"

namespace heddle::fuse {

namespace {

using hlo::Instr;
using hlo::Opcode;

int64_t bytes_of(const tensor::Shape& shape) {
  if (!shape.is_tuple()) return shape.is_array() ? shape.bytes() : 0;
  int64_t sum = 0;
  for (const tensor::Shape& element : shape.elements()) sum += bytes_of(element);
  return sum;
}

bool holds(const std::vector<int>& nodes, int node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

// Whether the node reads every element of `value` where it computes the same element of its result.
// `inside`: whether an instruction is part of the node.
bool is_read_in_step(const Instr* value, const std::function<bool(const Instr*)>& inside) {
  return std::all_of(value->users().begin(), value->users().end(), [&](const Instr* user) {
    if (hlo::is_view_or_element(user)) return is_read_in_step(user, inside);
    if (!inside(user)) return true;
    if (user->is(Opcode::fusion)) {
      const hlo::Computation& fused = *user->called()[0];
      for (size_t o = 0; o < user->operands().size(); ++o)
        if (user->operand(o) == value &&
            !is_read_in_step(fused.parameters()[o], [](const Instr*) { return true; }))
          return false;
      return true;
    }
    return has_trait(user->opcode(), hlo::elementwise) || user->is(Opcode::reduce) ||
           user->is(Opcode::tuple);
  });
}

class GraphMaker {
 public:
  GraphMaker(const hlo::Computation& computation, int nodes, const NodesOf& nodes_of)
      : computation_(computation), nodes_of_(nodes_of) {
    graph_.nodes = nodes;
  }

  MemoryGraph make() {
    const Instr* root = computation_.root();
    for (const Instr* instr : computation_.instrs()) {
      const std::vector<int>& readers = nodes_of_(instr);
      for (const Instr* operand : instr->operands()) {
        const Instr* from = hlo::behind_views(operand);
        const std::vector<int>& makers = nodes_of_(hlo::behind_views_and_elements(from));
        if (makers.size() != 1) continue;
        if (instr == root && root->is(Opcode::tuple)) results_.push_back(key_of(from));
        for (int reader : readers)
          if (reader != makers[0]) add(from, makers[0], reader);
      }
    }
    results_.push_back(key_of(hlo::behind_views(root)));
    for (const Key& result : results_)
      if (const auto known = value_of_.find(result); known != value_of_.end())
        graph_.values[static_cast<size_t>(known->second)].bytes = 0;
    for (size_t v = 0; v < graph_.values.size(); ++v) find_over(static_cast<int>(v));
    return std::move(graph_);
  }

 private:
  using Key = std::pair<const Instr*, int64_t>;  // and the element of its tuple; -1: all

  static Key key_of(const Instr* value) {
    if (!value->is(Opcode::get_tuple_element)) return {value, -1};
    return {value->operand(0), value->tuple_index()};
  }

  void add(const Instr* from, int maker, int reader) {
    const auto [known, is_new] =
        value_of_.emplace(key_of(from), static_cast<int>(graph_.values.size()));
    if (is_new) {
      graph_.values.push_back({bytes_of(from->shape()), maker, {}, -1});
      instrs_.push_back(from);
    }
    std::vector<int>& readers = graph_.values[static_cast<size_t>(known->second)].readers;
    if (!holds(readers, reader)) readers.push_back(reader);
  }

  void find_over(int number) {
    MemoryGraph::Value& made = graph_.values[static_cast<size_t>(number)];
    taken_.resize(graph_.values.size());
    for (size_t v = 0; v < graph_.values.size() && made.over < 0; ++v) {
      const MemoryGraph::Value& read = graph_.values[v];
      if (taken_[v] || read.bytes != made.bytes || read.bytes == 0 ||
          !holds(read.readers, made.maker))
        continue;
      const auto inside = [&](const Instr* user) { return holds(nodes_of_(user), made.maker); };
      if (!is_read_in_step(instrs_[v], inside)) continue;
      made.over = static_cast<int>(v);
      taken_[v] = true;
    }
  }

  const hlo::Computation& computation_;
  const NodesOf& nodes_of_;
  MemoryGraph graph_;
  std::vector<const Instr*> instrs_;  // of the values
  std::map<Key, int> value_of_;
  std::vector<Key> results_;
  std::vector<bool> taken_;  // by value: another value overwrites it
};

// Which node runs before which, one bit per pair.
class Before {
 public:
  explicit Before(const MemoryGraph& graph)
      : words_((static_cast<size_t>(graph.nodes) + 63) / 64),
        bits_(words_ * static_cast<size_t>(graph.nodes)) {
    std::vector<std::vector<int>> next(static_cast<size_t>(graph.nodes));
    std::vector<int> waits(static_cast<size_t>(graph.nodes)), ready;
    for (const MemoryGraph::Value& value : graph.values)
      for (int reader : value.readers) {
        next[static_cast<size_t>(value.maker)].push_back(reader);
        ++waits[static_cast<size_t>(reader)];
      }
    for (int node = 0; node < graph.nodes; ++node)
      if (waits[static_cast<size_t>(node)] == 0) ready.push_back(node);
    while (!ready.empty()) {
      const int node = ready.back();
      ready.pop_back();
      for (int reader : next[static_cast<size_t>(node)]) {
        uint64_t* to = row(reader);
        const uint64_t* from = row(node);
        for (size_t w = 0; w < words_; ++w) to[w] |= from[w];
        to[static_cast<size_t>(node) / 64] |= uint64_t{1} << (node % 64);
        if (--waits[static_cast<size_t>(reader)] == 0) ready.push_back(reader);
      }
    }
  }

  bool is_before(int first, int second) const {
    return row(second)[static_cast<size_t>(first) / 64] >> (first % 64) & 1;
  }

  // The nodes before any of `nodes`.
  std::vector<int> before_any(const std::vector<int>& nodes) const {
    std::vector<int> result;
    for (size_t w = 0; w < words_; ++w) {
      uint64_t all = 0;
      for (int node : nodes) all |= row(node)[w];
      for (; all != 0; all &= all - 1)
        result.push_back(static_cast<int>(w * 64) + __builtin_ctzll(all));
    }
    return result;
  }

 private:
  uint64_t* row(int node) { return &bits_[static_cast<size_t>(node) * words_]; }
  const uint64_t* row(int node) const { return &bits_[static_cast<size_t>(node) * words_]; }

  size_t words_;
  std::vector<uint64_t> bits_;
};

}  // namespace

MemoryGraph memory_graph(const hlo::Computation& computation, int nodes, const NodesOf& nodes_of) {
  return GraphMaker(computation, nodes, nodes_of).make();
}

std::vector<int64_t> live_bytes(const MemoryGraph& graph) {
  if (graph.nodes > kMostMemoryNodes) return {};
  const Before before(graph);
  std::vector<int64_t> live(static_cast<size_t>(graph.nodes));
  for (const MemoryGraph::Value& value : graph.values) {
    if (value.bytes == 0) continue;
    live[static_cast<size_t>(value.maker)] += value.bytes;
    for (int reader : value.readers) live[static_cast<size_t>(reader)] += value.bytes;
    for (int node : before.before_any(value.readers))
      if (before.is_before(value.maker, node) && !holds(value.readers, node))
        live[static_cast<size_t>(node)] += value.bytes;
    if (value.over < 0) continue;
    const std::vector<int>& readers = graph.values[static_cast<size_t>(value.over)].readers;
    if (std::none_of(readers.begin(), readers.end(),
                     [&](int reader) { return before.is_before(value.maker, reader); }))
      live[static_cast<size_t>(value.maker)] -= value.bytes;
  }
  return live;
}

}  // namespace heddle::fuse
