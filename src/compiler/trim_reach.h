// Private to compiler: how far behind the extents values are counted on, and what windows see
// there.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hlo/dim_classes.h"

namespace heddle::compiler {

// Of what a fusion computes (`all`); classes of `local` are those inside of it.

// Classes whose loops may be those of a longer array that they are part of.
std::set<int> cut_in(const std::vector<const hlo::Instr*>& all, const hlo::DimClasses& local);
// Whether one of these reduces a dimension of the class.
bool reduces(const std::vector<const hlo::Instr*>& all, const hlo::DimClasses& local, int of_class);
// By class: how many numbers there are to one of the extent, where it is merged with what is inside
// of it and something is computed, as rows with a batch.
std::unordered_map<int, int64_t> numbers_of(const std::vector<const hlo::Instr*>& all,
                                            const hlo::DimClasses& classes,
                                            const std::vector<hlo::Symbol>& symbols,
                                            const hlo::DimClasses& local);

// Classes of bounded dimensions whose loops may be those that reduce another array of equal extent,
// which is all there: kernels that have nothing to do with each other are joined.
std::set<int> shared_with_fixed(const std::vector<const hlo::Instr*>& all,
                                const hlo::DimClasses& classes, const hlo::DimClasses& local);

// All of a dimension is counted on up to its extent and `beyond` more, rounded up to `granule`, in
// numbers of the symbol; `beyond` in parts of one, as a dimension may have several elements to
// each.
constexpr int64_t kPartsBeyond = 64;
struct Reach {
  int64_t granule = 1, beyond = 0;
  bool is_extent() const { return granule == 1 && beyond == 0; }
  void join(const Reach& other);  // what both count on
};
// Elements of a dimension that has so many to one of the symbol's.
int64_t numbers_beyond(int64_t beyond, int64_t numbers);

// The dimensions of operand 0 (and 1 of a dot) that an instruction reduces. A scatter goes through
// all of its positions.
std::vector<std::pair<const hlo::Instr*, int64_t>> reduced_by(const hlo::Instr* instr);

// By value, leaf and dimension, as far as is known. `classes` are those of the entry, with symbols.
class Reaches {
 public:
  explicit Reaches(const hlo::DimClasses& classes) : classes_(classes) {}
  void count_on(const hlo::Instr* instr, size_t leaf, int64_t d, Reach reach);
  void forget(const hlo::Instr* instr, size_t leaf);
  Reach of(const hlo::Instr* instr, size_t leaf, int64_t d) const;
  bool is_counted_on(const hlo::Instr* instr) const { return found_.count(instr) > 0; }
  bool is_counted_on(const hlo::Instr* instr, size_t leaf) const;
  // Of the results along a symbol; of all, where none has it.
  Reach of_results(const hlo::Instr* instr, int symbol) const;

 private:
  const hlo::DimClasses& classes_;
  std::unordered_map<const hlo::Instr*, std::map<std::pair<size_t, int64_t>, Reach>> found_;
};

// What a fusion's windows over dynamic dimensions see behind the last element.
struct WindowReads {
  // Of what the fusion computes itself: by symbol, numbers behind the extent that all of it is to
  // have.
  std::map<int, int64_t> own;
  struct Input {
    size_t number;  // of the operand, which windows read as it is
    int symbol;
    int64_t beyond;
  };
  std::vector<Input> inputs;
  std::vector<const hlo::Instr*> read;  // what the windows are of, inside of the fusion

  bool of_input(size_t number, int symbol) const;
};
// Classes (of `local`, inside a fusion) of which an operator's results have windows over a
// dimension of another symbol.
std::vector<int> window_classes(const hlo::Instr* instr, const hlo::DimClasses& classes,
                                const hlo::DimClasses& local);
WindowReads window_reads(const hlo::Instr* fusion, const hlo::DimClasses& classes,
                         const std::vector<hlo::Symbol>& symbols);

}  // namespace heddle::compiler
