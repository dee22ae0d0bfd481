// The operator table: one row per handler, one function per family (onnx_<family>.cc).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "import/onnx_op.h"

namespace heddle::import {

using Handler = Outputs (*)(Op& op);

// Handling of string inputs (ids, tensor/vocabulary.h) by an operator.
enum class Text {
  refused,
  passes,  // moves or compares elements: outputs of the ids' type are strings again
  read,    // handled by the operator's handler, which marks outputs that are strings (Output::text)
};

struct OpEntry {
  std::string_view name;          // for domains other than ai.onnx: "domain.Name"
  int least_inputs, most_inputs;  // most: -1 is any number
  Handler handler;
  bool folds = true;  // over constants; false: passes recognise its operators
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
std::span<const OpEntry> region_ops();
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
