#include "precision/pipeline.h"

namespace heddle::precision {

// Before anything is folded: weights are known by their bytes, and scales by standing behind them.
// unsigned_activations first: zero points that it moves are then part of the products' own.
// requantize behind them: it follows the scales from behind the sums to the next rounding.
std::string integer_pipeline(const target::Target& target) {
  if (target.kind != target::DeviceKind::cpu) return "";
  const bool fast =
      target.peak_flops_per_ns(tensor::Type::s8) > target.peak_flops_per_ns(tensor::Type::f32);
  const bool words = fast || target.peak_flops_per_ns(tensor::Type::bf16) >
                                 target.peak_flops_per_ns(tensor::Type::f32);
  return std::string("stream_weights,") +
         (fast ? "unsigned_activations,integer_products,fold_constants,requantize," : "") +
         (words ? "whole_words," : "");
}

}  // namespace heddle::precision
