#include "api/bounded.h"

#include <algorithm>
#include <optional>
#include <set>

#include "api/extent_comparison.h"
#include "hlo/module.h"
#include "opt/mask_padding.h"

namespace heddle::api {
namespace {

using import::Imported;
using tensor::Extent;
using tensor::Shape;

std::vector<Shape> results_of(const hlo::Module& module) {
  const Shape& shape = module.entry()->root()->shape();
  return shape.is_tuple() ? shape.elements() : std::vector<Shape>{shape};
}

std::vector<Shape> inputs_of(const hlo::Module& module) {
  std::vector<Shape> result;
  for (const hlo::Instr* parameter : module.entry()->parameters())
    result.push_back(parameter->shape());
  return result;
}

// Examines a model at several extents.
class Finder {
 public:
  Finder(Bounded* bounded, const OpenOptions& options) : bounded_(*bounded), options_(options) {}

  Status run() {
    for (const auto& [name, bound] : options_.bounds) {
      if (bound < 4)
        return user_error("dimension '{}': a bound of {}; wanted at least 4", name, bound);
      names_.push_back(name);
    }
    for (const auto& [name, sum] : options_.sums) ties_[name] = sum.of;
    HEDDLE_ASSIGN_OR_RETURN(whole_, import_less({}, 0));
    HEDDLE_RETURN_IF_ERROR(find_ties());
    for (const std::string& name : names_) {
      if (ties_.contains(name)) continue;
      hlo::Symbol symbol;
      symbol.name = name;
      symbol.bound = options_.bounds.at(name);
      bounded_.add_own(std::move(symbol));
    }
    for (const std::string& name : names_)
      if (ties_.contains(name)) add_tied(name);
    find_extents(inputs_of(*whole_.module), &inputs_);
    find_extents(results_of(*whole_.module), &outputs_);
    // What a count decides is at the bounds, whatever the extents are.
    for (const import::OpenOutput& open : whole_.open_outputs)
      counted_.emplace(static_cast<size_t>(open.output), static_cast<size_t>(open.dimension));
    for (size_t s = 0; s < bounded_.symbols.size(); ++s)
      if (bounded_.is_own(s)) HEDDLE_RETURN_IF_ERROR(compare(s));
    return take_symbols();
  }

  const std::vector<std::string>& input_names() const { return whole_.input_names; }

 private:
  using Places = std::vector<std::vector<Extent>>;  // by port and dimension

  // Imports with these dimensions `less` below their bounds.
  Result<Imported> import_less(const std::vector<std::string>& names, int64_t less) const {
    Extents at = options_.bounds;
    for (const std::string& name : names) at[name] -= less;
    return bounded_.import_at(at);
  }

  // `name`, and all dimensions derived from it.
  std::vector<std::string> with_tied(const std::string& name) const {
    std::vector<std::string> result{name};
    for (const auto& [tied, others] : ties_)
      if (std::find(others.begin(), others.end(), name) != others.end()) result.push_back(tied);
    return result;
  }

  // A model may be invalid if only one of its dimensions changes. Then, of two dimensions that must
  // change together, the larger one becomes derived from the smaller one.
  Status find_ties() {
    std::vector<std::string> ascending = names_;
    std::stable_sort(ascending.begin(), ascending.end(), [&](const auto& a, const auto& b) {
      return options_.bounds.at(a) < options_.bounds.at(b);
    });
    for (size_t i = 0; i < ascending.size() && ascending.size() > 1; ++i) {
      const std::string& name = ascending[i];
      if (ties_.contains(name)) continue;
      const Result<Imported> alone = import_less(with_tied(name), 1);
      if (alone) continue;
      bool found = false;
      for (size_t k = 0; !found && k < ascending.size(); ++k) {
        const auto &less = ascending[std::min(i, k)], &more = ascending[std::max(i, k)];
        std::vector<std::string> both = with_tied(less);
        if (i == k || ties_.contains(less) ||
            std::find(both.begin(), both.end(), more) != both.end())
          continue;
        both.push_back(more);
        found = import_less(both, 1).has_value();
        if (found) ties_[more].push_back(less);
      }
      if (!found) return tl::unexpected<Error>(alone.error());
    }
    return {};
  }

  void add_tied(const std::string& name) {
    const int64_t bound = options_.bounds.at(name);
    Extent extent{bound, {}};
    for (const std::string& from : ties_.at(name)) {
      const size_t s = number_of(from);
      extent = extent.plus(Extent::of_symbol(static_cast<int64_t>(s)));
      extent.constant -= bounded_.symbols[s].bound;
    }
    hlo::Symbol symbol;
    symbol.name = name;
    symbol.bound = bound;
    bounded_.add_own(std::move(symbol));
    bounded_.of.back() = extent;
  }

