// Private to api: models with bounded dimensions (OpenOptions::bounds). Such a model is imported at
// the bound, and again for each specialisation; which of its arrays' dimensions follow the symbol
// is found by importing it at two other extents and comparing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/counts.h"
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

// Elements of one table of positions that an import at several extents folds.
inline constexpr int64_t kMostFolded = 1 << 20;

using Sizes = std::vector<int64_t>;  // by symbol

struct Bounded {
  std::function<Result<import::Imported>(const Extents&)> import_at;  // none: of a program file
  // Those with an extent of their own, by name; then those that follow from them. Places are those
  // of the model's inputs.
  std::vector<hlo::Symbol> symbols;
  std::vector<tensor::Extent> of;  // by symbol
  std::vector<bool> asked;         // by symbol: it has a bound in the options
  // By symbol: the bound of its only bucket, or 0. An input of such an extent becomes an output
  // with more joined to it: from run to run it would go through all buckets. It may be above the
  // symbol's bound, where the longer array is then of whole vectors.
  Sizes grows;
  Sizes first;  // what contexts begin with: the model's ports are of these
  // Of what is checked as a position, by one more of a symbol.
  struct RangeGrowth {
    size_t check, range, symbol;
    int64_t low, high;
  };
  std::vector<RangeGrowth> range_growth;
  // Ranges of a program for these bounds in a run of these extents.
  void set_ranges(const Sizes& bounds, const Sizes& extents,
                  const std::vector<tensor::IndexCheck>& at_bounds,
                  std::vector<tensor::IndexCheck>* checks) const;
  CountOutputs counts;  // outputs at their bounds, beside those that follow symbols
  // By output: which dimensions follow a symbol.
  std::vector<std::vector<std::pair<int64_t, size_t>>> outputs;  // dimension, symbol

  bool is_own(size_t s) const {
    return of[s] == tensor::Extent::of_symbol(static_cast<int64_t>(s));
  }
  using Places = std::vector<std::pair<int64_t, size_t>>;  // dimension, symbol
  Places places_of_input(size_t input) const;
  // Of dimensions `dims` at `first`, those at these extents.
  Sizes actual(Sizes dims, const Places& places, const Sizes& extents) const;
  void derive(Sizes* extents) const;  // from those that are a symbol's own
  void add_own(hlo::Symbol symbol);   // as the next one
};

// Errors: those of the import, a bound below 4, a name that no input has, an extent above its
// bound, and a model whose structure or constants depend on the extent (it is compiled for numbers
// only). Dimensions that the model takes only together, as one that is always one longer than
// another, have bounds that fit; the larger one follows.
Result<std::shared_ptr<const Bounded>> find_bounded(
    std::function<Result<import::Imported>(const Extents&)> import_at, const OpenOptions& options);

// With one bucket, from these extents to the bounds.
std::shared_ptr<const Bounded> with_one_bucket(const Bounded& bounded, const Extents& least);

// Kernels of a program for many extents that run over all bounds are an error (unsupported).
Status check_trimmed(const Program& program);

// What is asked for, else what a value that will be bound has, else the bound. Error: it is above.
Result<int64_t> first_extent(const hlo::Symbol& symbol, const std::vector<std::string>& inputs,
                             const OpenOptions& options);
// The error that symbol s, which follows from others, is said to be `asked`.
tl::unexpected<Error> extent_differs(const Bounded& bounded, size_t s, int64_t asked,
                                     const Sizes& extents);
// `asked`: 0 where nothing is said.
Status check_asked(const Bounded& bounded, const Sizes& extents, const Sizes& asked);
// Of all symbols. Error: also one that follows is asked for at another extent.
Status set_first(Bounded* bounded, const std::vector<std::string>& inputs,
                 const OpenOptions& options);

// Of a program file. Errors: those of the extents, a name that no dimension has, a bound above the
// one that it was compiled for.
Result<std::shared_ptr<const Bounded>> bounded_of(const program::Saved& saved,
                                                  const OpenOptions& options);
// The other way round, of a model.
std::vector<program::Symbol> saved_symbols(const Bounded& bounded, const std::vector<Port>& inputs,
                                           const std::vector<Port>& outputs);
// The ports of a file's program as the model has them: at the extents that contexts begin with, and
// without those that it is told.
void set_ports(const Bounded& bounded, const program::Variant& variant, std::vector<Port>& inputs,
               std::vector<Port>& outputs, const std::vector<program::Symbol>& symbols);

// What the ports' bounded dimensions are called, and the extents that runs may have.
void tell_bounds(const Bounded& bounded, std::vector<Port>& inputs, std::vector<Port>& outputs);

// The bucket of an extent: powers of 4 below the bound, and the bound; six of them for 512.
int64_t bucket_of(int64_t extent, int64_t bound);
int64_t least_of(int64_t bucket, int64_t bound);           // the least extent that is run in it
Sizes buckets_below(int64_t bound);                        // all of them, ascending
std::vector<Sizes> all_buckets(const Bounded& bounded);    // their bounds, by symbol
Extents at(const Bounded& bounded, const Sizes& extents);  // by the names that have bounds

// The extents that one program is for, by symbol.
struct Bucket {
  Sizes least, bounds;
  std::vector<int64_t> told;  // symbols whose extents are inputs of it, behind the model's
};
// The bucket of these extents.
Bucket bucket_for(const Bounded& bounded, const Sizes& extents);

// What a program for these extents is compiled from: the model at the bounds of their bucket, with
// masks and an input for each extent that may differ from its bound. `why_exact`: where it is not
// empty in the end, why there are no masks: then it is the model at these very extents.
Result<import::Imported> import_bucket(const Bounded& bounded, const Sizes& extents, Bucket* bucket,
                                       std::string* why_exact);

// A program that is specialised on demand, by buckets of its extents; a module that bounds cannot
// be put into is compiled for each extent, and so is what is interpreted.
// `shared`: there is to be one program, of which weights are in this (which outlives it); what
// bounds cannot be put into is an error then.
Result<std::shared_ptr<Program>> compile_bounded(const Model& model, const CompileOptions& options,
                                                 bool interpreted, SharedWeights* shared = nullptr);
// The same of a program file: nothing is compiled.
Result<std::shared_ptr<Program>> load_bounded(const Model& model,
                                              std::shared_ptr<const program::Saved> saved,
                                              const DeviceRequest& where,
                                              const std::string& dump_directory);

}  // namespace heddle::api
