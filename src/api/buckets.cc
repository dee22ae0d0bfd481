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
    result.least.push_back(
        std::max(only > 0 ? 1 : least_of(result.bounds[s], most), bounded.symbols[s].least));
  }
  bounded.derive(&result.bounds);
  bounded.derive(&result.least);
  return result;
}

namespace {

// The symbols that are not numbers in a bucket, with its bounds.
struct InBucket {
  hlo::SymbolTable table;
  std::vector<int64_t> told;                  // of each the first one in `bounded`
  std::map<int64_t, tensor::Extent> instead;  // of those with extents of their own
};

tensor::Extent in_bucket(const tensor::Extent& extent,
                         const std::map<int64_t, tensor::Extent>& instead) {
  tensor::Extent result{extent.constant, {}};
  for (const auto& [from, factor] : extent.terms)
    result = result.plus(instead.at(from).times(factor));
  return result;
}

InBucket symbols_in(const Bounded& bounded, const Bucket& bucket) {
  InBucket result;
  hlo::SymbolTable& table = result.table;
  for (size_t s = 0; s < bounded.symbols.size(); ++s) {
    hlo::Symbol symbol = bounded.symbols[s];
    tensor::Extent extent{bucket.bounds[s], {}};
    if (!bounded.is_own(s))
      extent = in_bucket(bounded.of[s], result.instead);
    else if (bucket.least[s] < bucket.bounds[s])
      extent = tensor::Extent::of_symbol(static_cast<int64_t>(table.symbols.size()));
    if (bounded.is_own(s)) result.instead[static_cast<int64_t>(s)] = extent;
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
    result.told.push_back(static_cast<int64_t>(s));
  }
  return result;
}

hlo::SliceExtents slices_of(const Bounded& bounded, const hlo::Module& module,
                            const std::map<int64_t, tensor::Extent>& instead) {
  hlo::SliceExtents result;
  const std::vector<hlo::Instr*>& instrs = module.entry()->instrs();
  for (const auto& [instr, dimension, extent] : bounded.slices)
    result[{instrs[instr], dimension}] = in_bucket(extent, instead);
  return result;
}

// What the model is at the least extents of a bucket has to be what follows from its bounds. One
// element is left out: such arrays are repeated by other operators. A slice of all that there is is
// none: so is the least extent of which there are slices, and, where no operator is told by its
// number, the bound.
Status check_least(const Bounded& bounded, const Bucket& bucket, const InBucket& in,
                   const import::Imported& at_bounds) {
  const bool numbered = !bounded.growing.empty() || !bounded.slices.empty();
  Sizes extents = bucket.least, most = bucket.bounds;
  std::string names;
  for (size_t s = 0; s < extents.size(); ++s) {
    const int64_t sliced = bounded.symbols[s].least == 1 ? 1 : bounded.symbols[s].least + 1;
    extents[s] = std::min(std::max({extents[s], sliced, int64_t{2}}), bucket.bounds[s]);
    if (!numbered && most[s] > extents[s]) --most[s];
    if (bounded.asked[s]) names += (names.empty() ? "" : ", ") + bounded.symbols[s].name;
  }
  bounded.derive(&extents);
  bounded.derive(&most);
  HEDDLE_ASSIGN_OR_RETURN(const import::Imported least, bounded.import_at(at(bounded, extents)));
  Sizes differences = most, others;
  for (size_t s = 0; s < differences.size(); ++s) differences[s] -= extents[s];
  hlo::SymbolTable table = in.table;
  for (size_t t = 0; t < in.told.size(); ++t) {
    table.symbols[t].bound = most[static_cast<size_t>(in.told[t])];
    others.push_back(extents[static_cast<size_t>(in.told[t])]);
  }
  const auto compare = [&](const import::Imported& with) -> Status {
    const ExtentComparison comparison(with, least, names);
    HEDDLE_RETURN_IF_ERROR(comparison.same_structure(growth_of(bounded, differences)));
    return comparison.same_classes(table, slices_of(bounded, *with.module, in.instead), others);
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
  const InBucket in = symbols_in(bounded, *bucket);
  bucket->told = in.told;
  if (in.told.empty()) return imported;
  Status masked = check_least(bounded, *bucket, in, imported);
  if (masked) {
    std::vector<opt::Growing> growing;
    const std::vector<hlo::Instr*>& instrs = imported.module->entry()->instrs();
    for (const auto& [instr, dimension, symbol, factor] : bounded.growing)
      for (size_t t = 0; t < in.told.size(); ++t)
        if (in.told[t] == static_cast<int64_t>(symbol))
          growing.push_back({instrs[instr], dimension, t, factor});
    masked = opt::mask_bounded(*imported.module, in.table, growing,
                               slices_of(bounded, *imported.module, in.instead));
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