  size_t number_of(const std::string& name) const {
    size_t s = 0;
    while (bounded_.symbols[s].name != name) ++s;
    return s;
  }

  static void find_extents(const std::vector<Shape>& shapes, Places* to) {
    for (const Shape& shape : shapes) {
      to->emplace_back();
      for (int64_t d = 0; shape.is_array() && d < shape.rank(); ++d)
        to->back().push_back({shape.dim(d), {}});
    }
  }

  // Adds symbol s to the extents of ports.
  static void add_symbol(size_t s, const std::vector<Shape>& more, const std::vector<Shape>& less,
                         int64_t apart, int64_t bound, Places* to) {
    for (size_t i = 0; i < to->size(); ++i)
      for (size_t d = 0; d < (*to)[i].size(); ++d) {
        const auto dimension = static_cast<int64_t>(d);
        const int64_t factor = (more[i].dim(dimension) - less[i].dim(dimension)) / apart;
        Extent& extent = (*to)[i][d];
        extent = extent.plus(Extent::of_symbol(static_cast<int64_t>(s)).times(factor));
        extent.constant -= factor * bound;
      }
  }

  Status compare(size_t s) {
    const std::string& name = bounded_.symbols[s].name;
    const int64_t bound = bounded_.symbols[s].bound;
    const std::vector<std::string> names = with_tied(name);
    const int64_t other = bound - 3 > 1 ? bound - 3 : 2, apart = bound - 1 - other;
    HEDDLE_ASSIGN_OR_RETURN(const Imported a, import_less(names, 1));
    HEDDLE_ASSIGN_OR_RETURN(const Imported b, import_less(names, bound - other));
    const ExtentComparison comparison(a, b, name);
    HEDDLE_RETURN_IF_ERROR(comparison.find_numbered(s, apart, bound - 1, bound, &numbered_));
    HEDDLE_RETURN_IF_ERROR(compare_ranges(a, b, comparison, s, apart));
    if (const int64_t between = bound - 2; between > other) {  // growth must be linear
      HEDDLE_ASSIGN_OR_RETURN(const Imported c, import_less(names, bound - between));
      HEDDLE_RETURN_IF_ERROR(
          ExtentComparison(a, c, name)
              .same_structure(growth_of(numbered_, differences(s, bound - 1 - between))));
    }
    const std::vector<Shape> p = inputs_of(*a.module), q = inputs_of(*b.module);
    Places alone;  // as functions of this symbol only
    find_extents(p, &alone);
    add_symbol(0, p, q, apart, bound - 1, &alone);
    add_symbol(s, p, q, apart, bound, &inputs_);
    Places outputs = outputs_;
    add_symbol(s, results_of(*a.module), results_of(*b.module), apart, bound, &outputs);
    for (const auto& [output, dimension] : counted_)
      outputs[output][dimension] = outputs_[output][dimension];
    outputs_ = std::move(outputs);
    hlo::Symbol symbol;
    symbol.name = name;
    symbol.bound = bound - 1;
    hlo::SymbolTable table({symbol});
    add_places(alone, &table);
    if (std::all_of(table.symbols.begin(), table.symbols.end(),
                    [](const hlo::Symbol& one) { return one.places.empty(); }))
      return user_error(
          "no input has a dynamic dimension '{}'; only dynamic dimensions have bounds", name);
    Numbered in_this;
    HEDDLE_RETURN_IF_ERROR(comparison.find_numbered(0, apart, bound - 1, bound - 1, &in_this));
    return comparison.same_classes(std::move(table), in_this.extents_of(*a.module), {other});
  }

  Status compare_ranges(const Imported& a, const Imported& b, const ExtentComparison& comparison,
                        size_t s, int64_t apart) {
    const auto without = [](std::vector<tensor::IndexCheck> checks) {
      for (tensor::IndexCheck& check : checks)
        std::fill(check.ranges.begin(), check.ranges.end(), tensor::IndexRange());
      return checks;
    };
    if (without(a.index_checks) != without(b.index_checks))
      return comparison.depends("what is checked as an index");
    for (size_t check = 0; check < a.index_checks.size(); ++check)
      for (size_t range = 0; range < a.index_checks[check].ranges.size(); ++range) {
        const tensor::IndexRange &more = a.index_checks[check].ranges[range],
                                 &less = b.index_checks[check].ranges[range];
        if (more == less) continue;
        const int64_t low = more.low - less.low, high = more.high - less.high;
        if (low % apart != 0 || high % apart != 0)
          return comparison.depends("the range of an index");
        bounded_.range_growth.push_back({check, range, s, low / apart, high / apart});
      }
    return {};
  }

