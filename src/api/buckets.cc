// Which extents share a program, and what it is compiled from.
#include <algorithm>

#include "api/bounded.h"
#include "hlo/module.h"
#include "opt/passes.h"

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
  for (size_t s = 0; s < extents.size(); ++s) result[bounded.symbols[s].name] = extents[s];
  return result;
}

Result<import::Imported> import_bucket(const Bounded& bounded, const Sizes& extents, Sizes* bounds,
                                       std::string* why_exact) {
  std::vector<hlo::Symbol> symbols;
  bounds->clear();
  for (size_t s = 0; s < extents.size(); ++s) {
    hlo::Symbol symbol = bounded.symbols[s];
    const int64_t most = symbol.bound;
    bounds->push_back(bucket_of(extents[s], most));
    symbol.bound = bounds->back();
    symbol.least = least_of(bounds->back(), most);
    symbol.extent = -1;  // the pass gives it a parameter
    if (symbol.least < symbol.bound) symbols.push_back(std::move(symbol));
  }
  HEDDLE_ASSIGN_OR_RETURN(import::Imported imported, bounded.import_at(at(bounded, *bounds)));
  if (symbols.empty()) return imported;
  imported.module->symbols = symbols;
  if (auto masked = opt::mask_padding(*imported.module, {}); !masked) {
    *why_exact = masked.error().message;
    *bounds = extents;
    return bounded.import_at(at(bounded, extents));
  }
  for (const hlo::Symbol& symbol : symbols)
    imported.input_names.push_back("extent of " + symbol.name);
  return imported;
}

}  // namespace heddle::api
