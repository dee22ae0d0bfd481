#include "cost/delta.h"

#include <algorithm>
#include <cmath>

#include "cost/operator_cycles.h"

namespace heddle::cost {

namespace {

using target::DeviceKind;

// Registers of a thread that the penalty assumes: it knows no schedule.
constexpr double kRegisters = 16;

int lanes_of(const target::Target& target) {
  return target.kind == DeviceKind::gpu ? target.warp_size : target.lanes(tensor::Type::f32);
}

}  // namespace

double bytes_of(const tensor::Shape& shape) {
  if (shape.is_array()) return static_cast<double>(shape.bytes());
  if (!shape.is_tuple()) return 0;
  double total = 0;
  for (const tensor::Shape& element : shape.elements()) total += bytes_of(element);
  return total;
}

void DeltaEvaluator::add_operator(const hlo::Instr& instr, Work* work) const {
  double elems = instr.shape().is_array() ? static_cast<double>(instr.shape().elems()) : 0;
  const bool reduces = instr.is(hlo::Opcode::reduce) || instr.is(hlo::Opcode::reduce_window);
  if (instr.is(hlo::Opcode::reduce) && instr.operand(0)->shape().is_array()) {
    const double rows = std::max(1.0, elems);
    elems = static_cast<double>(instr.operand(0)->shape().elems());
    const double row_bytes = bytes_of(instr.operand(0)->shape()) / rows;
    work->scratch_bytes = std::max(work->scratch_bytes, row_bytes);
  }
  if (instr.is(hlo::Opcode::reduce_window)) {
    double window = 1;
    for (const hlo::WindowDim& dim : instr.attrs_as<hlo::WindowAttrs>().window.dims)
      window *= static_cast<double>(dim.size);
    elems *= window;
  }
  const double cycles = cost::operator_cycles(instr.opcode(), /*fast=*/false, target_);
  work->cycles += elems * cycles / lanes_of(target_);
  if (reduces || has_trait(instr.opcode(), hlo::elementwise)) work->flops += elems;
  work->elems = std::max(work->elems, elems);
}

void DeltaEvaluator::add_array(double bytes, Work* work) const {
  work->bytes += bytes;
  work->moved_one_ns += transfer_ns(Transition::memory_reg, bytes, 1, target_);
  work->moved_all_ns += array_ns(bytes);
}

double DeltaEvaluator::array_ns(double bytes) const {
  return transfer_ns(Transition::memory_reg, bytes, core_count(target_), target_);
}

// The part of a multiprocessor's threads that can be resident; 1 on a CPU.
double DeltaEvaluator::occupancy(const Work& work) const {
  if (target_.kind == DeviceKind::cpu || target_.threads_per_multiprocessor < 1) return 1;
  constexpr double kBlock = 256;
  double blocks = target_.threads_per_multiprocessor / kBlock;
  blocks = std::min(blocks, target_.registers_per_multiprocessor / (kRegisters * kBlock));
  if (work.scratch_bytes > 0)
    blocks = std::min(
        blocks, static_cast<double>(target_.shared_bytes_per_multiprocessor) / work.scratch_bytes);
  return std::min(1.0, std::max(blocks, 0.125) * kBlock / target_.threads_per_multiprocessor);
}

double DeltaEvaluator::kernel_ns(const Work& work) const {
  const bool gpu = target_.kind == DeviceKind::gpu;
  const bool serial = !gpu && runs_serially(work.flops, work.bytes, work.elems / 64);
  const int cores = serial ? 1 : core_count(target_);
  const double busy =
      gpu ? std::clamp(work.elems / (64.0 * target_.warp_size), 1.0, 1.0 * cores) : cores;
  double compute = work.cycles / target_.clock_ghz / busy / occupancy(work);
  // A row that does not fit the second cache goes through the next one.
  if (!gpu && target_.caches.size() > 1 &&
      work.scratch_bytes > static_cast<double>(target_.caches[1].bytes) / 2)
    compute += transfer_ns(Transition::memory_reg, work.elems * 4, cores, target_);
  const double moved = serial ? work.moved_one_ns : work.moved_all_ns;
  return call_ns(serial, 1, target_) + overlapped_ns(compute, moved);
}

}  // namespace heddle::cost
