// GPTQ (Frantar et al., 2022): rounds weights to 4 bits such that their errors cancel in a layer's
// results, given its inputs. Numbers are rounded one after another; the error of each is
// compensated by the following ones, according to the correlation of the inputs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quantize/layers.h"
#include "quantize/numbers.h"

namespace heddle::quantize {

// Gram matrices have k² numbers: limits of the width of one, and of the numbers of all.
constexpr int64_t kMostGramWidth = 4096;
constexpr int64_t kMostGramElems = int64_t{1} << 29;

// Outputs added to a model, for the rows x of a layer's input.
struct GramOutputs {
  std::string sum;   // of x·xᵀ: f32 [k,k]
  std::string rows;  // f32 [2]: number of rows, and k
};
GramOutputs add_gram(import::OnnxEdit* model, const Layer& layer);

// The factor of a layer's inputs that rounding needs: the upper U with (G + d·I)⁻¹ = Uᵀ U. d is 1 %
// of the mean of the diagonal; more if there were few rows, whose correlations are partly chance.
class GramFactor {
 public:
  // `gram`: [k,k], over `rows` rows. No value: it is not finite, or there were no inputs.
  static std::optional<GramFactor> of(std::span<const float> gram, int64_t k, double rows);

  size_t width() const { return width_; }
  double damping() const { return damping_; }
  const float* row(size_t i) const { return upper_.data() + i * width_; }

 private:
  size_t width_ = 0;
  double damping_ = 0;
  std::vector<float> upper_;
};

struct Gptq {
  Blocks blocks;
  double error = 0, plain_error = 0;  // tr(D G Dᵀ), D: change by rounding; plain: to nearest
};

// Blocks as from quantize_blocks (weights [k,n] with `axis` 1, or [n,k] with 0; `size` weights
// share a scale). If GPTQ makes the error of one of the n rows larger, that row is rounded plainly.
Gptq gptq_blocks(const tensor::Literal& weights, int64_t axis, int64_t size,
                 const GramFactor& factor);

}  // namespace heddle::quantize
