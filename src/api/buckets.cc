// Chooses the extents that share a program, and imports the module to compile for them.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "api/bounded.h"
#include "api/extent_comparison.h"
#include "hlo/module.h"
#include "opt/mask_padding.h"
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
  for (size_t s = 0; s < extents.size(); ++s)
    if (bounded.asked[s]) result[bounded.symbols[s].name] = extents[s];
  return result;
}

Bounded::Places Bounded::places_of_input(size_t input) const {
  Places result;
  for (size_t s = 0; s < symbols.size(); ++s)
    for (const auto& [parameter, dimension] : symbols[s].places)
      if (parameter == static_cast<int64_t>(input)) result.emplace_back(dimension, s);
  return result;
}

Sizes Bounded::actual(Sizes dims, const Places& places, const Sizes& extents) const {
  for (const auto& [dimension, s] : places) {
    int64_t& extent = dims[static_cast<size_t>(dimension)];
    extent = extent / first[s] * extents[s];
  }
  return dims;
}

Sizes Bounded::actual_output(size_t output, Sizes dims, const Sizes& extents) const {
  dims = actual(std::move(dims), outputs[output], extents);
  for (const OutputProducts& product : products)
    if (product.output == static_cast<int64_t>(output))
      dims[static_cast<size_t>(product.dimension)] = product.at(extents);
  return dims;
}

void Bounded::set_ranges(const Sizes& bounds, const Sizes& extents,
                         const std::vector<tensor::IndexCheck>& at_bounds,
                         std::vector<tensor::IndexCheck>* checks) const {
  for (size_t c = 0; c < checks->size(); ++c) (*checks)[c].ranges = at_bounds[c].ranges;
  for (const RangeGrowth& one : range_growth) {
    tensor::IndexRange& range = (*checks)[one.check].ranges[one.range];
    const int64_t more = extents[one.symbol] - bounds[one.symbol];
    range.low += more * one.low;
    range.high += more * one.high;
  }
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
        std::max(only > 0 ? 0 : least_of(result.bounds[s], most), bounded.symbols[s].least));
  }
  bounded.derive(&result.bounds);
  bounded.derive(&result.least);
  return result;
}

namespace {

// The symbols of a bucket whose extents are not constant, with the bucket's bounds.
struct InBucket {
  hlo::SymbolTable table;
  std::vector<int64_t> told;  // by symbol of `table`: the first one in `bounded`
};

InBucket symbols_in(const Bounded& bounded, const Bucket& bucket) {
  InBucket result;
  hlo::SymbolTable& table = result.table;
  std::vector<tensor::Extent> instead;  // by symbol, in this bucket; the independent come first
  for (size_t s = 0; s < bounded.symbols.size(); ++s) {
    hlo::Symbol symbol = bounded.symbols[s];
    tensor::Extent extent{bucket.bounds[s], {}};
    if (!bounded.is_own(s)) {
      extent = *bounded.of[s].with(instead);
    } else if (bucket.least[s] < bucket.bounds[s]) {
      extent = tensor::Extent::of_symbol(static_cast<int64_t>(table.symbols.size()));
    }
    instead.push_back(extent);
    if (extent.is_constant()) continue;
    const auto known = std::find(table.of.begin(), table.of.end(), extent);
    if (known != table.of.end()) {
      auto& places = table.symbols[static_cast<size_t>(known - table.of.begin())].places;
      places.insert(places.end(), symbol.places.begin(), symbol.places.end());
      continue;
    }
    symbol.bound = bucket.bounds[s];
    symbol.least = std::max<int64_t>(bucket.least[s], 1);
    symbol.extent = -1;  // mask_bounded gives it a parameter
    symbol.of = bounded.is_own(s) ? tensor::Extent() : extent;
    table.symbols.push_back(std::move(symbol));
    table.of.push_back(extent);
    result.told.push_back(static_cast<int64_t>(s));
  }
  return result;
}

// A model at the extents of one bucket.
class InsideBucket {
 public:
  InsideBucket(const Bounded& bounded, const Bucket& bucket, const InBucket& in)
      : bounded_(bounded), in_(in), least_(bucket.least), most_(bucket.bounds) {
    // Extent 1 is skipped: the import repeats such arrays by other operators. A slice of a whole
    // array is no slice at all, so the least extent for slices is skipped, too.
    for (size_t s = 0; s < least_.size(); ++s) {
      const int64_t sliced = bounded.symbols[s].least <= 1 ? 1 : bounded.symbols[s].least + 1;
      least_[s] = std::min(std::max({least_[s], sliced, int64_t{2}}), most_[s]);
      if (bounded_.asked[s]) names_ += (names_.empty() ? "" : ", ") + bounded_.symbols[s].name;
    }
    // Nor may there be one window only.
    for (const tensor::Extent& of : bounded.of)
      if (!of.quotients.empty()) raise_to(of, 2, most_, least_);
    bounded.derive(&least_);
  }

