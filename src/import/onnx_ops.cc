#include "import/onnx_ops.h"

#include <unordered_map>

namespace heddle::import {

const OpEntry* find_op(const proto::Node& node) {
  static const auto* const table = [] {
    auto* entries = new std::unordered_map<std::string_view, const OpEntry*>();
    for (auto family : {unary_ops,
                        activation_ops,
                        binary_ops,
                        shape_ops,
                        slice_ops,
                        gather_ops,
                        generate_ops,
                        reduce_ops,
                        order_ops,
                        matmul_ops,
                        einsum_ops,
                        conv_ops,
                        pool_ops,
                        norm_ops,
                        resize_ops,
                        attention_ops,
                        sequence_ops,
                        recurrent_ops,
                        quantize_ops,
                        loss_ops,
                        sample_ops,
                        region_ops,
                        signal_ops,
                        dynamic_ops,
                        linear_algebra_ops,
                        sequence_model_ops,
                        contrib_ops,
                        contrib_attention_ops,
                        contrib_decoder_ops,
                        contrib_expert_ops,
                        contrib_image_ops,
                        contrib_quantize_ops,
                        ml_tree_ops,
                        ml_linear_ops,
                        ml_vector_ops,
                        ml_feature_ops,
                        ml_label_ops,
                        random_ops,
                        text_ops}) {
      for (const OpEntry& entry : family())
        HEDDLE_CHECK(entries->emplace(entry.name, &entry).second, "{} twice", entry.name);
    }
    return entries;
  }();
  const std::string_view domain = normal_domain(node.domain);
  const std::string name =
      domain.empty() ? std::string(node.op_type) : fmt::format("{}.{}", domain, node.op_type);
  const auto found = table->find(name);
  return found != table->end() ? found->second : nullptr;
}

}  // namespace heddle::import
