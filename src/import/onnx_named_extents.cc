// Extents that the graph computes from those of inputs by more than sums: what an image measures
// that is resized to a given height. Each has a name and an input of its own, of which the shape
// says it, so that it is a bounded dimension like those of the model's inputs; who runs the program
// has the extent from the graph that computes it (Options::find_extents, api/computed_extents.h).
#include <algorithm>
#include <cctype>
#include <tuple>
#include <unordered_set>

#include "hlo/first_rows.h"
#include "import/onnx_emit.h"
#include "import/onnx_importer.h"

namespace heddle::import {
namespace {

// All from which it is computed, with itself, from sizes of dimensions on.
std::vector<const Instr*> computed_from(const Instr* value) {
  std::vector<const Instr*> all{value};
  std::unordered_set<const Instr*> seen(all.begin(), all.end());
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i]->is(Opcode::get_dimension_size)) continue;
    for (const Instr* operand : all[i]->operands())
      if (seen.insert(operand).second) all.push_back(operand);
  }
  return all;
}

bool has_dimensions(const std::vector<const Instr*>& all) {
  return std::any_of(all.begin(), all.end(),
                     [](const Instr* x) { return x->is(Opcode::get_dimension_size); });
}

// Whether it is computed from dimensions, and in floats: sums of them need no name.
bool is_rounded(const Instr* value) {
  const std::vector<const Instr*> all = computed_from(value);
  return has_dimensions(all) && std::any_of(all.begin(), all.end(), [](const Instr* x) {
           return tensor::is_float(x->shape().type());
         });
}

// Whether it is computed from a product of dimensions.
bool has_product(const Instr* value) {
  const std::vector<const Instr*> all = computed_from(value);
  return std::any_of(all.begin(), all.end(), [](const Instr* x) {
    return x->is(Opcode::multiply) && has_dimensions(computed_from(x->operand(0))) &&
           has_dimensions(computed_from(x->operand(1)));
  });
}

Instr* element(hlo::Builder& b, Instr* list, int64_t k) {
  std::tie(list, k) = part_of(list, k);
  if (list->is(Opcode::convert))
    return b.convert(element(b, list->operand(0), k), list->shape().type());
  return b.reshape(list->shape().elems() == 1 ? list : b.slice(list, {k}, {k + 1}, {1}), {});
}

// The size of a dimension that a number is, through lists of such sizes; null: something else.
Instr* size_behind(Instr* number) {
  while (number->shape().elems() == 1 && !number->operands().empty()) {
    if (number->is(Opcode::get_dimension_size)) return number;
    if (number->is(Opcode::slice) && number->shape().rank() == 1) {
      const auto [list, k] =
          part_of(number->operand(0), number->attrs_as<hlo::SliceAttrs>().starts[0]);
      if (list->shape().elems() != 1) return nullptr;
      number = list;
    } else if (number->is(Opcode::convert) || number->is(Opcode::reshape)) {
      number = number->operand(0);
    } else {
      return nullptr;
    }
  }
  return nullptr;
}

std::string legal_part(std::string_view name) {
  std::string result = "of_";
  for (const char c : name)
    result += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ? c : '_';
  return result;
}

}  // namespace

Instr* Op::computed_extents(Instr* x, int64_t start, int64_t end) {
  if (limits_.named == nullptr || folding_ || x->parent() != limits_.named->entry) return nullptr;
  std::vector<Instr*> extents;
  for (int64_t d = start; d < end; ++d) {
    extents.push_back(b.reshape(extent_of(*this, x, d, Type::s64), {1}));
  }
  return extents.size() == 1 ? extents[0] : b.concatenate(extents, 0);
}

Instr* Op::computed_extent(size_t i, int64_t k) {
  const Value& value = *this->value(i);
  const bool may_have_name = limits_.named != nullptr && !folding_ && value.literal &&
                             value.instr != nullptr && value.instr->shape().rank() == 1 &&
                             value.instr->parent() == limits_.named->entry && is_bounded(i, k);
  if (!may_have_name) return nullptr;
  Instr* computed = b.convert(element(b, value.instr, k), Type::s64);
  return is_rounded(computed) ? computed : nullptr;
}