  Sizes differences(size_t symbol, int64_t more) const {
    Sizes result(bounded_.symbols.size(), 0);
    result[symbol] = more;
    return result;
  }

  static void add_places(const Places& inputs, hlo::SymbolTable* table) {
    for (size_t i = 0; i < inputs.size(); ++i)
      for (size_t d = 0; d < inputs[i].size(); ++d) {
        const Extent& extent = inputs[i][d];
        if (extent.is_constant()) continue;
        const size_t s = table->add(extent.divided_by(extent.common_factor()));
        table->symbols[s].places.emplace_back(static_cast<int64_t>(i), static_cast<int64_t>(d));
      }
  }

  // Collects all symbols with their places, and those that grow.
  Status take_symbols() {
    hlo::SymbolTable table;
    table.symbols = bounded_.symbols;
    table.of = bounded_.of;
    add_places(inputs_, &table);
    // If some operators are identified by their numbers, these must be the same at the bounds.
    for (size_t s = 0; s < bounded_.symbols.size(); ++s) {
      if (!bounded_.is_own(s) || numbered_.empty()) continue;
      const std::string& name = bounded_.symbols[s].name;
      HEDDLE_ASSIGN_OR_RETURN(const Imported below, import_less(with_tied(name), 1));
      const ExtentComparison comparison(whole_, below, name);
      HEDDLE_RETURN_IF_ERROR(comparison.same_structure(growth_of(numbered_, differences(s, 1))));
      Sizes others;
      for (const hlo::Symbol& symbol : bounded_.symbols) others.push_back(symbol.bound);
      --others[s];
      HEDDLE_RETURN_IF_ERROR(
          comparison.same_classes(table, numbered_.extents_of(*whole_.module), others));
    }
    hlo::DimClasses classes(*whole_.module);
    HEDDLE_RETURN_IF_ERROR(classes.derive(&table, numbered_.extents_of(*whole_.module)));
    follow_outputs(classes, table);
    HEDDLE_RETURN_IF_ERROR(find_products(classes, table));
    for (const std::vector<Extent>& output : outputs_) {
      auto& places = bounded_.outputs.emplace_back();
      for (size_t d = 0; d < output.size(); ++d)
        if (!output[d].is_constant())
          places.emplace_back(static_cast<int64_t>(d),
                              table.add(output[d].divided_by(output[d].common_factor())));
    }
    bounded_.counts = count_outputs(whole_);
    set_least(classes, &table);
    bounded_.symbols = table.symbols;
    bounded_.of = table.of;
    bounded_.asked.resize(table.of.size(), false);
    bounded_.grows.resize(table.of.size(), 0);
    find_growing(std::move(table));
    // A cache may begin empty.
    for (size_t s = 0; s < bounded_.symbols.size(); ++s)
      if (bounded_.grows[s] > 0 && bounded_.symbols[s].least == 1) bounded_.symbols[s].least = 0;
    return {};
  }

  // An extent that is a quotient is not found by comparison.
  void follow_outputs(const hlo::DimClasses& classes, const hlo::SymbolTable& table) {
    const hlo::Instr* root = whole_.module->entry()->root();
    for (size_t i = 0; i < outputs_.size(); ++i)
      for (size_t d = 0; d < outputs_[i].size(); ++d) {
        const auto dimension = static_cast<int64_t>(d);
        const int s = classes.symbol_of(root, dimension, i);
        if (s < 0 || counted_.contains({i, d})) continue;
        const auto number = static_cast<size_t>(s);
        const int64_t extent = results_of(*whole_.module)[i].dim(dimension);
        outputs_[i][d] = table.of[number].times(extent / table.symbols[number].bound);
      }
  }

