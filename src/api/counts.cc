#include "api/counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "api/extent_comparison.h"
#include "api/link_dimensions.h"
#include "hlo/builder.h"
#include "hlo/dim_classes.h"
#include "hlo/select_boxes.h"
#include "opt/passes.h"

namespace heddle::api {
namespace {

using hlo::Instr;
using import::Imported;

// Rows. With more of them, what a plan at the bound takes could be out of all proportion.
constexpr int64_t kMostRows = 1 << 14;
// Of bounded dimensions, as no stage could decide them: the scores of a detector's largest level.
constexpr int64_t kMostBesideBounds = 1 << 24;
// Of an array of more rows than a bucket of 128 sequences of 128 tokens has for two experts each.
constexpr int64_t kManyRows = 1 << 15, kMostBytes = 1 << 28;

// The outputs' dimensions that follow a count; `extent` is the number of the symbol.
std::vector<import::OpenOutput> open_outputs(const hlo::DimClasses& classes,
                                             const std::vector<hlo::Symbol>& symbols,
                                             const Instr* root) {
  const tensor::Shape& shape = root->shape();
  const std::vector<tensor::Shape> leaves =
      shape.is_tuple() ? shape.elements() : std::vector<tensor::Shape>{shape};
  std::vector<import::OpenOutput> found;
  for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    for (int64_t d = 0; leaves[leaf].is_array() && d < leaves[leaf].rank(); ++d) {
      const int symbol = classes.symbol_of(root, d, leaf);
      if (symbol < 0) continue;
      const int64_t bound = symbols[static_cast<size_t>(symbol)].bound;
      const int64_t extent = leaves[leaf].dim(d);
      found.push_back({static_cast<int64_t>(leaf), d, extent / bound, symbol, extent});
    }
  }
  return found;
}

bool is_guessed(const Imported& imported, const hlo::Symbol& symbol) {
  const auto key = imported.counts.find(symbol.name);
  return key != imported.counts.end() && imported.guessed.contains(key->second);
}

// The number of the symbol of a call, by name.
size_t symbol_of_call(const std::vector<hlo::Symbol>& symbols, const std::string& call) {
  const auto is_it = [&](const Instr* one) { return one->name() == call; };
  size_t s = 0;
  while (s < symbols.size() &&
         !(symbols[s].call && (is_it(symbols[s].call) ||
                               std::any_of(symbols[s].rows.begin(), symbols[s].rows.end(), is_it))))
    ++s;
  return s;
}

// Outputs that are counts, behind those that have names: what outputs' dimensions follow, and what
// was guessed.
void add_extents(Imported* imported) {
  hlo::Module& module = *imported->module;
  const std::vector<hlo::Symbol> symbols = hlo::symbols_of(module);
  hlo::DimClasses classes(module);
  Instr* root = module.entry()->root();
  if (!classes.assign(symbols)) return;
  imported->open_outputs = open_outputs(classes, symbols, root);
  std::vector<Instr*> results = root->operands();
  const size_t before = results.size();
  std::map<int64_t, int64_t> places;  // of symbols
  const auto output_of = [&](int64_t number) {
    const auto next = static_cast<int64_t>(imported->output_names.size());
    const auto [place, added] = places.emplace(number, next);
    if (added) {
      const hlo::Symbol& symbol = symbols[static_cast<size_t>(number)];
      imported->output_names.push_back("extent of " + symbol.name);
      results.insert(results.begin() + next, symbol.call->operand(1));
    }
    return place->second;
  };
  for (import::OpenOutput& open : imported->open_outputs) open.extent = output_of(open.extent);
  for (size_t s = 0; s < symbols.size(); ++s)
    if (is_guessed(*imported, symbols[s]))
      imported->guessed_counts.push_back({output_of(static_cast<int64_t>(s)), symbols[s].bound});
  for (const std::set<std::string>& calls : imported->needed_rows) {
    std::vector<int64_t>& outputs = imported->needed_counts.emplace_back();
    for (const std::string& call : calls)
      outputs.push_back(output_of(static_cast<int64_t>(symbol_of_call(symbols, call))));
  }
  if (results.size() == before) return;
  module.entry()->set_root(hlo::Builder(module.entry()).tuple(results));
  module.entry()->remove_dead();
}

// An operand's dimension of which an operator joins, pads or takes a part.
struct Part {
  const Instr* instr;
  const Instr* operand;
  int64_t dimension;
};

std::vector<Part> parts_in(const hlo::Computation& entry) {
  std::vector<Part> parts;
  for (const Instr* instr : entry.instrs()) {
    if (!instr->shape().is_array() || hlo::is_counted_part(*instr)) continue;
    for (size_t k = 0; k < instr->operands().size(); ++k)
      for (const hlo::DimLink& link : hlo::index_map(*instr, k).links)
        if (link.kind == hlo::DimKind::strided || link.kind == hlo::DimKind::placed)
          parts.push_back({instr, instr->operand(k), link.from});
  }
  return parts;
}

// Of fewer rows than the last symbol's bound it would be another part.
Status is_whole(const hlo::DimClasses& classes, const std::vector<hlo::Symbol>& symbols,
                const std::vector<Part>& parts) {
  const int symbol = static_cast<int>(symbols.size()) - 1;
  for (const Part& part : parts)
    if (classes.symbol_of(part.operand, part.dimension) == symbol)
      return user_error("dimension '{}' reaches {} ({}), which needs fixed extents",
                        symbols.back().name, part.instr->name(),
                        hlo::opcode_text(part.instr->opcode()));
  return {};
}

// What the last symbol counts has room for all that there may be.
Status is_small(const hlo::DimClasses& classes, const std::vector<hlo::Symbol>& symbols,
                const hlo::Computation& entry) {
  if (symbols.back().bound <= kManyRows) return {};
  const int symbol = static_cast<int>(symbols.size()) - 1;
  for (const Instr* instr : entry.instrs()) {
    const tensor::Shape& shape = instr->shape();
    if (!shape.is_array() || shape.bytes() <= kMostBytes) continue;
    for (int64_t d = 0; d < shape.rank(); ++d)
      if (classes.symbol_of(instr, d) == symbol)
        return user_error("{} would have {} bytes where there are {} rows", instr->name(),
                          shape.bytes(), symbols.back().bound);
  }
  return {};
}

// Keys of the counts from which this one is computed, by their calls.
std::vector<std::string> keys_behind(const Imported& imported, const Instr* call) {
  const auto own = imported.counts.find(call->name());
  if (own != imported.counts.end()) return {own->second};
  std::map<const Instr*, std::string> known;
  for (const Instr* instr : imported.module->entry()->instrs())
    if (const auto key = imported.counts.find(instr->name()); key != imported.counts.end())
      known.emplace(instr->operand(1), key->second);
  std::vector<std::string> keys;
  std::vector<const Instr*> todo{call->operand(1)};
  std::set<const Instr*> seen(todo.begin(), todo.end());
  for (size_t i = 0; i < todo.size(); ++i) {
    if (const auto key = known.find(todo[i]); key != known.end()) {
      keys.push_back(key->second);
      continue;
    }
    for (const Instr* operand : todo[i]->operands())
      if (seen.insert(operand).second) todo.push_back(operand);
  }
  return keys;
}

struct Refused {
  std::string reason;
  bool always = true;  // false: elsewhere it may be open
};

// Keys of the counts that cannot be open, beside the others.
std::map<std::string, Refused> refused(const Imported& imported, bool results_may_be_open) {
  const hlo::Module& module = *imported.module;
  std::map<std::string, Refused> keys;
  for (const auto& computation : module.computations()) {
    if (computation.get() == module.entry()) continue;
    for (const Instr* instr : computation->instrs())
      if (hlo::is_first_rows(*instr))
        for (const std::string& key : keys_behind(imported, instr))
          keys.emplace(key, Refused{"it is computed in a loop or branch"});
  }
  hlo::DimClasses classes(module);
  const Instr* root = module.entry()->root();
  const std::vector<Part> parts = parts_in(*module.entry());
  std::vector<hlo::Symbol> open;
  for (const hlo::Symbol& symbol : hlo::symbols_of(module)) {
    open.push_back(symbol);
    Status possible = classes.assign(open);
    if (possible) possible = is_whole(classes, open, parts);
    if (possible) possible = is_small(classes, open, *module.entry());
    if (possible && (results_may_be_open || open_outputs(classes, open, root).empty())) continue;
    open.pop_back();
    for (const std::string& key : keys_behind(imported, symbol.call))
      keys.emplace(key, possible ? Refused{"a result has as many rows", false}
                                 : Refused{possible.error().message});
  }
  return keys;
}

// Whether the graphs for other bounds are the same but for the dimensions that follow the counts.
Status follows_counts(const Imported& imported, const Imported& other) {
  const std::string name = "a count";
  const ExtentComparison comparison(imported, other, name);
  HEDDLE_RETURN_IF_ERROR(
      comparison.same_structure([](size_t, int64_t, int64_t more) { return more == 0; }));
  if (imported.index_checks != other.index_checks) return comparison.depends("an index's range");
  const hlo::Module& module = *imported.module;
  hlo::DimClasses classes(module);
  const std::vector<hlo::Symbol> symbols = hlo::symbols_of(module);
  HEDDLE_RETURN_IF_ERROR(classes.assign(symbols));
  const auto &p = module.entry()->instrs(), &q = other.module->entry()->instrs();
  std::vector<int64_t> bounds(symbols.size());  // in the other one
  for (size_t s = 0; s < symbols.size(); ++s)
    bounds[s] = q[static_cast<size_t>(std::find(p.begin(), p.end(), symbols[s].call) - p.begin())]
                    ->shape()
                    .dim(0);
  for (size_t i = 0; i < p.size(); ++i) {
    if (!p[i]->shape().is_array()) continue;
    if (p[i]->shape().rank() != q[i]->shape().rank())
      return user_error("{} depends on a count", p[i]->name());
    // It tells how many boxes it has found, and has room for all.
    if (p[i]->is(hlo::Opcode::get_tuple_element) && hlo::is_select_boxes(*p[i]->operand(0)))
      continue;
    for (int64_t d = 0; d < p[i]->shape().rank(); ++d) {
      int64_t wanted = p[i]->shape().dim(d);
      if (const int s = classes.symbol_of(p[i], d); s >= 0) {
        const auto number = static_cast<size_t>(s);
        wanted = wanted / symbols[number].bound * bounds[number];
      }
      if (q[i]->shape().dim(d) != wanted) return user_error("{} depends on a count", p[i]->name());
    }
  }
  return {};
}

// With what is there of dimensions in front.
Result<Imported> import_linked(const Import& import, const import::Options& options) {
  HEDDLE_ASSIGN_OR_RETURN(Imported imported, import(options));
  if (!imported.counts.empty() || !options.bounded.empty())
    HEDDLE_RETURN_IF_ERROR(link_dimensions(options.bounded, &imported));
  return imported;
}

// Numbers of counted rows that are known for the bound are right for fewer, too. `checks`: a run
// looks at what it needs.
Status numbers_follow(const Imported& imported, bool checks) {
  if (!imported.not_open.empty()) return user_error("{}", imported.not_open);
  if (imported.counted_dims.empty() && imported.needed_rows.empty()) return {};
  const hlo::Module& module = *imported.module;
  hlo::DimClasses classes(module);
  HEDDLE_RETURN_IF_ERROR(classes.assign(hlo::symbols_of(module)));
  std::map<std::string, const Instr*> by_name;
  for (const Instr* instr : module.entry()->instrs()) by_name.emplace(instr->name(), instr);
  for (const std::set<std::string>& calls : imported.needed_rows)
    for (const std::string& call : calls)
      if (!checks || !by_name.contains(call))
        return user_error("another branch is taken where {} is 0", imported.counts.at(call));
  for (const auto& [name, dimension] : imported.counted_dims) {
    const auto instr = by_name.find(name);
    if (instr != by_name.end() && classes.symbol_of(instr->second, dimension) < 0)
      return user_error("{} depends on a count", name);
  }
  return {};
}

// Error: one of the counts cannot be open, it is not known which.
Status follow_counts(const Imported& imported, const Import& import, const import::Options& options,
                     bool is_last) {
  HEDDLE_RETURN_IF_ERROR(numbers_follow(imported, is_last));
  for (const int64_t less : {1, 2}) {
    import::Options fewer = options;
    fewer.less_counts = less;
    HEDDLE_ASSIGN_OR_RETURN(const Imported other, import_linked(import, fewer));
    HEDDLE_RETURN_IF_ERROR(follows_counts(imported, other));
  }
  return {};
}

// Masks the open counts. Errors: those of follow_counts.
Status open_counts(Imported* imported, const Import& import, const import::Options& options,
                   bool is_last) {
  HEDDLE_RETURN_IF_ERROR(follow_counts(*imported, import, options, is_last));
  if (auto masked = opt::mask_padding(*imported->module, {}); !masked)
    return tl::unexpected(masked.error());
  return {};
}

}  // namespace

