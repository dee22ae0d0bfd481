// Private to trim: which loops over numbers of a group stop, and where.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "lower/trim_facts.h"

namespace heddle::lower::trimming {

class Stops {
 public:
  // `counted`: how far results are counted on, by group. `reduces_all`: the kernel reduces over a
  // group that it is not trimmed for. The kernel and the request must stay.
  Stops(const Kernel& kernel, const TrimRequest& request, Facts facts, std::vector<int64_t> counted,
        bool reduces_all);

  // Refused: what moves over a reduced group neither stops where steps end nor stays inside of one.
  Refusal find();

  const TrimGroup& group_of(const Fact& fact) const;
  const Variable& variable(uint32_t var) const { return variables_[var]; }
  const std::vector<Variable>& variables() const { return variables_; }
  bool stops(uint32_t var) const { return stops(variables_[var]); }
  // Its loop stops at the extent rounded up to it.
  int64_t reach(uint32_t var) const { return reach_[var]; }
  // The loop that writes the parts of a step out, where the last step may be fewer; null: none.
  const uint32_t* parts_of(uint32_t var) const;
  // How far the kernel counts on a global buffer along a group.
  int64_t reads(size_t buffer, int group) const;

 private:
  bool can_stop(const Variable& variable) const;
  int64_t share(const Variable& variable) const;
  bool stops(const Variable& variable) const;
  void find_parts(const std::vector<kernel::Stmt>& body);
  bool may_be_cut(const kernel::Stmt& parts, int64_t each) const;
  bool is_part(uint32_t var) const;
  int64_t step(uint32_t var) const;
  void find_reach();
  bool is_bounded_inside(const Touch& access, uint32_t var) const;
  size_t place(size_t buffer, int group) const;
  bool check_reduced();

  const Kernel& k_;
  const TrimRequest& request_;
  std::vector<Variable> variables_;
  std::vector<Touch> accesses_;
  std::vector<int64_t> counted_;
  bool reduces_all_;
  int64_t lanes_;                       // of a vector loop, at most; all narrower ones divide it
  std::map<uint32_t, uint32_t> parts_;  // a loop and the one inside, which writes its parts out
  std::vector<int64_t> reach_;          // by variable
  std::vector<int64_t> read_;           // by buffer and group: how far what is read is counted on
  Refusal refused_;
};

}  // namespace heddle::lower::trimming