  // What is a product of two extents is a multiple of each while the other one is at its bound. At
  // half of all bounds it is not: one less may be as many, where windows move in steps.
  Status find_products(const hlo::DimClasses& classes, const hlo::SymbolTable& table) {
    if (std::count(bounded_.asked.begin(), bounded_.asked.end(), true) < 2) return {};
    Sizes less;
    Extents at;
    for (size_t s = 0; s < bounded_.symbols.size(); ++s)
      less.push_back((bounded_.symbols[s].bound + 1) / 2);
    bounded_.derive(&less);
    for (size_t s = 0; s < bounded_.symbols.size(); ++s) at[bounded_.symbols[s].name] = less[s];
    HEDDLE_ASSIGN_OR_RETURN(const Imported below, bounded_.import_at(at));
    const std::vector<Shape> whole = results_of(*whole_.module), part = results_of(*below.module);
    Sizes bounds, extents;
    for (size_t s = 0; s < table.symbols.size(); ++s) {
      bounds.push_back(table.symbols[s].bound);
      extents.push_back(table.of[s].at(less));
    }
    const hlo::Instr* root = whole_.module->entry()->root();
    for (size_t i = 0; i < outputs_.size(); ++i)
      for (size_t d = 0; d < outputs_[i].size(); ++d) {
        const auto dimension = static_cast<int64_t>(d);
        if (counted_.contains({i, d}) || outputs_[i][d].at(less) == part[i].dim(dimension))
          continue;
        const bool is_tuple = root->is(hlo::Opcode::tuple);
        const auto sum =
            products_along(is_tuple ? root->operand(i) : root, dimension, classes, table);
        OutputProducts found{static_cast<int64_t>(i), dimension,
                             sum.value_or(std::vector<ProductOfExtents>())};
        if (found.at(bounds) != whole[i].dim(dimension) ||
            found.at(extents) != part[i].dim(dimension))
          return user_error(
              "dimension {} of result {} follows from the extents in a way that is not known", d,
              whole_.output_names.at(i));
        outputs_[i][d] = Extent{whole[i].dim(dimension)};
        bounded_.products.push_back(std::move(found));
      }
    return {};
  }

  // Extents must be large enough for all slices and windows.
  void set_least(const hlo::DimClasses& classes, hlo::SymbolTable* table) const {
    Sizes least(table->symbols.size(), 1), bounds;
    for (const hlo::Symbol& symbol : table->symbols) bounds.push_back(symbol.bound);
    const std::vector<hlo::Instr*>& instrs = whole_.module->entry()->instrs();
    for (const auto& [instr, d, extent] : numbered_.slices) {
      const hlo::Instr* slice = instrs[instr];
      const int s = classes.symbol_of(slice->operand(0), d);
      if (s < 0) continue;
      const auto number = static_cast<size_t>(s);
      const int64_t whole = slice->operand(0)->shape().dim(d);
      Extent enough = table->of[number].times(whole / table->symbols[number].bound);
      const bool moves = numbered_.moves(instr, d);
      const int64_t start = slice->attrs_as<hlo::SliceAttrs>().starts[static_cast<size_t>(d)];
      if (extent.terms == Extent::of_symbol(hlo::kOperandExtent).terms)
        enough.constant += extent.constant;
      else if (!extent.is_constant())
        enough = extent;
      else
        enough.constant -= slice->shape().dim(d) + (moves ? 0 : start);
      raise_to(enough, 0, bounds, least);
    }
    for (const hlo::DimClasses::Cut& cut : classes.cuts())
      if (cut.window) raise_to(table->of[cut.symbol], 1, bounds, least);
    for (size_t s = 0; s < least.size(); ++s)
      table->symbols[s].least = std::min(table->of[s].at(least), table->symbols[s].bound);
  }

  void find_growing(hlo::SymbolTable table) {
    const std::unique_ptr<hlo::Module> module = whole_.module->clone();
    const size_t before = module->input_output_alias.size();
    if (!opt::mask_bounded(*module, std::move(table), opt::BehindInputs::zeros, {},
                           numbered_.extents_of(*module)))
      return;
    for (size_t i = before; i < module->input_output_alias.size(); ++i)
      for (size_t s = 0; s < bounded_.symbols.size(); ++s)
        for (const auto& [parameter, dimension] : bounded_.symbols[s].places)
          if (parameter == module->input_output_alias[i].parameter && bounded_.is_own(s) &&
              bounded_.grows[s] == 0)
            bounded_.grows[s] = with_whole_vectors(
                s, module->entry()->parameters()[parameter]->shape().dim(dimension));
  }

