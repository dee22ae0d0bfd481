// Strings in a graph: which nodes accept them.
#include <algorithm>

#include "import/onnx_importer.h"

namespace heddle::import {
namespace {

bool is_text(const Value* value) {
  return value != nullptr &&
         (value->text || std::any_of(value->elements.begin(), value->elements.end(), is_text));
}

}  // namespace

bool moves_texts(const OpEntry& entry, const proto::Node& node, const std::vector<Value*>& inputs) {
  if (!std::any_of(inputs.begin(), inputs.end(), is_text)) return false;
  if (entry.text == Text::refused)
    fail("{}: an input holds strings, of which this operator makes nothing here", describe(node));
  return entry.text == Text::passes;
}

void mark_texts(Outputs& outputs) {
  for (Output& output : outputs) {
    mark_texts(output.elements);
    if (output.same != nullptr || (output.instr == nullptr && !output.literal)) continue;
    const Shape& shape = output.literal ? output.literal->shape() : output.instr->shape();
    output.is_text = output.is_text || shape.type() == tensor::kTextType;
  }
}

}  // namespace heddle::import
