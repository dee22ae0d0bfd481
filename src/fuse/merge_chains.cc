// Groups with one product each that follow one another, and groups of rows before, between and
// after them, become one (a chain, schedule/chain.h) where that is legal and predicted, or
// measured, to pay. Refusals: the codes of schedule::match_chain and place_chain,
// `chain-compute-bound`, and `cycle`. Context::any_chain: also chains that are predicted to lose a
// little, whatever was measured.
#include <algorithm>
#include <map>
#include <optional>

#include "cost/chain_cost.h"
#include "fuse/group_merger.h"
#include "schedule/chain.h"
#include "schedule/chain_tuning.h"

namespace heddle::fuse {

namespace {

// Links of one kernel, at most.
constexpr size_t kMostLinks = 8;
// The least predicted gain of a chain: less is noise.
constexpr double kLeastGain = 1.01, kLeastGainOfRows = 1.05;
// The most predicted loss of a chain that is still measured, and the assumed gain of one that was
// measured to be faster.
constexpr double kMostLoss = 1.3, kMeasuredGain = 1.02;

class ChainMerger : public GroupMerger {
 public:
  ChainMerger(OpenCover* cover, const target::Target& target, bool any)
      : GroupMerger(cover, target), any_(any) {
    // A kernel has one follower: windows, which rarely can follow, come last.
    for (const bool windows : {false, true})
      for (const auto& group : cover_.groups) {
        if (group->has_gemm && !group->once && has_window(*group) == windows)
          find_edge(group.get());
        else if (is_rows(*group) && !windows)
          find_rows_edge(group.get());
      }
  }

  void run() {
    for (Group* after : followers_) {
      if (next_.count(after)) continue;  // not the last of a row
      std::vector<Group*> row{after};
      while (edges_.count(row.back())) row.push_back(edges_.at(row.back()).before);
      std::reverse(row.begin(), row.end());
      cut(row);
    }
  }

 private:
  struct Edge {
    Group* before = nullptr;
    Instr *value = nullptr, *product = nullptr;
  };

  static Instr* product_of(const Group& group) {
    Instr* found = nullptr;
    for (Instr* member : group.members) {
      if (!is_product(member)) continue;
      if (found) return nullptr;
      found = member;
    }
    return found;
  }

  static bool has_window(const Group& group) {
    const Instr* product = product_of(group);
    if (!product || !product->is(Opcode::convolution)) return false;
    const hlo::Window& window = product->attrs_as<hlo::ConvolutionAttrs>().window;
    return std::any_of(window.dims.begin(), window.dims.end(),
                       [](const hlo::WindowDim& dim) { return dim.size > 1; });
  }

  // The value outside the group from which an operand is made, through members with one operand.
  static Instr* source(const Group& group, Instr* operand) {
    while (has(group, operand) && operand->operands().size() == 1) operand = operand->operand(0);
    return has(group, operand) ? nullptr : operand;
  }

  // The group of the value, if it has a single product.
  Group* link_group(const Instr* value) const {
    Group* group = product_group(value);
    return group && product_of(*group) ? group : nullptr;
  }

  // Whether the group may be links of rows: it computes something, row by row.
  static bool is_rows(const Group& group) {
    return !group.has_dot && !group.once && !group.members.empty() &&
           std::any_of(group.members.begin(), group.members.end(), [&](const Instr* member) {
             return !group.copies.count(member) && !is_duplicable(member) &&
                    (member->is(Opcode::reduce) || has_trait(member->opcode(), hlo::elementwise));
           });
  }

  Group* rows_group(const Instr* value) const {
    auto found = cover_.group_of.find(value);
    if (found == cover_.group_of.end() || found->second.size() != 1) return nullptr;
    Group* group = found->second[0];
    return is_rows(*group) && !group->copies.count(value) ? group : nullptr;
  }

  // Rows after a product follow the first product that they read.
  void find_rows_edge(Group* after) {
    for (Instr* member : after->members) {
      for (Instr* operand : member->operands()) {
        if (has(*after, operand)) continue;
        Group* before = link_group(operand);
        if (!before || before->copies.count(operand) || next_.count(before)) continue;
        if (!alone_ns(before) || !alone_ns(after)) continue;
        edges_.emplace(after, Edge{before, operand, member});
        followers_.push_back(after);
        next_.insert(before);
        return;
      }
    }
  }

  void find_edge(Group* after) {
    Instr* product = product_of(*after);
    if (!product) return;
    for (size_t side = 0; side < 2; ++side) {
      Instr* value = source(*after, product->operand(side));
      Group* before = value ? link_group(value) : nullptr;
      if (!before && value && side == 0) before = rows_group(value);
      if (!before || before == after || edges_.count(after)) continue;
      const Edge edge{before, value, product};
      // A dot may be a reduction in rows: a matrix times a vector.
      if (!alone_ns(before) || !alone_ns(after)) {
        refuse(edge,
               Decision::no("gemm-family", "one of the two products is not in the GEMM family"));
        continue;
      }
      if (side == 1) {
        refuse(edge, Decision::no("chain-operand", "it is the right side of {}", product->name()));
        continue;
      }
      if (next_.count(before)) {
        refuse(edge, Decision::no("chain-consumers", "another kernel follows that one"));
        continue;
      }
      edges_.emplace(after, edge);
      followers_.push_back(after);
      next_.insert(before);
    }
  }

