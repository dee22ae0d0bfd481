// Quantisation of tensors to 8 and 4 bits: real = scale · (q - zero), q = round(real / scale) +
// zero with ties to even, as in ONNX's QuantizeLinear.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quantize/histogram.h"
#include "tensor/literal.h"

namespace heddle::quantize {

struct Params {
  float scale = 1;
  int zero = 0;
  bool is_signed = true;
};

// Parameters of an activation; symmetric: s8 in [-127, 127], or u8 if no value is negative, with
// zero point 0; otherwise u8 with any zero point. 0 is exact.
Params params_of(const Range& range, bool symmetric);

// s8 in [-127, 127], one scale per index of `axis`. A channel of zeros has scale 1.
struct Weights {
  tensor::Literal numbers, scales;  // s8 as the weights; f32 [channels]
  double sqnr = 0;                  // dB; infinite if nothing is lost
};
Weights quantize_weights(const tensor::Literal& weights, int64_t axis);
tensor::Literal dequantized(const Weights& weights, int64_t axis);  // f32

// The scale of a block of 4-bit weights: the candidate with the least squared error. A block of
// zeros has scale 1.
struct BlockScale {
  float scale = 1;
  double lost = 0;
};
BlockScale scale_of_block(std::span<const float> block);
// 0 to 15, as a float; 8 represents 0.
float number_in_block(float value, float scale);

// f32 [k,n] (`axis` 1, that of n) or [n,k] (0) in the format of MatMulNBits: u8 [n, blocks,
// size/2], the lower half first, 8 represents 0; f32 [n · blocks].
struct Blocks {
  tensor::Literal numbers, scales;
  double sqnr = 0;
};
Blocks empty_blocks(int64_t k, int64_t n, int64_t size);
// One of the n rows of the weights, in either order: its k values.
std::vector<float> row_of(const tensor::Literal& weights, int64_t axis, int64_t row);
// Sets a row: k numbers, and one scale per block.
void set_row(Blocks* blocks, int64_t row, std::span<const float> numbers,
             std::span<const float> scales);
Blocks quantize_blocks(const tensor::Literal& weights, int64_t axis, int64_t size);

double decibels(double signal, double noise);  // 10 log10; noise 0: infinite

}  // namespace heddle::quantize
