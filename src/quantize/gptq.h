// GPTQ (Frantar et al., 2022): weights of 4 bits whose errors cancel in the results, for the inputs
// that a layer has. Numbers are rounded one after another; what each one loses is taken over by
// those that follow, as the inputs' correlation says.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quantize/layers.h"
#include "quantize/numbers.h"

namespace heddle::quantize {

// Sums of k² numbers each: at most so many numbers of one, and of all.
constexpr int64_t kMostGramWidth = 4096;
constexpr int64_t kMostGramElems = int64_t{1} << 29;

// Outputs that are added to a model, for the rows x of a layer's input.
struct GramOutputs {
  std::string sum;   // of x·xᵀ: f32 [k,k]
  std::string rows;  // f32 [2]: how many rows, and k
};
GramOutputs add_gram(import::OnnxEdit* model, const Layer& layer);

// What rounding asks of a layer's inputs: the upper U with (G + d·I)⁻¹ = Uᵀ U. d is 1 % of the
// mean of the diagonal; more where few rows were seen, whose correlations are chance.
class GramFactor {
 public:
  // `gram`: [k,k], over so many rows. Nothing: it is not finite, or of no inputs at all.
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
  double error = 0, plain_error = 0;  // tr(D G Dᵀ), D what rounding changes; plain: to the nearest
};

// As quantize_blocks has them (weights [k,n] with `axis` 1, or [n,k] with 0; `size` weights share a
// scale). A row of the n whose error would be larger than with plain rounding has that.
Gptq gptq_blocks(const tensor::Literal& weights, int64_t axis, int64_t size,
                 const GramFactor& factor);

}  // namespace heddle::quantize
