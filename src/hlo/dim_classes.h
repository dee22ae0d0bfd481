// Which dimensions of a module's arrays are one and the same, as far as the operators say, and what
// a bounded symbol makes of them. Of a symbol with bound B and actual extent n, a dimension of its
// class with extent E has n * E / B valid elements, the first ones; what lies behind is padding.
// A class goes through a reshape where its dimension is the outermost of what is merged or split.
//
// Where arrays are joined, padded or cut along a dimension, or windows move over it in steps, its
// extent is another one, which follows from those of the parts (derive). Behind the pass
// mask_padding, which makes such operators right for any extent, the dimension that goes in and the
// one that comes out have nothing to do with each other, but for windows, whose results have the
// symbol that follows (Symbol::of); what is put into an array at a place that runs know leaves the
// array's extents as they are.
//
// Looked at: the entry, and what its fusions call. Dimensions that meet other operators, or that
// are cut in steps or turned round, are fixed: a symbol may not reach them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "hlo/index_map.h"
#include "hlo/symbol.h"
#include "tensor/extent.h"

namespace heddle::hlo {

// Bounded symbols, some of which follow from others.
struct SymbolTable {
  std::vector<Symbol> symbols;
  // By symbol: what its extent is of those that have one of their own (these are themselves).
  std::vector<tensor::Extent> of;

  SymbolTable() = default;
  explicit SymbolTable(std::vector<Symbol> own);
  // The number of the symbol of this extent, which is added where there is none.
  size_t add(const tensor::Extent& extent);
  std::vector<std::string> names() const;
};

// What slices of a run-time extent have of it, by slice and dimension; symbol kOperandExtent is the
// operand's extent.
inline constexpr int64_t kOperandExtent = -1;
using SliceExtents = std::map<std::pair<const Instr*, int64_t>, tensor::Extent>;

// Operand dimensions that an operator does not hand on as they are: parts that are joined, padded,
// put into a larger array, or of which a piece is taken that loops run over.
std::vector<std::pair<const Instr*, int64_t>> cut_dimensions(const Instr* instr);

// Whether a window is over all that stands up to an element, and it: what a running sum is. The
// first results do not depend on the extent then.
bool runs_up(const WindowDim& window, int64_t extent);
// Whether windows give one element for each `window.stride` that there are, however many: padding
// and size take nothing away at the ends. So n elements, a multiple of the stride, are n / stride.
bool keeps_share(const WindowDim& window);
// How many windows there are over so many elements; nothing: it has no such form.
std::optional<tensor::Extent> windows_over(const tensor::Extent& extent, const WindowDim& window);
// How many elements behind the last one windows may see, over a multiple of so many; 0: none.
int64_t seen_behind(const WindowDim& window, int64_t multiple);

class DimClasses {
 public:
  // Whether a value that is made from nothing along a dimension (iota, a constant, what a broadcast
  // repeats) belongs to the class of what it is computed with. Once equal operators are one, such a
  // value may stand for several classes: then it has to be free, and is in none.
  enum class Made { follows, free };
  explicit DimClasses(const Module& module, Made made = Made::follows);  // the entry, its fusions
  explicit DimClasses(const Computation& computation, Made made = Made::follows);  // likewise
  // Of what a fusion calls, Made::free; what its operands are is known of the computation around
  // it.
  DimClasses(const Instr* fusion, const DimClasses& around);
  // Of a module before mask_padding, as if nothing were known of these operators.
  DimClasses(const Module& module, const std::set<const Instr*>& unknown);

  // Errors: a symbol reaches a fixed dimension, one of another symbol, or one that is no multiple
  // of the bound.
  Status assign(const std::vector<Symbol>& symbols);

  // Of a module before mask_padding: the same, with symbols for the extents of what is joined,
  // padded, cut and seen through windows, which are added to the table. A slice that `slices` does
  // not have takes all from its start on, if it does at the bound, else a fixed number of elements.
  Status derive(SymbolTable* table, const SliceExtents& slices = {});
  // What derive() found: operators that join, pad, cut or see through windows along a dimension of
  // a symbol, with a result of a run-time extent. Before it: all of them.
  struct Cut {
    const Instr* instr = nullptr;
    int64_t dimension = 0;
    int64_t from = 0;                        // of the operands
    std::optional<WindowDim> window = {};    // of a convolution or reduce-window
    std::vector<tensor::Extent> parts = {};  // of each operand; else of what goes in
    size_t symbol = 0;                       // of the result
  };
  const std::vector<Cut>& cuts() const { return cuts_; }

