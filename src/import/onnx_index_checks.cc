// Range checks of ONNX positions (tensor/index_check.h). A node states its demand; one on constants
// is checked here, one on a model's input is checked by the caller. For any other the graph
// computes the worst value: a hidden output of the model, which a body passes on to the enclosing
// loop or branch, since code that is not run demands nothing.
#include <algorithm>

#include "import/index_range.h"
#include "import/onnx_importer.h"

namespace heddle::import {
namespace {

using tensor::IndexCheck;
using tensor::IndexRange;

const IndexRange& range_of(const std::vector<IndexRange>& ranges, int64_t i) {
  return ranges[static_cast<size_t>(i) % ranges.size()];
}

const IndexRange* range_without(const Literal& indices, const std::vector<IndexRange>& ranges,
                                int64_t* outside) {
  for (int64_t i = 0; i < indices.elems(); ++i) {
    *outside = indices.get_s64(i);
    if (!range_of(ranges, i).contains(*outside)) return &range_of(ranges, i);
  }
  return nullptr;
}

bool always_holds(const IndexDemand& demand) {
  const auto known = index_range(demand.indices);
  return known && std::all_of(demand.ranges.begin(), demand.ranges.end(), [&](const IndexRange& r) {
           return r.contains(known->low) && r.contains(known->high);
         });
}

bool is_widening(const Instr* x) {
  if (!x->is(Opcode::convert)) return false;
  const Type wide = x->shape().type(), narrow = x->operand(0)->shape().type();
  return tensor::is_integer(narrow) && tensor::is_signed_integer(wide) &&
         tensor::type_bits(narrow) < tensor::type_bits(wide);
}

// Whether it has exactly the elements of its operand, each with the same range.
bool is_view(const Instr* x, size_t ranges) {
  if (is_widening(x)) return true;
  const bool form = x->is(Opcode::reshape) || x->is(Opcode::broadcast) || x->is(Opcode::transpose);
  if (!form || ranges == 1) return form;
  const Shape &to = x->shape(), &from = x->operand(0)->shape();
  const bool last = x->is(Opcode::reshape) ||
                    (!x->dimensions().empty() && x->dimensions().back() == to.rank() - 1);
  return last && from.rank() > 0 && from.dim(-1) == to.dim(-1);
}

// Splits the demand into demands on the parts of the indices.
void split(IndexDemand demand, std::vector<IndexDemand>& parts) {
  while (is_view(demand.indices, demand.ranges.size())) demand.indices = demand.indices->operand(0);
  const Instr* all = demand.indices;
  if (const Instr* rows = joined_coordinates(all);
      rows != nullptr && rows->operands().size() == demand.ranges.size()) {
    for (size_t i = 0; i < demand.ranges.size(); ++i) {
      IndexDemand part = demand;
      part.indices = rows->operand(i);
      part.ranges = {demand.ranges[i]};
      split(std::move(part), parts);
    }
    return;
  }
  if (!all->is(Opcode::concatenate)) return parts.push_back(std::move(demand));
  const bool along = demand.ranges.size() > 1 && all->dimensions()[0] == all->shape().rank() - 1;
  auto next = demand.ranges.begin();
  for (Instr* operand : all->operands()) {
    IndexDemand part = demand;
    part.indices = operand;
    if (along) {
      part.ranges.assign(next, next + operand->shape().dim(-1));
      next += operand->shape().dim(-1);
    }
    if (operand->shape().elems() != 0) split(std::move(part), parts);
  }
}

// The check on an input of the model, or on a slice of it, which can be checked before a run.
std::optional<IndexCheck> input_check(const IndexDemand& demand) {
  IndexCheck check{demand.node, demand.ranges, -1, {}, {}};
  const Instr* at = demand.indices;
  if (at->is(Opcode::slice) && demand.ranges.size() == 1) {
    const auto& box = at->attrs_as<hlo::SliceAttrs>();
    if (std::any_of(box.strides.begin(), box.strides.end(), [](int64_t s) { return s != 1; }))
      return std::nullopt;
    at = at->operand(0);
    check.starts = box.starts;
    for (size_t d = 0; d < box.limits.size(); ++d) {
      const bool all = box.limits[d] == at->shape().dim(static_cast<int64_t>(d));
      check.limits.push_back(all ? -1 : box.limits[d]);
    }
  }
  while (is_widening(at)) at = at->operand(0);
  if (!at->is(Opcode::parameter) || tensor::type_bits(at->shape().type()) < 8) return std::nullopt;
  check.input = at->parameter_number();
  return check;
}

// By range: the largest position - low, modulo 2^64.
Instr* reduced(hlo::Builder& b, const IndexDemand& demand) {
  const auto ranges = static_cast<int64_t>(demand.ranges.size());
  Instr* x = b.convert(demand.indices, Type::s64);
  const Ints extents = x->shape().extents();
  Literal low(Shape::array(Type::s64, ranges == 1 ? Ints{} : Ints{ranges}));
  for (int64_t i = 0; i < ranges; ++i) low.set_s64(i, demand.ranges[static_cast<size_t>(i)].low);
  const auto rank = static_cast<int64_t>(extents.size());
  const bool from_zero = std::all_of(demand.ranges.begin(), demand.ranges.end(),
                                     [](const IndexRange& range) { return range.low == 0; });
  if (!from_zero)
    x = b.binary(Opcode::subtract, x,
                 b.broadcast(b.constant(low), extents, ranges == 1 ? Ints{} : Ints{rank - 1}));
  x = b.convert(x, Type::u64);
  Ints dims;
  for (int64_t d = 0; d < rank - (ranges == 1 ? 0 : 1); ++d) dims.push_back(d);
  return dims.empty() ? x : b.reduce(Opcode::maximum, x, dims);
}

}  // namespace

void Op::demand(size_t i, std::vector<IndexRange> ranges) {
  const auto check = [&](const Literal& known) {
    int64_t index = 0;
    const IndexRange* range = range_without(known, ranges, &index);
    if (range != nullptr)
      fail("index {} is out of range; input {} takes {} to {}", index, i, range->low, range->high);
  };
  if (const Literal* literal = known(i)) return check(*literal);
  if (const std::vector<Literal>* trips = varying(i)) {
    int64_t index = 0;
    if (std::all_of(trips->begin(), trips->end(), [&](const Literal& trip) {
          return range_without(trip, ranges, &index) == nullptr;
        }))
      return;
  }
  demand(in(i), std::move(ranges));
}

void Op::demand(Instr* indices, std::vector<IndexRange> ranges) {
  if (indices->shape().elems() == 0) return;
  for (const IndexRange& range : ranges)
    if (range.high < 0) fail("every index is out of range: there is nothing to take");
  IndexDemand demand;
  demand.indices = indices;
  demand.ranges = std::move(ranges);
  demand.node = describe();
  demands_.push_back(std::move(demand));
}

std::vector<IndexDemand> Importer::close_demands() {
  std::vector<IndexDemand> parts, closed;
  for (IndexDemand& demand : demands_) {
    if (demand.indices == nullptr)
      closed.push_back(std::move(demand));
    else
      split(std::move(demand), parts);
  }
  demands_.clear();
  hlo::Builder b(into_);
  for (IndexDemand& part : parts) {
    const bool seen = std::any_of(closed.begin(), closed.end(), [&](const IndexDemand& before) {
      return before.indices == part.indices && before.ranges == part.ranges;
    });
    if (seen || always_holds(part)) continue;
    const size_t first = into_->instrs().size();
    if (!input_check(part)) part.worst = reduced(b, part);
    name_new(*into_, first, part.names);
    closed.push_back(std::move(part));
  }
  if (!b.status()) fail("{}", b.status().error().message);
  return closed;
}

void Importer::take_over(std::vector<IndexDemand> inner, Instr* result, int64_t first) {
  hlo::Builder b(into_);
  for (IndexDemand& demand : inner) {
    demand.indices = nullptr;
    demand.worst = b.get_tuple_element(result, first++);
    demands_.push_back(std::move(demand));
  }
}

void Importer::check_demands(std::vector<Instr*>& outputs) {
  for (IndexDemand& demand : close_demands()) {
    if (demand.worst == nullptr) {
      result_.index_checks.push_back(*input_check(demand));
      continue;
    }
    outputs.push_back(demand.worst);
    result_.index_checks.push_back({std::move(demand.node), std::move(demand.ranges), -1, {}, {}});
  }
}

}  // namespace heddle::import
