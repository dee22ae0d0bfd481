#include "precision/pipeline.h"

#include "schedule/gemm.h"

namespace heddle::precision {

// Before anything is folded: weights are recognised by their bytes, and scales by their position
// after them. unsigned_activations runs first: zero points that it moves then become part of the
// products. requantize runs last: it follows the scales after the sums to the next rounding.
std::string integer_pipeline(const target::Target& target) {
  if (target.kind != target::DeviceKind::cpu) return "";
  const bool fast =
      target.peak_flops_per_ns(tensor::Type::s8) > target.peak_flops_per_ns(tensor::Type::f32);
  using tensor::Type;
  const bool words = fast || schedule::find_product(Type::bf16, Type::bf16, Type::f32, target) !=
                                 kernel::plain_mma();
  return std::string("stream_weights,") +
         (fast ? "unsigned_activations,integer_products,fold_constants,requantize," : "") +
         (words ? "whole_words," : "");
}

}  // namespace heddle::precision
