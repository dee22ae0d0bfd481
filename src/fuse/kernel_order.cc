#include "fuse/kernel_order.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace heddle::fuse {

KernelOrder::KernelOrder(const Graph& graph) : KernelOrder(graph, {}) {
  std::iota(place_.begin(), place_.end(), 0);  // producers come first
}

KernelOrder::KernelOrder(const Graph& graph, const std::vector<Members>& joined)
    : graph_(&graph),
      kernel_(graph.vertices.size()),
      members_(graph.vertices.size()),
      place_(graph.vertices.size(), 0),
      seen_(graph.vertices.size(), 0) {
  std::iota(kernel_.begin(), kernel_.end(), 0);
  for (const Members& members : joined)
    for (int member : members) kernel_[static_cast<size_t>(member)] = members[0];
  for (size_t v = 0; v < kernel_.size(); ++v)
    members_[static_cast<size_t>(kernel_[v])].push_back(static_cast<int>(v));
}

std::optional<KernelOrder> KernelOrder::of(const Graph& graph, const std::vector<Members>& joined) {
  KernelOrder order(graph, joined);
  const size_t count = graph.vertices.size();
  std::vector<std::vector<int>> before(count);
  std::vector<size_t> key(count);
  std::iota(key.begin(), key.end(), size_t{0});
  for (size_t k = 0; k < count; ++k)
    if (!order.members_[k].empty()) before[k] = order.feeders(static_cast<int>(k));
  const std::vector<int> sorted = in_order(before, key);
  if (sorted.size() < count) return std::nullopt;
  for (size_t i = 0; i < count; ++i)
    order.place_[static_cast<size_t>(sorted[i])] = static_cast<int>(i);
  return order;
}

std::vector<int> KernelOrder::neighbours(int kernel, bool forward) const {
  std::vector<int> found;
  for (int member : members(kernel)) {
    const Vertex& vertex = graph_->vertices[static_cast<size_t>(member)];
    for (int next : forward ? vertex.consumers : vertex.producers)
      if (const int other = this->kernel(next); other != kernel) found.push_back(other);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

bool KernelOrder::reach(const std::vector<int>& row, bool forward, int low, int high,
                        std::vector<int>* found) const {
  search_ += 2;
  const int is_row = search_, is_seen = search_ + 1;
  for (int kernel : row) seen_[static_cast<size_t>(kernel)] = is_row;
  bool leads_back = false;
  auto visit = [&](int from) {
    const bool outside = seen_[static_cast<size_t>(from)] == is_seen;
    for (int member : members(from)) {
      const Vertex& vertex = graph_->vertices[static_cast<size_t>(member)];
      for (int next : forward ? vertex.consumers : vertex.producers) {
        const int kernel = this->kernel(next), at = place(kernel);
        int& seen = seen_[static_cast<size_t>(kernel)];
        leads_back |= outside && seen == is_row;
        if (seen == is_row || seen == is_seen || at <= low || at >= high) continue;
        seen = is_seen;
        found->push_back(kernel);
      }
    }
  };
  for (int kernel : row) visit(kernel);
  for (size_t i = 0; i < found->size() && !leads_back; ++i) visit((*found)[i]);
  return !leads_back;
}

bool KernelOrder::makes_cycle(const std::vector<int>& kernels) const {
  int high = std::numeric_limits<int>::min();
  for (int kernel : kernels) high = std::max(high, place(kernel));
  std::vector<int> found;
  return !reach(kernels, true, std::numeric_limits<int>::min(), high, &found);
}

bool KernelOrder::leads_to(int from, int to) const {
  if (from == to || place(from) >= place(to)) return false;
  std::vector<int> found;
  reach({from}, true, place(from), place(to) + 1, &found);
  return std::find(found.begin(), found.end(), to) != found.end();
}

int KernelOrder::unite(const std::vector<int>& kernels) {
  int low = std::numeric_limits<int>::max(), high = std::numeric_limits<int>::min();
  std::vector<int> places, before, after;
  for (int kernel : kernels) {
    low = std::min(low, place(kernel));
    high = std::max(high, place(kernel));
    places.push_back(place(kernel));
  }
  reach(kernels, true, low, high, &after);
  reach(kernels, false, low, high, &before);
  for (std::vector<int>* moved : {&before, &after}) {
    for (int kernel : *moved) places.push_back(place(kernel));
    std::sort(moved->begin(), moved->end(), [&](int a, int b) { return place(a) < place(b); });
  }
  // Kernels before the row take the first of the places, kernels after it the last: none gets
  // before a kernel that it waits for outside of these places.
  std::sort(places.begin(), places.end());
  for (size_t i = 0; i < before.size(); ++i) place_[static_cast<size_t>(before[i])] = places[i];
  for (size_t i = 0; i < after.size(); ++i)
    place_[static_cast<size_t>(after[i])] = places[places.size() - after.size() + i];
  const int whole = kernels[0];
  place_[static_cast<size_t>(whole)] = places[before.size()];
  for (size_t i = 1; i < kernels.size(); ++i) {
    std::vector<int>& moved = members_[static_cast<size_t>(kernels[i])];
    for (int member : moved) kernel_[static_cast<size_t>(member)] = whole;
    std::vector<int>& members = members_[static_cast<size_t>(whole)];
    members.insert(members.end(), moved.begin(), moved.end());
    moved.clear();
  }
  return whole;
}

}  // namespace heddle::fuse