  // A bound, at least that of the symbol, at which an array that is now `extent` long consists of
  // whole vectors; the symbol's bound, if the model is invalid at the larger one.
  int64_t with_whole_vectors(size_t s, int64_t extent) const {
    const int64_t step = extent > 64 ? 64 : 16, more = (step - extent % step) % step;
    const hlo::Symbol& symbol = bounded_.symbols[s];
    const Result<Imported> shorter = import_less(with_tied(symbol.name), 1),
                           longer = import_less(with_tied(symbol.name), -more);
    if (!shorter || !longer ||
        !ExtentComparison(*longer, *shorter, symbol.name)
             .same_structure(growth_of(numbered_, differences(s, more + 1))))
      return symbol.bound;
    return symbol.bound + more;
  }

  Bounded& bounded_;
  const OpenOptions& options_;
  std::vector<std::string> names_;
  std::map<std::string, std::vector<std::string>> ties_;  // derived: from these
  Imported whole_;                                        // at the bounds
  Numbered numbered_;
  Places inputs_, outputs_;
  std::set<std::pair<size_t, size_t>> counted_;  // outputs' dimensions that follow a count
};

}  // namespace

Result<int64_t> first_extent(const hlo::Symbol& symbol, const std::vector<std::string>& inputs,
                             const OpenOptions& options) {
  int64_t extent = symbol.bound;
  std::string by = "--dim";
  if (const auto asked = options.dims.find(symbol.name); asked != options.dims.end()) {
    extent = asked->second;
  } else {
    for (const auto& [parameter, dimension] : symbol.places) {
      const auto hint = options.hints.find(inputs.at(static_cast<size_t>(parameter)));
      if (hint == options.hints.end() || static_cast<size_t>(dimension) >= hint->second.size())
        continue;
      extent = hint->second[static_cast<size_t>(dimension)];
      by = "input " + hint->first;
      break;
    }
  }
  const int64_t least = std::max<int64_t>(symbol.least, 1);  // the model's ports have this extent
  if (extent < least || extent > symbol.bound)
    return user_error("dimension '{}' is {} from {}, wanted {} to {}", symbol.name, extent, by,
                      least, symbol.bound);
  return extent;
}

tl::unexpected<Error> extent_differs(const Bounded& bounded, size_t s, int64_t asked,
                                     const Sizes& extents) {
  std::vector<std::string> names;
  for (const hlo::Symbol& symbol : bounded.symbols) names.push_back(symbol.name);
  return user_error("dimension '{}' is {}, wanted {} ({})", names[s], asked,
                    bounded.of[s].at(extents), to_string(bounded.of[s], names));
}

Status check_asked(const Bounded& bounded, const Sizes& extents, const Sizes& asked) {
  for (size_t s = 0; s < extents.size(); ++s)
    if (asked[s] != 0 && asked[s] != extents[s])
      return extent_differs(bounded, s, asked[s], extents);
  return {};
}

Status set_first(Bounded* bounded, const std::vector<std::string>& inputs,
                 const OpenOptions& options) {
  bounded->first.assign(bounded->symbols.size(), 0);
  for (size_t s = 0; s < bounded->symbols.size(); ++s)
    if (bounded->is_own(s)) {
      HEDDLE_ASSIGN_OR_RETURN(bounded->first[s],
                              first_extent(bounded->symbols[s], inputs, options));
    }
  bounded->derive(&bounded->first);
  for (size_t s = 0; s < bounded->symbols.size(); ++s) {
    const auto asked = options.dims.find(bounded->symbols[s].name);
    if (asked != options.dims.end() && asked->second != bounded->first[s])
      return extent_differs(*bounded, s, asked->second, bounded->first);
  }
  return {};
}

std::shared_ptr<const Bounded> with_one_bucket(const Bounded& bounded, const Extents& least) {
  auto result = std::make_shared<Bounded>(bounded);
  for (size_t s = 0; s < result->symbols.size(); ++s) {
    hlo::Symbol& symbol = result->symbols[s];
    const auto from = least.find(symbol.name);
    if (from == least.end() || !result->is_own(s)) continue;
    symbol.least = std::max(symbol.least, from->second);
    result->grows[s] = std::max(result->grows[s], symbol.bound);
  }
  return result;
}

Result<std::shared_ptr<const Bounded>> find_bounded(
    std::function<Result<Imported>(const Extents&)> import_at, const OpenOptions& options) {
  auto result = std::make_shared<Bounded>();
  result->import_at = std::move(import_at);
  Finder finder(result.get(), options);
  HEDDLE_RETURN_IF_ERROR(finder.run());
  HEDDLE_RETURN_IF_ERROR(set_first(result.get(), finder.input_names(), options));
  return std::shared_ptr<const Bounded>(std::move(result));
}

}  // namespace heddle::api
