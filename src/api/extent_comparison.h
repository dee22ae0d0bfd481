// Private to bounded: compares a model at two extents of a symbol. The graphs must be equal except
// for dimensions, and these must be what the operators imply.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "api/bounded.h"

namespace heddle::api {

// Places of an imported entry, other than dimensions of shapes, that depend on extents; operators
// are identified by number.
struct Numbered {
  // All elements of a constant, or the start of a slice in a dimension, are `factor` times the
  // symbol's extent plus a constant.
  struct Growing {
    size_t instr = 0;
    int64_t dimension = -1;  // of a slice; -1: a constant
    size_t symbol = 0;
    int64_t factor = 0;
  };
  // The extent of a slice along a dimension that follows a symbol.
  struct Slice {
    size_t instr = 0;
    int64_t dimension = 0;
    tensor::Extent extent;
  };
  std::vector<Growing> growing;
  std::vector<Slice> slices;

  bool empty() const { return growing.empty() && slices.empty(); }
  // Whether the start of a slice depends on an extent.
  bool moves(size_t instr, int64_t dimension) const;
  hlo::SliceExtents extents_of(const hlo::Module& module) const;
};

class ExtentComparison {
 public:
  ExtentComparison(const import::Imported& a, const import::Imported& b, const std::string& symbol)
      : a_(*a.module), b_(*b.module), symbol_(symbol) {}

  // The error that `what` depends on the extent.
  Status depends(const std::string& what) const;
  // Compares every computation, instruction by instruction. All elements of a constant of the entry
  // may be larger in a by the same number, if `growth` allows it for the instruction's number
  // (dimension -1); likewise the start of a slice in a dimension.
  using Growth = std::function<bool(size_t instr, int64_t dimension, int64_t more)>;
  Status same_structure(const Growth& growth) const;
  // Checks that dimensions follow the classes of the table's symbols, which are at their bounds in
  // a; in b the independent ones are at `others`.
  Status same_classes(hlo::SymbolTable table, const hlo::SliceExtents& slices,
                      const Sizes& others) const;
  // Does same_structure(), and finds how the graph depends on symbol s, whose extent is `base` in a
  // and `apart` less in b. For slices already in `numbered` its extent was `later_base`.
  Status find_numbered(size_t s, int64_t apart, int64_t base, int64_t later_base,
                       Numbered* numbered) const;

 private:
  std::vector<std::pair<size_t, int64_t>> slices() const;  // along dimensions that differ
  std::map<int, std::pair<int64_t, int64_t>> counts(const hlo::DimClasses& classes) const;
  const hlo::Module &a_, &b_;
  const std::string& symbol_;
};

// The growth that `numbered` implies if the extents (of independent symbols) differ by
// `differences`.
ExtentComparison::Growth growth_of(const Numbered& numbered, const Sizes& differences);

}  // namespace heddle::api
