#include "compiler/unfused_edges.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "cost/delta.h"
#include "stage/stage_graph.h"

namespace heddle::compiler {

namespace {

using hlo::Instr;
using hlo::Opcode;

// Has no command: an element, a tuple, another view of the same bytes.
bool is_passed_by(const Instr* instr) {
  return instr->is(Opcode::get_tuple_element) || instr->is(Opcode::tuple) ||
         instr->is(Opcode::bitcast) || instr->is(Opcode::reshape);
}

class Edges {
 public:
  Edges(const std::vector<fuse::Refusal>& refusals, const target::Target& target)
      : delta_(target), call_ns_(cost::call_ns(/*serial=*/true, 1, target)) {
    for (const fuse::Refusal& refusal : refusals)
      by_producer_[refusal.producer].push_back(&refusal);
  }

  void add(const Instr* consumer) {
    std::unordered_set<const Instr*> seen;
    for (const Instr* operand : consumer->operands()) follow(operand, nullptr, consumer, &seen);
  }

  std::vector<UnfusedEdge> take() { return std::move(edges_); }

 private:
  // Follows a value to the instruction that computes it. `element`: the element of that which is
  // read.
  void follow(const Instr* value, const Instr* element, const Instr* consumer,
              std::unordered_set<const Instr*>* seen) {
    if (!seen->insert(value).second) return;
    if (is_passed_by(value)) {
      for (const Instr* operand : value->operands())
        follow(operand, value->is(Opcode::get_tuple_element) ? value : element, consumer, seen);
      return;
    }
    if (value->operands().empty() && !value->is(Opcode::fusion)) return;  // comes from outside
    put(value, element, consumer);
    if (element) seen->erase(value);  // another element of it may be read too
  }

  static std::string name_of_value(const Instr* producer, const Instr* element) {
    if (!producer->is(Opcode::fusion)) return producer->name();
    const Instr* root = producer->called()[0]->root();
    if (element && root->is(Opcode::tuple))
      root = root->operand(static_cast<size_t>(element->tuple_index()));
    return root->name();
  }

  void put(const Instr* producer, const Instr* element, const Instr* consumer) {
    UnfusedEdge edge{
        producer->name(), consumer->name(), name_of_value(producer, element), 0, {}, {}, 0};
    const tensor::Shape& shape = element ? element->shape() : producer->shape();
    edge.bytes = static_cast<int64_t>(cost::bytes_of(shape));
    explain(producer, consumer, &edge);
    const Instr* read = element ? element : producer;
    const double ways = read->users().size() > 1 ? 1 : 2;
    edge.ns = call_ns_ + ways * delta_.array_ns(static_cast<double>(edge.bytes));
    edges_.push_back(std::move(edge));
  }

  void explain(const Instr* producer, const Instr* consumer, UnfusedEdge* edge) const {
    if (consumer->is(Opcode::dynamic_update_slice))  // it could be updated in place (fuse/boxes.h)
      if (const auto all = by_producer_.find(edge->value); all != by_producer_.end())
        for (const fuse::Refusal* refusal : all->second)
          if (refusal->consumer == consumer->name()) {
            edge->code = refusal->code;
            edge->reason = refusal->reason;
            return;
          }
    for (const Instr* side : {producer, consumer}) {
      if (side->is(Opcode::fusion)) continue;
      const Decision can = stage::can_stage(*side);
      edge->code = can ? "no-kernel" : can.code();
      edge->reason = can ? fmt::format("{} has a command of its own", side->name()) : can.reason();
      return;
    }
    std::unordered_set<std::string> inside;
    for (const Instr* member : consumer->called()[0]->instrs()) inside.insert(member->name());
    const fuse::Refusal* found = nullptr;
    if (const auto all = by_producer_.find(edge->value); all != by_producer_.end())
      for (const fuse::Refusal* refusal : all->second)
        if (inside.count(refusal->consumer)) found = refusal;
    // The refusal may name another instruction that was in the producer's kernel at that time.
    if (!found)
      for (const Instr* member : producer->called()[0]->instrs())
        if (const auto all = by_producer_.find(member->name()); all != by_producer_.end())
          for (const fuse::Refusal* refusal : all->second)
            if (inside.count(refusal->consumer)) found = refusal;
    if (found) {
      edge->code = found->code;
      edge->reason = found->reason;
    } else {
      edge->code = "cover";
      edge->reason = "each is in the kernel where it gains most";
    }
  }

  cost::DeltaEvaluator delta_;
  double call_ns_;
  std::unordered_map<std::string, std::vector<const fuse::Refusal*>> by_producer_;
  std::vector<UnfusedEdge> edges_;
};

}  // namespace

std::vector<UnfusedEdge> unfused_edges(const hlo::Module& module,
                                       const std::vector<fuse::Refusal>& refusals,
                                       const target::Target& target) {
  Edges edges(refusals, target);
  for (const Instr* instr : module.entry()->instrs())
    if (!is_passed_by(instr)) edges.add(instr);
  return edges.take();
}

}  // namespace heddle::compiler
