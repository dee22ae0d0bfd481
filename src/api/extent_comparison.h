// Private to bounded: a model at two extents of a symbol. Its graphs have to be the same but for
// dimensions, and these must be what the operators say.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "api/bounded.h"

namespace heddle::api {

// What extents have become in an imported entry, but for extents: of its operators by their
// numbers.
struct Numbered {
  // All elements of a constant, or where a slice begins in a dimension, are `factor` times the
  // symbol's extent and something else.
  struct Growing {
    size_t instr = 0;
    int64_t dimension = -1;  // of a slice
    size_t symbol = 0;
    int64_t factor = 0;
  };
  // What a slice has of a dimension that follows a symbol.
  struct Slice {
    size_t instr = 0;
    int64_t dimension = 0;
    tensor::Extent extent;
  };
  std::vector<Growing> growing;
  std::vector<Slice> slices;

  bool empty() const { return growing.empty() && slices.empty(); }
  // Whether a slice begins further on where there is more.
  bool moves(size_t instr, int64_t dimension) const;
  hlo::SliceExtents extents_of(const hlo::Module& module) const;
};

class ExtentComparison {
 public:
  ExtentComparison(const import::Imported& a, const import::Imported& b, const std::string& symbol)
      : a_(*a.module), b_(*b.module), symbol_(symbol) {}

  // The error that it does.
  Status depends(const std::string& what) const;
  // Every computation, instruction by instruction. Elements of constants of the entry may all be
  // the same number more in a, where `growth` says so of the instruction's number (dimension -1);
  // and a slice may begin so much further on in a dimension.
  using Growth = std::function<bool(size_t instr, int64_t dimension, int64_t more)>;
  Status same_structure(const Growth& growth) const;
  // Dimensions are those of classes of the table's symbols, which are at their bounds in a and,
  // those of their own, at `others` in b.
  Status same_classes(hlo::SymbolTable table, const hlo::SliceExtents& slices,
                      const Sizes& others) const;
  // same_structure, and what symbol s is in it: its extent is `base` in a and `apart` less in b. It
  // is `later_base` where what is in `numbered` already was found.
  Status find_numbered(size_t s, int64_t apart, int64_t base, int64_t later_base,
                       Numbered* numbered) const;

 private:
  std::vector<std::pair<size_t, int64_t>> slices() const;  // along dimensions that differ
  std::map<int, std::pair<int64_t, int64_t>> counts(const hlo::DimClasses& classes) const;
  const hlo::Module &a_, &b_;
  const std::string& symbol_;
};

// What is more in the entry where the extents (of symbols' own) are so much more.
ExtentComparison::Growth growth_of(const Numbered& numbered, const Sizes& differences);

}  // namespace heddle::api
