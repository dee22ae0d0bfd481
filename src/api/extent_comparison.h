// Private to bounded: a model at two extents of a symbol. Its graphs have to be the same but for
// dimensions, and these must be what the operators say.
#pragma once

#include <functional>
#include <string>

#include "api/bounded.h"

namespace heddle::api {

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
  // Slices of the entry along dimensions that differ.
  std::vector<std::pair<size_t, int64_t>> slices() const;  // instruction, dimension

 private:
  const hlo::Module &a_, &b_;
  const std::string& symbol_;
};

// What is more in the entry where the extents (of symbols' own) are so much more.
ExtentComparison::Growth growth_of(const Bounded& bounded, const Sizes& differences);

}  // namespace heddle::api
