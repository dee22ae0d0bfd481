// Assigns units to device or host with the least cost of values that cross: a minimum cut.
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.h"

namespace heddle::plan {

// Compared by price (a copy's time, or 1 where times are not known), then by bytes.
struct CutCost {
  int64_t price = 0, bytes = 0;
  auto operator<=>(const CutCost&) const = default;
  CutCost& operator+=(const CutCost& other) {
    price += other.price;
    bytes += other.bytes;
    return *this;
  }
};

struct CutProblem {
  enum class Unit : uint8_t { free, device, host };
  // If any reader is on the other side than the producer, the value crosses, and its cost counts
  // once.
  struct Value {
    int producer = 0;
    std::vector<int> readers;
    CutCost cost;
  };
  std::vector<Unit> units;
  std::vector<Value> values;
};

CutCost cost_of(const CutProblem& problem, const std::vector<program::Space>& sides);

// The cheapest assignment; of several, the one with the most units on the device.
std::vector<program::Space> best_sides(const CutProblem& problem);

}  // namespace heddle::plan
