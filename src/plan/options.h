// What a caller chooses of a plan.
#pragma once

#include <cstdint>

namespace heddle::plan {

// as_is: the module's own (O0, O1); cheapest: the one of all that needs the least memory.
enum class Order { as_is, bfs, dfs, list, beam, cheapest };

struct Options {
  Order order = Order::cheapest;
  bool keep_order = false;  // even where the limit is met by another one only
  // For how many streams memory is planned: 1: commands run one after another; more: bytes are
  // given again only where the order is sure, on as many of them as pay; 0: on any number (most
  // memory).
  int64_t most_streams = 1;
  bool static_memory = true;        // false: every temporary its own bytes, no sharing
  int64_t memory_limit_bytes = -1;  // an error before the run where the plan is above it
  bool own_memory = false;          // the device has a memory of its own (partition.h)
};

}  // namespace heddle::plan
