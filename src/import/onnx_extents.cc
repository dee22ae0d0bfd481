// Extents that differ from run to run. The graph is made for bounds, of counts (Op::count) and of
// inputs' dimensions (Options::bounded), and what the model computes from extents is known at
// import for the bounds only. So each such value is computed three times more: as if no counted
// rows were there, if one was, and for other extents of the inputs; and with a name in place of
// each count, a large number, which says where a value is a count as it is. For other extents of
// inputs it is computed twice, as one of them may give the same by chance. Where all are the same,
// the value is right whatever the extents are. Where they are not for counts, it depends on who
// reads it whether the graph is right; for inputs, imports at several extents are compared.
#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <tuple>

#include "hlo/first_rows.h"
#include "hlo/symbol.h"
#include "import/onnx_emit.h"
#include "import/onnx_importer.h"

namespace heddle::import {
namespace {

constexpr size_t kElsewhere = 6, kOtherExtents = 2, kNamed = 3, kMoreExtents = 4, kSized = 5;
constexpr int64_t kExtents[] = {0, 1, 1}, kFirstName = int64_t{1} << 40;
// Sizes of bounded dimensions have names, too, of which nothing is left where they are rounded.
constexpr int64_t kFirstSize = int64_t{1} << 41, kSizeStep = int64_t{1} << 20, kSizeMark = 0x155aa;
// Of dimensions of other names. One and multiples of 64 have no remainder in common, and an image
// of such height and width is a long one, which is not scaled by its shorter side.
constexpr int64_t kMore[] = {4096, 64, 1024, 256};
constexpr size_t kMostSeen = 4096;  // dimensions; behind that it is taken to follow nothing

// From a dimension to those whose elements it has, nearest first; not behind those for which
// `goes_on` is false.
template <typename GoesOn>
void walk_behind(const Instr* x, int64_t d, const GoesOn& goes_on) {
  std::vector<Place> open{{x, d}};
  std::set<Place> seen(open.begin(), open.end());
  for (size_t i = 0; i < open.size() && open.size() < kMostSeen; ++i) {
    if (!goes_on(open[i])) continue;
    for (const Place& behind : dimensions_behind(open[i]))
      if (seen.insert(behind).second) open.push_back(behind);
  }
}

// Those that have names are not what any dimension of the model's inputs is.
int64_t more_extent(const Place& place, const NamedExtents* named) {
  const int64_t input = place.first->is(Opcode::parameter) ? place.first->parameter_number() : 0;
  if (named != nullptr && named->dims.contains(place.first->name())) return 64 * (2 * input + 3);
  return kMore[static_cast<size_t>(input + place.second) % std::size(kMore)];
}

using Calls = std::map<std::string, std::string>;  // Decisions::calls

// Not a number of rows that follows from extents (Op::open_rows).
bool is_count(const Place& place, const Calls& calls) {
  return place.second == 0 && hlo::is_first_rows(*place.first) &&
         calls.contains(place.first->name());
}

// Names of sizes say nothing of the value.
bool is_same_elsewhere(const Output& output) {
  const std::span others(output.elsewhere);
  return std::ranges::all_of(others.first(std::min(others.size(), kSized)),
                             [&](const Literal& other) { return other == *output.literal; });
}

// The nearest call that counts it, or null.
const Instr* followed_count(const Instr* x, int64_t d, const Calls& calls) {
  const Instr* found = nullptr;
  walk_behind(x, d, [&](const Place& place) {
    if (found == nullptr && is_count(place, calls)) found = place.first;
    return found == nullptr;
  });
  return found;
}

// The nearest ones on all ways: of rows that are joined, one for each part.
std::set<const Instr*> followed_counts(const Instr* x, int64_t d, const Calls& calls) {
  std::set<const Instr*> found;
  walk_behind(x, d, [&](const Place& place) {
    const bool counts = is_count(place, calls);
    if (counts) found.insert(place.first);
    return !counts;
  });
  return found;
}

// The extent of a dimension with so many rows of each count.
int64_t extent_with(const Instr* x, int64_t d, int64_t rows, const Calls& calls) {
  int64_t each = 1;
  for (size_t steps = 0; steps < kMostSeen; ++steps) {
    if (is_count({x, d}, calls)) return each * std::min(rows, x->shape().dim(0));
    if (x->is(Opcode::concatenate) && x->dimensions()[0] == d) {
      int64_t sum = 0;
      for (const Instr* part : x->operands()) sum += extent_with(part, d, rows, calls);
      return each * sum;
    }
    const std::vector<Place> behind = dimensions_behind({x, d});
    const auto counted = std::find_if(behind.begin(), behind.end(), [&](const Place& place) {
      return followed_count(place.first, place.second, calls) != nullptr;
    });
    if (counted == behind.end()) break;
    const int64_t more = x->shape().dim(d), less = counted->first->shape().dim(counted->second);
    if (less > 0 && more % less == 0) each *= more / less;
    std::tie(x, d) = *counted;
  }
  return each * x->shape().dim(d);
}

// The one whose rows it has, each once, or null.
const Instr* count_of(const Instr* x, int64_t d, const Calls& calls) {
  const Instr* call = followed_count(x, d, calls);
  return call != nullptr && call->shape().dim(0) == x->shape().dim(d) ? call : nullptr;
}

// The call whose count has its name here, or null.
const Instr* named_count(const Literal& named, int64_t element,
                         const std::vector<Instr*>& counted) {
  if (!tensor::is_integer(named.type()) || element >= named.elems()) return nullptr;
  const int64_t number = named.get_s64(element) - kFirstName;
  return number >= 0 && number < std::ssize(counted) ? counted[static_cast<size_t>(number)]
                                                     : nullptr;
}

// What stands in both at the same place.
bool agree_where_both_are(const Literal& a, const Literal& b) {
  if (a.type() != b.type() || a.shape().rank() != b.shape().rank()) return false;
  const Ints x = a.shape().extents(), y = b.shape().extents();
  for (int64_t i = 0; i < b.elems(); ++i) {
    int64_t rest = i, in_a = 0, stride = 1;
    bool inside = true;
    for (size_t d = y.size(); d-- > 0; rest /= y[d]) {
      inside = inside && rest % y[d] < x[d];
      in_a += rest % y[d] * stride;
      stride *= x[d];
    }
    if (inside && a.get_bits(in_a) != b.get_bits(i)) return false;
  }
  return true;
}

// Whether it would be another value for fewer counted rows.
bool depends_on_rows(const Value* value) {
  if (value == nullptr || !value->literal || value->elsewhere.empty()) return false;
  return value->elsewhere[0] != *value->literal || value->elsewhere[1] != *value->literal;
}

// The dimension of the result whose extent element k of input i is, or limits, if the input says
// nothing else; -1: it says something else.
int64_t dimension_of(const proto::Node& node, const std::vector<Value*>& inputs, size_t i,
                     int64_t k, int64_t rank) {
  const auto is = [&](std::string_view op, size_t input) {
    return node.op_type == op && i == input;
  };
  if (is("ConstantOfShape", 0) || is("Reshape", 1)) return k;
  if (is("Expand", 1)) return rank - inputs[1]->shape().elems() + k;
  const auto wrapped = [&](int64_t axis) { return axis < 0 ? axis + rank : axis; };
  if (is("Slice", 2)) {
    if (inputs.size() <= 3 || inputs[3] == nullptr) return k;
    const std::optional<Literal>& axes = inputs[3]->literal;
    return axes && k < axes->elems() ? wrapped(axes->get_s64(k)) : -1;
  }
  if (!is("TopK", 1)) return -1;
  int64_t axis = -1;
  for (const proto::Attribute& attribute : node.attributes)
    if (attribute.name == "axis") axis = attribute.i;
  return wrapped(axis);
}

}  // namespace

bool Op::is_counted(const Instr* x, int64_t dimension) const {
  return !folding_ && limits_.decisions != nullptr && !limits_.decisions->calls->empty() &&
         followed_count(x, dimension, *limits_.decisions->calls) != nullptr;
}

bool Op::is_bounded(size_t i, int64_t element) const {
  const Value& value = *this->value(i);
  if (value.elsewhere.empty()) return false;
  return std::ranges::any_of(std::array{kOtherExtents, kMoreExtents}, [&](size_t k) {
    const Literal& other = value.elsewhere[k];
    return other.shape() != value.shape() ||
           other.get_bits(element) != value.literal->get_bits(element);
  });
}

std::optional<Place> Op::dimension_of(size_t i, int64_t element) const {
  const Value& value = *this->value(i);
  if (folding_ || value.elsewhere.empty()) return std::nullopt;
  const Literal& named = value.elsewhere[kSized];
  if (!tensor::is_integer(named.type()) || element >= named.elems()) return std::nullopt;
  const int64_t number = named.get_s64(element) - kFirstSize - kSizeMark;
  if (number < 0 || number % kSizeStep != 0 || number / kSizeStep >= std::ssize(limits_.sized))
    return std::nullopt;
  return limits_.sized[static_cast<size_t>(number / kSizeStep)];
}

bool Op::is_multiple(size_t i, int64_t element, const Instr* x, int64_t dimension) const {
  const Value& value = *this->value(i);
  if (const std::optional<Place> size = dimension_of(i, element)) {
    const auto one = limits_.bounded.extent(x, dimension);
    const auto other = limits_.bounded.extent(size->first, size->second);
    const int64_t part = x->shape().dim(dimension), whole = size->first->shape().dim(size->second);
    return one && other && part > 0 && whole % part == 0 && one->times(whole / part) == *other;
  }
  if (value.elsewhere.empty()) return false;
  const int64_t here = value.literal->get_s64(element), extent = x->shape().dim(dimension);
  if (extent < 1 || here % extent != 0) return false;
  const auto is_at = [&](size_t k, const std::function<int64_t(const Place&)>& root) {
    const Literal& literal = value.elsewhere[k];
    const std::optional<int64_t> other = limits_.bounded.extent_at(x, dimension, root);
    return other ? literal.shape() == value.shape() &&
                       literal.get_s64(element) == here / extent * *other
                 : limits_.bounded.extent(x, dimension).has_value();
  };
  return is_at(kOtherExtents, [](const Place&) { return kExtents[kOtherExtents]; }) &&
         is_at(kMoreExtents, [&](const Place& place) { return more_extent(place, limits_.named); });
}

Instr* element_by_element(hlo::Builder& b, const Value& value) {
  constexpr int64_t kMostElements = 16;
  if (value.elsewhere.empty() || !tensor::is_integer(value.literal->type())) return nullptr;
  const Literal &literal = *value.literal, &other = value.elsewhere[kOtherExtents];
  const bool is_list = literal.shape().rank() == 1 && literal.elems() > 1;
  if (!is_list || literal.elems() > kMostElements || other.shape() != literal.shape() ||
      other == literal)
    return nullptr;
  std::vector<Instr*> elements;
  for (int64_t i = 0; i < literal.elems(); ++i) {
    Literal element(Shape::array(literal.type(), {1}));
    element.set_bits(0, literal.get_bits(i));
    elements.push_back(b.constant(element));
  }
  return b.concatenate(elements, 0);
}

// The extent itself: it has none.
int64_t Op::size_name(const Instr* x, int64_t dimension) const {
  if (folding_ || x->parent() != x->parent()->module()->entry()) return x->shape().dim(dimension);
  limits_.sized.emplace_back(x, dimension);
  return kFirstSize + kSizeMark + kSizeStep * (std::ssize(limits_.sized) - 1);
}

Output Op::known_extents(size_t i, int64_t start, int64_t end) {
  const Ints extents = shape(i).extents();
  const Value& value = *inputs_[i];
  const auto part = [&](const Ints& all) {
    return ints_literal(start < end ? Ints(all.begin() + start, all.begin() + end) : Ints());
  };
  Output output(part(extents));
  const bool counts = limits_.decisions != nullptr && !limits_.decisions->calls->empty();
  if (value.literal || value.instr == nullptr || (!counts && limits_.bounded.empty()))
    return output;
  std::vector<Ints> others(kElsewhere, extents);
  for (int64_t d = start; d < end; ++d) {
    const auto at = static_cast<size_t>(d);
    if (const Place* place = limits_.bounded.behind(value.instr, d)) {
      others[kOtherExtents][at] = kExtents[kOtherExtents];
      others[kMoreExtents][at] = more_extent(*place, limits_.named);
      others[kSized][at] = size_name(value.instr, d);
    }
    const std::set<const Instr*> rows =
        counts ? followed_counts(value.instr, d, *limits_.decisions->calls)
               : std::set<const Instr*>();
    if (rows.empty()) continue;
    output.rows.insert(rows);
    for (const size_t k : {0, 1})
      others[k][at] = extent_with(value.instr, d, kExtents[k], *limits_.decisions->calls);
    const Instr* call = count_of(value.instr, d, *limits_.decisions->calls);
    if (call == nullptr) continue;
    std::vector<Instr*>& named = limits_.decisions->counted;
    const auto found = std::find(named.begin(), named.end(), call);
    others[kNamed][at] = kFirstName + (found - named.begin());
    if (found == named.end()) named.push_back(const_cast<Instr*>(call));
  }
  if (others[kOtherExtents] != extents || others[kMoreExtents] != extents)
    output.instr = computed_extents(value.instr, start, end);
  for (const Ints& other : others) output.elsewhere.push_back(part(other));
  if (is_same_elsewhere(output)) output.elsewhere.clear();
  return output;
}

Instr* Op::count_rows(Instr* x, const Instr* call) {
  const int64_t most = std::min(x->shape().dim(0), call->shape().dim(0));
  Instr*& n = limits_.decisions->counts[{call->operand(1), most}];
  if (n == nullptr)
    n = most == call->shape().dim(0) && limits_.bounded.empty()
            ? call->operand(1)
            : b.binary(Opcode::minimum, call->operand(1),
                       b.scalar(Type::s32, static_cast<double>(most)));
  Instr* counted = hlo::first_rows(b, x, n);
  std::map<std::string, std::string>& calls = *limits_.decisions->calls;
  calls.emplace(counted->name(), calls.at(call->name()));
  return counted;
}

Instr* Op::first_part(Instr* x, int64_t dimension, int64_t elems) {
  const Instr* call =
      is_counted(x, dimension) ? count_of(x, dimension, *limits_.decisions->calls) : nullptr;
  const auto cut = [&](Instr* from, int64_t d) {
    Ints limits = from->shape().extents();
    limits[static_cast<size_t>(d)] = elems;
    return b.slice(from, Ints(limits.size(), 0), limits, {});
  };
  if (call == nullptr) return cut(x, dimension);
  // Of bounded extents there may be fewer rows than are asked for, so that a slice would take all.
  if (!limits_.bounded.empty())
    return b.take(x, count_rows(b.iota(Shape::array(Type::s32, {elems}), 0), call), dimension);
  if (elems == x->shape().dim(dimension)) return x;
  return hlo::with_outermost(b, x, dimension,
                             [&](Instr* rows) { return count_rows(cut(rows, 0), call); });
}

Instr* Op::as_many_as(Instr* x, size_t i) {
  const Value& extents = *value(i);
  if (extents.shape().elems() != x->shape().rank()) return x;
  for (int64_t d = 0; limits_.named != nullptr && d < x->shape().rank(); ++d)
    if (!is_bounded(x, d)) x = open_rows(x, d, open_extent(i, d));
  if (limits_.decisions == nullptr) return x;
  for (int64_t d = 0; !extents.elsewhere.empty() && d < x->shape().rank(); ++d) {
    const Instr* call = named_count(extents.elsewhere[kNamed], d, limits_.decisions->counted);
    if (call == nullptr || call->parent() != x->parent() ||
        x->shape().dim(d) != call->shape().dim(0))
      continue;
    const Instr* own = count_of(x, d, *limits_.decisions->calls);
    if (own != nullptr && own->operand(1) == call->operand(1)) continue;
    x = hlo::with_outermost(b, x, d, [&](Instr* rows) { return count_rows(rows, call); });
  }
  return x;
}

// Not folded: the elements of a constant follow no count, and no dimension that has a name.
bool Importer::makes_open_rows(const proto::Node& node, const Inputs& inputs) const {
  const bool is_range = node.op_type == "Range", is_filled = node.op_type == "ConstantOfShape";
  const size_t shape = is_filled ? 0 : 1;
  if ((!is_range && !is_filled && node.op_type != "Expand") || shape >= inputs.size() ||
      inputs[shape] == nullptr || inputs[shape]->elsewhere.empty())
    return false;
  if (is_range || (is_filled && limits_.named != nullptr)) return limits_.named != nullptr;
  const Literal& named = inputs[shape]->elsewhere[kNamed];
  for (int64_t k = 0; k < named.elems(); ++k)
    if (named_count(named, k, decisions_.counted) != nullptr) return true;
  return false;
}

bool Importer::follows_extents(const Inputs& inputs, const Outputs& folded) const {
  const auto is_computed = [](const Value* input) {
    return input != nullptr && !input->elsewhere.empty() && input->instr != nullptr &&
           !input->instr->is(Opcode::constant);
  };
  const bool computed = std::any_of(inputs.begin(), inputs.end(), is_computed);
  return std::any_of(folded.begin(), folded.end(), [&](const Output& output) {
    if (!output.literal || output.elsewhere.empty()) return false;
    if (limits_.named != nullptr && computed) return true;  // arrays of such numbers, too
    const auto differs_at = [&](size_t k) {
      const Literal& other = output.elsewhere[k];
      return other.shape() == output.literal->shape() && other != *output.literal;
    };
    const bool differs = differs_at(kOtherExtents) || differs_at(kMoreExtents);
    return differs && (tensor::is_float(output.literal->type()) || computed);
  });
}

bool Importer::are_few_extents(const Inputs& inputs) {
  constexpr int64_t kFew = 16;
  bool follow = false, few = true;
  for (const Value* input : inputs) {
    if (input == nullptr || !input->literal) continue;
    few = few && input->literal->elems() <= kFew;
    follow = follow || !input->elsewhere.empty();
    for (size_t k = 0; k < kSized && !input->elsewhere.empty(); ++k)
      few = few && input->elsewhere[k].shape() == input->literal->shape();
  }
  return follow && few;
}

void Importer::compute_too(const Outputs& computed, Outputs& folded) {
  for (size_t i = 0; i < folded.size() && i < computed.size(); ++i)
    if (folded[i].literal && !folded[i].elsewhere.empty())
      folded[i].instr = computed[i].same != nullptr ? computed[i].same->instr : computed[i].instr;
}

void Importer::find_bounded(const Value& input) {
  for (const proto::ValueInfo& port : facts_.model->graph.inputs)
    for (size_t d = 0; port.name == input.name && d < port.dims.size(); ++d)
      for (const auto& [name, bound] : options_.bounded)
        if (port.dims[d].symbol.find(name) != std::string_view::npos)
          limits_.bounded.emplace(
              input.instr, static_cast<int64_t>(d),
              unit_of(input.instr->shape().dim(static_cast<int64_t>(d)), bound));
}

void Importer::fold_elsewhere(const OpEntry& entry, const proto::Node& node, int64_t opset,
                              const Inputs& inputs, Outputs& outputs) {
  const auto differs = [](const Value* input) {
    return input != nullptr && !input->elsewhere.empty();
  };
  if (!std::any_of(inputs.begin(), inputs.end(), differs)) return;
  for (Output& output : outputs) {
    if (output.same == nullptr || !output.same->literal) continue;
    output.literal = output.same->literal;
    output.is_text = output.same->text;
    output.same = nullptr;
  }
  for (size_t k = 0; k < kElsewhere; ++k) {
    std::deque<Value> values;
    Inputs others;
    for (Value* input : inputs) {
      others.push_back(input);
      if (!differs(input)) continue;
      values.push_back(*input);
      values.back().literal = input->elsewhere[k];
      values.back().elsewhere.clear();
      values.back().instr = nullptr;
      others.back() = &values.back();
    }
    std::optional<Outputs> folded;
    try {
      folded = fold_as_given(entry, node, opset, others, are_few_extents(inputs));
    } catch (const Failure&) {  // it is another value, whatever that is
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].literal) continue;
      outputs[i].elsewhere.emplace_back(Shape::array(Type::pred, {0}));
      if (!folded || i >= folded->size()) continue;
      const Output& one = (*folded)[i];
      const std::optional<Literal>& found = one.same != nullptr ? one.same->literal : one.literal;
      if (found) outputs[i].elsewhere.back() = *found;
    }
  }
  for (Output& output : outputs)
    if (is_same_elsewhere(output))
      output.elsewhere.clear();
    else
      for (const Value* input : inputs)
        if (input != nullptr) output.rows.insert(input->rows.begin(), input->rows.end());
}

