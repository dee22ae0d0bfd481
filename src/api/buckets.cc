// Which extents share a program, and what it is compiled from.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "api/bounded.h"
#include "api/extent_comparison.h"
#include "hlo/module.h"
#include "opt/mask_padding.h"

namespace heddle::api {

int64_t bucket_of(int64_t extent, int64_t bound) {
  int64_t result = 1;
  while (result < extent && result < bound) result *= 4;
  return std::min(result, bound);
}

int64_t least_of(int64_t bucket, int64_t bound) {
  int64_t below = 0;
  while (bucket_of(below + 1, bound) < bucket) below = bucket_of(below + 1, bound);
  return below + 1;
}

Sizes buckets_below(int64_t bound) {
  Sizes result;
  for (int64_t n = 1; n <= bound; n = result.back() + 1) result.push_back(bucket_of(n, bound));
  return result;
}

Extents at(const Bounded& bounded, const Sizes& extents) {
  Extents result;
  for (size_t s = 0; s < extents.size(); ++s)
    if (bounded.asked[s]) result[bounded.symbols[s].name] = extents[s];
  return result;
}

void Bounded::derive(Sizes* extents) const {
  for (size_t s = 0; s < symbols.size(); ++s)
    if (!is_own(s)) (*extents)[s] = of[s].at(*extents);
}

void Bounded::add_own(hlo::Symbol symbol) {
  of.push_back(tensor::Extent::of_symbol(static_cast<int64_t>(symbols.size())));
  symbols.push_back(std::move(symbol));
  asked.push_back(true);
  grows.push_back(0);
}

Bucket bucket_for(const Bounded& bounded, const Sizes& extents) {
  Bucket result;
  for (size_t s = 0; s < bounded.symbols.size(); ++s) {
    const int64_t most = bounded.symbols[s].bound;
    const int64_t only = bounded.grows[s];
    result.bounds.push_back(only > 0 ? only : bucket_of(extents[s], most));
    result.least.push_back(only > 0 ? 1 : least_of(result.bounds[s], most));
  }
  bounded.derive(&result.bounds);
  bounded.derive(&result.least);
  return result;
}

namespace {

// The symbols that are not numbers in a bucket, with its bounds. `told`: of each the first one in
// `bounded`.
hlo::SymbolTable table_of(const Bounded& bounded, const Bucket& bucket,
                          std::vector<int64_t>* told) {
  hlo::SymbolTable table;
  std::map<int64_t, tensor::Extent> instead;  // of those with extents of their own
  for (size_t s = 0; s < bounded.symbols.size(); ++s) {
    hlo::Symbol symbol = bounded.symbols[s];
    tensor::Extent extent;
    if (!bounded.is_own(s)) {
      extent.constant = bounded.of[s].constant;
      for (const auto& [from, factor] : bounded.of[s].terms)
        extent = extent.plus(instead.at(from).times(factor));
    } else if (bucket.least[s] < bucket.bounds[s]) {
      extent = tensor::Extent::of_symbol(static_cast<int64_t>(table.symbols.size()));
    } else {
      extent.constant = bucket.bounds[s];
    }
    if (bounded.is_own(s)) instead[static_cast<int64_t>(s)] = extent;
    if (extent.is_constant()) continue;
    const auto known = std::find(table.of.begin(), table.of.end(), extent);
    if (known != table.of.end()) {
      auto& places = table.symbols[static_cast<size_t>(known - table.of.begin())].places;
      places.insert(places.end(), symbol.places.begin(), symbol.places.end());
      continue;
    }
    symbol.bound = bucket.bounds[s];
    symbol.least = bucket.least[s];
    symbol.extent = -1;  // mask_bounded gives it a parameter
    table.symbols.push_back(std::move(symbol));
    table.of.push_back(extent);
    told->push_back(static_cast<int64_t>(s));
  }
  return table;
}

// What the model is at the least extents of a bucket has to be what follows from its bounds. One
// element is left out: such arrays are repeated by other operators. So are the bounds themselves
// where nothing but extents grows: a slice of a whole table is no operator.
Status check_least(const Bounded& bounded, const Bucket& bucket,
                   const import::Imported& at_bounds) {
  Sizes extents = bucket.least, most = bucket.bounds;
  std::string names;
  for (size_t s = 0; s < extents.size(); ++s) {
    extents[s] = std::min(std::max<int64_t>(extents[s], 2), bucket.bounds[s]);
    if (bounded.growing.empty() && most[s] > extents[s]) --most[s];
    if (bounded.asked[s]) names += (names.empty() ? "" : ", ") + bounded.symbols[s].name;
  }
  bounded.derive(&extents);
  bounded.derive(&most);
  HEDDLE_ASSIGN_OR_RETURN(const import::Imported least, bounded.import_at(at(bounded, extents)));
  Sizes differences = most;
  for (size_t s = 0; s < differences.size(); ++s) differences[s] -= extents[s];
  const auto compare = [&](const import::Imported& with) {
    return ExtentComparison(with, least, names).same_structure(growth_of(bounded, differences));
  };
  if (most == bucket.bounds) return compare(at_bounds);
  HEDDLE_ASSIGN_OR_RETURN(const import::Imported below, bounded.import_at(at(bounded, most)));
  return compare(below);
}

}  // namespace

Result<import::Imported> import_bucket(const Bounded& bounded, const Sizes& extents, Bucket* bucket,
                                       std::string* why_exact) {
  *bucket = bucket_for(bounded, extents);
  HEDDLE_ASSIGN_OR_RETURN(import::Imported imported,
                          bounded.import_at(at(bounded, bucket->bounds)));
  hlo::SymbolTable table = table_of(bounded, *bucket, &bucket->told);
  if (table.symbols.empty()) return imported;
  Status masked = check_least(bounded, *bucket, imported);
  if (masked) {
    std::vector<opt::Growing> growing;
    const std::vector<hlo::Instr*>& instrs = imported.module->entry()->instrs();
    for (const auto& [instr, dimension, symbol, factor] : bounded.growing)
      for (size_t t = 0; t < bucket->told.size(); ++t)
        if (bucket->told[t] == static_cast<int64_t>(symbol))
          growing.push_back({instrs[instr], dimension, t, factor});
    masked = opt::mask_bounded(*imported.module, std::move(table), growing);
  }
  if (masked && imported.module->symbols.size() != bucket->told.size())
    masked = user_error("there are extents at the bounds {} that there are not at the others",
                        fmt::join(bucket->bounds, ", "));
  if (!masked) {
    *why_exact = masked.error().message;
    *bucket = {extents, extents, {}};
    return bounded.import_at(at(bounded, extents));
  }
  for (const hlo::Symbol& symbol : imported.module->symbols)
    imported.input_names.push_back("extent of " + symbol.name);
  return imported;
}

}  // namespace heddle::api
