// Lifetimes of storages in a given order, and which storages share memory in place.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/flow.h"
#include "plan/ordering.h"
#include "program/program.h"

namespace heddle::plan {

// The nodes of one section in the order of their command numbers: a node, then the nodes of its
// regions. Everything is indexed by step, the position in `nodes`.
struct Sequence {
  std::vector<NodeId> nodes;
  std::vector<int64_t> step;        // by node; -1: not in this section
  std::vector<int64_t> end;         // by node: the last step of its regions, or its own
  std::vector<int64_t> region_end;  // by region: its last step, or the step before it
  std::vector<int64_t> command;     // by step: the section's command that contains it
};

struct Lifetimes {
  // By storage: the storage whose memory it uses. A result made in place has its operand's storage
  // as home; an operand that an output overwrites in place has the output's.
  std::vector<StorageId> home;
  // By storage, for homes that a node of the section touches; steps, inclusive. -1: not touched, or
  // its home is another storage. A value that a loop reads or keeps from outside lives until the
  // loop's end.
  std::vector<int64_t> first, last;
  // The same of every storage, without storages that share its memory.
  std::vector<int64_t> own_first, own_last;
  // By storage, for homes: the commands that touch it, possibly repeated.
  std::vector<std::vector<int64_t>> commands;
};

// `kinds` by storage; `ordering` of the section's commands: no result overwrites in place a value
// that may be read later. Without `in_place` every storage is its own home, unless it must share.
Lifetimes find_lifetimes(const Flow& flow, const std::vector<program::BufferKind>& kinds,
                         const Sequence& sequence, const Ordering& ordering, bool in_place);

}  // namespace heddle::plan
