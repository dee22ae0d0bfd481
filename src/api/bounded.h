// Private to api: models with bounded dimensions (OpenOptions::bounds). Such a model is imported at
// the bound, and again for each specialisation; the dimensions of its arrays that follow a symbol
// are found by importing it at two other extents and comparing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/counts.h"
#include "api/output_products.h"
#include "api/session.h"
#include "hlo/dim_classes.h"
#include "import/onnx.h"

namespace heddle::program {
struct Symbol;
struct Variant;
}  // namespace heddle::program

namespace heddle::api {

class SharedWeights;
struct DeviceRequest;

using Extents = std::map<std::string, int64_t>;

// Limit of elements in a table of positions that is folded in imports at several extents.
inline constexpr int64_t kMostFolded = 1 << 20;

using Sizes = std::vector<int64_t>;  // by symbol

struct Bounded {
  std::function<Result<import::Imported>(const Extents&)> import_at;  // null: from a program file
  // First the independent ones, by name; then the derived ones. Places refer to the model's inputs.
  std::vector<hlo::Symbol> symbols;
  std::vector<tensor::Extent> of;  // by symbol
  std::vector<bool> asked;         // by symbol: the options give it a bound
  // By symbol: the bound of its only bucket, or 0. Such a symbol grows: an input of its extent
  // becomes an output with more appended, so that from run to run it would go through all buckets.
  // This may exceed the symbol's bound, so that the longer array consists of whole vectors.
  Sizes grows;
  Sizes first;  // initial extents of contexts; the model's ports have these
  // Change of a range of an index check per unit of a symbol.
  struct RangeGrowth {
    size_t check, range, symbol;
    int64_t low, high;
  };
  std::vector<RangeGrowth> range_growth;
  // Sets the ranges for a run with these extents of a program for these bounds.
  void set_ranges(const Sizes& bounds, const Sizes& extents,
                  const std::vector<tensor::IndexCheck>& at_bounds,
                  std::vector<tensor::IndexCheck>* checks) const;
  CountOutputs counts;  // outputs at their bounds, in addition to those that follow symbols
  // By output: the dimensions that follow a symbol.
  std::vector<std::vector<std::pair<int64_t, size_t>>> outputs;  // dimension, symbol

  std::vector<OutputProducts> products;  // of outputs, what no symbol follows

  bool is_own(size_t s) const {
    return of[s] == tensor::Extent::of_symbol(static_cast<int64_t>(s));
  }
  using Places = std::vector<std::pair<int64_t, size_t>>;  // dimension, symbol
  Places places_of_input(size_t input) const;
  // Dimensions `dims`, which are those at `first`, at these extents.
  Sizes actual(Sizes dims, const Places& places, const Sizes& extents) const;
  // Dimensions `dims` of an output, which are those at `first`, at these extents.
  Sizes actual_output(size_t output, Sizes dims, const Sizes& extents) const;
  void derive(Sizes* extents) const;  // computes derived extents from independent ones
  void add_own(hlo::Symbol symbol);   // appends an independent symbol
};

// Errors: those of the import, a bound below 4, a name that no input has, an extent above its
// bound, and a model whose structure or constants depend on the extent (it can only be compiled for
// numbers). If the model accepts two dimensions only together, such as one that is always longer by
// one than the other, their bounds must match; the larger one becomes derived.
Result<std::shared_ptr<const Bounded>> find_bounded(
    std::function<Result<import::Imported>(const Extents&)> import_at, const OpenOptions& options);

// The same with a single bucket, from these extents to the bounds.
std::shared_ptr<const Bounded> with_one_bucket(const Bounded& bounded, const Extents& least);

// Error (unsupported) if a kernel of a program for many extents always runs over all bounds.
Status check_trimmed(const Program& program);

// The requested extent, else that of a hinted shape, else the bound. Error: it is above the bound.
Result<int64_t> first_extent(const hlo::Symbol& symbol, const std::vector<std::string>& inputs,
                             const OpenOptions& options);
// The error for derived symbol s whose requested extent is `asked`.
tl::unexpected<Error> extent_differs(const Bounded& bounded, size_t s, int64_t asked,
                                     const Sizes& extents);
// Checks the requested extents; 0 in `asked`: not requested.
Status check_asked(const Bounded& bounded, const Sizes& extents, const Sizes& asked);
// Sets `first` for all symbols. It is also an error if a derived extent is requested differently.
Status set_first(Bounded* bounded, const std::vector<std::string>& inputs,
                 const OpenOptions& options);

// From a program file. Errors: those of the extents, a name that no dimension has, a bound above
// the one that the program was compiled for.
Result<std::shared_ptr<const Bounded>> bounded_of(const program::Saved& saved,
                                                  const OpenOptions& options);
// The inverse, for a model.
std::vector<program::Symbol> saved_symbols(const Bounded& bounded, const std::vector<Port>& inputs,
                                           const std::vector<Port>& outputs);
// The ports of a file's program as the model has them: at the initial extents of contexts, and
// without the inputs for told extents.
void set_ports(const Bounded& bounded, const program::Variant& variant, std::vector<Port>& inputs,
               std::vector<Port>& outputs, const std::vector<program::Symbol>& symbols);

// Sets the names of the ports' bounded dimensions, and the extents that runs may have.
void tell_bounds(const Bounded& bounded, std::vector<Port>& inputs, std::vector<Port>& outputs);

// The bucket of an extent: powers of 4 below the bound, and the bound; six of them for 512.
int64_t bucket_of(int64_t extent, int64_t bound);
int64_t least_of(int64_t bucket, int64_t bound);           // the least extent that is run in it
Sizes buckets_below(int64_t bound);                        // all of them, ascending
std::vector<Sizes> all_buckets(const Bounded& bounded);    // their bounds, by symbol
Extents at(const Bounded& bounded, const Sizes& extents);  // by the names that have bounds

// The extents that one program serves, by symbol.
struct Bucket {
  Sizes least, bounds;
  std::vector<int64_t> told;  // symbols whose extents are inputs of the program, after the model's
};
// The bucket of these extents.
Bucket bucket_for(const Bounded& bounded, const Sizes& extents);

// The module to compile for these extents: the model at the bounds of their bucket, with masks and
// an input for each extent that may differ from its bound. `why_exact`: if not empty afterwards,
// the reason why it cannot be masked; the result is then the model at exactly these extents.
Result<import::Imported> import_bucket(const Bounded& bounded, const Sizes& extents, Bucket* bucket,
                                       std::string* why_exact);

// A program that is specialised on demand, by buckets of its extents; a module that cannot be
// bounded is compiled for each extent, and so is an interpreted one. `shared`: there must be one
// program only, whose weights are kept in this object (which outlives it); a module that cannot be
// bounded is then an error.
Result<std::shared_ptr<Program>> compile_bounded(const Model& model, const CompileOptions& options,
                                                 bool interpreted, SharedWeights* shared = nullptr);
// The same from a program file: nothing is compiled.
Result<std::shared_ptr<Program>> load_bounded(const Model& model,
                                              std::shared_ptr<const program::Saved> saved,
                                              const DeviceRequest& where,
                                              const std::string& dump_directory);

}  // namespace heddle::api
