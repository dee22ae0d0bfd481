// Numbers of 8 and 4 bits for tensors: real = scale · (q - zero), q rounded to the nearest, ties to
// even, of real / scale, as ONNX defines QuantizeLinear.
#pragma once

#include <cstdint>
#include <vector>

#include "quantize/histogram.h"
#include "tensor/literal.h"

namespace heddle::quantize {

struct Params {
  float scale = 1;
  int zero = 0;
  bool is_signed = true;
};

// Of an activation, symmetric: s8 in [-127, 127], or u8 where nothing is negative, with zero point
// 0; else u8 with any zero point. 0 is exact.
Params params_of(const Range& range, bool symmetric);

// s8 in [-127, 127], one scale for each place of `axis`. A channel of zeros has scale 1.
struct Weights {
  tensor::Literal numbers, scales;  // s8 as the weights; f32 [channels]
  double sqnr = 0;                  // dB; infinite where nothing is lost
};
Weights quantize_weights(const tensor::Literal& weights, int64_t axis);
tensor::Literal dequantized(const Weights& weights, int64_t axis);  // f32

// f32 [k,n] (`axis` 1, that of n) or [n,k] (0) as MatMulNBits has it: u8 [n, blocks, size/2], the
// lower half first, 8 for 0; f32 [n · blocks]. Each block's scale is the one of some that loses
// least.
struct Blocks {
  tensor::Literal numbers, scales;
  double sqnr = 0;
};
Blocks quantize_blocks(const tensor::Literal& weights, int64_t axis, int64_t size);

double decibels(double signal, double noise);  // 10 log10; noise 0: infinite

}  // namespace heddle::quantize