CountOutputs count_outputs(const Imported& imported) {
  return {imported.open_outputs, imported.guessed_counts, imported.needed_counts};
}

// A model with bounded dimensions, whose counts have to stay open: there are no stages. They are
// masked with those dimensions (api/buckets.cc).
Result<Imported> CountingImport::beside_bounds(import::Options options) const {
  if (!options.stages) return import_linked(import_, options);  // nobody asks how long outputs are
  options.max_count = kMostBesideBounds;
  HEDDLE_ASSIGN_OR_RETURN(Imported imported, import_linked(import_, options));
  if (!imported.undecided.empty())
    return user_error("{}, and decides what is computed", imported.undecided_why);
  if (imported.counts.empty()) return imported;
  for (const auto& [key, why] : refused(imported, true))
    return user_error("{} does not stay open: {}", key, why.reason);
  // Once will do: all extents have the same graph.
  const std::lock_guard lock(known_->mutex);
  if (!known_->follow) {
    HEDDLE_RETURN_IF_ERROR(follow_counts(imported, import_, options, true));
    known_->follow = true;
  }
  add_extents(&imported);
  return imported;
}

Result<Imported> CountingImport::operator()(import::Options options) const {
  if (!options.bounded.empty()) return beside_bounds(std::move(options));
  options.max_count = options.no_open_counts ? 0 : kMostRows;
  {
    const std::lock_guard lock(known_->mutex);
    for (const auto& [key, why] : known_->exact) options.exact_counts.insert(key);
  }
  // Not to be tried anew in the next import.
  const auto remember = [&](const std::string& key, const std::string& why) {
    const std::lock_guard lock(known_->mutex);
    known_->exact.emplace(key, why);
  };
  Result<Imported> attempt = import_linked(import_, options);
  for (;; attempt = import_linked(import_, options)) {
    if (!attempt && options.max_count > 0) {  // an extent that is the bound would do no harm
      options.max_count = 0;
      continue;
    }
    if (!attempt) return attempt;
    Imported& imported = *attempt;
    if (imported.counts.empty()) break;
    // A stage's results are other programs' inputs.
    const bool is_last = options.stages && imported.undecided.empty();
    const auto exact = refused(imported, is_last);
    for (const auto& [key, why] : exact) {
      options.exact_counts.insert(key);
      if (why.always) remember(key, why.reason);
    }
    if (!exact.empty()) continue;
    if (Status open = open_counts(&imported, import_, options, is_last); !open) {
      options.max_count = 0;
      for (const auto& [call, key] : imported.counts) remember(key, open.error().message);
      continue;
    }
    if (is_last) add_extents(&imported);
    break;
  }
  for (const hlo::Symbol& symbol : hlo::symbols_of(*attempt->module))
    if (const auto count = attempt->counts.find(symbol.name); count != attempt->counts.end())
      attempt->notes.push_back(fmt::format("{} stays open, up to {}", count->second, symbol.bound));
  const std::lock_guard lock(known_->mutex);
  for (const auto& [key, why] : known_->exact)
    if (options.decided.contains(key))
      attempt->notes.push_back(fmt::format("{} does not stay open: {}", key, why));
  return attempt;
}

}  // namespace heddle::api
