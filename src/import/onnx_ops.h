// The operator table: one row a handler, one function a family (onnx_<family>.cc).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "import/onnx_op.h"

namespace heddle::import {

using Handler = Outputs (*)(Op& op);

// What an operator does with inputs that are strings (their ids, tensor/vocabulary.h).
enum class Text {
  refused,
  passes,  // moves or compares elements: what comes out of the ids' type is strings again
  read,    // the handler asks, and says which outputs are strings (Output::text)
};

struct OpEntry {
  std::string_view name;          // of another domain than ai.onnx: "domain.Name"
  int least_inputs, most_inputs;  // most: -1 is any number
  Handler handler;
  bool folds = true;  // of constants; false: passes know what it is by its operators
  Text text = Text::refused;
};

std::span<const OpEntry> unary_ops();
std::span<const OpEntry> activation_ops();
std::span<const OpEntry> binary_ops();
std::span<const OpEntry> shape_ops();
std::span<const OpEntry> slice_ops();
std::span<const OpEntry> gather_ops();
std::span<const OpEntry> generate_ops();
std::span<const OpEntry> reduce_ops();
std::span<const OpEntry> order_ops();
std::span<const OpEntry> matmul_ops();
std::span<const OpEntry> einsum_ops();
std::span<const OpEntry> conv_ops();
std::span<const OpEntry> pool_ops();
std::span<const OpEntry> norm_ops();
std::span<const OpEntry> resize_ops();
std::span<const OpEntry> attention_ops();
std::span<const OpEntry> sequence_ops();
std::span<const OpEntry> recurrent_ops();
std::span<const OpEntry> quantize_ops();
std::span<const OpEntry> loss_ops();
std::span<const OpEntry> sample_ops();
std::span<const OpEntry> signal_ops();
std::span<const OpEntry> dynamic_ops();
std::span<const OpEntry> linear_algebra_ops();
std::span<const OpEntry> sequence_model_ops();
std::span<const OpEntry> ml_tree_ops();
std::span<const OpEntry> ml_linear_ops();
std::span<const OpEntry> ml_vector_ops();
std::span<const OpEntry> ml_feature_ops();
std::span<const OpEntry> ml_label_ops();
std::span<const OpEntry> random_ops();
std::span<const OpEntry> text_ops();
std::span<const OpEntry> contrib_ops();
std::span<const OpEntry> contrib_attention_ops();
std::span<const OpEntry> contrib_decoder_ops();
std::span<const OpEntry> contrib_expert_ops();
std::span<const OpEntry> contrib_image_ops();
std::span<const OpEntry> contrib_quantize_ops();

const OpEntry* find_op(const proto::Node& node);  // or null

}  // namespace heddle::import
