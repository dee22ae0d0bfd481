#include "cost/body_cycles.h"

#include <algorithm>
#include <cmath>

#include "cost/operator_cycles.h"
#include "stage/node_digits.h"

namespace heddle::cost {

namespace {

using stage::Load;
using stage::Node;
using stage::Stage;
using target::Target;

double cycles_of(const char* key, double otherwise, const Target& target) {
  const auto found = target.cycles.find(key);
  return found == target.cycles.end() ? otherwise : found->second;
}

// A load, a store and a load, which wait for each other.
constexpr double kTurnedCycles = 6;

class Body {
 public:
  Body(const Stage& stage, const BodyForm& form, const Target& target)
      : stage_(stage),
        form_(form),
        target_(target),
        extents_(stage.extents()),
        uses_(stage::node_digits(stage)) {
    tensor::Type widest = tensor::Type::pred;
    for (const Node& node : stage.nodes)
      if (tensor::type_bytes(node.type) > tensor::type_bytes(widest)) widest = node.type;
    lanes_ = form.lanes > 0                           ? form.lanes
             : target.kind == target::DeviceKind::gpu ? target.warp_size
                                                      : target.lanes(widest);
  }

  double run() {
    // A core has separate units for loads and stores beside its arithmetic; a warp's instructions
    // are issued one by one.
    const bool beside = target_.kind == target::DeviceKind::cpu;
    double computed = 0, moved = 0;
    for (size_t i = 0; i < stage_.nodes.size(); ++i) {
      const Node& node = stage_.nodes[i];
      (node.kind == Node::Kind::load ? moved : computed) +=
          cycles_of_node(node) * evaluations(uses_[i]);
    }
    std::vector<bool> all(extents_.size(), true);
    if (stage_.scan >= 0) computed += scan_combines() * combine_cycles() * evaluations(all);
    if (stage_.is_reduction()) computed += combine_cycles() * evaluations(all);
    if (stage_.scatter >= 0) {
      all[0] = false;  // each update is read, and combined with one row
      computed += combine_cycles() * evaluations(all);
      moved +=
          (cycles_of("load", 0.5, target_) + cycles_of("store", 1, target_)) * evaluations(all);
      all[0] = true;
    }
    if (form_.stored) {
      for (size_t d = stage_.out.size(); d < all.size(); ++d) all[d] = false;
      const bool across = form_.lane_digit >= 0 && !is_beside(stage_.position);
      const int lines = beside ? lanes_ : target_.warp_size;
      moved += cycles_of("store", 1, target_) * (across ? lines : 1) * evaluations(all) *
               static_cast<double>(stage_.values.size());
    }
    return (beside ? std::max(computed, moved) : computed + moved / form_.width) * form_.recompute;
  }

 private:
  // The number of vectors, or of elements if nothing changes along the lanes.
  double evaluations(const std::vector<bool>& digits) const {
    double count = 1;
    for (size_t d = 0; d < digits.size(); ++d) {
      if (!digits[d]) continue;
      const auto extent = static_cast<double>(extents_[d]);
      count *= static_cast<int>(d) == form_.lane_digit ? vectors(extent) : extent;
    }
    return count;
  }

  // The vectors of a digit, in strips.
  double vectors(double extent) const {
    const double strip = form_.strip > 0 ? static_cast<double>(form_.strip) : extent;
    return std::ceil(extent / strip) * std::ceil(strip / (lanes_ * form_.width)) * form_.width;
  }

  // Whether lanes access adjacent elements, or all the same one.
  bool is_beside(const index::Expr& x) const {
    const int lane = form_.lane_digit;
    return lane < 0 ||
           (!stage::moves_unseen(x, lane, uses_) && (!x.uses(lane) || x.factor_of(lane) == 1));
  }

  // Whether lanes access elements of another stage's value that are not adjacent.
  bool is_across(const Load& load) const {
    for (size_t d = 0; d + 1 < load.coordinates.size(); ++d)
      if (form_.lane_digit >= 0 && load.coordinates[d].uses(form_.lane_digit)) return true;
    return !load.coordinates.empty() && !is_beside(load.coordinates.back());
  }

  double cycles_of_node(const Node& node) const {
    switch (node.kind) {
      case Node::Kind::load: {
        const Load& load = stage_.loads[static_cast<size_t>(node.load)];
        const bool is_input = load.source.input >= 0;
        if (is_input && !is_beside(load.coordinates[0]))
          return form_.turned ? kTurnedCycles : cycles_of("gather", 10, target_);
        if (!is_input && target_.kind == target::DeviceKind::gpu && is_across(load))
          return cycles_of("gather", 10, target_);
        // Most values that a thread itself computed are in its registers.
        const double own = target_.kind == target::DeviceKind::gpu && !is_input ? 0.25 : 1;
        return own * cycles_of("load", 0.5, target_);
      }
      case Node::Kind::op:
        return cost::operator_cycles(node.opcode, node.fast, target_);
      case Node::Kind::index:
        return 1;
      case Node::Kind::guard:
        return static_cast<double>(node.guards.size());
      case Node::Kind::constant:
        return 0;
    }
    return 0;
  }

  // Combines per vector: along the lanes by halves, each with a shuffle; or one element after the
  // other, each waiting for the previous one.
  double scan_combines() const {
    if (form_.lane_digit != stage_.scan) return 1;
    return stage_.exact ? 8.0 * lanes_ : 4 * std::log2(lanes_) + 2;
  }

  double combine_cycles() const {
    if (!stage_.combine) return cycles_of("fma", 0.5, target_);
    double cycles = 0;
    for (const hlo::Instr* instr : stage_.combine->instrs())
      if (!instr->operands().empty())
        cycles += cost::operator_cycles(instr->opcode(), false, target_);
    return cycles;
  }

  const Stage& stage_;
  const BodyForm& form_;
  const Target& target_;
  const std::vector<int64_t> extents_;
  const stage::NodeDigits uses_;
  int lanes_ = 1;
};

}  // namespace

double body_cycles(const Stage& stage, const BodyForm& form, const Target& target) {
  return Body(stage, form, target).run();
}

double read_elems(const Stage& stage, const Load& load) {
  const std::vector<int64_t> extents = stage.extents();
  double elems = 1;
  for (size_t d = 0; d < extents.size(); ++d) {
    const bool uses = std::any_of(
        load.coordinates.begin(), load.coordinates.end(), [&](const index::Expr& coordinate) {
          return coordinate.uses(static_cast<int>(d)) || coordinate.uses_runtime();
        });
    if (uses) elems *= static_cast<double>(extents[d]);
  }
  return elems;
}

}  // namespace heddle::cost