  void refuse(const Edge& edge, const Decision& decision) {
    GroupMerger::refuse(edge.value, edge.product, decision);
  }

  // The time of a group as a separate kernel; none: it is neither of the GEMM family nor rows.
  std::optional<double> alone_ns(Group* group) {
    auto [known, fresh] = alone_.emplace(group, std::nullopt);
    if (!fresh) return known->second;
    const stage::PlacedFusion placed = place({group});
    // A contraction over one element is no product.
    const bool product =
        std::any_of(placed.graph.stages.begin(), placed.graph.stages.end(), schedule::is_product);
    if (placed.decision && (stage::is_gemm(placed) || !product))
      known->second = cost::predicted_ns(placed, target_);
    return known->second;
  }

  // Measurements take precedence over predictions. `fused_ns`: the time that cut() uses.
  Decision judge(const stage::PlacedFusion& placed, bool rows, double apart_ns,
                 double* fused_ns) const {
    *fused_ns = cost::predicted_ns(placed, target_);
    const std::optional<bool> tuned = any_ ? std::nullopt : schedule::tuned_chain(placed, target_);
    if (tuned && !*tuned)
      return Decision::no("chain-compute-bound", "measured: no faster in one kernel");
    const double least = rows ? kLeastGainOfRows : kLeastGain;
    if (!tuned && *fused_ns * (any_ ? 1 / kMostLoss : least) > apart_ns)
      return Decision::no("chain-compute-bound", "{:.3g} us in one kernel, {:.3g} us in two",
                          *fused_ns / 1e3, apart_ns / 1e3);
    if (tuned || any_) *fused_ns = std::min(*fused_ns, apart_ns / kMeasuredGain);
    return Decision::yes();
  }

  struct Piece {
    double ns = 0;
    size_t begin = 0;
  };

  // Cuts the row into pieces, one kernel each, with the least time in total.
  void cut(const std::vector<Group*>& row) {
    std::vector<Piece> best(row.size() + 1);
    std::vector<double> alone;
    std::map<std::pair<size_t, size_t>, Decision> pairs;  // of neighbours
    for (size_t end = 1; end <= row.size(); ++end) {
      alone.push_back(*alone_ns(row[end - 1]));
      best[end] = {best[end - 1].ns + alone.back(), end - 1};
      for (size_t begin = end - 1; begin-- > 0 && end - begin <= kMostLinks;) {
        const std::vector<Group*> part(row.begin() + static_cast<long>(begin),
                                       row.begin() + static_cast<long>(end));
        stage::PlacedFusion placed = place(part);
        if (placed.decision && !stage::is_chain(placed))
          placed.decision = Decision::no("chain-operand", "it is not a sequence of products");
        if (begin + 2 == end) pairs.emplace(std::pair(begin, end), placed.decision);
        if (!placed.decision) break;  // longer parts contain this one
        double apart = 0;
        bool rows = false;
        for (size_t i = begin; i < end; ++i) {
          apart += alone[i];
          rows |= !row[i]->has_gemm;
        }
        double fused = 0;
        Decision decision = judge(placed, rows, apart, &fused);
        if (decision) decision = is_closed(part);
        if (begin + 2 == end) pairs.at({begin, end}) = decision;
        if (!decision) continue;
        if (best[begin].ns + fused < best[end].ns) best[end] = {best[begin].ns + fused, begin};
      }
    }
    std::vector<bool> joined(row.size(), false);  // with the previous group
    for (size_t end = row.size(); end > 0; end = best[end].begin)
      for (size_t i = best[end].begin + 1; i < end; ++i) joined[i] = true;
    for (size_t i = row.size(); i-- > 1;) {
      if (joined[i])
        link(row[i - 1], row[i]);
      else if (const Decision& decision = pairs.at({i - 1, i + 1}); !decision)
        refuse(edges_.at(row[i]), decision);
      else
        refuse(edges_.at(row[i]), Decision::no("chain-compute-bound", "another cut is faster"));
    }
  }

  // `before` moves into `after`: later links are there already.
  void link(Group* before, Group* after) {
    while (moved_.count(after)) after = moved_.at(after);
    after->has_gemm |= before->has_gemm;
    join(before, after);
    moved_.emplace(before, after);
  }

  const bool any_;
  std::unordered_map<Group*, Edge> edges_;  // by the group that reads
  std::vector<Group*> followers_;           // keys of edges_, in order
  std::unordered_set<Group*> next_;         // groups that have a follower
  std::unordered_map<Group*, Group*> moved_;
  std::unordered_map<Group*, std::optional<double>> alone_;
};

}  // namespace

Result<bool> merge_chains(OpenCover& cover, const Context& context) {
  HEDDLE_RETURN_IF_ERROR(check_merges(cover));
  ChainMerger merger(&cover, *context.target, context.any_chain);
  merger.run();
  return merger.changed();
}

}  // namespace heddle::fuse