  // How extents appear in the graph, by the symbols of the bucket. Error: the model at lower
  // extents does not match.
  Result<Numbered> find(const import::Imported& at_bounds) {
    Result<Numbered> found = find_below(at_bounds);
    if (found) return found;
    // A slice of a whole array may appear at one below the bound. In that case the result is only
    // valid if no operator is identified by its number.
    for (size_t s = 0; s < most_.size(); ++s)
      if (most_[s] > least_[s]) --most_[s];
    bounded_.derive(&most_);
    HEDDLE_ASSIGN_OR_RETURN(const import::Imported below, bounded_.import_at(at(bounded_, most_)));
    Result<Numbered> without = find_below(below);
    return without && without->empty() ? without : found;
  }

 private:
  Result<Numbered> find_below(const import::Imported& most) const {
    Numbered result;
    hlo::SymbolTable table = in_.table;
    Sizes others, differences;
    for (size_t t = 0; t < in_.told.size(); ++t) {
      const auto s = static_cast<size_t>(in_.told[t]);
      table.symbols[t].bound = most_[s];
      others.push_back(least_[s]);
      differences.push_back(most_[s] - least_[s]);
      if (!bounded_.is_own(s) || most_[s] == least_[s]) continue;
      HEDDLE_ASSIGN_OR_RETURN(const import::Imported less, import_with(s, least_[s]));
      HEDDLE_RETURN_IF_ERROR(
          ExtentComparison(most, less, names_)
              .find_numbered(t, most_[s] - least_[s], most_[s], most_[s], &result));
      if (result.empty() || most_[s] - least_[s] < 2) continue;
      const int64_t between = least_[s] + (most_[s] - least_[s]) / 2;  // growth must be linear
      HEDDLE_ASSIGN_OR_RETURN(const import::Imported middle, import_with(s, between));
      Sizes apart(in_.told.size(), 0);
      apart[t] = most_[s] - between;
      HEDDLE_RETURN_IF_ERROR(
          ExtentComparison(most, middle, names_).same_structure(growth_of(result, apart)));
    }
    HEDDLE_ASSIGN_OR_RETURN(const import::Imported least, bounded_.import_at(at(bounded_, least_)));
    const ExtentComparison comparison(most, least, names_);
    HEDDLE_RETURN_IF_ERROR(comparison.same_structure(growth_of(result, differences)));
    std::vector<tensor::IndexCheck> checks = most.index_checks;
    bounded_.set_ranges(most_, least_, most.index_checks, &checks);
    if (checks != least.index_checks)
      return tl::unexpected(comparison.depends("the range of an index").error());
    HEDDLE_RETURN_IF_ERROR(
        comparison.same_classes(std::move(table), result.extents_of(*most.module), others));
    return result;
  }

  Result<import::Imported> import_with(size_t s, int64_t extent) const {
    Sizes extents = most_;
    extents[s] = extent;
    bounded_.derive(&extents);
    return bounded_.import_at(at(bounded_, extents));
  }

  const Bounded& bounded_;
  const InBucket& in_;
  Sizes least_, most_;
  std::string names_;  // of bounded dimensions
};

Status mask(const Bounded& bounded, const Bucket& bucket, const InBucket& in,
            import::Imported* imported) {
  HEDDLE_ASSIGN_OR_RETURN(const Numbered numbered,
                          InsideBucket(bounded, bucket, in).find(*imported));
  std::vector<opt::Growing> growing;
  const std::vector<hlo::Instr*>& instrs = imported->module->entry()->instrs();
  for (const auto& [instr, dimension, symbol, factor] : numbered.growing)
    growing.push_back({instrs[instr], dimension, symbol, factor});
  hlo::SymbolTable table = in.table;
  for (hlo::Symbol& symbol : hlo::symbols_of(*imported->module)) {
    if (!symbol.call) continue;  // a count computed in the graph is masked, too
    table.of.push_back(tensor::Extent::of_symbol(static_cast<int64_t>(table.of.size())));
    table.symbols.push_back(std::move(symbol));
  }
  HEDDLE_RETURN_IF_ERROR(opt::mask_bounded(*imported->module, std::move(table),
                                           opt::BehindInputs::zeros, growing,
                                           numbered.extents_of(*imported->module)));
  if (imported->module->symbols.size() != in.told.size())
    return user_error("there are extents at the bounds {} that there are not at the others",
                      fmt::join(bucket.bounds, ", "));
  return {};
}

}  // namespace

Result<import::Imported> import_bucket(const Bounded& bounded, const Sizes& extents, Bucket* bucket,
                                       std::string* why_exact) {
  *bucket = bucket_for(bounded, extents);
  HEDDLE_ASSIGN_OR_RETURN(import::Imported imported,
                          bounded.import_at(at(bounded, bucket->bounds)));
  const InBucket in = symbols_in(bounded, *bucket);
  bucket->told = in.told;
  if (in.told.empty()) {
    if (auto masked = opt::mask_padding(*imported.module, {}); !masked)
      return tl::unexpected(masked.error());
    return imported;
  }
  const Status masked = mask(bounded, *bucket, in, &imported);
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