Instr* Op::open_extent(size_t i, int64_t k) {
  Instr* all = value(i)->instr;
  const bool is_open = limits_.named != nullptr && !folding_ && value(i)->literal &&
                       is_bounded(i, k) && all != nullptr && !all->is(Opcode::constant) &&
                       all->parent() == limits_.named->entry &&
                       b.computation() == limits_.named->entry && all->shape().rank() <= 1;
  if (!is_open) return nullptr;
  if (all->shape().elems() != 1) all = b.slice(all, {k}, {k + 1}, {1});
  return b.reshape(all, {});
}

Instr* Op::open_product(size_t i, int64_t k) {
  Instr* extent = open_extent(i, k);
  return extent != nullptr && has_product(extent) ? extent : nullptr;
}

Instr* Op::open_rows(Instr* x, int64_t dimension, Instr* extent) {
  if (extent == nullptr) return x;
  Instr* size = size_behind(extent);  // by itself, it says whose rows they are as many as
  extent = size != nullptr ? size : b.convert(extent, Type::s32);
  x = hlo::with_outermost(b, x, dimension,
                          [&](Instr* rows) { return hlo::first_rows(b, rows, extent); });
  limits_.bounded.emplace(x, dimension);
  return x;
}

Instr* Op::rows_like(Instr* x, size_t i) {
  Instr* extent = open_extent(i, 0);
  return extent != nullptr && size_behind(extent) != nullptr ? open_rows(x, 0, extent) : x;
}

Instr* Op::open_part(Instr* x, int64_t dimension, Instr* start, int64_t size, Instr* extent) {
  Instr* line = open_rows(b.iota(Shape::array(Type::s32, {size}), 0), 0, extent);
  line = b.binary(Opcode::add, line, b.broadcast(b.convert(start, Type::s32), {size}, {}));
  Instr* part = b.take(x, line, dimension);
  if (extent != nullptr) limits_.bounded.emplace(part, dimension);
  return part;
}

Instr* Op::positions_along(const Place& place) {
  const auto [of, dimension] = place;
  auto* x = const_cast<Instr*>(of);
  Instr* size = b.make(Opcode::get_dimension_size, {x}, hlo::DimensionAttrs{dimension});
  return hlo::first_rows(b, b.iota(Shape::array(Type::s32, {x->shape().dim(dimension)}), 0), size);
}

Instr* Op::positions_up_to(int64_t extent) {
  Instr* positions = b.iota(Shape::array(Type::s32, {extent}), 0);
  limits_.bounded.emplace(positions, 0);
  return positions;
}

Instr* Op::named_positions(int64_t dimension, int64_t extent, Instr* computed) {
  if (limits_.named == nullptr || computed == nullptr) return nullptr;
  NamedExtents& named = *limits_.named;
  std::string name = fmt::format("{}.{}", legal_part(node_.outputs[0]), dimension);
  while (named.dims.contains(name)) name += "_";
  const auto given = named.options->named_extents.find(name);
  if (given == named.options->named_extents.end() && !named.options->find_extents) return nullptr;
  if (given != named.options->named_extents.end()) extent = given->second;
  check_extents({extent});
  const auto number = static_cast<int64_t>(named.result->input_names.size());
  named.result->input_names.push_back(name);
  named.result->input_aliases.emplace_back();
  Instr* positions =
      hlo::Builder(named.entry).parameter(number, Shape::array(Type::s32, {extent}), name);
  named.dims[name] = {name};
  named.found.emplace_back(name, computed);
  const auto bound = named.options->bounded.find(name);
  limits_.bounded.emplace(
      positions, 0, unit_of(extent, bound == named.options->bounded.end() ? 0 : bound->second));
  return positions;
}

void Importer::name_extents() {
  if (!options_.find_extents && !options_.open_extents && options_.named_extents.empty()) return;
  named_.options = &options_;
  named_.result = &result_;
  named_.entry = entry_;
  limits_.named = &named_;
}

// Whether they are all that was asked for.
bool Importer::set_computed_extents() {
  result_.input_dims = named_.dims;
  if (!options_.find_extents) return false;
  std::vector<Instr*> results;
  for (const auto& [name, computed] : named_.found) {
    result_.output_names.push_back(name);
    results.push_back(computed);
  }
  entry_->set_root(hlo::Builder(entry_).tuple(results));
  for (const auto& computation : result_.module->computations()) computation->remove_dead();
  result_.module->remove_dead_computations();
  result_.index_checks.clear();
  result_.counts.clear();
  result_.needed_rows.clear();
  result_.counted_dims.clear();
  result_.not_open.clear();
  return true;
}

}  // namespace heddle::import
