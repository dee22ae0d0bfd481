// Networks of given sizes as modules with one f32 (or s32, where noted) parameter per input.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hlo/module.h"

namespace heddle::models {

using ModulePtr = std::unique_ptr<hlo::Module>;

// Picture [batch, 3, side, side] to logits [batch, classes].
struct ResNetSize {
  std::vector<int64_t> blocks;
  std::vector<int64_t> widths = {64, 128, 256, 512};  // of the blocks' 3x3 convolutions
  bool bottleneck = false;                            // 1x1, 3x3, 1x1 to four times the width
  int64_t batch = 1, side = 224, classes = 1000;
};
ResNetSize resnet18_size();
ResNetSize resnet50_size();
ModulePtr resnet(const ResNetSize& size);

struct VggSize {
  std::vector<int64_t> blocks = {2, 2, 3, 3, 3};  // convolutions before each halving
  std::vector<int64_t> widths = {64, 128, 256, 512, 512};
  std::vector<int64_t> hidden = {4096, 4096};
  int64_t batch = 1, side = 224, classes = 1000;
};
ModulePtr vgg(const VggSize& size = {});

struct RepVggSize {
  std::vector<int64_t> blocks, widths;  // of the stages behind the first layer
  int64_t first_width = 64;
  bool deploy = true;  // one 3x3 convolution a block; else 3x3, 1x1 and identity, each with a norm
  int64_t batch = 1, side = 224, classes = 1000;
};
RepVggSize repvgg_a0_size(bool deploy);
RepVggSize repvgg_b0_size(bool deploy);
ModulePtr repvgg(const RepVggSize& size);

struct TextSize {
  int64_t batch = 1, length = 128, width = 768, heads = 12, layers = 12, feed_forward = 3072,
          vocabulary = 30522;
};
// Ids s32[batch, length] and a mask f32[batch, length] of ones and zeros to hidden states.
ModulePtr bert(const TextSize& size = {});
// Ids of source and target, s32[batch, length] each, to log probabilities of the target's words.
ModulePtr transformer(const TextSize& size = {1, 64, 512, 8, 6, 2048, 8000});
// Ids s32[batch, length] and, where past > 0, keys and values [batch, heads, past, head width] of
// every layer; logits, then the grown keys and values.
ModulePtr gpt2(const TextSize& size = {1, 128, 768, 12, 12, 3072, 50257}, int64_t past = 0);

struct LlamaSize {
  int64_t batch = 1, length = 128, past = 0, width = 2048, heads = 32, key_heads = 4, layers = 1,
          feed_forward = 5632;
};
// Hidden states [batch, length, width] and, where past > 0, keys and values of every layer; hidden
// states, then the grown keys and values.
ModulePtr llama(const LlamaSize& size = {});

struct ConformerSize {
  int64_t batch = 1, steps = 100, width = 256, heads = 4, layers = 16, kernel = 31, classes = 1000;
};
// Frames [batch, steps, width] (behind the reduction in time) to log probabilities.
ModulePtr conformer(const ConformerSize& size = {});

struct CrnnSize {
  std::vector<int64_t> widths = {64, 128, 256, 256, 512, 512, 512};
  int64_t batch = 1, columns = 100, hidden = 256, classes = 37;
};
// Picture [batch, 1, 32, columns] of a line of text to log probabilities by column.
ModulePtr crnn(const CrnnSize& size = {});

struct DienSize {
  int64_t batch = 128, steps = 100, users = 192403, items = 63001, categories = 801, width = 18;
  std::vector<int64_t> hidden = {200, 80};
};
// Ids s32 of user, item, category [batch], of the history's items and categories [batch, steps],
// and its mask f32[batch, steps]; probabilities [batch, 2]. Both recurrences are written out.
ModulePtr dien(const DienSize& size = {});

struct DlrmSize {
  std::vector<int64_t> tables = std::vector<int64_t>(26, 10000);
  std::vector<int64_t> bottom = {13, 512, 256, 64}, top = {512, 256};
  int64_t batch = 128, width = 16;
};
// Features [batch, bottom[0]] and ids s32[tables, batch]; probability [batch, 1].
ModulePtr dlrm(const DlrmSize& size = {});

}  // namespace heddle::models
