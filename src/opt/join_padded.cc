#include "opt/join_padded.h"

#include <algorithm>
#include <map>

namespace heddle::opt {
namespace {

using hlo::Instr;
using hlo::Opcode;
using tensor::Extent;
using tensor::Shape;
using Cut = hlo::DimClasses::Cut;

class Joiner {
 public:
  Joiner(hlo::Computation* entry, const std::vector<Instr*>& extents, hlo::SymbolTable* table)
      : entry_(entry), b_(entry), extents_(extents), table_(*table) {}

  void join(const Cut& cut) {
    size_t first = 0;  // index of the first part with a run-time extent
    while (cut.parts[first].is_constant()) ++first;
    if (first + 1 == cut.parts.size()) return;  // its padding is at the end
    Instr* instr = const_cast<Instr*>(cut.instr);
    Instr* array = with_room(cut, first);
    Extent offset;
    for (size_t k = 0; k < cut.parts.size(); ++k) {
      if (k > first) array = put(array, instr->operand(k), cut.dimension, offset);
      offset = offset.plus(cut.parts[k]);
    }
    array->add_notes(*instr);
    entry_->replace_all_uses(instr, array);
    entry_->remove(instr);
    give_memory(array);
  }

  // The padding value must also replace the elements past the actual extent.
  void pad(const Cut& cut) {
    Instr* pad = const_cast<Instr*>(cut.instr);
    const auto d = static_cast<size_t>(cut.dimension);
    const auto& attrs = pad->attrs_as<hlo::PadAttrs>();
    if (attrs.high[d] == 0) return;
    const std::vector<int64_t> extents = pad->shape().extents();
    const Shape line = Shape::array(tensor::Type::s32, {extents[d]});
    Instr* end = scalar(cut.parts[0].plus({attrs.low[d], {}}));
    Instr* inside =
        b_.compare(hlo::Direction::lt, b_.iota(line, 0), b_.broadcast(end, {extents[d]}, {}));
    Instr* instead = b_.select(b_.broadcast(inside, extents, {cut.dimension}), pad,
                               b_.broadcast(pad->operand(1), extents, {}));
    entry_->replace_all_uses(pad, instead);  // except the use in the select
  }

  void check() const { b_.check(); }

 private:
  Instr* scalar(const Extent& extent) {
    Instr*& known = scalars_[extent];
    if (known) return known;
    return known = value_of(extent);
  }

  Instr* number(int64_t value) { return b_.scalar(tensor::Type::s32, static_cast<double>(value)); }

  Instr* value_of(const Extent& extent) {
    Instr* sum = nullptr;
    const auto add = [&](Instr* part, int64_t factor) {
      if (factor != 1) part = b_.binary(Opcode::multiply, part, number(factor));
      sum = sum ? b_.binary(Opcode::add, sum, part) : part;
    };
    for (const auto& [symbol, factor] : extent.terms)
      add(extents_[static_cast<size_t>(symbol)], factor);
    for (const auto& [quotient, factor] : extent.quotients)  // of what is not negative
      add(b_.binary(Opcode::divide, value_of({quotient.constant, quotient.terms}),
                    number(quotient.divisor)),
          factor);
    if (extent.constant != 0 || !sum) add(number(extent.constant), 1);
    return sum;
  }

  // The parts up to the first one with a run-time extent, at the front of an array of full size.
  Instr* with_room(const Cut& cut, size_t first) {
    const Instr* instr = cut.instr;
    const int64_t d = cut.dimension, wanted = instr->shape().dim(d);
    Instr* start = instr->operand(0);
    if (gets_room(cut)) {
      Shape shape = start->shape();
      shape.set_dim(d, wanted);
      start->set_shape(shape);
      const std::pair place(start->parameter_number(), d);
      for (hlo::Symbol& symbol : table_.symbols) std::erase(symbol.places, place);
      table_.symbols[cut.symbol].places.push_back(place);
      return start;
    }
    if (first > 0)
      start = b_.concatenate(
          {instr->operands().begin(), instr->operands().begin() + static_cast<int64_t>(first) + 1},
          d);
    const hlo::Ints zeros(static_cast<size_t>(start->shape().rank()), 0);
    hlo::Ints high = zeros;
    high[static_cast<size_t>(d)] = wanted - start->shape().dim(d);
    return b_.pad(start, b_.scalar(start->shape().type(), 0), zeros, high, zeros);
  }

  Instr* put(Instr* array, Instr* part, int64_t d, const Extent& offset) {
    std::vector<Instr*> starts(static_cast<size_t>(array->shape().rank()), scalar({}));
    starts[static_cast<size_t>(d)] = scalar(offset);
    return b_.dynamic_update_slice(array, part, starts);
  }

  // If the result is an input with parts written into it, it may alias that input.
  void give_memory(Instr* array) {
    const Instr* from = array;
    while (from->is(Opcode::dynamic_update_slice)) from = from->operand(0);
    const Instr* root = entry_->root();
    if (!from->is(Opcode::parameter)) return;
    auto& aliases = entry_->module()->input_output_alias;
    const int64_t parameter = from->parameter_number();
    for (const hlo::Alias& alias : aliases)
      if (alias.parameter == parameter) return;
    hlo::Alias alias;
    alias.parameter = parameter;
    if (root == array) return aliases.push_back(alias);
    if (!root->is(Opcode::tuple)) return;
    const auto found = std::find(root->operands().begin(), root->operands().end(), array);
    if (found == root->operands().end()) return;
    alias.output_index = {found - root->operands().begin()};
    aliases.push_back(alias);
  }

  hlo::Computation* entry_;
  hlo::Builder b_;
  const std::vector<Instr*>& extents_;
  hlo::SymbolTable& table_;
  std::map<Extent, Instr*> scalars_;
};

}  // namespace

bool gets_room(const Cut& cut) {
  if (!cut.instr->is(Opcode::concatenate) || cut.parts[0].is_constant()) return false;
  const std::vector<Instr*>& parts = cut.instr->operands();
  const Instr* start = parts[0];
  return start->is(Opcode::parameter) && start->users().size() == 1 &&
         std::count(parts.begin(), parts.end(), start) == 1;
}

void join_padded(hlo::Computation* entry, const std::vector<Cut>& cuts,
                 const std::vector<Instr*>& extents, hlo::SymbolTable* table) {
  Joiner joiner(entry, extents, table);
  for (const Cut& cut : cuts) {  // a slice's padding is at the end
    if (cut.instr->is(Opcode::pad)) joiner.pad(cut);
    if (cut.instr->is(Opcode::concatenate)) joiner.join(cut);
  }
  joiner.check();
}

}  // namespace heddle::opt
