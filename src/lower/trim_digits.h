// Private to trim: how the indices of a kernel move in the dynamic digits of its buffers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lower/trim_access.h"

namespace heddle::lower::trimming {

// A digit of a buffer, in elements: `base` and `first` are what has to be added to it for the
// number in the group. It counts to `round`; numbers of the group are below `extent`, in scratch as
// far as known variables reach: what moves further is another dimension outside of it.
struct Digit {
  int64_t stride = 1, extent = 0, round = INT64_MAX;
  int group = 0;
  Terms base;  // of variables around it
  int64_t first = 0;
  bool scratch = false;
};

class Digits {
 public:
  // Both must stay; what is known of the variables may grow.
  Digits(const Kernel& kernel, const std::vector<Variable>& variables)
      : k_(kernel), variables_(variables) {}

  // The parts of an index in each digit (in numbers, not in elements); `rest`: the variables that
  // move elsewhere; `through`: those that run through a digit and on inside of it, as over rows of
  // all of a batch. None: they do not line up.
  std::optional<std::vector<Linear>> split(const Touch& access, const std::vector<Digit>& digits,
                                           std::vector<uint32_t>* rest,
                                           std::vector<Linear::Term>* through) const;
  bool runs_through(const Linear::Term& term, const Digit& digit) const;
  bool moves_in(const Linear::Term& term, const Digit& digit) const;
  // All smaller terms together, those that run through a digit, too, stay inside of what one value
  // of this one takes of the digit, as the elements of several rows in one loop do.
  bool takes_in(const Linear::Term& term, const Touch& access, const Digit& digit) const;
  // Whether a part of an index runs from one round of its digit into the next: then its variables
  // say nothing of what is in the padding.
  bool crosses(const Linear& part, const Digit& digit, BufferId buffer) const;
  bool is_around(uint32_t outer, uint32_t var) const;
  int64_t elements_of(BufferId buffer) const;

 private:
  bool is_only_tile(const Linear::Term& term, const Linear& index, const Digit& digit) const;
  bool is_full(const Digit& digit, BufferId buffer) const;

  const Kernel& k_;
  const std::vector<Variable>& variables_;
};

}  // namespace heddle::lower::trimming
