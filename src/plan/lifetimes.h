// Lifetimes of storages under an order, and which of them share memory in place.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/flow.h"
#include "plan/ordering.h"
#include "program/program.h"

namespace heddle::plan {

// The nodes of one section in the order of their commands' numbers: a node, then those of its
// regions. Everything by step, that is by place in `nodes`.
struct Sequence {
  std::vector<NodeId> nodes;
  std::vector<int64_t> step;        // by node; -1: not here
  std::vector<int64_t> end;         // by node: the last step of its regions, or its own
  std::vector<int64_t> region_end;  // by region: its last step, or the step before it
  std::vector<int64_t> command;     // by step: which of the section's commands does it
};

struct Lifetimes {
  // By storage: whose memory it is. A result made in place is at home in its operand's storage; an
  // operand that an output overwrites in place is at home in the output's.
  std::vector<StorageId> home;
  // By storage, for homes that a node of the section touches; steps, inclusive. -1: not touched, or
  // at home elsewhere. What a loop reads or keeps from outside lives until its end.
  std::vector<int64_t> first, last;
  // The same of every storage on its own.
  std::vector<int64_t> own_first, own_last;
  // By storage, for homes: the commands that touch it; each at least once.
  std::vector<std::vector<int64_t>> commands;
};

// `kinds` by storage; `ordering` of the section's commands: nothing is made in place of what may be
// read later. Without `in_place` every storage is its own home, but for what must share.
Lifetimes find_lifetimes(const Flow& flow, const std::vector<program::BufferKind>& kinds,
                         const Sequence& sequence, const Ordering& ordering, bool in_place);

}  // namespace heddle::plan
