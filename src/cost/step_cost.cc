#include "cost/step_cost.h"

#include <algorithm>

#include "hlo/join.h"

namespace heddle::cost {

namespace {

using hlo::Instr;
using hlo::Opcode;

struct Work {
  double flops = 0, bytes = 0;
};

int64_t largest_result(const Instr& fusion) {
  int64_t bytes = 64;
  for (const Instr* instr : fusion.called()[0]->instrs())
    if (instr->shape().is_array() && !instr->is(Opcode::parameter))
      bytes = std::max(bytes, instr->shape().bytes());
  return bytes;
}

Work work_of(const Instr& fusion) {
  Work work;
  for (const Instr* operand : fusion.operands())
    work.bytes +=
        static_cast<double>(std::min(operand->shape().bytes(), 4 * largest_result(fusion)));
  for (const Instr* instr : fusion.called()[0]->instrs()) {
    if (instr->is(Opcode::dot)) {
      int64_t k = 1;
      for (int64_t d : instr->attrs_as<hlo::DotAttrs>().lhs_contracting_dims)
        k *= instr->operand(0)->shape().dim(d);
      work.flops += 2.0 * static_cast<double>(k * instr->shape().elems());
      work.bytes += static_cast<double>(instr->operand(1)->shape().bytes());
    } else if (instr->is(Opcode::convolution)) {
      const auto& dims = instr->attrs_as<hlo::ConvolutionAttrs>().dims;
      const tensor::Shape& filter = instr->operand(1)->shape();
      const int64_t features = std::max<int64_t>(1, filter.dim(dims.kernel_output_feature));
      work.flops += 2.0 * static_cast<double>(instr->shape().elems()) *
                    static_cast<double>(filter.elems() / features);
    } else if (has_trait(instr->opcode(), hlo::elementwise)) {
      work.flops +=
          static_cast<double>(instr->shape().elems()) * (is_costly(instr->opcode()) ? 20 : 1);
    } else if (instr->is(Opcode::reduce)) {
      work.flops += static_cast<double>(instr->operand(0)->shape().elems());
    }
  }
  return work;
}

}  // namespace

// Commands cost a little each, and can be spread over the cores; in one kernel a step is one task.
StepCost cost_of_step(const std::vector<const Instr*>& kernels, const target::Target& target) {
  constexpr double kPartOfPeak = 0.35, kPartOfRead = 2.5, kSpread = 1.6;
  const double flops_per_ns =
      kPartOfPeak * target.peak_flops_per_ns(tensor::Type::f32) / std::max(1, target.cores);
  // The rate of a target's second cache does not include prefetching.
  double bytes_per_ns = target.caches.size() > 1 ? target.caches[1].bandwidth_bytes_per_ns : 0;
  bytes_per_ns = kPartOfRead * (bytes_per_ns > 0 ? bytes_per_ns : 16);
  StepCost cost;
  for (const Instr* kernel : kernels) {
    cost.spread_ns += target.serial_command_ns;
    // A loop inside is one task either way.
    if (!kernel->is(Opcode::fusion) || hlo::join_of(*kernel) == hlo::Join::loop) continue;
    const Work work = work_of(*kernel);
    const double time = std::max(work.flops / flops_per_ns, work.bytes / bytes_per_ns);
    cost.alone_ns += time;
    cost.spread_ns += target.cores > 1 ? std::min(time, time / kSpread + target.launch_ns) : time;
  }
  return cost;
}

}  // namespace heddle::cost