// Numbers of counted rows, or other arrays with an element for each, of which fewer are the first
// ones: their extents have to follow the count. False: it is something else.
bool Importer::check_array_of_rows(const Value& value) {
  const auto has_fewer = [&](const Literal& few) {
    return few.shape() != value.shape() && agree_where_both_are(*value.literal, few);
  };
  const Literal& none = value.elsewhere[0];
  if (value.instr == nullptr || !has_fewer(none) || !has_fewer(value.elsewhere[1])) return false;
  for (int64_t d = 0; d < none.shape().rank(); ++d)
    if (none.shape().dim(d) != value.shape().dim(d))
      result_.counted_dims.emplace_back(value.instr->name(), d);
  return true;
}

void Importer::check_result_of_rows(const Value& value) {
  if (depends_on_rows(&value) && !check_array_of_rows(value))
    result_.not_open = fmt::format("result {} is a number of counted rows", quoted(value.name));
}

void Importer::check_numbers_of_rows(const proto::Node& node, const Inputs& inputs,
                                     const Outputs& outputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value* input = inputs[i];
    if (!depends_on_rows(input)) continue;
    const Literal &value = *input->literal, &none = input->elsewhere[0];
    if (check_array_of_rows(*input)) continue;
    const Literal& one = input->elsewhere[1];
    const bool is_list = tensor::is_integer(value.type()) && value.shape() == none.shape() &&
                         value.shape() == one.shape();
    bool follows = is_list;
    for (int64_t k = 0; is_list && k < value.elems(); ++k) {
      const int64_t here = value.get_s64(k);
      if (here == none.get_s64(k) && here == one.get_s64(k)) continue;
      for (const Output& output : outputs) {
        const bool is_array = output.instr != nullptr && output.instr->shape().is_array();
        const int64_t rank = is_array ? output.instr->shape().rank() : 0;
        const int64_t d = dimension_of(node, inputs, i, k, rank);
        follows = follows && d >= 0 && d < rank;
        if (follows) result_.counted_dims.emplace_back(output.instr->name(), d);
      }
    }
    if (!follows || outputs.empty())
      result_.not_open = fmt::format("{} reads a number of counted rows ({})", describe(node),
                                     quoted(input->name));
  }
}

// A branch that is taken for the bound and for one row is taken unless there are none.
void Importer::check_branch_of_rows(const proto::Node& node, const Value& condition) {
  if (!depends_on_rows(&condition)) return;
  if (condition.elsewhere[1] == *condition.literal)
    for (const std::set<const Instr*>& calls : condition.rows) {
      std::set<std::string> names;
      for (const Instr* call : calls) names.insert(call->name());
      result_.needed_rows.insert(names);
    }
  else
    result_.not_open =
        fmt::format("{}: its branch depends on a number of counted rows", describe(node));
}

}  // namespace heddle::import
