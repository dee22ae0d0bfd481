// The latency evaluator (FusionStitching, formulas 1 and 2): the time of a placed schedule on a
// target. Slower than delta.h, but more accurate: it knows digits, lanes, recomputation, where
// values are kept and the number of tasks. It decides between covers, and gives `heddle explain`
// the time that a kernel should take.
//
//   ns = call + sum over phases of overlapped(compute, moved), where
//   compute = waves * vector cycles of a task * spills, waves = ceil(tasks / workers)
//
// Products and convolutions of a family use its time model (cost/chain_cost.h).
#pragma once

#include <cstdint>
#include <vector>

#include "cost/rates.h"
#include "stage/placed.h"

namespace heddle::cost {

struct PhaseLatency {
  double tasks = 1, waves = 1;  // on a GPU: waves of warps
  double compute_ns = 0, moved_ns = 0, ns = 0;
  double bytes = 0;  // between the phase and memory
};

struct Latency {
  double ns = 0;  // of one run, with the call
  double call_ns = 0, compute_ns = 0, moved_ns = 0;
  std::vector<PhaseLatency> phases;
  bool serial = true;        // CPU: one core computes it
  bool by_template = false;  // ns is by the family's model; the parts are not known
  int registers = 0;         // most live ones: vectors of a core, or 4-byte ones of a thread
  int spilled = 0;           // live ones beyond the available number
  double occupancy = 1;      // GPU: warps resident, by threads, registers and scratch
  int64_t scratch_bytes = 0;
  double bytes = 0, flops = 0;
};

// `placed.decision` must be yes. Any number of phases and groups.
Latency latency(const stage::PlacedFusion& placed, const target::Target& target);

// The most live registers in the body of a stage, by linear scan over its nodes.
int live_values(const stage::Stage& stage);

}  // namespace heddle::cost
