#include "input_rounding.h"

#include <fmt/format.h>

#include <algorithm>

#include "report.h"

namespace heddle::tools {

using quantize::Layer;

namespace {

int64_t inputs_of(const import::OnnxEdit& model, const Layer& layer) {
  return model.dims_of(layer.weights)[static_cast<size_t>(1 - layer.axis)];
}

}  // namespace

void InputRounding::add_outputs(const std::vector<Layer>& layers, const quantize::Plan& plan,
                                import::OnnxEdit* model, std::vector<std::string>* notes) {
  std::map<std::string, int> readers;
  for (const Layer& layer : layers) readers[layer.weights] += layer.blocks ? 1 : 0;
  int64_t elems = 0, left_out = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    const Layer& layer = layers[i];
    if (!plan.chosen[i] || !layer.blocks || readers.at(layer.weights) > 1) continue;
    const auto known = inputs_.find(layer.input);
    if (known == inputs_.end()) {
      const int64_t k = inputs_of(*model, layer);
      if (k > quantize::kMostGramWidth || elems + k * k > quantize::kMostGramElems) {
        ++left_out;
        continue;
      }
      elems += k * k;
      inputs_[layer.input].outputs = quantize::add_gram(model, layer);
    }
    inputs_[layer.input].layers.push_back(i);
  }
  if (left_out > 0)
    notes->push_back(fmt::format(
        "GPTQ: {} layers are rounded to nearest; it takes at most {} inputs, and {} for all sums",
        left_out, quantize::kMostGramWidth, bytes_text(4 * quantize::kMostGramElems)));
}

std::vector<std::string> InputRounding::outputs() const {
  std::vector<std::string> names;
  for (const auto& [name, input] : inputs_)
    names.insert(names.end(), {input.outputs.sum, input.outputs.rows});
  return names;
}

Status InputRounding::round(const import::OnnxEdit& model, const std::vector<Layer>& layers,
                            int64_t block, Collected* seen, quantize::Plan* plan,
                            Progress* progress) {
  int64_t done = 0;
  for (const auto& [name, input] : inputs_) {
    progress->show(
        fmt::format("{} rounding", Progress::bar(done++, static_cast<int64_t>(inputs_.size()))));
    const auto factor = quantize::GramFactor::of(
        seen->sums.at(input.outputs.sum), inputs_of(model, layers[input.layers[0]]),
        static_cast<double>(seen->sums.at(input.outputs.rows)[0]));
    seen->sums.erase(input.outputs.sum);
    if (!factor) continue;
    for (size_t i : input.layers) {
      if (Interrupt::asked()) return cancelled_error("stopped while rounding");
      HEDDLE_ASSIGN_OR_RETURN(const tensor::Literal weights,
                              quantize::value_now(model, *plan, layers[i].weights));
      quantize::Gptq made = quantize::gptq_blocks(weights, layers[i].axis, block, *factor);
      ratios_[i] = made.plain_error > 0 ? made.error / made.plain_error : 1;
      plan->blocks.insert_or_assign(i, std::move(made.blocks));
    }
  }
  return {};
}

}  // namespace heddle::tools