  // These, and what windows give for each of them, of windows of windows, too.
  std::vector<std::pair<const Instr*, int64_t>> and_windows_over(
      std::vector<std::pair<const Instr*, int64_t>> dimensions) const;

  // Class of a dimension of leaf `leaf` of the value (0 where it is an array); -1: no such array.
  int of(const Instr* instr, int64_t dimension, size_t leaf = 0) const;
  // Number of the symbol of a class; -1: none. Valid after assign().
  int symbol(int class_number) const;
  int symbol_of(const Instr* instr, int64_t dimension, size_t leaf = 0) const {
    return symbol(of(instr, dimension, leaf));
  }
  // Made::free: whether it is made from nothing along a dimension.
  bool is_made(const Instr* instr, int64_t d, size_t leaf = 0) const {
    return !made_.empty() && made_[static_cast<size_t>(at(instr, d, leaf))];
  }
  // Symbols of the arrays that it makes, and of those that it reads.
  std::set<int> symbols_around(const Instr* instr) const;

 private:
  struct Leaf {
    int first = -1;  // number of its first dimension; -1: it is no array
    int rank = 0;
  };
  struct Arrays {  // of a value, among leaves_
    size_t begin = 0, count = 0;
  };
  const Leaf& leaf_of(const Instr* instr, size_t leaf) const {
    return leaves_.at(arrays_.at(instr).begin + leaf);
  }
  size_t leaf_count_of(const Instr* instr) const { return arrays_.at(instr).count; }
  int at(const Instr* instr, int64_t d, size_t leaf = 0) const;
  int root(int i) const;
  int find(int i);  // the root; the way to it gets shorter, so that a long chain is no long walk
  void join(int a, int b);
  void join_all(const Instr* a, size_t a_leaf, const Instr* b, size_t b_leaf);
  void fix(const Instr* instr, int64_t d, size_t leaf = 0);
  void fix_all(const Instr* instr);
  void look_at(const Computation& first, Made made);
  void add_leaves(const Instr* instr, const Shape& shape);
  void find_made(const Computation& computation);
  void find_made(const Instr* instr);
  void set_made(const Instr* instr, size_t leaf, const Instr* from, size_t from_leaf);
  void relate(const Instr* instr);
  void relate_link(const Instr* instr, size_t k, const DimLink& link);
  void relate_called(const Instr* instr);
  void relate_scatter(const Instr* scatter);
  void relate_sort(const Instr* sort);
  void relate_top_k(const Instr* top);
  void relate_boxes(const Instr* call);
  std::vector<tensor::Extent> parts_of(const Cut& cut, const SymbolTable& table) const;
  Result<tensor::Extent> result_of(const Cut& cut, const SymbolTable& table,
                                   const SliceExtents& slices) const;
  bool relate_cut(const Instr* instr, size_t k, const DimLink& link);
  bool relate_window(const Instr* instr, const DimLink& link);
  bool is_same_along(const Instr* instr, const DimLink& link) const;
  Status follow_windows(const std::vector<Symbol>& symbols);
  Status check_extents(const std::vector<Symbol>& symbols) const;
  Status assign_places(const std::vector<Symbol>& symbols);

  std::unordered_map<const Instr*, Arrays> arrays_;
  std::vector<Leaf> leaves_;
  std::vector<int> parent_;
  std::vector<int64_t> extents_;
  std::vector<const Instr*> fixed_by_;  // of a dimension; null: free
  std::vector<const Instr*> owner_;
  std::vector<bool> made_;  // from nothing, along the dimension; empty: none are free
  const Instr* relating_ = nullptr;
  // While operators are looked at.
  const std::set<const Instr*>* unknown_ = nullptr;
  const Instr* fusion_ = nullptr;
  const DimClasses* around_ = nullptr;
  bool masked_ = false;    // the module went through mask_padding
  std::vector<Cut> cuts_;  // behind mask_padding those of windows only
  std::unordered_map<int, int> symbol_of_root_;
};

}  // namespace heddle::hlo
