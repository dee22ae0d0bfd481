#include "fuse/enumerate.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_map>
#include <unordered_set>

namespace heddle::fuse {

namespace {

// An acyclic cover is a path from the empty set to all vertices on which every step adds a kernel
// whose producers are in the set already. So the least time is the shortest path through the sets
// of vertices that contain all producers of their members.
class Enumeration {
 public:
  Enumeration(const Graph& graph, size_t most_kernels, const KernelPrice& price)
      : graph_(graph),
        most_kernels_(most_kernels),
        price_(price),
        count_(static_cast<int>(graph.vertices.size())) {}

  std::optional<std::vector<Members>> run() {
    if (count_ == 0 || count_ > 64) return std::nullopt;
    if (!walk([](uint64_t) { return 1.0; })) return std::nullopt;
    steps_.clear();
    walk([&](uint64_t kernel) { return price_of(kernel); });
    std::vector<Members> found;
    uint64_t at = ~uint64_t{0} >> (64 - count_);
    while (true) {
      const auto step = steps_.find(at);
      if (step == steps_.end()) return std::nullopt;
      if (step->second.kernel == 0) return found;
      found.push_back(members_of(step->second.kernel));
      at = step->second.before;
    }
  }

 private:
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();

  struct Step {
    double ns = 0;
    uint64_t before = 0, kernel = 0;
  };

  // False: too many kernels.
  template <typename Price>
  bool walk(Price&& price) {
    const uint64_t start = with_others(0);
    steps_[start] = {};
    std::unordered_set<uint64_t> kernels;
    // By size: larger sets are reached from smaller ones.
    std::vector<std::vector<uint64_t>> by_size(static_cast<size_t>(count_) + 1);
    by_size[static_cast<size_t>(std::popcount(start))].push_back(start);
    for (size_t size = 0; size < by_size.size(); ++size) {
      for (size_t i = 0; i < by_size[size].size(); ++i) {
        const uint64_t done = by_size[size][i];
        const double before = steps_.at(done).ns;
        const bool enough = !add_kernels(done, 0, 0, [&](uint64_t kernel) {
          kernels.insert(kernel);
          const double ns = before + price(kernel);
          if (ns < kInfinite) {
            const uint64_t then = with_others(done | kernel);
            const auto [known, added] = steps_.try_emplace(then, Step{ns, done, kernel});
            if (ns < known->second.ns) known->second = {ns, done, kernel};
            if (added) by_size[static_cast<size_t>(std::popcount(then))].push_back(then);
          }
          return kernels.size() <= most_kernels_;
        });
        if (enough) return false;
      }
    }
    return true;
  }

  bool is_ready(int v, uint64_t there) const {
    const Vertex& vertex = graph_.vertices[static_cast<size_t>(v)];
    return std::all_of(vertex.producers.begin(), vertex.producers.end(),
                       [&](int producer) { return (there >> producer) & 1; });
  }

  // Adds vertices that cannot fuse, as soon as their producers are done.
  uint64_t with_others(uint64_t done) const {
    for (int v = 0; v < count_; ++v)
      if (!graph_.vertices[static_cast<size_t>(v)].can_fuse && is_ready(v, done))
        done |= uint64_t{1} << v;
    return done;
  }

  // Calls `found` for all sets of vertices from `from` on that may follow `done` as a kernel, until
  // it returns false.
  template <typename Found>
  bool add_kernels(uint64_t done, uint64_t kernel, int from, Found&& found) {
    for (int v = from; v < count_; ++v) {
      const uint64_t bit = uint64_t{1} << v, there = done | kernel;
      if ((there & bit) || !graph_.vertices[static_cast<size_t>(v)].can_fuse || !is_ready(v, there))
        continue;
      if (!found(kernel | bit) || !add_kernels(done, kernel | bit, v + 1, found)) return false;
    }
    return true;
  }

  static Members members_of(uint64_t kernel) {
    Members members;
    for (; kernel; kernel &= kernel - 1) members.push_back(std::countr_zero(kernel));
    return members;
  }

  double price_of(uint64_t kernel) {
    const auto [known, added] = prices_.try_emplace(kernel, 0);
    if (added) known->second = price_(members_of(kernel));
    return known->second;
  }

  const Graph& graph_;
  const size_t most_kernels_;
  const KernelPrice& price_;
  const int count_;
  std::unordered_map<uint64_t, double> prices_;
  std::unordered_map<uint64_t, Step> steps_;
};

}  // namespace

std::optional<std::vector<Members>> best_cover(const Graph& graph, size_t most_kernels,
                                               const KernelPrice& price) {
  return Enumeration(graph, most_kernels, price).run();
}

}  // namespace heddle::fuse
