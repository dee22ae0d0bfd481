// Lifetimes of storages under an order, and which of them share memory in place.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/flow.h"
#include "program/program.h"

namespace heddle::plan {

struct Lifetimes {
  // By storage: whose memory it is. A result made in place is at home in its operand's storage; an
  // operand that an output overwrites in place is at home in the output's.
  std::vector<StorageId> home;
  // By storage, for homes that a node of the section touches; steps of the order, inclusive. -1:
  // not touched, or at home elsewhere.
  std::vector<int64_t> first, last;
  // The same of every storage on its own.
  std::vector<int64_t> own_first, own_last;
};

// `kinds` by storage; `order`: the nodes of one section. Without `in_place` every storage is its
// own home.
Lifetimes find_lifetimes(const Flow& flow, const std::vector<program::BufferKind>& kinds,
                         const std::vector<NodeId>& order, bool in_place);

}  // namespace heddle::plan
