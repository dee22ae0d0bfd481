#include "fuse/refine.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "fuse/kernel_order.h"

namespace heddle::fuse {

namespace {

constexpr size_t kMostMembers = 48;
// Small kernels that are tried as partners without an edge between them.
constexpr size_t kMostRemote = 6, kFarthest = 16;
// Requests for prices, most of them known, per schedule that may be requested.
constexpr int64_t kAsked = 16;

class Refiner {
 public:
  Refiner(const Graph& graph, PatternJudge* judge, const SearchOptions& options, int64_t spare,
          std::vector<CoverPart>* parts)
      : graph_(graph),
        judge_(*judge),
        last_placement_(judge->placements() + options.refinements),
        prices_left_(kAsked * options.refinements),
        options_(options),
        spare_(spare),
        parts_(*parts) {
    part_of_.assign(graph.vertices.size(), -1);
    for (size_t p = 0; p < parts_.size(); ++p) own(p);
  }

  bool run() {
    bool changed = false;
    for (bool again = true; again;) {
      again = false;
      std::vector<size_t> order(parts_.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return parts_[a].price > parts_[b].price; });
      for (size_t p : order)
        while (is_open(p) && has_budget() && step(p)) again = changed = true;
    }
    std::erase_if(parts_, [](const CoverPart& part) { return part.members.empty(); });
    return changed;
  }

 private:
  bool has_budget() const { return prices_left_ > 0 && judge_.placements() < last_placement_; }
  bool is_open(size_t p) const { return !parts_[p].fixed && !parts_[p].members.empty(); }

  void own(size_t p) {
    for (int member : parts_[p].members)
      part_of_[static_cast<size_t>(member)] = static_cast<int>(p);
  }

  static Members united(const Members& a, const Members& b) {
    Members both;
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
    return both;
  }

  static Members without(const Members& a, const Members& b) {
    Members rest;
    std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest));
    return rest;
  }

  // None: there is no code for it.
  std::optional<double> price(const Members& members) {
    if (members.size() > kMostMembers || !has_budget()) return std::nullopt;
    --prices_left_;
    const Judged& judged = judge_.judge(members);
    if (!judged.builds && members.size() > 1) return std::nullopt;
    return judged.ns;
  }

  bool step(size_t p) {
    for (size_t other : neighbours(p, parts_[p].members))
      if (merge(p, other)) return true;
    if (options_.remote)
      for (size_t other : partners(p))
        if (merge(p, other)) return true;
    for (const Members& cut : cuts(parts_[p].members))
      if (move(p, cut)) return true;
    return false;
  }

  bool merge(size_t a, size_t b) {
    Members both = united(parts_[a].members, parts_[b].members);
    const std::optional<double> ns = price(both);
    if (!ns || *ns * options_.least_gain >= parts_[a].price + parts_[b].price) return false;
    if (!change({{a, {std::move(both), *ns}}, {b, {{}, 0}}})) return false;
    ++spare_;
    return true;
  }

  // Moves `cut` to a separate kernel, or to a neighbour.
  bool move(size_t p, const Members& cut) {
    const Members rest = without(parts_[p].members, cut);
    const std::optional<double> rest_ns = price(rest);
    if (!rest_ns) return false;
    const std::optional<double> cut_ns = price(cut);
    if (cut_ns && (*rest_ns + *cut_ns) * options_.least_gain < parts_[p].price &&
        (spare_ > 0 || may_add_kernels(*rest_ns + *cut_ns, parts_[p].price, 1, options_)) &&
        change({{p, {rest, *rest_ns}}, {parts_.size(), {cut, *cut_ns}}})) {
      --spare_;
      return true;
    }
    for (size_t other : neighbours(p, cut)) {
      Members both = united(parts_[other].members, cut);
      const std::optional<double> ns = price(both);
      if (ns && (*rest_ns + *ns) * options_.least_gain < parts_[p].price + parts_[other].price &&
          change({{p, {rest, *rest_ns}}, {other, {std::move(both), *ns}}}))
        return true;
    }
    return false;
  }

  // Open kernels other than `p` that read the members' values, or compute their operands.
  std::vector<size_t> neighbours(size_t p, const Members& members) const {
    std::vector<size_t> found;
    auto see = [&](int vertex) {
      const int part = part_of_[static_cast<size_t>(vertex)];
      if (part >= 0 && static_cast<size_t>(part) != p && is_open(static_cast<size_t>(part)))
        found.push_back(static_cast<size_t>(part));
    };
    for (int member : members) {
      const Vertex& vertex = graph_.vertices[static_cast<size_t>(member)];
      for (int other : vertex.consumers) see(other);
      for (int other : vertex.producers) see(other);
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  // Kernels that it may be packed with: small ones, and in a graph of few kernels any.
  std::vector<size_t> partners(size_t p) {
    const bool any = parts_.size() <= 2 * kMostRemote;
    std::vector<size_t> found;
    if (!any && judge_.packing_class(parts_[p].members) == 0) return found;
    const size_t first = any || p < kFarthest ? 0 : p - kFarthest;
    const size_t end = any ? parts_.size() : std::min(parts_.size(), p + kFarthest);
    for (size_t other = first; other < end && found.size() < kMostRemote; ++other)
      if (other != p && is_open(other) && (any || judge_.packing_class(parts_[other].members) != 0))
        found.push_back(other);
    return found;
  }

  // Beginnings and ends of a kernel: a member with all members that lead to it, or that it leads
  // to.
  std::vector<Members> cuts(const Members& members) const {
    std::vector<Members> found;
    for (const bool forward : {true, false}) {
      for (int from : members) {
        std::vector<int> work{from};
        Members cut{from};
        while (!work.empty()) {
          const Vertex& vertex = graph_.vertices[static_cast<size_t>(work.back())];
          work.pop_back();
          for (int next : forward ? vertex.consumers : vertex.producers) {
            const auto place = std::lower_bound(cut.begin(), cut.end(), next);
            if ((place != cut.end() && *place == next) ||
                !std::binary_search(members.begin(), members.end(), next))
              continue;
            cut.insert(place, next);
            work.push_back(next);
          }
        }
        if (cut.size() < members.size()) found.push_back(std::move(cut));
      }
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  struct Changed {
    size_t part;
    CoverPart to;
  };

  // Applies the changes, unless they make a cycle.
  bool change(std::vector<Changed> changes) {
    const size_t count = parts_.size();
    for (Changed& one : changes) {
      if (one.part == parts_.size()) parts_.emplace_back();
      std::swap(parts_[one.part], one.to);
    }
    std::vector<Members> contracted;
    for (const CoverPart& part : parts_)
      if (part.members.size() > 1) contracted.push_back(part.members);
    if (!is_acyclic(graph_, contracted)) {
      for (Changed& one : changes) std::swap(parts_[one.part], one.to);
      parts_.resize(count);
      return false;
    }
    for (const Changed& one : changes) own(one.part);
    return true;
  }

  const Graph& graph_;
  PatternJudge& judge_;
  const int64_t last_placement_;
  int64_t prices_left_;
  const SearchOptions& options_;
  int64_t spare_;  // kernels that may be added without extra gain
  std::vector<CoverPart>& parts_;
  std::vector<int> part_of_;  // by vertex; -1: none
};

}  // namespace

bool refine(const Graph& graph, PatternJudge* judge, const SearchOptions& options, int64_t spare,
            std::vector<CoverPart>* parts) {
  return Refiner(graph, judge, options, spare, parts).run();
}

}  // namespace heddle::fuse
