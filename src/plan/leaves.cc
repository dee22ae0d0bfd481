// Leaves of shapes, and tracing them through a computation.
#include <unordered_map>

#include "plan/flow.h"

namespace heddle::plan {

using hlo::Instr;
using hlo::Opcode;
using tensor::Shape;

namespace {

// Follows leaves of one computation back to leaves of its parameters.
class Tracer {
 public:
  explicit Tracer(const hlo::Computation& computation) {
    int64_t first = 0;
    for (const Instr* parameter : computation.parameters()) {
      first_leaf_[parameter] = first;
      first += leaf_count(parameter->shape());
    }
  }

  // For leaf `leaf` of `instr`; -1: it is computed here.
  int64_t trace(const Instr* instr, int64_t leaf) {
    for (;;) {
      switch (instr->opcode()) {
        case Opcode::parameter:
          return first_leaf_.at(instr) + leaf;
        case Opcode::tuple: {
          size_t i = 0;
          for (; leaf >= leaf_count(instr->operand(i)->shape()); ++i)
            leaf -= leaf_count(instr->operand(i)->shape());
          instr = instr->operand(i);
          break;
        }
        case Opcode::get_tuple_element: {
          const auto& elements = instr->operand(0)->shape().elements();
          for (int64_t i = 0; i < instr->tuple_index(); ++i) leaf += leaf_count(elements[i]);
          instr = instr->operand(0);
          break;
        }
        case Opcode::opt_barrier:
          instr = instr->operand(0);
          break;
        case Opcode::while_:
          if (handed_on_of(instr)[static_cast<size_t>(leaf)] != leaf) return -1;
          instr = instr->operand(0);
          break;
        default:
          return -1;
      }
    }
  }

 private:
  const std::vector<int64_t>& handed_on_of(const Instr* loop) {
    auto [found, added] = loops_.try_emplace(loop);
    if (added) found->second = handed_on(*loop->called()[1]);
    return found->second;
  }

  std::unordered_map<const Instr*, int64_t> first_leaf_;
  std::unordered_map<const Instr*, std::vector<int64_t>> loops_;
};

}  // namespace

std::vector<int64_t> handed_on(const hlo::Computation& computation) {
  Tracer tracer(computation);
  std::vector<int64_t> result;
  for (int64_t i = 0; i < leaf_count(computation.root()->shape()); ++i)
    result.push_back(tracer.trace(computation.root(), i));
  return result;
}

void append_leaves(const Shape& shape, std::vector<const Shape*>& out) {
  if (!shape.is_tuple()) return out.push_back(&shape);
  for (const Shape& element : shape.elements()) append_leaves(element, out);
}

int64_t leaf_count(const Shape& shape) {
  if (!shape.is_tuple()) return 1;
  int64_t count = 0;
  for (const Shape& element : shape.elements()) count += leaf_count(element);
  return count;
}

int64_t leaf_number(const Shape& shape, const hlo::Ints& path) {
  int64_t number = 0;
  const Shape* at = &shape;
  for (int64_t index : path) {
    HEDDLE_CHECK(at->is_tuple() && index < static_cast<int64_t>(at->elements().size()));
    for (int64_t i = 0; i < index; ++i) number += leaf_count(at->elements()[i]);
    at = &at->elements()[index];
  }
  HEDDLE_CHECK(!at->is_tuple(), "the path ends at a tuple");
  return number;
}

std::vector<std::string> leaf_suffixes(const Shape& shape) {
  if (!shape.is_tuple()) return {""};
  std::vector<std::string> suffixes;
  for (size_t i = 0; i < shape.elements().size(); ++i)
    for (const std::string& rest : leaf_suffixes(shape.elements()[i]))
      suffixes.push_back("." + std::to_string(i) + rest);
  return suffixes;
}

}  // namespace heddle::plan
